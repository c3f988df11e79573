"""A party's own k-means, 𝒜 of Algorithm 3, line 2: nearly as good as a fit of all rows, at the price of a few thousand.

A uniform subsample gives a first clustering, and that one rough scores of all rows: the rows drawn by them are a
coreset of the party's own columns, and the clustering of these is the result. The first alone would do for even data,
but it misses rows that are few, far and decide the cost: on columns with long tails it costs a third more or worse.
"""

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import RowBlocks
from colonnade.kernels.draws import draw_evenly_distinct
from colonnade.kernels.kmeans import nearest_centers
from colonnade.kernels.quick_lloyd import around_mean, best_start, cost_of, count_distinct, lloyd
from colonnade.kernels.rough_draws import drawn_roughly, guessed
from colonnade.kernels.row_blocks import counted, taken
from colonnade.kernels.tiles import Coarse

# Rows of the first clustering: at least so many, and for each cluster. It only has to be within a constant factor.
FIRST, FIRST_EACH = 1_000, 20
# Rows drawn by scores. What chance adds to the cost is about three times k over their number.
DRAWN, DRAWN_EACH = 4_000, 600
# Those that starts are tried on. Where a few times as many are fewer than all, most iterations are done on these.
STARTED, STARTED_EACH, FEW_TIMES = 2_000, 50, 4
# Starts of the second, beside the first clustering: single ones scatter by more than the 2 % that we want to be within
# of a fit of all rows; with many clusters they scatter less, and cost more.
STARTS, FEW_CLUSTERS = 3, 100
# Of few rows a start costs next to nothing.
MANY_STARTS, FEW_ROWS = 10, 2_000
# Iterations of a start, of the best one, and on all rows drawn, unless centres stand still before.
SHORT, LONG, LAST, STILL = 5, 15, 5, 1e-4


def first_size(n_clusters: int) -> int:
    """How many rows are drawn evenly."""
    return max(FIRST, FIRST_EACH * n_clusters)


def drawn_size(n_clusters: int) -> int:
    """How many rows are drawn by scores, at most."""
    return max(DRAWN, DRAWN_EACH * n_clusters)


def started_size(n_clusters: int) -> int:
    """How many of these starts are tried on; a table of no more rows is clustered whole."""
    return max(STARTED, STARTED_EACH * n_clusters)


def local_kmeans(rows: RowBlocks, n_clusters: int, rng: np.random.Generator) -> Floats:
    """Cluster a party's own columns: the centres C^(j), shape (k, d).

    Where no more than `started_size` rows count, all of them are clustered. Rows of weight 0 are never looked at. Where
    the rows drawn have no more than k distinct values, these values are the centres: they may be fewer than k.
    """
    marks, size = counted(rows), drawn_size(n_clusters)
    n_counted = rows.n_rows if rows.row_weights is None else marks.n_positive
    n_starts = STARTS if n_clusters < FEW_CLUSTERS else 1
    if n_counted <= started_size(n_clusters):
        X, weights = _weighted(rows, marks.positive_rows())
        started = _started(X, weights, n_clusters, MANY_STARTS if len(X) <= FEW_ROWS else n_starts, rng)
        return _settled(X, weights, _polished(X, weights, started, LONG))
    even = None if rows.row_weights is None else marks
    X, weights = _weighted(rows, draw_evenly_distinct(rows.n_rows, first_size(n_clusters), rng, even)[1])
    first = _started(X, weights, n_clusters, 1, rng)
    guess = guessed(X, weights, first)
    chance = np.inf if n_counted <= size else size * len(X) / n_counted / (2 + 2 * len(first))
    drawn = drawn_roughly(rows, guess, size, chance, int(rng.integers(2**63)))
    if count_distinct(drawn.columns.T, n_clusters + 1) <= n_clusters:
        return np.unique(drawn.columns.T, axis=0)
    n_started = started_size(n_clusters)
    some = drawn.some(n_started).weighted()
    if count_distinct(some[0], n_clusters + 1) <= n_clusters:
        some = drawn.weighted()
    centers = _started(*some, n_clusters, n_starts, rng, first)
    if len(drawn) > FEW_TIMES * n_started:
        centers = _polished(*drawn.some(FEW_TIMES * n_started).weighted(), centers, LONG)
        return _polished(*drawn.weighted(), centers, LAST)
    return _polished(*drawn.weighted(), centers, LONG)


def _weighted(rows: RowBlocks, some: Rows) -> tuple[Floats, Floats]:
    X, weights = taken(rows, some)
    return X, np.ones(len(X)) if weights is None else weights


def _started(
    X: Floats, weights: Floats, n_clusters: int, n_starts: int, rng: np.random.Generator, *also: Floats
) -> Floats:
    """Take the best of some starts, and of other centres, after a few iterations; or few distinct rows themselves."""
    if count_distinct(X, n_clusters + 1) <= n_clusters:
        return np.unique(X, axis=0)
    for precision in (np.float32, np.float64):
        points, origin, unit = around_mean(X, weights, precision)
        others = [(centers - origin) / unit for centers in also if len(centers) == n_clusters]
        centers, cost = best_start(points, n_clusters, n_starts, rng, SHORT, STILL, *others)
        if points.resolves(cost):
            break
    return centers * unit + origin


def _polished(X: Floats, weights: Floats, centers: Floats, most: int) -> Floats:
    """Run Lloyd's iterations."""
    for precision in (np.float32, np.float64):
        points, origin, unit = around_mean(X, weights, precision)
        start: Coarse = ((centers - origin) / unit).astype(precision)
        if points.resolves(cost_of(points, start)):
            break
    return lloyd(points, start, most, STILL) * unit + origin


def _settled(X: Floats, weights: Floats, centers: Floats) -> Floats:
    """Move centres to the means of their rows, as exact as 64 bits are: of rows that are all alike it is that row."""
    labels, k, columns = nearest_centers(X, centers)[0], len(centers), np.ascontiguousarray(X.T)
    total, moved = np.bincount(labels, weights, k), centers.copy()
    share = weights / np.where(total > 0, total, 1.0)[labels]
    for column, (values, own) in enumerate(zip(columns, centers.T, strict=True)):
        moved[:, column] += np.bincount(labels, share * (values - own[labels]), k)
    return moved
