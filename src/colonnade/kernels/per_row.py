"""A number for each row that is computed block by block when it is asked for: scores, and what rows count."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import BLOCK_ROWS, Block, RowBlocks, by_block, n_blocks_of, rows_of_block

R = TypeVar("R")
T = TypeVar("T")
OfBlock = Callable[[int, Floats], R]

# Numbers of so many rows are kept once they are computed, 128 MB of them; of more they are computed again.
KEPT_ROWS = 1 << 24


class MapNumbers(Protocol):
    """Gives what a function makes of a block's number and of the numbers of its rows; of some blocks, or of all."""

    def __call__(self, work: OfBlock[R], numbers: Sequence[int] | None = None, /) -> Iterator[R]:
        """Give it of each block, in their order."""


@dataclass(frozen=True, eq=False)
class PerRow:
    """Non-negative numbers, one for each of n rows; only what blocks add up to is kept.

    Parameters
    ----------
    n_rows : int
        n.
    map : callable
        ``map(work, numbers=None)`` gives ``work(number, values)`` for each block, or those with these numbers, in
        order; the work is such as `RowBlocks.map` takes.
    values : ndarray of float64, shape (n,), or None
        The numbers, where they are kept.
    n_ones : int or None
        How many numbers are 1, where all others are 0: nobody goes through blocks to count or add these up.
    """

    n_rows: int
    map: MapNumbers
    values: Floats | None = field(default=None, repr=False)
    n_ones: int | None = None
    _known: dict[Callable[["PerRow"], Any], Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, compute: Callable[["PerRow"], T]) -> T:
        """Compute something of the numbers, once; `compute` is one of a module's functions."""
        if compute not in self._known:
            self._known[compute] = compute(self)
        known: T = self._known[compute]
        return known

    def __reduce__(self) -> tuple[Any, ...]:
        return PerRow, (self.n_rows, self.map, None, self.n_ones)  # what is known, or kept, is not sent

    def __len__(self) -> int:
        return self.n_rows

    @cached_property
    def block_totals(self) -> Floats:
        """What the numbers of each block add up to."""
        return np.array(list(self.map(_total)))

    @cached_property
    def _sum(self) -> float:
        return float(self.block_totals.sum() if self.n_ones is None else self.n_ones)

    def sum(self) -> float:
        """Add up all numbers."""
        return self._sum

    def sum_of_squares(self) -> float:
        """Add up their squares."""
        return float(sum(self.map(_squares)) if self.n_ones is None else self.n_ones)

    @cached_property
    def n_positive(self) -> int:
        """How many are above 0."""
        return sum(self.map(_count)) if self.n_ones is None else self.n_ones

    def max(self) -> float:
        """Find the largest."""
        return 1.0 if self.n_ones else max(self.map(_largest))

    def least_positive(self) -> float:
        """Find the smallest above 0."""
        return 1.0 if self.n_ones else min(self.map(_least))

    @cached_property
    def first_positive(self) -> int:
        """The first row whose number is above 0, or one behind the last."""
        return next((int(rows[0]) for rows in self.map(_positive) if len(rows)), self.n_rows)

    def positive_rows(self) -> Rows:
        """List the rows whose number is above 0."""
        return np.concatenate(list(self.map(_positive)))

    def positive(self) -> Floats:
        """List those above 0."""
        return np.concatenate(list(self.map(_positive_values)))

    @cached_property
    def fingerprint(self) -> bytes:
        """The SHA-256 of all numbers."""
        hashed = hashlib.sha256()
        for values in self.map(_values):
            hashed.update(np.ascontiguousarray(values, "<f8").data)
        return hashed.digest()

    def block(self, number: int) -> Floats:
        """Compute the numbers of one block."""
        return next(self.map(_values, [number]))

    def __getitem__(self, rows: Rows) -> Floats:
        """Compute the numbers of rows, in any order, also repeatedly."""
        if self.values is not None:
            return self.values[rows]
        order = np.argsort(rows, kind="stable")
        wanted = by_block(rows[order] // BLOCK_ROWS, rows[order] % BLOCK_ROWS)
        found = np.empty(len(rows))
        found[order] = np.concatenate([np.empty(0), *self.map(partial(_taken, wanted), list(wanted))])
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:  # of NumPy's protocol
        if self.values is not None:
            return self.values.astype(dtype or np.float64, copy=bool(copy))
        whole, first = np.empty(self.n_rows), 0
        for values in self.map(_values):
            whole[first : first + len(values)] = values
            first += len(values)
        return whole.astype(dtype or np.float64, copy=False)

    def changed(self, change: OfBlock[Floats]) -> "PerRow":
        """Make other numbers of those of a block, and of its own number."""
        return PerRow(self.n_rows, partial(_map_changed, self.map, change))

    def kept(self) -> "PerRow":
        """Compute all now where they are few enough to be kept; those of more rows are computed when asked for."""
        return replace(numbers_in(np.asarray(self)), n_ones=self.n_ones) if self.n_rows <= KEPT_ROWS else self


@dataclass(frozen=True, eq=False)
class HeldNumbers:
    """Numbers or marks that are there, shape (n,), by block: work that is sent away is sent those of its blocks."""

    values: npt.NDArray[Any] = field(repr=False)

    def __call__(self, number: int) -> npt.NDArray[Any]:
        """Give those of a block."""
        return self.values[rows_of_block(number)]


def numbers_in(values: Floats) -> PerRow:
    """Take numbers that are there, shape (n,)."""
    return PerRow(len(values), partial(_map_locally, HeldNumbers(values), n_blocks_of(len(values))), values)


def ones(n_rows: int) -> PerRow:
    """Count each row as 1."""
    return numbers_by(n_rows, partial(_ones, n_rows))


def numbers_by(n_rows: int, of_block: Callable[[int], Floats]) -> PerRow:
    """Compute the numbers of a block from its own number."""
    return PerRow(n_rows, partial(_map_locally, of_block, n_blocks_of(n_rows)))


def numbers_from(blocks: RowBlocks, of_block: Callable[[Block], Floats]) -> PerRow:
    """Compute the numbers of a block from its rows."""
    return PerRow(blocks.n_rows, partial(_map_rows, blocks, of_block))


def _map_locally(
    of_block: Callable[[int], Floats], n_blocks: int, work: OfBlock[R], numbers: Sequence[int] | None = None, /
) -> Iterator[R]:
    return (work(number, of_block(number)) for number in (range(n_blocks) if numbers is None else numbers))


def _map_rows(
    blocks: RowBlocks, of_block: Callable[[Block], Floats], work: OfBlock[R], numbers: Sequence[int] | None = None, /
) -> Iterator[R]:
    return blocks.map(partial(_of_rows, of_block, work), numbers)


def _map_changed(
    mapped: MapNumbers, change: OfBlock[Floats], work: OfBlock[R], numbers: Sequence[int] | None = None, /
) -> Iterator[R]:
    return mapped(partial(_of_changed, change, work), numbers)


def _of_changed(change: OfBlock[Floats], work: OfBlock[R], number: int, values: Floats) -> R:
    return work(number, change(number, values))


def _of_rows(of_block: Callable[[Block], Floats], work: OfBlock[R], block: Block) -> R:
    return work(block.number, of_block(block))


def _ones(n_rows: int, number: int) -> Floats:
    return np.ones(min(BLOCK_ROWS, n_rows - number * BLOCK_ROWS))


def _values(_: int, values: Floats) -> Floats:
    return values


def _total(_: int, values: Floats) -> float:
    return float(values.sum())


def _squares(_: int, values: Floats) -> float:
    return float(values @ values)


def _count(_: int, values: Floats) -> int:
    return int(np.count_nonzero(values))


def _largest(_: int, values: Floats) -> float:
    return float(values.max())


def _least(_: int, values: Floats) -> float:
    return float(values.min(initial=np.inf, where=values > 0))


def _positive(number: int, values: Floats) -> Rows:
    return np.flatnonzero(values) + number * BLOCK_ROWS


def _positive_values(_: int, values: Floats) -> Floats:
    return values[values > 0]


def _taken(wanted: dict[int, Rows], number: int, values: Floats) -> Floats:
    taken: Floats = values[wanted[number]]
    return taken
