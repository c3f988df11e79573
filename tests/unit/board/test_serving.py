"""Where a board listens: on loopback, or with TLS under a name."""

import ssl
import threading
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from board_trial import TOKEN, MadeBoard
from colonnade.board.door import Door
from colonnade.board.serving import Tls, check_address, listening
from colonnade.errors import InputError, TransportError
from colonnade.node.certificates import new_certificates
from command import run

NO_TLS = Tls(None, None)


@pytest.mark.parametrize("listen", ["0.0.0.0:8143", "192.0.2.1:8143", "board.example.org:8143", "[::]:8143"])
def test_elsewhere_than_on_loopback_there_is_tls_or_no_board(listen: str) -> None:
    with pytest.raises(InputError, match="without TLS anyone"):
        check_address(listen, NO_TLS)


@pytest.mark.parametrize("listen", ["8143", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:99999", ":8143"])
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(InputError, match="no address and port"):
        check_address(listen, NO_TLS)


def test_certificate_and_key_belong_together(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="belong together"):
        Tls(tmp_path / "board.pem", None)
    with pytest.raises(InputError, match="cannot be used"):
        check_address("127.0.0.1:0", Tls(tmp_path / "board.pem", tmp_path / "board.key"))


def test_a_port_that_is_taken_is_said() -> None:
    with (
        listening(MadeBoard(), Door(TOKEN), "127.0.0.1:0", NO_TLS, []) as (place, _, _),
        pytest.raises(TransportError, match="cannot listen"),
        listening(MadeBoard(), Door(TOKEN), f"127.0.0.1:{place.port}", NO_TLS, []),
    ):
        pass


def test_with_tls_names_are_those_given(tmp_path: Path) -> None:
    new_certificates(tmp_path / "certs", ["bank"])
    tls = Tls(tmp_path / "certs" / "server.pem", tmp_path / "certs" / "server.key")
    with listening(MadeBoard(), Door(TOKEN), "127.0.0.1:0", tls, ["board.example.org"]) as (place, answer, stop):
        assert place.url() == f"https://board.example.org:{place.port}/"
        thread = threading.Thread(target=answer)
        thread.start()
        trusting = ssl.create_default_context(cafile=str(tmp_path / "certs" / "ca.pem"))
        trusting.check_hostname = False
        line = HTTPSConnection("127.0.0.1", place.port, context=trusting, timeout=20)
        try:
            name = f"board.example.org:{place.port}"
            line.request("POST", "/login", f'{{"token": "{TOKEN}"}}', {"Host": name, "Origin": f"https://{name}"})
            found = line.getresponse()
            assert found.status == 200
            assert found.getheader("set-cookie") is None
        finally:
            line.close()
            stop()
            thread.join(20)


def test_a_board_for_everywhere_needs_a_name(tmp_path: Path) -> None:
    new_certificates(tmp_path / "certs", ["bank"])
    tls = Tls(tmp_path / "certs" / "server.pem", tmp_path / "certs" / "server.key")
    anywhere = "[::]:0"
    assert check_address(anywhere, tls) == ("::", 0)
    with (
        pytest.raises(InputError, match="--name"),
        listening(MadeBoard(), Door(TOKEN), anywhere, tls, []),
    ):
        pass


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nowhere.toml",), 3, "Cannot read nowhere.toml"),
        (("nowhere.toml", "--listen", "0.0.0.0:8143"), 3, "without TLS"),
        (("nowhere.toml", "--tls-key", "x"), 3, "belong together"),
    ],
)
def test_the_command_says_what_is_wrong(arguments: tuple[str, ...], code: int, words: str) -> None:
    done = run("board", *arguments)
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr
