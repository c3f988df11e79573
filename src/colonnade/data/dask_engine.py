"""A party's own Dask cluster: its processes read the Parquet files from shared storage, and do the work on blocks.

Only results come back, in the order of blocks: they are added up here, as those of threads are. Dask sends functions
and their arguments as pickles, but only between the party's own machines; no message of a job is one.
"""

import inspect
import re
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import islice
from operator import is_
from threading import Lock, Timer
from typing import Any, ClassVar, TypeVar

from colonnade.data import arithmetic as arithmetics
from colonnade.data.arithmetic import arithmetic, difference, machine
from colonnade.data.engines import Readable, one_thread_each
from colonnade.errors import ColonnadeError, EngineError, InputError, UnsupportedError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS, Work, n_blocks_of
from colonnade.kernels.per_row import HeldNumbers, PerRow

R = TypeVar("R")

# Tasks in flight for each thread of the cluster: one that it works on, one that waits.
IN_FLIGHT = 2
# What the results of a task may take, at a process and here; one block's may take more.
RESULT_BYTES = 1 << 27
# Passes that are worked ahead, window by window: as many jobs as apply a model at a time.
MOST_AHEAD = 4
_KEEPING = Lock()
# What processes are asked in words, so that those with another Colonnade, or none, can answer.
CALL = "__import__('colonnade.data.dask_engine', fromlist=['work_on']).work_on(*task)"
LOOK = "exec(text, look := {}) or (look['machine'](), look['arithmetic']())"
# How long a scheduler may be silent before its owner is told that it is waited for; Dask itself says nothing.
NOTICE_SECONDS = 1.5
# How long a cluster may have no process at all.
PATIENCE_SECONDS = 60.0
# Where nobody else listens, addresses may do without TLS.
ON_THIS_MACHINE = re.compile(r"tcp://(127\.0\.0\.1|localhost|\[::1\])(:|/|$)|inproc://")


@dataclass(frozen=True)
class DaskEngine:
    """A party's own work, done by the processes of its own Dask cluster.

    They read a table's Parquet files from storage that all of them see by the same paths. Results are those of this
    process, bit for bit: where a process has another version of Colonnade, Python, NumPy, SciPy or pyarrow, another
    BLAS or another kind of processor, that is an `EngineError`. Work of a process that is lost is done by another.

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
    _ahead: list["_Ahead"] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        address = self.scheduler if isinstance(self.scheduler, str) else ""
        if not address.startswith("tls://") and not ON_THIS_MACHINE.match(address):
            raise InputError(
                f"The address of a Dask scheduler is {self.scheduler!r}, and must be such as 'tls://machine:8786'; "
                "'tcp://' is for this machine only: whoever reads the line would see rows. Set up TLS, and name that."
            )
        if not address.startswith("inproc://") and not re.search(r":\d+/*$", address):
            raise InputError(
                f"The address of a Dask scheduler is {address!r}, and has no port. Add the one that it listens on, "
                f"which is 8786 if nothing else was said: {address.rstrip(':/') + ':8786'!r}."
            )
        if find_spec("distributed") is None:
            raise UnsupportedError("A Dask cluster needs the package distributed. Run: pip install 'colonnade[dask]'")

    def __reduce__(self) -> tuple[Any, ...]:
        return DaskEngine, (self.scheduler,)  # what was begun stays here

    def map(self, work: Work[R], rows: Readable, numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block, or of those with these numbers, ascending: in their order.

        Who asks for blocks that follow each other will ask for the next: these are worked on already.
        """
        rows.check_unchanged()
        order, n_blocks = _Order.of(work, rows), n_blocks_of(rows.n_rows)
        if isinstance(numbers, range) and numbers.step == 1 and len(numbers) < n_blocks:
            results = self._gone_on_with(order, numbers.start) or self._results(order, range(numbers.start, n_blocks))
            yield from islice(results, len(numbers))
            if numbers.stop < n_blocks:
                self._keep(_Ahead(order, numbers.stop, results))
        else:
            yield from self._results(order, numbers)
        rows.check_unchanged()

    def _gone_on_with(self, order: "_Order", first: int) -> Iterator[Any] | None:
        with _KEEPING:
            found = next((each for each in self._ahead if each.first == first and each.order.is_same(order)), None)
            if found is None:
                return None
            self._ahead.remove(found)
        found.timer.cancel()
        return found.results

    def _keep(self, ahead: "_Ahead") -> None:
        """Keep what was begun until the next window is asked for, unless that takes long: the job may have ended."""
        ahead.timer = Timer(PATIENCE_SECONDS, self._gone_on_with, (ahead.order, ahead.first))
        ahead.timer.daemon = True
        with _KEEPING:
            for other in self._ahead[: 1 - MOST_AHEAD]:
                self._ahead.remove(other)
                other.timer.cancel()
            self._ahead.append(ahead)
        ahead.timer.start()

    def _results(self, order: "_Order", numbers: Sequence[int] | None) -> Iterator[Any]:
        """Work on blocks as pieces of them, of which some are in flight; what a task left undone is cut anew."""
        cluster = _Cluster(self.scheduler)
        most, most_blocks = cluster.n_threads() * IN_FLIGHT, order.most_blocks
        job = cluster.submit(tuple, (arithmetic(), order.work, _as_bytes(order.rows)))
        pieces, due = order.rows.pieces(numbers), deque[_Task]()
        while True:
            while len(due) < most and (piece := next(pieces, None)) is not None:
                due.extend(_cut(piece, most_blocks))
            for task in islice(due, most):
                if task.future is None:
                    task.future = cluster.submit(eval, CALL, {"task": (job, task.numbers, order.held_in(task.numbers))})
            if not due:
                return
            done = due.popleft()
            results = cluster.results(done.future)
            done.future = None
            if len(results) < len(done.numbers):
                most_blocks = len(results)
                due.extendleft(reversed(_cut(done.numbers[most_blocks:], most_blocks)))
            yield from results


@dataclass(eq=False)
class _Ahead:
    """What was begun beyond the blocks that were asked for: its results, from this block on."""

    order: "_Order"
    first: int
    results: Iterator[Any]
    timer: Any = None


@dataclass(eq=False)
class _Task:
    """Blocks that are worked on together, once there is a thread for them."""

    numbers: list[int]
    future: Any = None


def _cut(numbers: list[int], most: int) -> list[_Task]:
    return [_Task(numbers[first : first + most]) for first in range(0, len(numbers), most)]


@dataclass(frozen=True, eq=False)
class _Order:
    """Work, as bytes, on rows. Numbers that are held for each row are not in it: a task has those of its blocks."""

    work: bytes
    rows: Readable
    held: list[HeldNumbers]

    @classmethod
    def of(cls, work: Work[Any], rows: Readable) -> "_Order":
        shared, held = without_held(work)
        return cls(_as_bytes(shared), rows, held)

    @property
    def most_blocks(self) -> int:
        """How many blocks one task may be given, before it is known how much it makes of them."""
        return RESULT_BYTES // (8 * BLOCK_ROWS) if self.held else n_blocks_of(self.rows.n_rows)

    def is_same(self, other: "_Order") -> bool:
        """Tell whether it is the same work on the same rows."""
        held = [each.values for each in self.held], [each.values for each in other.held]
        return self.rows is other.rows and self.work == other.work and all(map(is_, *held))

    def held_in(self, numbers: Sequence[int]) -> list[dict[int, Floats]]:
        """Give the numbers held for rows of these blocks."""
        return [{number: each(number) for number in numbers} for each in self.held]


@dataclass(frozen=True)
class _Place:
    """Where numbers held for each row were in work, by their own number among such."""

    number: int


def without_held(work: Work[Any]) -> tuple[Any, list[HeldNumbers]]:
    """Give work without the numbers that are held for each row, and these."""
    held: list[HeldNumbers] = []

    def taken_out(each: Any) -> _Place:
        held.append(each)
        return _Place(len(held) - 1)

    return _swapped(work, HeldNumbers, taken_out), held


def _swapped(part: Any, kind: type, swap: Callable[[Any], Any]) -> Any:
    """Put something else in place of what is of this kind, in work and in what is bound to it."""
    swapped = partial(_swapped, kind=kind, swap=swap)
    if isinstance(part, kind):
        return swap(part)
    if isinstance(part, PerRow):
        return PerRow(part.n_rows, swapped(part.map), None, part.n_ones)
    if isinstance(part, partial):
        bound = {name: swapped(each) for name, each in part.keywords.items()}
        return partial(swapped(part.func), *map(swapped, part.args), **bound)
    return part


def work_on(
    job: tuple[dict[str, str], bytes, bytes], numbers: Sequence[int], held: list[dict[int, Floats]]
) -> tuple[str, dict[str, str], list[Any]]:
    """Work on blocks, as many as results may take memory for: this runs on a process of the cluster.

    It looks into nothing that was sent by a process that computes otherwise.
    """
    wanted, packed, rows = job
    how, results, size = arithmetic(), list[Any](), 0
    if how != wanted:
        return machine(), how, []
    work = _swapped(_of_bytes(packed), _Place, lambda place: held[place.number].__getitem__)
    with one_thread_each():
        for block in _of_bytes(rows).seen_from_here().blocks(numbers):
            results.append(work(block))
            size += _n_bytes(results[-1])
            if size >= RESULT_BYTES:
                break
    return machine(), how, results


def _as_bytes(sent: object) -> bytes:
    """Write something as Dask sends it: a process need not read it before it knows that it can."""
    from distributed.protocol.serialize import serialize_bytes

    written: bytes = serialize_bytes(sent)
    return written


def _of_bytes(sent: bytes) -> Any:
    from distributed.protocol.serialize import deserialize_bytes

    return deserialize_bytes(sent)


def _n_bytes(result: Any) -> int:
    found: int = sum(map(_n_bytes, result)) if isinstance(result, tuple) else getattr(result, "nbytes", 0)
    return found


class _Cluster:
    """The line to a cluster. It stays open between passes: to open one takes longer than many a pass."""

    _lines: ClassVar[dict[str, Any]] = {}
    _asked: ClassVar[dict[str, set[str]]] = {}

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
        self._lines[self._scheduler], self._asked[self._scheduler] = line, set()
        return line

    def n_threads(self) -> int:
        """Count the threads that work; wait for the first process where there is none yet, and ask those that came."""
        self._wait_for_a_process()
        threads, asked = self._line.nthreads(), self._asked[self._scheduler]
        if came := threads.keys() - asked:
            self._ask(list(came))
            asked |= came
        n_threads: int = sum(threads.values())
        return max(1, n_threads)  # the only process may just be starting again

    def submit(self, function: Callable[..., object], *arguments: object) -> Any:
        """Have a function called by one of the processes; by another one, where that is lost."""
        import dask

        # Row weights of a task's blocks make it large: of a group of rows, and there is no smaller one.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return self._line.submit(function, *arguments, pure=False)

    def results(self, task: Any) -> list[Any]:
        """Wait for a task: what it made of its blocks. One from a process that computes otherwise is none."""
        from distributed import CancelledError, KilledWorker

        try:
            self._wait(task)
            machine, how, results = task.result()
        except CancelledError as error:
            raise self._error("was lost in the middle of a pass. Start it, and run again") from error
        except ColonnadeError:
            raise
        except Exception as error:
            self._ask(None)  # another Colonnade, or none, fails anywhere
            if not isinstance(error, KilledWorker):
                raise
            what = f"lost one process after another while they worked: {error}"
            raise self._error(f"{what}. See their own logs: they may be short of memory") from error
        self._check(machine, how)
        found: list[Any] = results
        return found

    def _ask(self, processes: list[str] | None) -> None:
        """Require these, or all, to compute as this process does: they are asked in words that need no Colonnade."""
        text = {"text": inspect.getsource(arithmetics)}
        for answer in self._line.run(eval, LOOK, text, workers=processes, on_error="ignore").values():
            self._check(*answer)

    def _check(self, machine: str, how: dict[str, str]) -> None:
        if (found := difference(arithmetic(), how)) is not None:
            raise self._error(
                f"computes otherwise on {machine} than here: {found}. Results may differ in their last bits: have "
                "the same packages and one kind of processor on all machines, or take this one out of the cluster"
            )

    def _wait(self, task: Any) -> None:
        from distributed import TimeoutError as TooLate
        from distributed import wait

        while True:
            try:
                with self._line.as_current():
                    wait(task, timeout=PATIENCE_SECONDS)
            except TooLate:
                self._wait_for_a_process()
            else:
                return

    def _wait_for_a_process(self) -> None:
        from distributed import TimeoutError as TooLate

        try:
            self._line.wait_for_workers(1, timeout=PATIENCE_SECONDS)
        except TooLate:
            raise self._error(f"has had no process for {PATIENCE_SECONDS:g} seconds. Start some") from None

    def _error(self, what: str) -> EngineError:
        return EngineError(f"The Dask cluster at {self._scheduler} {what}.")
