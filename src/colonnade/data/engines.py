"""Who does a party's own work, block by block: threads of this process, on all cores, or the machines of a cluster.

An engine is one method, `map`. It must give what the work makes of each block in the order of blocks, and hold no more
blocks than are in flight. What it must not do is cut rows otherwise, or add anything up: that is done where the results
arrive, in their order, and so the bits do not depend on who computed them.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from threading import Lock, current_thread
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from colonnade.kernels.blocks import Block, Work, n_blocks_of

T = TypeVar("T")
R = TypeVar("R")

# Blocks in flight for each thread: so that none waits for the others, and no more of them are held than that.
IN_FLIGHT = 2
# More than any temporary of the work on a block, most of which are a megabyte.
ONCE_LET_GO = 1 << 23
# The first part of the names of threads that work, and of those that read.
THREADS, READING = "colonnade-blocks", "colonnade-reading"


class Readable(Protocol):
    """Rows that can be read in blocks, here or on another machine that can see the same files: it can be pickled."""

    @property
    def n_rows(self) -> int:
        """How many rows."""

    def blocks(self, numbers: Sequence[int] | None = None, *, n_threads: int = 1) -> Iterator[Block]:
        """Read each block, or those with these numbers, in their order; by so many threads of this process."""

    def pieces(self, numbers: Sequence[int] | None = None) -> Iterator[list[int]]:
        """Cut all blocks, or these, into runs that are read apart from each other at little cost."""

    def check_unchanged(self) -> None:
        """Refuse files that are not as they were when they were opened."""

    def seen_from_here(self) -> Self:
        """Give the same rows as this machine sees them, which is not the one that opened the files."""


class Engine(Protocol):
    """Does work on blocks."""

    def map(self, work: Work[R], rows: Readable, numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block, or of those with these numbers, ascending: in their order."""


@dataclass(frozen=True)
class Threads:
    """Works in this process: as many threads as there are cores decode, a batch ahead, and as many work."""

    def map(self, work: Work[R], rows: Readable, numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block."""
        return in_threads(work, rows.blocks(numbers, n_threads=n_cores()))


@dataclass(frozen=True)
class Watched:
    """Has another engine work, and tells how many blocks of a pass are done, and of how many."""

    engine: Engine
    tell: Callable[[int, int], None]

    def map(self, work: Work[R], rows: Readable, numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block."""
        n_blocks = n_blocks_of(rows.n_rows) if numbers is None else len(numbers)
        for n_done, done in enumerate(self.engine.map(work, rows, numbers), 1):
            self.tell(n_done, n_blocks)
            yield done


def n_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Give what `work` makes of each item, in their order, on as many threads as there are cores.

    Items are taken one after another by the caller's thread, and no more of them than are in flight.
    """
    _keep_memory()
    n_threads = 1 if isinstance(items, Sized) and len(items) < 2 else n_cores()
    with one_thread_each():
        # Work that has work done would wait for threads that wait for it.
        if n_threads == 1 or current_thread().name.startswith(THREADS):
            yield from map(work, items)
        else:
            yield from _in_order(_threads(os.getpid(), n_threads, THREADS), work, items, n_threads * IN_FLIGHT)


@cache
def _keep_memory() -> None:
    """Have the C library keep what temporaries took for those of the next block, and not give it back to the system.

    Memory taken from the system anew cost a guess of k-means scores five times its arithmetic. Where nobody set it
    otherwise, glibc keeps twice the largest array that was let go so far: it has to see a larger one, once.
    """
    np.empty(ONCE_LET_GO, np.uint8)


Steps = Iterable[tuple[T, Sequence[Callable[[], object]]]]


def in_step(steps: Steps[T]) -> Iterator[T]:
    """Give what steps are for, in their order, when the actions of a step are done: side by side, and one step ahead.

    The threads that do them wait for nobody, so that whoever works may wait for them.
    """
    threads, waiting, ready = _threads(os.getpid(), n_cores(), READING), list[Future[object]](), list[T]()
    try:
        for aim, actions in steps:
            waiting = [threads.submit(action) for action in actions]
            yield from ready
            for each in waiting:  # before the next step: it goes on where this one ends
                each.result()
            ready = [aim]
        yield from ready
    finally:
        _end(waiting)


def one_by_one(steps: Steps[T]) -> Iterator[T]:
    """Give what steps are for, when their actions are done: here, when it is asked for."""
    for aim, actions in steps:
        for action in actions:
            action()
        yield aim


@cache
def _threads(_process: int, n_threads: int, name: str) -> ThreadPoolExecutor:
    """Keep threads from one pass to the next, each of which may be short; a fork has none of them."""
    return ThreadPoolExecutor(n_threads, name)


def _in_order(threads: ThreadPoolExecutor, work: Callable[[T], R], items: Iterable[T], most: int) -> Iterator[R]:
    waiting: deque[Future[R]] = deque()
    try:
        for item in items:
            if len(waiting) == most:
                yield waiting.popleft().result()
            waiting.append(threads.submit(work, item))
        while waiting:
            yield waiting.popleft().result()
    finally:
        _end(waiting)


def _end(waiting: Iterable[Future[Any]]) -> None:
    """Call off what has not begun, and wait for what has."""
    wait([each for each in waiting if not each.cancel()])


class _OneThread:
    """BLAS on one thread for as long as anybody works: who ends first does not end it for the others."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0
        self._others: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if not self._n_inside:
                # Only those that are on more: to set and restore all takes as long as light work on a few blocks.
                self._others = [(each, n) for each in _libraries() if (n := each.get_num_threads()) != 1]
                for library, _ in self._others:
                    library.set_num_threads(1)
            self._n_inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside:
                for library, n_threads in self._others:
                    library.set_num_threads(n_threads)


_ONE_THREAD = _OneThread()


def one_thread_each() -> _OneThread:
    """Let BLAS compute on the thread that calls it: blocks run side by side, and its bits are the same everywhere."""
    return _ONE_THREAD


@cache
def _libraries() -> list[Any]:
    import scipy.linalg  # noqa: F401  # which brings a BLAS of its own
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
