"""What the prepared columns are like together: how nearly they depend on each other, and which rows stand out."""

from collections.abc import Sequence

import msgspec
import numpy as np

from colonnade.kernels.arrays import Blocks, Floats
from colonnade.kernels.dependence import dependences
from colonnade.kernels.leverage import leverage
from colonnade.kernels.moments import centre_and_spread

# Of a column's deviation, 3 %: others explain 99.9 % of its variance, and its coefficient is 30 times less certain.
SMALL_REST = 0.03
# Where columns are independent and normal, no row of a million has 20 times the mean leverage.
FAR = 20.0
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


class Together(msgspec.Struct, frozen=True):
    """The columns together; the condition number is None where they depend on each other exactly."""

    condition: float | None
    dependences: tuple[NearDependence, ...]
    n_outliers: int
    outliers: tuple[Outlier, ...]


def seen_together(blocks: Blocks, names: Sequence[str], continuous: Sequence[int]) -> Together:
    """Measure prepared columns, in blocks of shape (b, d).

    Rows stand out by their continuous columns alone: a rare level is one by its count, not by its distance.
    """
    condition, found = dependences(blocks, SMALL_REST)
    near = [NearDependence(names[each.column], tuple(names[i] for i in each.others), each.rest) for each in found]
    n_outliers, outliers = _outliers(lambda: (block[:, continuous] for block in blocks()), [names[i] for i in continuous])
    return Together(condition if np.isfinite(condition) else None, tuple(near), n_outliers, outliers)


def _outliers(blocks: Blocks, names: Sequence[str]) -> tuple[int, tuple[Outlier, ...]]:
    if not names:
        return 0, ()
    of_rows = leverage(blocks, constant=True)
    mean = of_rows.mean()
    far = np.flatnonzero(of_rows > FAR * mean)
    worst = far[np.argsort(-of_rows[far], kind="stable")][:SHOWN]
    centre, spread = centre_and_spread(blocks, len(names), centred=True)
    rows = _rows(blocks, np.sort(worst), len(names))
    outliers = []
    for row in worst.tolist():
        deviations = (rows[int(np.searchsorted(np.sort(worst), row))] - centre) / spread
        column = int(np.abs(deviations).argmax())
        outliers.append(Outlier(row, float(of_rows[row] / mean), names[column], float(deviations[column])))
    return len(far), tuple(outliers)


def _rows(blocks: Blocks, rows: np.ndarray, width: int) -> Floats:
    """Read some rows, in ascending order."""
    taken, first = [np.empty((0, width))], 0
    for block in blocks():
        inside = rows[(rows >= first) & (rows < first + len(block))]
        taken.append(block[inside - first])
        first += len(block)
    return np.vstack(taken)
