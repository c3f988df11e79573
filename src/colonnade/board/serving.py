"""A board as a process of its own: where it listens, and how it ends."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from colonnade.board.app import Board, BoardApp
from colonnade.board.door import Door
from colonnade.board.guard import Place
from colonnade.board.patience import PatientProtocol
from colonnade.errors import InputError, TransportError
from colonnade.node.files import is_loopback

MAX_CONNECTIONS = 128
# A browser that takes nothing for so long is let go, whatever waits for it.
STUCK_MILLISECONDS = 30_000
ANYWHERE = ("0.0.0.0", "::")  # noqa: S104  # named so that a board there is asked for its name


class Tls:
    """The certificate of a board, and its key."""

    def __init__(self, certificate: Path | None, key: Path | None) -> None:
        if (certificate is None) != (key is None):
            raise InputError("--tls-certificate and --tls-key belong together: give both, or leave out both.")
        self.certificate, self.key = certificate, key
        self.is_given = certificate is not None

    def check(self) -> None:
        """Require files that can be read and belong together."""
        if self.certificate is None:
            return
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"The board's certificate cannot be used: {error}. Pass PEM files of one pair.") from error


def check_address(listen: str, tls: Tls) -> tuple[str, int]:
    """Require an address and a port: of this machine's loopback, unless there is TLS."""
    name, _, port = listen.rpartition(":")
    name = name.strip("[]")
    if not name or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"--listen {listen!r} is no address and port. Write for instance 127.0.0.1:8143.")
    if not is_loopback(listen) and not tls.is_given:
        raise InputError(
            f"--listen {listen}: without TLS anyone on the way could read the token and all else. Listen on 127.0.0.1, "
            "or give --tls-certificate and --tls-key."
        )
    tls.check()
    return name, int(port)


@contextmanager
def listening(
    board: Board, door: Door, listen: str, tls: Tls, names: list[str]
) -> Iterator[tuple[Place, Callable[[], None], Callable[[], None]]]:
    """Listen; give where, what answers until it is stopped, and what stops it."""
    name, port = check_address(listen, tls)
    called = _names(name, names)
    with socket.socket(socket.AF_INET6 if ":" in name else socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux: connections inherit it
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STUCK_MILLISECONDS)
        try:
            listener.bind((name, port))
            listener.listen(MAX_CONNECTIONS)
        except OSError as error:
            raise TransportError(f"The board cannot listen at {listen}: {error}. Choose another --listen.") from error
        place = Place(called, listener.getsockname()[1], is_tls=tls.is_given)
        server = uvicorn.Server(
            uvicorn.Config(
                BoardApp(board, door, place).app(),
                http=PatientProtocol,
                ws="none",
                lifespan="off",
                log_level="critical",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=MAX_CONNECTIONS,
                timeout_graceful_shutdown=1,
                ssl_certfile=tls.certificate,
                ssl_keyfile=tls.key,
            )
        )
        yield place, lambda: server.run(sockets=[listener]), lambda: setattr(server, "should_exit", True)


def _names(name: str, others: list[str]) -> list[str]:
    """List the names by which a board may be called: those it is given, its address, and this machine's own."""
    own = f"[{name}]" if ":" in name else name
    if name in ANYWHERE:
        if not others:
            raise InputError(f"--listen {name}: say by which --name browsers call this board, as its certificate does.")
        return [*others, "localhost", "127.0.0.1"]
    return [*others, own, *(["localhost", "127.0.0.1"] if is_loopback(f"{own}:0") else [])]
