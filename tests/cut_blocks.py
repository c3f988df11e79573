"""Rows cut into blocks anywhere, also into empty ones: what adds up over blocks is the same however they are cut."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import Block, Work
from colonnade.kernels.per_row import PerRow, numbers_in

R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class CutBlocks:
    """Rows in memory, shape (n, c), cut before these rows; weights, shape (n,), are 1 each if left out."""

    values: Floats
    cuts: Sequence[int] = ()
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
        ends = [0, *sorted(self.cuts), self.n_rows]
        pieces = [slice(*ends[i : i + 2]) for i in range(len(ends) - 1)]
        for number in range(len(pieces)) if numbers is None else numbers:
            rows = pieces[number]
            yield work(Block(number, self.values[rows], None if self.weights is None else self.weights[rows]))


def in_blocks(values: Floats, size: int = 7, weights: Floats | None = None) -> CutBlocks:
    """Cut rows into blocks of this size, column-major."""
    return CutBlocks(np.asfortranarray(values), range(size, len(values), size), weights)
