"""Lloyd's iterations on some thousand rows in one place, fast and up to rounding: what searches are made of.

Two matrix products an iteration, in 32 bits where these resolve the cost; scikit-learn takes longer to set up than this
to run. Centres are of the points' precision, shape (k, d).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colonnade.kernels.arrays import Floats, Rows

# Numbers in a temporary: half a megabyte in 32 bits.
CHUNK_VALUES = 2**17
# 32 bits halve the time, where a start costs at least this part of what one centre would: below, they hide too much.
RESOLVED = 1e-3

Coarse = NDArray[np.floating[Any]]  # of 32 or 64 bits


class Points(NamedTuple):
    """Rows around their mean as columns, (d + 1, n), the last of them 1; the same times their weights; and |x|²."""

    columns: Coarse
    masses: Coarse
    weights: Coarse
    squares: Coarse

    def some(self, count: int, rng: np.random.Generator) -> "Points":
        """Draw some of them, all choices alike; all where there are no more."""
        if count >= len(self.weights):
            return self
        rows = drawn(len(self.weights), count, rng)
        return Points(np.take(self.columns, rows, axis=1), *(each[rows] for each in self[1:]))

    def coarse(self) -> "Points":
        """Round to 32 bits."""
        return Points(*(values.astype(np.float32) for values in self))

    def resolves(self, cost: float) -> bool:
        """Tell whether 32 bits would do at such a cost."""
        return cost > RESOLVED * float(self.weights @ self.squares)


def drawn(n_rows: int, count: int, rng: np.random.Generator) -> Rows:
    """Draw so many distinct rows, or all, ascending."""
    if count >= n_rows:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, count, replace=False, shuffle=False))


def count_distinct(X: Floats, enough: int) -> int:
    """Count the distinct rows, or at least so many: rows are looked at only until there are enough."""
    count = 2 * enough
    while (found := len(np.unique(X[:count], axis=0))) < enough and count < len(X):
        count *= 8
    return found


def around_mean(X: Floats, weights: Floats) -> tuple[Points, Floats, float]:
    """Put rows, (n, d), around their mean, at most 1 from it in each column; give the mean and the unit too."""
    origin = np.average(X, axis=0, weights=weights)
    columns = np.ones((X.shape[1] + 1, len(X)))
    np.subtract(X.T, origin[:, np.newaxis], out=columns[:-1])
    unit = float(np.abs(columns[:-1]).max()) or 1.0
    columns[:-1] /= unit
    even = weights / weights.mean()
    squares = np.einsum("ji,ji->i", columns[:-1], columns[:-1])
    return Points(columns, np.ascontiguousarray((columns * even).T), even, squares), origin, unit


def lloyd(points: Points, centers: Coarse, most: int, tolerance: float) -> Coarse:
    """Run Lloyd's iterations until centres move by less than this part of the variance; one without rows stays."""
    still = tolerance * float(points.weights @ points.squares) / max(1, points.columns[:-1].size)
    for _ in range(most):
        sums = np.zeros((len(centers), len(points.columns)))
        for chunk, gaps in offsets(points, centers):
            # A row between two centres counts for both.
            nearest = (gaps == gaps.min(axis=0)).astype(gaps.dtype)
            sums += nearest @ points.masses[chunk]
        totals = sums[:, -1:]
        moved = np.divide(sums[:, :-1], totals, out=centers.astype(np.float64), where=totals > 0).astype(centers.dtype)
        centers, step = moved, float(np.square(moved - centers).sum())
        if step <= still:
            break
    return centers


def cost_of(points: Points, centers: Coarse) -> float:
    """Compute Σ_i w_i d(x_i, C)², in the points' units."""
    return sum(
        float(points.weights[chunk] @ np.maximum(gaps.min(axis=0) + points.squares[chunk], 0))
        for chunk, gaps in offsets(points, centers)
    )


def best_start(
    points: Points, n_clusters: int, n_starts: int, rng: np.random.Generator, most: int, tolerance: float, *also: Coarse
) -> tuple[Coarse, float]:
    """Run a few iterations from some k-means++ starts, and from other centres; give those of least cost, and it."""
    starts = [*(_plus_plus(points, n_clusters, rng) for _ in range(n_starts)), *also]
    tried = [lloyd(points, start.astype(points.columns.dtype), most, tolerance) for start in starts]
    costs = [cost_of(points, centers) for centers in tried]
    best = int(np.argmin(costs))
    return tried[best], costs[best]


def offsets(points: Points, centers: Coarse) -> Iterator[tuple[slice, Coarse]]:
    """Cut the rows into chunks, and give |x - c|² - |x|² for each centre and row of a chunk, shape (k, rows)."""
    factors = np.concatenate([-2 * centers, np.einsum("lj,lj->l", centers, centers)[:, np.newaxis]], axis=1)
    n_chunk_rows = max(1, CHUNK_VALUES // max(factors.shape))
    for start in range(0, len(points.weights), n_chunk_rows):
        chunk = slice(start, start + n_chunk_rows)
        yield chunk, factors @ points.columns[:, chunk]


def _plus_plus(points: Points, n_clusters: int, rng: np.random.Generator) -> Coarse:
    """Draw centres in turn by k-means++: of some rows drawn by their part of the cost, the one that lowers it most."""
    n_tried = 2 + int(np.log(n_clusters))
    mass = points.weights
    closest = np.full_like(points.weights, np.inf)
    chosen: list[int] = []
    for _ in range(n_clusters):
        tried = _places(mass, n_tried if chosen else 1, rng)
        gaps = np.concatenate([each for _, each in offsets(points, points.columns[:-1, tried].T)], axis=1)
        gaps += points.squares
        np.maximum(gaps, 0, out=gaps)
        np.minimum(gaps, closest, out=gaps)
        best = int((gaps @ points.weights).argmin())
        chosen.append(int(tried[best]))
        closest = gaps[best]
        mass = points.weights * closest
    return np.ascontiguousarray(points.columns[:-1, chosen].T)


def _places(mass: Coarse, count: int, rng: np.random.Generator) -> Rows:
    ends = np.cumsum(mass.astype(np.float64))  # cast first: cumsum's own cast is slow
    places: Rows = np.searchsorted(ends, rng.random(count) * ends[-1], side="right")
    return np.minimum(places, len(mass) - 1)  # rounding may reach the end
