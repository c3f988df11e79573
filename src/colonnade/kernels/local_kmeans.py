"""A party's own k-means, 𝒜 of Algorithm 3, line 2: nearly as good as a fit of all rows, at the price of a few thousand.

A uniform subsample gives a first clustering, and that one scores of all rows: the rows drawn by them are a coreset of
the party's own columns, and the clustering of these is the result. The first alone would do for even data, but it
misses rows that are few, far and decide the cost: on columns with long tails it costs a third more or worse.
"""

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import Block, RowBlocks, taken
from colonnade.kernels.clustering_scores import clustering_scores
from colonnade.kernels.draws import draw_by_scores, draw_evenly_distinct
from colonnade.kernels.kmeans import best_of_starts
from colonnade.kernels.per_row import numbers_from

# Rows to cluster, each time. More cost time and gain little.
LOCAL_ROWS = 20_000
# The first clustering only has to be within a constant factor; of the second the best start is kept, because single
# k-means++ starts scatter by more than the 2 % that we want to be within of a fit of all rows.
FIRST_STARTS, LOCAL_STARTS = 1, 5


def local_kmeans(rows: RowBlocks, n_clusters: int, rng: np.random.Generator) -> Floats:
    """Cluster a party's own columns: the centres C^(j), shape (k, d).

    All rows are read once, and only where more than LOCAL_ROWS of them count. Rows of weight 0 are never looked at.
    Where the rows drawn have no more than k distinct values, these values are the centres: they may be fewer than k.
    """
    counted = numbers_from(rows, _counted)
    if counted.n_positive <= LOCAL_ROWS:
        return _cluster(*_weighted(rows, counted.positive_rows()), n_clusters, LOCAL_STARTS, rng)
    some = draw_evenly_distinct(rows.n_rows, LOCAL_ROWS, rng, counted)[1]
    first = _cluster(*_weighted(rows, some), n_clusters, FIRST_STARTS, rng)
    scores = clustering_scores(rows, first).kept()
    drawn = draw_by_scores(scores, LOCAL_ROWS, rng, stratified=False)
    X, weights = _weighted(rows, drawn)
    return _cluster(X, weights / scores[drawn], n_clusters, LOCAL_STARTS, rng)


def _counted(block: Block) -> Floats:
    return np.ones(len(block.values)) if block.weights is None else (block.weights > 0).astype(np.float64)


def _weighted(rows: RowBlocks, some: Rows) -> tuple[Floats, Floats]:
    X, weights = taken(rows, some)
    return X, np.ones(len(X)) if weights is None else weights


def _cluster(X: Floats, weights: Floats, n_clusters: int, n_starts: int, rng: np.random.Generator) -> Floats:
    distinct = np.unique(X, axis=0)
    return distinct if len(distinct) <= n_clusters else best_of_starts(X, weights, n_clusters, n_starts, rng)
