"""Scores of a party's rows for k-means clustering, from its own centres (Algorithm 3, lines 3 to 11)."""

from functools import partial

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import Block, RowBlocks
from colonnade.kernels.kmeans import nearest_centers
from colonnade.kernels.per_row import PerRow, numbers_from

# Distances of a few units in the last place of the centres are no distances: a centre is itself rounded.
ROUNDING = 16 * float(np.finfo(np.float64).eps)


def clustering_scores(rows: RowBlocks, centers: Floats) -> PerRow:
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

    The blocks, shape (b, d), are read once, and again where scores are asked for; there is one centre C^(j) of line 2
    at least, shape (k, d).
    """
    weights, costs = np.sum(list(rows.map(partial(_cluster_sums, centers))), axis=0)
    costs[costs <= ROUNDING**2 * weights * np.einsum("lj,lj->l", centers, centers)] = 0.0
    cost = float(costs.sum()) or 1.0  # where all distances are zero, so are their shares
    # No row of positive weight refers to a cluster without weight.
    shared = np.divide(costs / cost + 2.0, weights, out=np.zeros(len(centers)), where=weights > 0)
    return numbers_from(rows, partial(_scores, centers, np.where(costs > 0, 1.0 / cost, 0.0), shared))


def _cluster_sums(centers: Floats, block: Block) -> Floats:
    """Sum up each cluster's weights, and w_i d(x_i, C)², of a block's rows: shape (2, k)."""
    labels, squared = nearest_centers(block.values, centers)
    weighted = squared if block.weights is None else block.weights * squared
    return np.stack([np.bincount(labels, each, len(centers)) for each in (block.weights, weighted)])


def _scores(centers: Floats, per_square: Floats, shared: Floats, block: Block) -> Floats:
    labels, squared = nearest_centers(block.values, centers)
    scores = squared * per_square[labels] + shared[labels]
    return np.asarray(scores if block.weights is None else scores * block.weights)
