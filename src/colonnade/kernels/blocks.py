"""Rows in blocks of a fixed length: the pieces that all work on a table is cut into.

A block is always the same rows, whatever holds them and whoever works on them: the first 16,384, the next ones, and so
on. Work on one block depends on nothing but that block, and what comes of blocks is put together in their order. So a
table in memory, in a file or on many machines gives the same bits.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from colonnade.kernels.arrays import Floats, Rows

R = TypeVar("R")

BLOCK_ROWS = 16_384


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows, from BLOCK_ROWS times its number on.

    The values, shape (b, c), are fastest column-major. Weights, shape (b,), are None where all rows count 1.
    """

    number: int
    values: Floats
    weights: Floats | None = None

    @property
    def rows(self) -> slice:
        """Which rows of the table these are."""
        return rows_of_block(self.number, len(self.values))


Work = Callable[[Block], R]


class RowBlocks(Protocol):
    """Rows that can be worked on block by block, as often as one likes."""

    @property
    def n_rows(self) -> int:
        """How many rows."""

    def map(self, work: Work[R], numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block, or of those with these numbers, ascending: in their order.

        The work is a function of a module, or one with arguments bound to it: it may be sent to other machines.
        """


def n_blocks_of(n_rows: int) -> int:
    """Count the blocks of so many rows."""
    return -(-n_rows // BLOCK_ROWS)


def rows_of_block(number: int, n_rows: int = BLOCK_ROWS) -> slice:
    """Tell where a block's rows are, of which there are so many."""
    return slice(number * BLOCK_ROWS, number * BLOCK_ROWS + n_rows)


def numbers_of(rows: Rows) -> list[int]:
    """List the blocks in which rows are, ascending."""
    numbers: list[int] = np.unique(rows // BLOCK_ROWS).tolist()
    return numbers


@dataclass(frozen=True, eq=False)
class ArrayBlocks:
    """Rows in memory, shape (n, c), worked on one block after another; weights, shape (n,), are 1 each if left out."""

    values: Floats
    weights: Floats | None = None

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return len(self.values)

    def map(self, work: Work[R], numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block."""
        for number in range(n_blocks_of(self.n_rows)) if numbers is None else numbers:
            rows = rows_of_block(number)
            yield work(Block(number, self.values[rows], None if self.weights is None else self.weights[rows]))


@dataclass(frozen=True, eq=False)
class FirstColumns:
    """The same rows with their first columns only, d of them."""

    blocks: RowBlocks
    n_columns: int

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return self.blocks.n_rows

    def map(self, work: Work[R], numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block's first columns."""
        return self.blocks.map(partial(_narrowed, work, self.n_columns), numbers)


@dataclass(frozen=True, eq=False)
class Unweighted:
    """The same rows, each counting 1."""

    blocks: RowBlocks

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return self.blocks.n_rows

    def map(self, work: Work[R], numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block, without its weights."""
        return self.blocks.map(partial(_unweighted, work), numbers)


def _unweighted(work: Work[R], block: Block) -> R:
    return work(Block(block.number, block.values))


def _narrowed(work: Work[R], n_columns: int, block: Block) -> R:
    return work(Block(block.number, block.values[:, :n_columns], block.weights))


def values_of(block: Block) -> Floats:
    """Give a block's rows as they are: work that is to be done where they arrive."""
    return block.values


def taken(blocks: RowBlocks, rows: Rows) -> tuple[Floats, Floats | None]:
    """Copy rows, ascending, and what they count: shapes (k, c) and (k,), or None where all count 1; k is not 0."""
    numbers = numbers_of(rows)
    ends = np.searchsorted(rows, [(number + 1) * BLOCK_ROWS for number in numbers])
    wanted = dict(zip(numbers, np.split(rows, ends[:-1]), strict=True))
    found = list(blocks.map(partial(_taken, wanted), numbers))
    weights = [own for _, own in found if own is not None]
    return np.concatenate([values for values, _ in found]), np.concatenate(weights) if weights else None


def _taken(wanted: Mapping[int, Rows], block: Block) -> tuple[Floats, Floats | None]:
    here = wanted[block.number] - block.number * BLOCK_ROWS
    return block.values[here], None if block.weights is None else block.weights[here]
