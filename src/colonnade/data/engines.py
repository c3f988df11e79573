"""Who does a party's own work: threads of this process, on all cores, block by block."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any, TypeVar

R = TypeVar("R")

# Blocks in flight for each thread: so that none waits for the others, and no more of them are held than that.
IN_FLIGHT = 2

# Limits are those of the whole process: one entry for each who works on blocks now.
_BINDING, _BOUND = RLock(), list[Any]()


def in_threads(work: Callable[[int], R], n_blocks: int, numbers: Sequence[int] | None = None) -> Iterator[R]:
    """Give what `work` makes of each number of a block, in their order, on as many threads as there are cores."""
    asked = range(n_blocks) if numbers is None else numbers
    n_threads = min(os.cpu_count() or 1, len(asked))
    with one_thread_each():
        if n_threads < 2:
            yield from map(work, asked)
            return
        with ThreadPoolExecutor(n_threads) as threads:
            yield from _in_order(threads, work, asked, n_threads * IN_FLIGHT)


def _in_order(threads: ThreadPoolExecutor, work: Callable[[int], R], asked: Sequence[int], most: int) -> Iterator[R]:
    waiting: deque[Future[R]] = deque()
    try:
        for number in asked:
            if len(waiting) == most:
                yield waiting.popleft().result()
            waiting.append(threads.submit(work, number))
        while waiting:
            yield waiting.popleft().result()
    finally:
        for each in waiting:
            each.cancel()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let BLAS compute on the thread that calls it: blocks run side by side, and its bits are the same everywhere."""
    with _BINDING:
        _BOUND.append(_libraries().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        # Whoever is done first: what held before any began is at the bottom.
        with _BINDING:
            _BOUND.pop().restore_original_limits()


@cache
def _libraries():  # type: ignore[no-untyped-def]  # threadpoolctl has no types
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
