"""A party's own work on threads: blocks in order, the same bits as without, and nothing left behind."""

import os
import platform
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from colonnade.data import engines
from colonnade.data.tables import AT_ONCE, ArrayTable, read_table
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS, Block
from colonnade.kernels.leverage import leverage
from colonnade.kernels.row_blocks import ArrayBlocks

N = 9 * BLOCK_ROWS + 17
VALUES = np.random.default_rng(0).normal(size=(N, 4))


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    before = set(threading.enumerate())
    yield
    left = [each.name for each in threading.enumerate() if each not in before]
    assert len(left) <= 4, "none is left but those that wait for the next pass"
    assert all(name.startswith(engines.THREADS) for name in left)


def table() -> ArrayTable:
    found = read_table("bank", VALUES)
    assert isinstance(found, ArrayTable)
    return found


def gram(block: Block) -> Floats:
    return np.asarray(block.values.T @ block.values)


def late(wait: list[threading.Event], block: Block) -> int:
    """Finish a block only after the next one."""
    if block.number + 1 < len(wait):
        wait[block.number + 1].wait(5)
    wait[block.number].set()
    return block.number


def test_blocks_come_in_order_whoever_is_done_first() -> None:
    events = [threading.Event() for _ in range(4)]
    assert list(table().map(partial(late, events), [0, 1, 2, 3])) == [0, 1, 2, 3]


def test_the_bits_are_those_of_one_block_after_another() -> None:
    rows, serial = table(), ArrayBlocks(np.asfortranarray(VALUES))
    for one, other in zip(rows.map(gram), serial.map(gram), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(
        np.asarray(leverage(rows, constant=True)), np.asarray(leverage(serial, constant=True))
    )
    np.testing.assert_array_equal(list(rows.map(gram, [2, 9])), list(serial.map(gram, [2, 9])))


@pytest.mark.parametrize("n_rows", [1, BLOCK_ROWS, BLOCK_ROWS + 1])
def test_one_block_or_two(n_rows: int) -> None:
    assert list(read_table("bank", VALUES[:n_rows]).map(len_of)) == list(ArrayBlocks(VALUES[:n_rows]).map(len_of))


def len_of(block: Block) -> int:
    return len(block.values)


class Blocks:
    """Rows as an engine reads them."""

    def __init__(self, n_blocks: int) -> None:
        self.n_rows = n_blocks * BLOCK_ROWS

    def blocks(self, numbers: Sequence[int] | None = None, *, n_threads: int = 1) -> Iterator[Block]:  # noqa: ARG002
        for number in range(self.n_rows // BLOCK_ROWS) if numbers is None else numbers:
            yield Block(number, np.zeros((number + 1, 1)))


def failing(asked: list[int], block: Block) -> int:
    asked.append(block.number)
    if block.number == 1:
        raise MemoryError("block 1")
    return block.number


def test_an_error_comes_out_and_work_ends() -> None:
    asked: list[int] = []
    found = table().map(partial(failing, asked))
    with pytest.raises(MemoryError, match="block 1"):
        list(found)
    assert len(asked) <= (2 * 4 + 1) * AT_ONCE, "what was in flight, and no more"
    assert list(found) == []


def test_no_more_blocks_are_in_flight_than_two_for_each_thread() -> None:
    asked: list[int] = []
    found = engines.in_threads(lambda number: asked.append(number), range(100))
    next(found)
    assert len(asked) <= 2 * 4 + 1
    found.close()  # type: ignore[attr-defined]
    assert len(asked) <= 2 * 4 + 1


def blas_threads() -> list[int]:
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


@pytest.mark.parametrize("n_blocks", [1, 9])
def test_who_goes_away_leaves_nothing_behind(n_blocks: int) -> None:
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        found = engines.in_threads(lambda _: blas_threads(), range(n_blocks))
        assert set(next(found)) == {1}
        found.close()  # type: ignore[attr-defined]
        assert blas_threads() == before


def test_who_watches_is_told_of_each_block_and_changes_nothing() -> None:
    told: list[tuple[int, int]] = []
    rows: Any = Blocks(3)
    watched = engines.Watched(engines.Threads(), lambda *counts: told.append(counts))
    assert list(watched.map(len_of, rows)) == list(engines.Threads().map(len_of, rows))
    assert told == [(1, 3), (2, 3), (3, 3)]
    list(watched.map(len_of, rows, [0, 2]))
    assert told[3:] == [(1, 2), (2, 2)]


def test_two_tables_at_once_leave_blas_as_it_was() -> None:
    """The first that is done does not let BLAS loose on the blocks of the other, nor does the other keep it bound."""
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        first, second = (engines.in_threads(lambda _: blas_threads(), range(9)) for _ in range(2))
        next(first), next(second)
        first.close()  # type: ignore[attr-defined]
        assert {each for found in second for each in found} == {1}
        assert blas_threads() == before


def test_work_inside_work() -> None:
    inner = read_table("bank", VALUES[: 3 * BLOCK_ROWS])

    def outer(_: Block) -> Any:
        return sum(inner.map(len_of))

    assert list(table().map(outer)) == [3 * BLOCK_ROWS] * 10


FAULTS = """
import resource
import numpy as np
from colonnade.data.engines import in_threads

def faults(n_items):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    list(in_threads(lambda _: len([np.ones(1 << 17) for _ in range(6)]), range(n_items)))
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults(20)
print(faults(100))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep memory by rules of their own")
def test_memory_of_temporaries_is_not_taken_anew_for_each_block() -> None:
    """Six megabytes a block are 1,500 pages: a process that lets them go and takes them again has that many faults."""
    command = [sys.executable, "-c", FAULTS]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=plain)
    assert int(found.stdout) < 5_000
