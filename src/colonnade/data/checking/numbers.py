"""What the prepared columns are like together: how nearly they depend on each other, and which rows stand out."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar

import msgspec
import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import Block, RowBlocks, Work
from colonnade.kernels.dependence import dependences
from colonnade.kernels.leverage import basis, leverage_in
from colonnade.kernels.moments import centre_and_spread
from colonnade.kernels.per_row import PerRow, numbers_from
from colonnade.kernels.row_blocks import taken

R = TypeVar("R")

# Of a column's deviation, 3 %: others explain 99.9 % of its variance, and its coefficient is 30 times less certain.
SMALL_REST = 0.03
# Where columns are independent and normal, no row of a million has 20 times the mean leverage. In a small table, where
# none can, a row is far out that decides half of its own prediction.
FAR, HALF, LEAST_FAR = 20.0, 0.5, 3.0
SHOWN = 5


class NearDependence(msgspec.Struct, frozen=True):
    """A column that others all but determine: `rest` is the part of its deviation that they leave, 0 if none."""

    column: str
    others: tuple[str, ...]
    rest: float


class Outlier(msgspec.Struct, frozen=True):
    """A row (from 0) of leverage far above the mean, the column in which it is furthest out, by how many deviations."""

    row: int
    times_the_mean: float
    column: str
    deviations: float
    key: tuple[str, ...] | None = None  # only where its owner asks for it

    def in_words(self, *, with_column: bool) -> str:
        """Name the row, with its column, and its key if that is shown."""
        more = [*([self.column] if with_column else []), *(self.key or ())]
        return f"{self.row} ({', '.join(more)})" if more else str(self.row)


class Together(msgspec.Struct, frozen=True):
    """The columns together; the condition number is None where they depend on each other exactly."""

    condition: float | None
    dependences: tuple[NearDependence, ...]
    n_outliers: int
    outliers: tuple[Outlier, ...]

    def without(self, pairs: Collection[frozenset[str]]) -> Self:
        """Leave out dependences of two columns that are known already."""
        kept = [each for each in self.dependences if frozenset((each.column, *each.others)) not in pairs]
        return msgspec.structs.replace(self, dependences=tuple(kept))

    def with_keys(self, keys: Any) -> Self:
        """Add the keys of rows that stand out, from a `pyarrow.Table` of the key's columns."""
        found = keys.take(np.array([each.row for each in self.outliers], np.int64)).to_pylist()
        shown = [
            msgspec.structs.replace(each, key=tuple(map(str, key.values())))
            for each, key in zip(self.outliers, found, strict=True)
        ]
        return msgspec.structs.replace(self, outliers=tuple(shown))


@dataclass(frozen=True, eq=False)
class _SomeColumns:
    """The same rows with some of their columns."""

    blocks: RowBlocks
    places: Sequence[int]

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return self.blocks.n_rows

    @property
    def row_weights(self) -> PerRow | None:
        """How much each row counts."""
        return self.blocks.row_weights

    def map(self, work: Work[R], numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of these columns of each block."""
        return self.blocks.map(partial(_narrowed, work, self.places), numbers)


@dataclass(frozen=True, eq=False)
class _Near:
    """The same rows, of which those that are far out by some columns count nothing."""

    blocks: RowBlocks
    is_far: "_IsFar"

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return self.blocks.n_rows

    @property
    def row_weights(self) -> PerRow:
        """1, or 0 of a row that is far out."""
        return numbers_from(self.blocks, self.is_far.weights)

    def map(self, work: Work[R], numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block, with these weights."""
        return self.blocks.map(partial(_weighed, work, self.is_far), numbers)


@dataclass(frozen=True, eq=False)
class _IsFar:
    """Tells rows that are far out by the leverage of some of their columns, above a limit; W is a basis of these."""

    places: Sequence[int]
    W: Floats
    limit: float

    def leverages(self, block: Block) -> Floats:
        return leverage_in(self.W, True, Block(block.number, block.values[:, self.places]))

    def sums(self, block: Block) -> float:
        return float(self.leverages(block).sum())

    def weights(self, block: Block) -> Floats:
        return (self.leverages(block) <= self.limit).astype(np.float64)

    def worst(self, block: Block) -> tuple[int, Floats, Rows]:
        """Count those of a block, and give the leverages and the rows of the furthest."""
        leverages = self.leverages(block)
        n_far = int((leverages > self.limit).sum())
        rows = np.argsort(-leverages, kind="stable")[: min(n_far, SHOWN)]
        return n_far, leverages[rows], rows + block.rows.start


def _narrowed(work: Work[R], places: Sequence[int], block: Block) -> R:
    return work(Block(block.number, block.values[:, places], block.weights))


def _weighed(work: Work[R], is_far: _IsFar, block: Block) -> R:
    return work(Block(block.number, block.values, is_far.weights(block)))


def seen_together(rows: RowBlocks, names: Sequence[str], continuous: Sequence[int]) -> Together:
    """Measure prepared columns, blocks of shape (b, d).

    Rows stand out by their continuous columns alone: a rare level is one by its count, not by its distance. Those that
    do are set aside where columns are compared: a single one may hide what all others show.
    """
    some = _SomeColumns(rows, continuous)
    W = basis(some, constant=True)
    mean = sum(rows.map(_IsFar(continuous, W, 0.0).sums)) / rows.n_rows
    is_far = _IsFar(continuous, W, min(FAR * mean, max(HALF, LEAST_FAR * mean)))
    n_far, leverages, far = _worst(list(rows.map(is_far.worst)))
    condition, found = dependences(_Near(rows, is_far) if n_far else rows, SMALL_REST)
    near = [NearDependence(names[each.column], tuple(names[i] for i in each.others), each.rest) for each in found]
    outliers = _outliers(some, [names[i] for i in continuous], leverages / mean, far)
    return Together(condition if np.isfinite(condition) else None, tuple(near), n_far, outliers)


def _worst(found: Sequence[tuple[int, Floats, Rows]]) -> tuple[int, Floats, Rows]:
    """Put together what was found in blocks: the rows furthest out of all, the furthest first."""
    leverages, rows = (np.concatenate([each[place] for each in found]) for place in (1, 2))
    order = np.argsort(-leverages, kind="stable")[:SHOWN]
    return sum(each[0] for each in found), leverages[order], rows[order]


def _outliers(some: RowBlocks, names: Sequence[str], times: Floats, rows: Rows) -> tuple[Outlier, ...]:
    """Describe the rows furthest out."""
    if not len(rows):
        return ()
    centre, spread = centre_and_spread(some, len(names), centred=True)
    ascending = np.sort(rows)
    deviations = ((taken(some, ascending)[0] - centre) / spread)[np.searchsorted(ascending, rows)]
    furthest = np.abs(deviations).argmax(axis=1).tolist()
    return tuple(
        Outlier(int(row), float(times[i]), names[place], float(deviations[i, place]))
        for i, (row, place) in enumerate(zip(rows, furthest, strict=True))
    )
