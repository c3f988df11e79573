"""A party's own k-means, 𝒜 of Algorithm 3, line 2: nearly as good as a fit of all rows, at the price of a few thousand.

A uniform subsample gives a first clustering, and that one scores of all rows: the rows drawn by them are a coreset of
the party's own columns, and the clustering of these is the result. The first alone would do for even data, but it
misses rows that are few, far and decide the cost: on columns with long tails it costs a third more or worse.
"""

from collections.abc import Callable

import numpy as np

from colonnade.kernels.arrays import Blocks, Floats, Rows
from colonnade.kernels.clustering_scores import clustering_scores
from colonnade.kernels.draws import draw_by_scores
from colonnade.kernels.kmeans import best_of_starts

# Rows to cluster, each time. More cost time and gain little.
LOCAL_ROWS = 20_000
# The first clustering only has to be within a constant factor; of the second the best start is kept, because single
# k-means++ starts scatter by more than the 2 % that we want to be within of a fit of all rows.
FIRST_STARTS, LOCAL_STARTS = 1, 5


def local_kmeans(
    blocks: Blocks,
    take: Callable[[Rows], Floats],
    n_rows: int,
    n_clusters: int,
    rng: np.random.Generator,
    weights: Floats | None = None,
) -> Floats:
    """Cluster a party's own columns: the centres C^(j), shape (k, d).

    Blocks of rows, shape (b, d), are read once, and only where n is above LOCAL_ROWS; `take` fetches rows by their
    sorted ids. Rows of weight 0 are never looked at. Where the rows drawn have no more than k distinct values, these
    values are the centres: they may be fewer than k.
    """
    row_weights = np.ones(n_rows) if weights is None else weights
    candidates = np.flatnonzero(row_weights)
    if len(candidates) <= LOCAL_ROWS:
        return _cluster(take(candidates), row_weights[candidates], n_clusters, LOCAL_STARTS, rng)
    rows = np.sort(rng.choice(candidates, LOCAL_ROWS, replace=False, shuffle=False))
    first = _cluster(take(rows), row_weights[rows], n_clusters, FIRST_STARTS, rng)
    scores = clustering_scores(blocks, first, weights)
    rows = draw_by_scores(scores, LOCAL_ROWS, rng, stratified=False)
    return _cluster(take(rows), row_weights[rows] / scores[rows], n_clusters, LOCAL_STARTS, rng)


def _cluster(X: Floats, weights: Floats, n_clusters: int, n_starts: int, rng: np.random.Generator) -> Floats:
    distinct = np.unique(X, axis=0)
    return distinct if len(distinct) <= n_clusters else best_of_starts(X, weights, n_clusters, n_starts, rng)
