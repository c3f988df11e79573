"""Rows in blocks of a fixed length: the pieces that all work on a table is cut into.

A block is always the same rows, whatever holds them and whoever works on them: the first 16,384, the next ones, and so
on. Work on one block depends on nothing but that block, and what comes of blocks is put together in their order. So a
table in memory, in a file or on many machines gives the same bits.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from colonnade.kernels.arrays import Floats, Rows

if TYPE_CHECKING:  # which imports this
    from colonnade.kernels.per_row import PerRow

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

    @property
    def row_weights(self) -> "PerRow | None":
        """How much each row counts, as blocks have it, or None where all count 1."""

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


def by_block(numbers: Rows, values: Rows) -> dict[int, Rows]:
    """Put together the values of each block, in the order of blocks."""
    order = np.argsort(numbers, kind="stable")
    ordered, own = numbers[order], values[order]
    firsts = np.flatnonzero(np.diff(ordered, prepend=-1))
    bounds = pairwise([*firsts.tolist(), len(own)])
    return {number: own[first:end] for number, (first, end) in zip(ordered[firsts].tolist(), bounds, strict=True)}


def counted_values(block: Block) -> Floats:
    """Give a block's rows, without those that count nothing."""
    return block.values if block.weights is None else block.values[block.weights > 0]


def values_of(block: Block) -> Floats:
    """Give a block's rows as they are: work that is to be done where they arrive."""
    return block.values
