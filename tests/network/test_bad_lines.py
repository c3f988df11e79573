"""Lines that are slow, narrow, or go silent: a proxy stands between party and server, or the wire is taken away."""

import os
import selectors
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.node.certificates import new_certificates
from colonnade.transports.grpc.wire import QUEUE_FACTOR
from network_trial import COMMAND, PartyThread, Trial, events, free_port, write_federation_file, write_party_file

SPACE, HERE, THERE = f"colonnade{os.getpid()}", f"cnh{os.getpid()}", f"cnt{os.getpid()}"
JOBS: list[dict[str, object]] = [
    {
        "do": "fit",
        "task": {"kind": "regression", "l2": 0.1},
        "sampler": {"kind": "importance", "size": 150, "scores": "plain"},
        "solver": {"kind": "saga", "batch": 1, "tolerance": 1e-4},
        "out": "saga",
    }
]


class Proxy:
    """Forwards connections, late, slowly, or not at all: a cut line drops nothing and says nothing."""

    def __init__(self, target: int, *, delay: float = 0.0, bytes_a_second: float = float("inf")) -> None:
        self._target, self._delay, self._rate = target, delay, bytes_a_second
        self._open_line = threading.Event()
        self._open_line.set()
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._open_line.clear()

    def mend(self) -> None:
        self._open_line.set()

    def close(self) -> None:
        self._closed = True
        self._open_line.set()
        for each in self._sockets:
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._closed:
                near, _ = self._listener.accept()
                self._sockets.append(near)
                self._open_line.wait()
                try:
                    far = socket.create_connection(("127.0.0.1", self._target))
                except ConnectionRefusedError:  # the server is not up yet
                    near.close()
                    continue
                self._sockets.append(far)
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        waiting: list[tuple[float, bytes]] = []
        ended = False
        with suppress(OSError, ValueError), selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            while not self._closed and not (ended and not waiting):
                pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 0.5
                if not ended and selector.select(pause):
                    data = source.recv(1 << 14)
                    ended = not data
                    waiting.append((time.monotonic() + self._delay, data))
                elif ended:
                    time.sleep(pause)
                while waiting and waiting[0][0] <= time.monotonic():
                    self._open_line.wait()
                    data = waiting.pop(0)[1]
                    sink.sendall(data)
                    time.sleep(len(data) / self._rate)
            sink.shutdown(socket.SHUT_WR)


def make_parties(n_rows: int = 60) -> list[cn.Party]:
    rng = np.random.default_rng(0)
    return [
        cn.Party("bank", rng.normal(size=(n_rows, 2)), label=rng.normal(size=n_rows)),
        cn.Party("shop", rng.normal(size=(n_rows, 2))),
    ]


def over_a_line(
    folder: Path,
    job: Callable[[cn.Federation], cn.Run[cn.LinearModel]],
    n_rows: int = 60,
    during: Callable[[Proxy], None] = lambda _: None,
    keepalive: float = 1.0,
    **line: float,
) -> tuple[cn.Run[cn.LinearModel], list[str]]:
    """Do a job while the shop is at the end of such a line; give the run, and what the server's log says of shop."""
    new_certificates(folder / "certs", ["bank", "shop"])
    port = free_port()
    path = write_federation_file(folder, ["bank", "shop"], port, keepalive_seconds=keepalive)
    bank, shop = make_parties(n_rows)
    proxy = Proxy(port, **line)
    threads = [
        PartyThread(folder, bank, port, keepalive_seconds=keepalive),
        PartyThread(folder, shop, proxy.port, keepalive_seconds=keepalive),
    ]
    try:
        with cn.Federation.connect(path) as federation:
            disturbing = threading.Thread(target=during, args=(proxy,))
            disturbing.start()
            run = job(federation)
            disturbing.join()
        for thread in threads:
            thread.join()
    finally:
        proxy.close()
    seen = [line["event"] for line in events(folder / "server-state" / "log.jsonl") if line.get("party") == "shop"]
    return run, seen


def central(federation: cn.Federation) -> cn.Run[cn.LinearModel]:
    return federation.fit(cn.Regression(), sampler=cn.AllRows())


def saga(federation: cn.Federation) -> cn.Run[cn.LinearModel]:
    return federation.fit(
        cn.Regression(l2=0.1), sampler=cn.AllRows(), solver=cn.Saga(batch=1, tolerance=1e-12, max_epochs=40)
    )


def same(run: cn.Run[cn.LinearModel], wanted: cn.Run[cn.LinearModel]) -> bool:
    return run.model.coef_.tobytes() == wanted.model.coef_.tobytes() and run.ledger == wanted.ledger


def test_a_line_that_takes_100_ms_each_way(tmp_path: Path) -> None:
    started = time.monotonic()
    run, seen = over_a_line(tmp_path, central, delay=0.1)
    assert same(run, central(cn.Federation(make_parties())))
    assert time.monotonic() - started > 0.6, "hello and two rounds, there and back"
    assert seen[0] == "joined"
    assert "left" not in seen[:-1], "a slow line is no broken line"


def test_a_narrow_line(tmp_path: Path) -> None:
    started = time.monotonic()
    run, seen = over_a_line(tmp_path, central, n_rows=20_000, bytes_a_second=200_000)
    assert same(run, central(cn.Federation(make_parties(20_000))))
    assert time.monotonic() - started > 320_000 / 200_000, "20,000 rows of two numbers"
    assert "left" not in seen[:-1], "a busy line is no broken line"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)  # noqa: S607  # wherever it is


@pytest.fixture
def wire() -> Iterator[str]:
    """Make a namespace at the end of a wire, and give this end's address."""
    try:
        ip("netns", "add", SPACE)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("network namespaces need iproute2 and the right to make them")
    try:
        ip("link", "add", HERE, "type", "veth", "peer", "name", THERE)
        ip("link", "set", THERE, "netns", SPACE)
        ip("addr", "add", "10.211.7.1/30", "dev", HERE)
        ip("link", "set", HERE, "up")
        ip("-n", SPACE, "addr", "add", "10.211.7.2/30", "dev", THERE)
        ip("-n", SPACE, "link", "set", THERE, "up")
        yield "10.211.7.1"
    finally:
        ip("netns", "del", SPACE)


@pytest.mark.slow(sampled=False)
def test_ten_seconds_without_a_wire(tmp_path: Path, wire: str) -> None:
    with Trial(tmp_path, JOBS) as trial:
        trial.federation_file = write_federation_file(
            tmp_path, trial.names, trial.port, job=JOBS, listen=f"{wire}:{trial.port}"
        )
        for name in trial.names:
            trial.party_files[name] = write_party_file(tmp_path, name, trial.port, server=f"{wire}:{trial.port}")
        server = trial.start_server()
        parties = [trial.start_party("bank"), trial.start_party("telephone")]
        away = ["ip", "netns", "exec", SPACE, *COMMAND]
        parties.append(trial.start("party", str(trial.party_files["shop"]), "--once", command=away))
        log = tmp_path / "server-state" / "log.jsonl"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (log.exists() and '"solving"' in log.read_text()):
            time.sleep(0.05)
        time.sleep(0.1)
        ip("link", "set", HERE, "down")
        time.sleep(10)
        assert any(line["event"] == "left" and line["party"] == "shop" for line in events(log)), "it was noticed"
        ip("link", "set", HERE, "up")
        said, _ = server.communicate(timeout=60)
        assert server.returncode == 0, said
        assert [party.wait(20) for party in parties] == [0, 0, 0]
    job = {"sampler": cn.ImportanceSampling(size=150, scores="plain"), "solver": cn.Saga(batch=1, tolerance=1e-4)}
    parts = [
        cn.Party(name, tmp_path / f"{name}.csv", key="customer", label="card_spending" if name == "bank" else None)
        for name in Trial.names
    ]
    wanted = cn.Federation(parts).fit(cn.Regression(l2=0.1), **job)  # type: ignore[arg-type]
    found = cn.Run.load(tmp_path / "saga")
    assert found.model.coef_.tobytes() == wanted.model.coef_.tobytes()
    assert found.ledger == wanted.ledger


@pytest.mark.filterwarnings("ignore:Saga stopped")
@pytest.mark.parametrize(
    ("seconds", "keepalive"), [(6.0, 0.3), pytest.param(10.0, 1.0, marks=pytest.mark.slow(sampled=False))]
)
def test_a_line_that_is_cut_without_a_word(tmp_path: Path, seconds: float, keepalive: float) -> None:
    noticed: list[float] = []

    def cut(proxy: Proxy) -> None:
        time.sleep(0.5)
        proxy.cut()
        started = time.monotonic()
        log = tmp_path / "server-state" / "log.jsonl"
        while time.monotonic() < started + seconds:
            if not noticed and any(line["event"] == "left" for line in events(log)):
                noticed.append(time.monotonic() - started)
            time.sleep(0.05)
        proxy.mend()

    run, seen = over_a_line(tmp_path, saga, during=cut, keepalive=keepalive)
    assert same(run, saga(cn.Federation(make_parties())))
    assert noticed, "keep-alive noticed that the line was silent"
    assert noticed[0] < (2 + QUEUE_FACTOR) * keepalive + 3.0
    assert seen.count("joined") >= 2
