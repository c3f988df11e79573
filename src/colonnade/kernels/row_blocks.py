"""Rows in blocks: in memory, without some of their columns, without weights; and single rows taken from them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import BLOCK_ROWS, Block, RowBlocks, Work, by_block, n_blocks_of, rows_of_block
from colonnade.kernels.per_row import PerRow, numbers_in, ones

R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class ArrayBlocks:
    """Rows in memory, shape (n, c), worked on one block after another; weights, shape (n,), are 1 each if left out."""

    values: Floats
    weights: Floats | None = None

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return len(self.values)

    @property
    def row_weights(self) -> PerRow | None:
        """How much each row counts."""
        return None if self.weights is None else numbers_in(self.weights)

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

    @property
    def row_weights(self) -> PerRow | None:
        """How much each row counts."""
        return self.blocks.row_weights

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

    @property
    def row_weights(self) -> PerRow | None:
        """Give none: each counts 1."""
        return None

    def map(self, work: Work[R], numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block, without its weights."""
        return self.blocks.map(partial(_unweighted, work), numbers)


def _unweighted(work: Work[R], block: Block) -> R:
    return work(Block(block.number, block.values))


def _narrowed(work: Work[R], n_columns: int, block: Block) -> R:
    return work(Block(block.number, block.values[:, :n_columns], block.weights))


def taken(blocks: RowBlocks, rows: Rows) -> tuple[Floats, Floats | None]:
    """Copy rows, ascending, and what they count: shapes (k, c) and (k,), or None where all count 1; k is not 0."""
    wanted = by_block(rows // BLOCK_ROWS, rows % BLOCK_ROWS)
    found = list(blocks.map(partial(_taken, wanted), list(wanted)))
    weights = [own for _, own in found if own is not None]
    return np.concatenate([values for values, _ in found]), np.concatenate(weights) if weights else None


def _taken(wanted: Mapping[int, Rows], block: Block) -> tuple[Floats, Floats | None]:
    here = wanted[block.number]
    return block.values[here], None if block.weights is None else block.weights[here]


def weight_of(rows: RowBlocks) -> float:
    """Add up what all rows count."""
    return float(rows.n_rows if rows.row_weights is None else rows.row_weights.sum())


def counted(rows: RowBlocks) -> PerRow:
    """Mark rows that count by 1, and others by 0."""
    return ones(rows.n_rows) if rows.row_weights is None else rows.row_weights.changed(_marks)


def _marks(_: int, weights: Floats) -> Floats:
    return (weights > 0).astype(np.float64)
