"""What Colonnade's network transport costs beside plain gRPC, in the same run, on the same machine.

Three parties, each a process of its own, dial a server over mutual TLS on loopback, twice: once as Colonnade's parties
(envelopes, journals and logs at both ends), once as plain gRPC streams of the same messages, encoded and decoded by the
same codec and nothing else. Timed in turns:

    small     rounds a second, each party sent a few bytes and answering a few
    large     megabytes a second of one reply of 50 MB from one party

Seconds on a busy machine mean little; the bar is about the median of ratios of neighbours: Colonnade's rounds take at
most 1.5 times as long as plain gRPC's, and so do its megabytes. Exits with 0 if both hold, else 1.
"""

import argparse
import json
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import grpc
import numpy as np

from colonnade.catalogue import codec
from colonnade.messages import Message, sendable_floats
from colonnade.node.allowance import Allowance, DayLimits
from colonnade.node.certificates import new_certificates
from colonnade.node.desk import PartyDesk
from colonnade.node.files import FederationFile, IdentityFile
from colonnade.node.log import EventLog
from colonnade.node.server import NetworkServer
from colonnade.node.state_folder import StateFolder
from colonnade.protocol.run_purpose import RunPurpose
from colonnade.protocol.session import PartyState
from colonnade.sampling.selecting import Ready, UseAllRows
from colonnade.solvers.central import AskColumns, Columns
from colonnade.transports.endpoints import PartyEndpoint, Tls
from colonnade.transports.grpc import wire
from colonnade.transports.grpc.hub import Hub
from colonnade.transports.grpc.links import DaemonThreads
from colonnade.transports.grpc.party import GrpcParty

NAMES = ("one", "two", "three")
TIMES_PLAIN = 1.5
LARGE_BYTES = 50_000_000


def unlimited() -> list[tuple[str, Any]]:
    """Give the same options, but for the size of one gRPC message: plain gRPC sends 50 MB in one."""
    sizes = ("grpc.max_receive_message_length", "grpc.max_send_message_length")
    return [(name, -1 if name in sizes else value) for name, value in wire.options(10.0)]


class FixedSession:
    """Answers at once, so that only the carrying is timed."""

    def __init__(self) -> None:
        self.state = PartyState()
        self._large = Columns(sendable_floats(np.random.default_rng(0).normal(size=(LARGE_BYTES // 80, 10))), None)

    def greeted(self, run_nonce: bytes) -> "FixedSession":  # noqa: ARG002  # of the contract
        """Give itself: nothing depends on the run."""
        return self

    def answer(self, request: Message) -> Message:
        """Answer with a little, or with much."""
        return self._large if isinstance(request, AskColumns) else Ready()


def tls(folder: Path, name: str) -> Tls:
    """Name the certificates of one end."""
    return Tls(str(folder / "certs/ca.pem"), str(folder / f"certs/{name}.pem"), str(folder / f"certs/{name}.key"))


def colonnade_party(folder: Path, name: str, port: int) -> None:
    """Be a party of Colonnade's."""
    state = StateFolder(folder / f"{name}-state")
    endpoint = PartyEndpoint(name, f"127.0.0.1:{port}", tls=tls(folder, name))
    log = EventLog(state.path / "log.jsonl")
    session: Any = FixedSession()
    desk = PartyDesk(
        session,
        codec(),
        allowance=Allowance(state.path / "spent.json", "server", DayLimits(), None),
        folder=state,
        log=log,
    )
    GrpcParty(endpoint, desk, log.write, lambda _: None).serve(once=True)


def plain_party(folder: Path, name: str, port: int) -> None:
    """Be a party of a plain gRPC stream."""
    options: list[tuple[str, Any]] = [*unlimited(), ("grpc.ssl_target_name_override", "server")]
    session, messages = FixedSession(), codec()
    outgoing: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    outgoing.put(name.encode())
    with grpc.secure_channel(f"127.0.0.1:{port}", wire.dialling_credentials(tls(folder, name)), options) as channel:
        for request in channel.stream_stream("/plain/Join")(iter(outgoing.get, None), wait_for_ready=True):
            outgoing.put(messages.encode(session.answer(messages.decode(request))))


class PlainServer:
    """The least that makes rounds of streams."""

    def __init__(self, folder: Path, port: int) -> None:
        self._out: dict[str, queue.SimpleQueue[bytes | None]] = {name: queue.SimpleQueue() for name in NAMES}
        self._in: dict[str, queue.SimpleQueue[bytes]] = {name: queue.SimpleQueue() for name in NAMES}
        self._codec = codec()
        self._server = grpc.server(DaemonThreads(), options=unlimited())
        handler = grpc.stream_stream_rpc_method_handler(self._stream)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("plain", {"Join": handler}),))
        self._server.add_secure_port(f"127.0.0.1:{port}", wire.listening_credentials(tls(folder, "server")))
        self._server.start()

    def _stream(self, incoming: Iterator[bytes], _: Any) -> Iterator[bytes]:
        name = next(incoming).decode()

        def read() -> None:
            for data in incoming:
                self._in[name].put(data)

        threading.Thread(target=read, daemon=True).start()
        yield from iter(self._out[name].get, None)

    def round(self, names: tuple[str, ...], request: Message) -> list[Message]:
        """Ask each of these, and give what came back."""
        for name in names:
            self._out[name].put(self._codec.encode(request))
        return [self._codec.decode(self._in[name].get()) for name in names]

    def close(self) -> None:
        """Let the parties go."""
        for line in self._out.values():
            line.put(None)
        self._server.stop(2.0).wait()


def free_port() -> int:
    """Find a port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def processes(kind: str, folder: Path, port: int) -> Iterator[None]:
    """Start three parties, and see to it that they end."""
    command = [sys.executable, __file__, "--as", kind, "--folder", str(folder), "--port", str(port), "--name"]
    started = [subprocess.Popen([*command, name]) for name in NAMES]  # noqa: S603  # ourselves
    try:
        yield
    finally:
        for process in started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def seconds(action: Callable[[], object]) -> float:
    """Time one action."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def measure(folder: Path, rounds: int, repeats: int) -> dict[str, dict[str, list[float]]]:
    """Time both transports in turns: seconds of one small round and of one large reply, a number a repeat, for each."""
    ours_port, plain_port = free_port(), free_port()
    state, ours_tls = str(folder / "server-state"), tls(folder, "server")
    identity = IdentityFile(str(folder / "certs/server.identity"), str(folder / "certs/pins.toml"))
    file = FederationFile(list(NAMES), f"127.0.0.1:{ours_port}", state=state, tls=ours_tls, identity=identity)
    times: dict[str, dict[str, list[float]]] = {kind: {"small": [], "large": []} for kind in ("colonnade", "plain")}
    with processes("colonnade", folder, ours_port), processes("plain", folder, plain_port):
        ours, plain = NetworkServer(file, partial(Hub, on_waiting=lambda _: None)), PlainServer(folder, plain_port)
        ours.wait_for_all()
        plain.round(NAMES, UseAllRows())
        for repeat in range(repeats + 1):
            with ours.run(RunPurpose("bench", None, None, None, str(repeat))):
                small = seconds(lambda: [ours.exchange(dict.fromkeys(NAMES, UseAllRows())) for _ in range(rounds)])
                plain_small = seconds(lambda: [plain.round(NAMES, UseAllRows()) for _ in range(rounds)])
                large = seconds(lambda: ours.exchange({"one": AskColumns(with_label=False)}))
            plain_large = seconds(lambda: plain.round(("one",), AskColumns(with_label=False)))
            if repeat:  # the first warms up
                times["colonnade"]["small"].append(small / rounds)
                times["colonnade"]["large"].append(large)
                times["plain"]["small"].append(plain_small / rounds)
                times["plain"]["large"].append(plain_large)
        ours.close()
        plain.close()
    return times


def main() -> int:
    """Measure, print, and tell whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--as", dest="role", choices=["colonnade", "plain"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--name", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        (colonnade_party if options.role == "colonnade" else plain_party)(options.folder, options.name, options.port)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        new_certificates(Path(scratch) / "certs", NAMES)
        found = measure(Path(scratch), options.rounds, options.repeats)
    # Each repeat is compared with its neighbour: what else the machine does weighs on both.
    ratios = {
        size: median(a / b for a, b in zip(found["colonnade"][size], found["plain"][size], strict=True))
        for size in ("small", "large")
    }
    if options.json:
        print(json.dumps({"seconds": found, "ratios": ratios, "cores": os.cpu_count()}))
    else:
        for kind, times in found.items():
            small, large = median(times["small"]), median(times["large"])
            print(
                f"{kind:10}  {1 / small:8,.0f} rounds/s ({1e3 * small:.2f} ms)  {LARGE_BYTES / 1e6 / large:8,.0f} MB/s"
            )
        print(f"times plain: small {ratios['small']:.2f}, large {ratios['large']:.2f}; the bar is {TIMES_PLAIN}")
    return int(max(ratios.values()) > TIMES_PLAIN)


if __name__ == "__main__":
    sys.exit(main())
