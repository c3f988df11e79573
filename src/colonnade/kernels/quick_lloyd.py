"""Lloyd's iterations on some thousand rows in one place, fast and up to rounding: what searches are made of.

Two matrix products an iteration, in 32 bits where these resolve the cost; scikit-learn takes longer to set up than this
to run. Centres are of the points' precision, shape (k, d).
"""

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.tiles import TILE_ROWS, Coarse, cut, rows_in, tiled

# 32 bits halve the time, where a start costs at least this part of what one centre would: below, they hide too much.
RESOLVED = 1e-3


class Points(NamedTuple):
    """Rows around their mean in tiles, (t, d + 1, 256), the last column 1; times their weights, (t, 256, d + 1).

    Weights, and |x|², are of all tiles' rows in turn; those that fill up the last tile weigh nothing.
    """

    tiles: Coarse
    masses: Coarse
    weights: Coarse
    squares: Coarse
    n_rows: int

    def some(self, count: int, rng: np.random.Generator) -> "Points":
        """Draw some of them, all choices alike; all where there are no more."""
        if count >= self.n_rows:
            return self
        rows = drawn(self.n_rows, count, rng)
        return _points(rows_in(self.tiles, rows), self.weights[rows])

    def coarse(self) -> "Points":
        """Round to 32 bits."""
        tiles, masses, weights, squares = (values.astype(np.float32) for values in self[:4])
        return Points(tiles, masses, weights, squares, self.n_rows)

    def resolves(self, cost: float) -> bool:
        """Tell whether 32 bits would do at such a cost."""
        return cost > RESOLVED * float(self.weights @ self.squares)


def _points(X: Coarse, weights: Coarse) -> Points:
    tiles, padded = tiled(X, X.dtype), np.zeros(-(-len(X) // TILE_ROWS) * TILE_ROWS, X.dtype)
    padded[: len(X)] = weights
    masses = np.empty((len(tiles), TILE_ROWS, tiles.shape[1]), X.dtype)
    # Tile by tile: turned all at once, numbers leave the cache, which takes four times as long.
    for tile, weighted, own in zip(tiles, masses, padded.reshape(-1, TILE_ROWS), strict=True):
        np.multiply(tile, own, out=weighted.T)
    squares = np.einsum("tjr,tjr->tr", tiles[:, :-1], tiles[:, :-1]).reshape(-1)
    return Points(tiles, masses, padded, squares, len(X))


def drawn(n_rows: int, count: int, rng: np.random.Generator) -> Rows:
    """Draw so many distinct rows, or all, ascending."""
    if count >= n_rows:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, count, replace=False, shuffle=False))


def count_distinct(X: Floats, enough: int) -> int:
    """Count the distinct rows, or at least so many: rows are looked at only until there are enough."""
    count = 2 * enough
    while (found := len({row.tobytes() for row in X[:count] + 0.0})) < enough and count < len(X):  # no -0.0
        count *= 8
    return found


def around_mean(
    X: Floats, weights: Floats, precision: type[np.floating[Any]] = np.float64
) -> tuple[Points, Floats, float]:
    """Put rows, (n, d), around their mean, at most 1 from it in each column; give the mean and the unit too."""
    even = weights / weights.mean()
    origin = even @ X / len(X)
    centred = X - origin
    unit = float(max(centred.max(initial=0.0), -centred.min(initial=0.0))) or 1.0
    centred /= unit
    return _points(centred.astype(precision, copy=False), even.astype(precision, copy=False)), origin, unit


def lloyd(points: Points, centers: Coarse, most: int, tolerance: float) -> Coarse:
    """Run Lloyd's iterations until centres move by less than this part of the variance; one without rows stays.

    Those of several starts, (s, k, d), go side by side, until all of them stand still.
    """
    still = tolerance * float(points.weights @ points.squares) / max(1, points.n_rows * centers.shape[-1])
    for _ in range(most):
        sums = np.zeros((prod(centers.shape[:-1]), centers.shape[-1] + 1))
        for piece, gaps in offsets(points, centers):
            # A row between two centres counts for both.
            nearest = np.equal(gaps, np.minimum.reduce(gaps, axis=-2, keepdims=True), out=gaps)
            parts = nearest.reshape(len(gaps), -1, TILE_ROWS) @ points.masses[piece]
            sums += np.add.reduce(parts, axis=0, dtype=np.float64)
        sums = sums.reshape(*centers.shape[:-1], -1)
        totals = sums[..., -1:]
        means = np.divide(sums[..., :-1], totals, out=centers.astype(np.float64), where=totals > 0)
        moved = means.astype(centers.dtype)
        centers, step = moved, float(np.square(moved - centers).sum())
        if step <= still:
            break
    return centers


def squared_distances(points: Points, centers: Coarse) -> Coarse:
    """Compute d(x_i, C)² in the points' units, of all tiles' rows in turn, for each start."""
    nearest = np.concatenate([gaps.min(axis=-2) for _, gaps in offsets(points, centers)])
    found = np.moveaxis(nearest, 0, -2).reshape(*centers.shape[:-2], -1) + points.squares
    return np.maximum(found, 0, out=found)


def cost_of(points: Points, centers: Coarse) -> float:
    """Compute Σ_i w_i d(x_i, C)², in the points' units."""
    return float(squared_distances(points, centers) @ points.weights)


def best_start(
    points: Points, n_clusters: int, n_starts: int, rng: np.random.Generator, most: int, tolerance: float, *also: Coarse
) -> tuple[Coarse, float]:
    """Run a few iterations from some k-means++ starts, and from other centres; give those of least cost, and it."""
    drawn_starts = _plus_plus(points, n_clusters, n_starts, rng) if n_starts else ()
    starts = np.stack([*drawn_starts, *also], dtype=points.tiles.dtype)
    tried = lloyd(points, starts, most, tolerance)
    costs = squared_distances(points, tried) @ points.weights
    best = int(np.argmin(costs))
    return tried[best], float(costs[best])


def offsets(points: Points, centers: Coarse) -> Iterator[tuple[slice, Coarse]]:
    """Cut the tiles into pieces, and give |x - c|² - |x|² for each centre and row of a piece, shape (t, k, 256).

    Of several starts, (s, k, d), they are of shape (t, s, k, 256).
    """
    factors = _factors(centers.reshape(prod(centers.shape[:-1]), centers.shape[-1]))
    for piece in cut(len(points.tiles), max(factors.shape)):
        yield piece, (factors @ points.tiles[piece]).reshape(-1, *centers.shape[:-1], TILE_ROWS)


def _factors(centers: Coarse) -> Coarse:
    k, d = centers.shape
    factors = np.empty((k, d + 1), centers.dtype)
    np.multiply(centers, -2, out=factors[:, :-1])
    np.add.reduce(np.square(centers), axis=1, out=factors[:, -1])
    return factors


def _plus_plus(points: Points, n_clusters: int, n_starts: int, rng: np.random.Generator) -> Coarse:
    """Draw centres in turn by k-means++: of some rows drawn by their part of the cost, the one that lowers it most.

    All starts go side by side, since a step of one takes hardly longer than a step of all; shape (s, k, d).
    """
    n_tried, numbers = 2 + int(np.log(n_clusters)), np.arange(n_starts)
    weights, squares = points.weights.reshape(-1, 1, TILE_ROWS), points.squares.reshape(-1, 1, TILE_ROWS)
    closest = np.full((len(points.tiles), n_starts, TILE_ROWS), np.inf, points.tiles.dtype)
    mass = np.repeat(weights, n_starts, axis=1)
    chosen = np.empty((n_starts, n_clusters, points.tiles.shape[1] - 1), points.tiles.dtype)
    for number in range(n_clusters):
        tried = rows_in(points.tiles, _places(mass, n_tried if number else 1, points.n_rows, rng))
        # Less |x|², which is the same for all that are tried.
        gaps = (_factors(tried) @ points.tiles).reshape(len(mass), n_starts, -1, TILE_ROWS)
        np.minimum(gaps, closest[:, :, np.newaxis], out=gaps)
        best = (gaps @ weights[..., np.newaxis])[..., 0].sum(axis=0).argmin(axis=1)
        chosen[:, number] = tried.reshape(n_starts, -1, tried.shape[1])[numbers, best]
        closest = gaps[:, numbers, best]
        mass = weights * np.maximum(closest + squares, 0)
    return chosen


def _places(mass: Coarse, count: int, n_rows: int, rng: np.random.Generator) -> Rows:
    """Draw so many places for each start by its masses, (t, starts, 256): those of the first, the second, ...

    First where in a tile, by what all tiles have there, then the tile: sums one after another take longest.
    """
    ends = np.add.reduce(mass, axis=0, dtype=np.float64).cumsum(axis=1)
    points = rng.random((2, len(ends), count))
    within = [own.searchsorted(own[-1] * each, side="right") for own, each in zip(ends, points[0], strict=True)]
    rows = np.minimum(within, TILE_ROWS - 1)  # rounding may reach the end
    tiles = mass[:, np.arange(len(ends))[:, np.newaxis], rows].cumsum(axis=0, dtype=np.float64)
    numbers = (tiles <= points[1] * tiles[-1]).sum(axis=0)
    found: Rows = np.minimum(numbers * TILE_ROWS + rows, n_rows - 1).reshape(-1)
    return found
