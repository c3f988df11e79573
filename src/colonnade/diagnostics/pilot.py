"""What size this data needs, told from a few small coresets."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from colonnade.kernels.inverse_law import fit_inverse_law, interval_of_c
from colonnade.tasks import KMeans, Regression


class PilotPoint(msgspec.Struct, frozen=True):
    """Models of one size: their cost's relative excess over the limit, on average and its standard deviation."""

    size: int
    mean_excess: float
    std: float


class Pilot(msgspec.Struct, frozen=True):
    """The size that a target needs, from a pilot.

    Parameters
    ----------
    target : float
        The relative excess of cost over that of all rows that is wanted, on average.
    size : int
        How many rows it needs, by excess = c / m.
    size_low, size_high : int
        95 % interval of it, from the spread over draws; it does not know how well the law c / m holds.
    c : float
        Excess times size.
    limit : float
        The cost that larger and larger coresets approach, on the rows evaluated.
    points : tuple of PilotPoint
        What was seen at each size.
    units, bytes : int
        What the pilot cost.
    reveals : tuple of str
        What the parties showed the server for it.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.random.default_rng(0).normal(size=(5000, 4))
    >>> y = X @ np.ones(4) + np.random.default_rng(1).normal(size=5000)
    >>> found = cn.pilot(cn.Federation(cn.split_columns(X, y, [2, 2])), cn.Regression(), target=0.01)
    >>> found.size_low <= found.size <= found.size_high
    True
    """

    target: float
    size: int
    size_low: int
    size_high: int
    c: float
    limit: float
    points: tuple[PilotPoint, ...]
    units: int = 0
    bytes: int = 0
    reveals: tuple[str, ...] = ()

    def __str__(self) -> str:
        seen = ", ".join(f"{point.mean_excess:+.1%} at {point.size:,} rows" for point in self.points)
        return (
            f"For an excess of {self.target:.1%} on average, draw about {self.size:,} rows (between {self.size_low:,} "
            f"and {self.size_high:,} with 95 % confidence, if the excess falls as 1/size). Seen: {seen}. The pilot "
            f"cost {self.units:,} units, {self.bytes:,} bytes. The server was shown: {', '.join(self.reveals)}."
        )


def usual_sizes(task: Regression | KMeans, n_features: int) -> tuple[int, ...]:
    """Choose pilot sizes: large enough that the law c / m has set in, small enough to be cheap."""
    base = 30 * task.n_clusters if isinstance(task, KMeans) else 10 * (n_features + 1)
    return base, 2 * base, 4 * base


def conclude(sizes: Sequence[int], costs: Sequence[float], target: float, rng: np.random.Generator) -> Pilot:
    """Fit the law and turn it round.

    Parameters
    ----------
    sizes : sequence of int
        Of each pilot coreset; two different ones at least.
    costs : sequence of float
        Of the model learned on it.
    target : float
        The relative excess wanted.
    rng : numpy.random.Generator
        Of the bootstrap.

    Returns
    -------
    Pilot
        Without its cost.
    """
    m, cost = np.asarray(sizes, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    limit, c = fit_inverse_law(m, cost)
    low, high = interval_of_c(m, cost, rng)
    points = tuple(_point(int(size), cost[m == size], limit) for size in np.unique(m))
    size, size_low, size_high = (max(1, math.ceil(value / target)) for value in (c, min(low, c), max(high, c)))
    return Pilot(target, size, size_low, size_high, c, limit, points)


def _point(size: int, costs: np.ndarray, limit: float) -> PilotPoint:
    excess = costs / limit - 1 if limit > 0 else np.zeros_like(costs)
    return PilotPoint(size, float(excess.mean()), float(excess.std(ddof=1)) if len(excess) > 1 else 0.0)
