"""A process that has imported everything, and forks the processes of a trial: they start in milliseconds.

Each is told where to die. Runs as a program: a line of JSON in, a line out.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from colonnade import failpoints
from colonnade.transports.envelopes import EncodedEnvelope


def name_of(point: str, about: object) -> str:
    """Say what a point is about: the kind of file or envelope."""
    if isinstance(about, EncodedEnvelope):
        return f"{point} {msgspec.msgpack.decode(about.head)[0]}"
    path = Path(f"/proc/self/fd/{about}").readlink() if isinstance(about, int) else Path(str(about))
    if re.search(r"-[0-9a-f]{12}\.", path.name):
        return f"{point} {'a' if path.suffix == '.journal' else 'a new'} journal"
    return f"{point} {re.sub('-[0-9a-f]{32}', '-NAME', path.name)}"


class Death:
    """Kills the process where it is told to, or writes down where it comes by."""

    def __init__(self, point: str, count: int, trace: str | None) -> None:
        self._point, self._count = point, count
        self._seen: Counter[str] = Counter()
        self._trace = None if trace is None else os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def reached(self, point: str, about: object) -> None:
        name = name_of(point, about)
        self._seen[name] += 1
        if self._trace is not None:
            os.write(self._trace, f"{name}\n".encode())
        if name == self._point and self._seen[name] == self._count:
            os.kill(os.getpid(), signal.SIGKILL)


def grow_up(order: dict[str, Any]) -> None:
    """Be a process of the trial."""
    out = os.open(order["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(out, stream)
    os.chdir(order["folder"])
    point, count = order["kill"] or ("", 0)
    failpoints.listen(Death(point, count, order["trace"]).reached)
    if order["arguments"][0] == "diagnose":
        diagnose(order["arguments"][1])
        return
    from colonnade.cli.main import main

    sys.argv = ["colonnade", *order["arguments"]]
    main()


def diagnose(path: str) -> None:
    """Be a server for the one verb that is no job."""
    import colonnade as cn
    from colonnade.node.state_folder import write_private

    with cn.Federation.connect(path) as federation:
        found = federation.diagnose(
            cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(60, scores="plain"), rows=60, seed=3
        )
        write_private(Path("diagnosis.txt"), str(found).encode())


# A fork takes one thread along, and the locks that others held: there must be no others.
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
# What a process of the trial would import as it goes, which takes longer than all else that it does.
WARM = (
    "colonnade.cli.main",
    "colonnade.transports.grpc.hub",
    "colonnade.transports.grpc.party",
    "grpc._channel",
    "pandas",
    "pyarrow.csv",
    "pyarrow.pandas_compat",
    "pyarrow.parquet",
    "pydantic",
    "sklearn.cluster",
)


def serve() -> None:
    """Fork and tell how it ended, as asked."""
    for module in WARM:
        with suppress(ImportError):
            import_module(module)
    assert len(list(Path("/proc/self/task").iterdir())) == 1
    for line in sys.stdin:
        order = json.loads(line)
        if "poll" in order:
            pid, status = os.waitpid(order["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        elif answer := os.fork():
            pass
        else:
            code = 1
            try:
                grow_up(order)
                code = 0
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


class Child:
    """A process that the nursery has forked."""

    def __init__(self, nursery: "Nursery", pid: int, out: Path) -> None:
        self._nursery, self.pid, self._out = nursery, pid, out
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            self._code = self._nursery.tell({"poll": self.pid})
        return self._code

    def wait(self, seconds: float) -> int:
        until = time.monotonic() + seconds
        while self.poll() is None:
            assert time.monotonic() < until, f"{self.pid} hangs. {self._nursery.last_words()}"
            time.sleep(0.005)
        assert self._code is not None
        return self._code

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)
            self.wait(20)

    def wait_until_it_says(self, words: str, seconds: float = 30.0) -> None:
        until = time.monotonic() + seconds
        while words not in self.said():
            assert self.poll() is None, f"it ended: {self.said()[-2000:]}"
            assert time.monotonic() < until, f"{self.pid} hangs. {self._nursery.last_words()}"
            time.sleep(0.005)

    def said(self) -> str:
        return self._out.read_text() if self._out.exists() else ""


class Nursery:
    """Starts the processes of a trial in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0
        self._children: list[Child] = []
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_THREAD, "PYTHONWARNINGS": "ignore"},
        )

    def start(self, *arguments: str, kill: tuple[str, int] | None = None, trace: Path | None = None) -> Child:
        """Start a process that dies at a point, the so many-th time that it comes by; or writes down all points."""
        self._count += 1
        out = self.folder / f"said-{self._count}.txt"
        order = {"arguments": arguments, "folder": str(self.folder), "out": str(out), "kill": kill}
        self._children.append(Child(self, self.tell({**order, "trace": trace and str(trace)}), out))
        return self._children[-1]

    def tell(self, order: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(order)}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def last_words(self) -> str:
        """Tell how the newest processes are, for whoever looks for what hangs."""
        return "\n".join(f"{child.pid}, {child.poll()}: {child.said()[-600:]}" for child in self._children[-6:])

    def close(self) -> None:
        for child in self._children:
            child.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


if __name__ == "__main__":
    serve()
