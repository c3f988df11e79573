"""Scores of a party's rows for k-means clustering, from its own centres (Algorithm 3, lines 3 to 11)."""

import numpy as np

from colonnade.kernels.arrays import Blocks, Floats, Rows
from colonnade.kernels.kmeans import nearest_centers

# Distances of a few units in the last place of the centres are no distances: a centre is itself rounded.
ROUNDING = 16 * float(np.finfo(np.float64).eps)


def clustering_scores(blocks: Blocks, centers: Floats, weights: Floats | None = None) -> Floats:
    """Score every row: g_i^(j) of Algorithm 3, line 10, with α = 1.

    With l = π(i) the nearest centre, B_l its rows and W_l their weight::

        g_i = w_i d(x_i, c_l)² / cost  +  w_i cost_l / (W_l cost)  +  2 w_i / W_l

    where cost_l = Σ_{i in B_l} w_i d(x_i, c_l)² and cost = Σ_l cost_l. Without weights w = 1 and W_l = |B_l|, the
    paper's line; a row of weight k scores k times one of its k copies, a row of weight 0 scores 0, and every
    other row scores above 0, so that the draw is unbiased. α multiplies every score of every party: it cancels
    from the draw, g / G, and from the weights, G / (m g), so it is left out. The total is 2 + 2 per non-empty
    cluster.

    By the proof of Lemma F.4, 4 α τ g_i bounds the sensitivity of row i, with α the cost over the best
    cost of k centres. It stays a bound in the degenerate cases:

    - *cost = 0*: the first two terms, 0/0, are taken as 0, and the total is 2 per non-empty cluster. All rows
      of B_l coincide with c_l, so (for the party of Assumption 5.1) they coincide altogether: they cost the
      same for any C, each has at most its share 1 / |B_l| of the cost, and 2 / |B_l| is above that. The rows of a
      cluster also count as coinciding where their root mean square distance is at most 16 units in the last place
      of the centre's norm: that much is the centre's own rounding.
    - *empty clusters* (fewer distinct rows than k, duplicate centres: the lowest index takes all): no row refers
      to them. The proof sums over the rows' clusters only; the total is smaller, the bound the same.
    - *duplicate rows*: they share a cluster and a distance, hence a score; nothing in the proof asks
      for distinct rows.

    The blocks, shape (b, d), are read once; there is one centre C^(j) of line 2 at least, shape (k, d).
    """
    labels, squared_distances = _assignment(blocks, centers)
    w = np.ones(len(labels)) if weights is None else weights
    cluster_weights = _sum_by_cluster(w, labels, len(centers))
    cluster_costs = _sum_by_cluster(w * squared_distances, labels, len(centers))
    coincides = cluster_costs <= ROUNDING**2 * cluster_weights * np.einsum("lj,lj->l", centers, centers)
    cluster_costs[coincides] = 0.0
    squared_distances[coincides[labels]] = 0.0
    cost = float(cluster_costs.sum()) or 1.0  # where all distances are zero, so are their shares
    shared = _per_weight(cluster_costs / cost + 2.0, cluster_weights)
    return w * (squared_distances / cost + shared[labels])


def _assignment(blocks: Blocks, centers: Floats) -> tuple[Rows, Floats]:
    """π(i) and d(x_i, C)² for all rows, lines 4 to 7: the only pass over the data."""
    assigned = [nearest_centers(block, centers) for block in blocks()]
    return np.concatenate([labels for labels, _ in assigned]), np.concatenate([squared for _, squared in assigned])


def _sum_by_cluster(values: Floats, labels: Rows, n_clusters: int) -> Floats:
    return np.bincount(labels, values, minlength=n_clusters).astype(np.float64)


def _per_weight(values: Floats, cluster_weights: Floats) -> Floats:
    """Divide by W_l, and leave 0 for clusters without weight: no row of positive weight refers to them."""
    shares = np.zeros_like(cluster_weights)
    np.divide(values, cluster_weights, out=shares, where=cluster_weights > 0)
    return shares
