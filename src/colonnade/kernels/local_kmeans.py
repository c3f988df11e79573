"""A party's own k-means, 𝒜 of Algorithm 3, line 2: nearly as good as a fit of all rows, at the price of a few thousand.

A uniform subsample gives a first clustering, and that one scores of all rows: the rows drawn by them are a coreset of
the party's own columns, and the clustering of these is the result. The first alone would do for even data, but it
misses rows that are few, far and decide the cost: on columns with long tails it costs a third more or worse.
"""

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import RowBlocks
from colonnade.kernels.clustering_scores import clustering_scores
from colonnade.kernels.draws import draw_by_scores, draw_evenly_distinct
from colonnade.kernels.quick_lloyd import around_mean, best_start, count_distinct, lloyd
from colonnade.kernels.row_blocks import counted, taken

# Rows of the first clustering, and of the starts of the second: at least so many, and for each cluster. The first only
# has to be within a constant factor.
FIRST, FIRST_EACH = 4_000, 20
STARTED, STARTED_EACH = 8_000, 50
# Rows drawn by scores. Their number times k is about what chance adds to the cost.
DRAWN, DRAWN_EACH = 8_000, 400
# Starts of the second, beside the first clustering: single ones scatter by more than the 2 % that we want to be within
# of a fit of all rows; with many clusters they scatter less, and cost more.
STARTS, FEW_CLUSTERS = 3, 50
# Of few rows a start costs next to nothing.
MANY_STARTS, FEW_ROWS = 10, 2_000
# Iterations of a start, and of the best one on all rows drawn, unless centres stand still before.
SHORT, LONG, STILL = 10, 20, 1e-4


def first_size(n_clusters: int) -> int:
    """How many rows `first_centers` is to be given, drawn evenly."""
    return max(FIRST, FIRST_EACH * n_clusters)


def drawn_size(n_clusters: int) -> int:
    """How many rows `refined_centers` is to be given, drawn by scores; a table of no more rows is given whole."""
    return max(DRAWN, DRAWN_EACH * n_clusters)


def first_centers(X: Floats, weights: Floats, n_clusters: int, rng: np.random.Generator) -> Floats:
    """Cluster rows drawn evenly, (m, d), roughly: by one start. Weights are positive."""
    return _clustered(X, weights, n_clusters, 1, 0, rng)


def refined_centers(
    X: Floats, weights: Floats, n_clusters: int, rng: np.random.Generator, first: Floats | None = None
) -> Floats:
    """Cluster rows drawn by scores, their weights divided by these, by the best of some starts and the first centres.

    Where the rows have no more than k distinct values, these values are the centres: they may be fewer than k.
    """
    n_starts = MANY_STARTS if len(X) <= FEW_ROWS else STARTS if n_clusters < FEW_CLUSTERS else 1
    return _clustered(X, weights, n_clusters, n_starts, LONG, rng, *([] if first is None else [first]))


def local_kmeans(rows: RowBlocks, n_clusters: int, rng: np.random.Generator) -> Floats:
    """Cluster a party's own columns: the centres C^(j), shape (k, d).

    All rows are scored, and only where more than `drawn_size` of them count. Rows of weight 0 are never looked at.
    Where the rows drawn have no more than k distinct values, these values are the centres: they may be fewer than k.
    """
    marks, size = counted(rows), drawn_size(n_clusters)
    if marks.n_positive <= size:
        return refined_centers(*_weighted(rows, marks.positive_rows()), n_clusters, rng)
    even = None if rows.row_weights is None else marks
    some = draw_evenly_distinct(rows.n_rows, first_size(n_clusters), rng, even)[1]
    first = first_centers(*_weighted(rows, some), n_clusters, rng)
    scores = clustering_scores(rows, first)
    drawn = draw_by_scores(scores, size, rng, stratified=False)
    X, weights = _weighted(rows, drawn)
    return refined_centers(X, weights / scores[drawn], n_clusters, rng, first)


def _weighted(rows: RowBlocks, some: Rows) -> tuple[Floats, Floats]:
    X, weights = taken(rows, some)
    return X, np.ones(len(X)) if weights is None else weights


def _clustered(
    X: Floats, weights: Floats, n_clusters: int, n_starts: int, most: int, rng: np.random.Generator, *also: Floats
) -> Floats:
    if count_distinct(X, n_clusters + 1) <= n_clusters:
        return np.unique(X, axis=0)
    fine, origin, unit = around_mean(X, weights)
    others = [(centers - origin) / unit for centers in also if len(centers) == n_clusters]
    for points in (fine.coarse(), fine):
        some = points.some(max(STARTED, STARTED_EACH * n_clusters), rng)
        centers, cost = best_start(some, n_clusters, n_starts, rng, SHORT, STILL, *others)
        if some.resolves(cost):
            break
    centers = lloyd(points, centers, most, STILL)
    # Means as exact as 64 bits are: of rows that are all alike it is that row.
    return lloyd(fine, centers.astype(np.float64), 1, STILL) * unit + origin
