"""A party's own Dask cluster: its processes read the Parquet files from shared storage, and do the work on blocks.

Only results come back, in the order of blocks: they are added up here, as those of threads are. Dask sends functions
and their arguments as pickles, but only between the party's own machines; no message of a job is one.
"""

import os
import platform
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Generic, TypeVar

from colonnade.data.arithmetic import Arithmetic, arithmetic
from colonnade.data.engines import Readable, one_thread_each
from colonnade.errors import EngineError, InputError, UnsupportedError
from colonnade.kernels.blocks import Work

R = TypeVar("R")

# Tasks in flight for each thread of the cluster: one that it works on, one that waits.
IN_FLIGHT = 2
# How long a scheduler may be silent before its owner is told that it is waited for; Dask itself says nothing.
NOTICE_SECONDS = 1.5
# How long a cluster may have no process at all.
PATIENCE_SECONDS = 60.0
# Where nobody else listens, addresses may do without TLS.
ON_THIS_MACHINE = ("tcp://127.0.0.1:", "tcp://localhost:", "tcp://[::1]:", "inproc://")


@dataclass(frozen=True)
class DaskEngine:
    """A party's own work, done by the processes of its own Dask cluster.

    They read a table's Parquet files from storage that all of them see by the same paths. Results are those of this
    process, bit for bit: where a process has another version of Colonnade or NumPy, another BLAS or another kind of
    processor, that is an `EngineError`. Work of a process that is lost is done by another.

    Parameters
    ----------
    scheduler : str
        Address of Dask's scheduler, ``tls://machine:8786``; ``tcp://`` only on this machine. Certificates are those of
        Dask's own configuration (``distributed.comm.tls``).

    Examples
    --------
    >>> import colonnade as cn
    >>> cn.DaskEngine("tls://scheduler:8786")
    DaskEngine(scheduler='tls://scheduler:8786')
    """

    scheduler: str

    def __post_init__(self) -> None:
        if not isinstance(self.scheduler, str) or not self.scheduler.startswith(("tls://", *ON_THIS_MACHINE)):
            raise InputError(
                f"The address of a Dask scheduler is {self.scheduler!r}, and must be such as 'tls://machine:8786'; "
                "'tcp://' is for this machine only: whoever reads the line would see rows. Set up TLS, and name that."
            )
        if find_spec("distributed") is None:
            raise UnsupportedError("A Dask cluster needs the package distributed. Run: pip install 'colonnade[dask]'")

    def map(self, work: Work[R], rows: Readable, numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block, or of those with these numbers, ascending: in their order."""
        rows.check_unchanged()
        cluster = _Cluster(self.scheduler)
        most = cluster.n_threads() * IN_FLIGHT
        job = cluster.submit(_Job, work, rows)
        waiting: deque[Any] = deque()
        for piece in rows.pieces(numbers):
            if len(waiting) == most:
                yield from cluster.results(waiting.popleft())
            waiting.append(cluster.submit(_done, job, piece))
        while waiting:
            yield from cluster.results(waiting.popleft())
        rows.check_unchanged()


@dataclass(frozen=True, eq=False)
class _Job(Generic[R]):
    """What all tasks of a pass have in common: a task of its own, so that each process is sent it once."""

    work: Work[R]
    rows: Readable


@dataclass(frozen=True, eq=False)
class _Done(Generic[R]):
    """What a process made of some blocks, and which process that was."""

    machine: str
    how: Arithmetic
    results: list[R]


def _done(job: _Job[R], numbers: Sequence[int]) -> _Done[R]:
    """Work on blocks: this runs on a process of the cluster."""
    with one_thread_each():
        results = [job.work(block) for block in job.rows.seen_from_here().blocks(numbers)]
    return _Done(f"{platform.node()} (process {os.getpid()})", arithmetic(), results)


class _Cluster:
    """The line to a cluster. It stays open between passes: to open one takes longer than many a pass."""

    _lines: ClassVar[dict[str, Any]] = {}

    def __init__(self, scheduler: str) -> None:
        self._scheduler = scheduler
        line = self._lines.get(scheduler)
        self._line = line if line is not None and line.status == "running" else self._opened()

    def _opened(self) -> Any:
        import dask
        from dask.utils import parse_timedelta
        from distributed import Client
        from distributed.security import Security

        if self._scheduler.startswith("tls://") and not Security().get_connection_args("client").get("ssl_context"):
            raise self._error(
                "is not reached: Dask has no certificates for TLS. Set distributed.comm.tls in its configuration, "
                "~/.config/dask/distributed.yaml"
            )
        patience = parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))
        try:
            try:
                line = Client(self._scheduler, set_as_default=False, timeout=min(NOTICE_SECONDS, patience))
            except OSError:
                if patience <= NOTICE_SECONDS:
                    raise
                warnings.warn(
                    f"Waiting for the Dask scheduler at {self._scheduler}, for {patience:g} seconds at most.",
                    stacklevel=2,
                )
                line = Client(self._scheduler, set_as_default=False, timeout=patience - NOTICE_SECONDS)
        except (OSError, ValueError, TypeError, RuntimeError) as error:  # as it calls what is wrong with certificates
            raise self._error(
                f"is not reached: {error}. Start it, or correct its address or Dask's settings"
            ) from error
        self._lines[self._scheduler] = line
        return line

    def n_threads(self) -> int:
        """Count the threads that work; wait for the first process where there is none yet."""
        from distributed import TimeoutError as TooLate

        try:
            self._line.wait_for_workers(1, timeout=PATIENCE_SECONDS)
        except TooLate:
            raise self._no_process() from None
        return sum(self._line.nthreads().values())

    def submit(self, function: Callable[..., object], *arguments: object) -> Any:
        """Have a function called by one of the processes; by another one, where that is lost."""
        import dask

        # A column of row weights makes a job large, and there is no smaller one.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return self._line.submit(function, *arguments, pure=False)

    def results(self, task: Any) -> list[Any]:
        """Wait for a task: what it made of its blocks. One from a process that computes otherwise is none."""
        from distributed import CancelledError, KilledWorker

        try:
            self._wait(task)
            done: _Done[Any] = task.result()
        except KilledWorker as error:
            what = f"lost one process after another while they worked: {error}"
            raise self._error(f"{what}. See their own logs: they may be short of memory") from error
        except CancelledError as error:
            raise self._error("was lost in the middle of a pass. Start it, and run again") from error
        if (difference := arithmetic().difference(done.how)) is not None:
            what = f"computes otherwise on {done.machine} than here: {difference}"
            raise self._error(
                f"{what}. Results would differ in their last bits: have the same packages and one kind of processor on "
                "all machines, or take this one out of the cluster"
            )
        return done.results

    def _wait(self, task: Any) -> None:
        from distributed import TimeoutError as TooLate
        from distributed import wait

        while True:
            try:
                with self._line.as_current():
                    wait(task, timeout=PATIENCE_SECONDS)
            except TooLate:
                if not self._line.nthreads():
                    raise self._no_process() from None
            else:
                return

    def _no_process(self) -> EngineError:
        return self._error(f"has had no process for {PATIENCE_SECONDS:g} seconds. Start some")

    def _error(self, what: str) -> EngineError:
        return EngineError(f"The Dask cluster at {self._scheduler} {what}.")
