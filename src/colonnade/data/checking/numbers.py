"""What the prepared columns are like together: how nearly they depend on each other, and which rows stand out."""

from collections.abc import Collection, Sequence
from typing import Any, Self

import msgspec
import numpy as np

from colonnade.kernels.arrays import Flags, Floats
from colonnade.kernels.dependence import dependences
from colonnade.kernels.leverage import leverage
from colonnade.kernels.moments import centre_and_spread
from colonnade.kernels.row_blocks import ArrayBlocks

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
        found = keys.take([each.row for each in self.outliers]).to_pylist()
        shown = [
            msgspec.structs.replace(each, key=tuple(map(str, key.values())))
            for each, key in zip(self.outliers, found, strict=True)
        ]
        return msgspec.structs.replace(self, outliers=tuple(shown))


def seen_together(values: Floats, names: Sequence[str], continuous: Sequence[int]) -> Together:
    """Measure prepared columns, shape (n, d).

    Rows stand out by their continuous columns alone: a rare level is one by its count, not by its distance. Those that
    do are set aside where columns are compared: a single one may hide what all others show.
    """
    far, outliers = _outliers(values[:, continuous], [names[i] for i in continuous])
    condition, found = dependences(ArrayBlocks(values, (~far).astype(np.float64) if far.any() else None), SMALL_REST)
    near = [NearDependence(names[each.column], tuple(names[i] for i in each.others), each.rest) for each in found]
    return Together(condition if np.isfinite(condition) else None, tuple(near), int(far.sum()), outliers)


def _outliers(values: Floats, names: Sequence[str]) -> tuple[Flags, tuple[Outlier, ...]]:
    """Mark the rows far out by their leverage, and describe those furthest out."""
    times = np.asarray(leverage(ArrayBlocks(values), constant=True))
    mean = times.mean()
    far = times > min(FAR * mean, max(HALF, LEAST_FAR * mean))
    times /= mean
    worst = np.argsort(-times, kind="stable")[: min(int(far.sum()), SHOWN)].tolist()
    if not worst:
        return far, ()
    centre, spread = centre_and_spread(ArrayBlocks(values), len(names), centred=True)
    deviations = {row: (values[row] - centre) / spread for row in worst}
    furthest = {row: int(np.abs(own).argmax()) for row, own in deviations.items()}
    outliers = (
        Outlier(row, float(times[row]), names[furthest[row]], float(deviations[row][furthest[row]])) for row in worst
    )
    return far, tuple(outliers)
