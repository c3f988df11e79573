"""Two thousand strangers at a server that may open a thousand files: its run goes on as if nobody had come."""

import resource
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import colonnade as cn
from colonnade.transports.grpc import hub
from network_trial import BANK_FIT, COMMAND, Trial, bank_fit, events, until

N_STRANGERS, FILES = 2000, 1024
MOST_MEGABYTES = 40


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process hold the strangers' ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < N_STRANGERS + 500:
        pytest.skip(f"{N_STRANGERS} sockets need more open files than this machine allows ({hard})")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, N_STRANGERS + 500), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def megabytes(process: "subprocess.Popen[str]") -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def files(process: "subprocess.Popen[str]") -> int:
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


def is_closed(line: socket.socket) -> bool:
    line.setblocking(False)
    try:
        return line.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@contextmanager
def strangers(port: int) -> Iterator[list[socket.socket]]:
    """Dial in so often; every other one says half a word of TLS."""
    lines = []
    try:
        for number in range(N_STRANGERS):
            lines.append(socket.create_connection(("127.0.0.1", port), timeout=10))
            if number % 2:
                try:
                    lines[-1].sendall(b"\x16\x03\x01")
                except OSError:  # it is closed already
                    continue
        yield lines
    finally:
        for line in lines:
            line.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at a process in /proc")
@pytest.mark.usefixtures("many_files")
def test_two_thousand_strangers_under_a_limit_of_a_thousand_files(tmp_path: Path) -> None:
    limited = ["sh", "-c", f'ulimit -n {FILES} && exec "$@"', "sh", *COMMAND]
    with Trial(tmp_path, [BANK_FIT]) as trial:
        log = tmp_path / "server-state" / "log.jsonl"

        def joined() -> set[str]:
            return {line["party"] for line in events(log) if line["event"] == "joined"} if log.exists() else set()

        server = trial.start("server", str(trial.federation_file), command=limited)
        bank, telephone = trial.start_party("bank"), trial.start_party("telephone")
        until(lambda: joined() == {"bank", "telephone"})
        before = megabytes(server)
        shop = trial.start_party("shop")
        until(lambda: len(joined()) == 3)
        shop.send_signal(signal.SIGSTOP)  # the run cannot end before the strangers have come
        with strangers(trial.port) as lines:
            until(lambda: sum(map(is_closed, lines)) >= N_STRANGERS - hub.STRANGERS - 20)
            assert files(server) < FILES - hub.FILES_FOR_RUNS
            assert megabytes(server) < before + MOST_MEGABYTES
            shop.send_signal(signal.SIGCONT)
            said, _ = server.communicate(timeout=60)
            assert server.returncode == 0, said
            assert [party.wait(30) for party in (bank, telephone, shop)] == [0, 0, 0]
    found = cn.Run.load(tmp_path / "fitted")
    assert found.model.coef_.tobytes() == bank_fit().model.coef_.tobytes()
    assert [line["event"] for line in events(log) if line["event"] == "status not written"] == []
