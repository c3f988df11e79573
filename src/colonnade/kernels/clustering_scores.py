"""Scores of a party's rows for k-means clustering, from its own centres (Algorithm 3, lines 3 to 11)."""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import Block, RowBlocks
from colonnade.kernels.kmeans import Centers, made_ready
from colonnade.kernels.per_row import KEPT_ROWS, PerRow, numbers_from, numbers_in

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

    The blocks, shape (b, d), are read once, and of many rows again where scores are asked for; there is one centre
    C^(j) of line 2 at least, shape (k, d).
    """
    kept = rows.n_rows <= KEPT_ROWS
    ready = made_ready(centers)
    found = list(rows.map(partial(_assigned, ready, kept)))
    weights, costs = np.sum([sums for sums, _ in found], axis=0)
    costs[costs <= ROUNDING**2 * weights * np.einsum("lj,lj->l", centers, centers)] = 0.0
    cost = float(costs.sum()) or 1.0  # where all distances are zero, so are their shares
    # No row of positive weight refers to a cluster without weight.
    shared = np.divide(costs / cost + 2.0, weights, out=np.zeros(len(centers)), where=weights > 0)
    per_square = 1.0 / cost if (costs > 0).all() else np.where(costs > 0, 1.0 / cost, 0.0)
    if not kept:
        return numbers_from(rows, partial(_scores_again, ready, per_square, shared))
    scores = numbers_in(np.concatenate([_scores(*each, per_square, shared) for _, each in found if each is not None]))
    return scores if rows.row_weights is None else scores.changed(partial(_weighted, rows.row_weights))


Assigned = tuple[npt.NDArray[np.unsignedinteger[Any]], Floats]


def _assigned(centers: Centers, kept: bool, block: Block) -> tuple[Floats, Assigned | None]:
    """Sum up each cluster's weights, and w_i d(x_i, C)², of a block's rows, (2, k); give both of each row, if kept."""
    labels, squared = centers.nearest(block.values)
    weighted = squared if block.weights is None else block.weights * squared
    k = centers.columns.shape[1]
    sums = np.array([np.bincount(labels, each, k) for each in (block.weights, weighted)], np.float64)
    return sums, (labels.astype(np.min_scalar_type(k)), squared) if kept else None


def _scores(
    labels: npt.NDArray[np.integer[Any]], squared: Floats, per_square: Floats | float, shared: Floats
) -> Floats:
    """Make scores of rows' squares, in place; these count for one number in all clusters, or for one in each."""
    squared *= per_square if isinstance(per_square, float) else np.take(per_square, labels, mode="clip")
    squared += np.take(shared, labels, mode="clip")
    return squared


def _scores_again(centers: Centers, per_square: Floats | float, shared: Floats, block: Block) -> Floats:
    scores = _scores(*centers.nearest(block.values), per_square, shared)
    return np.asarray(scores if block.weights is None else scores * block.weights)


def _weighted(weights: PerRow, number: int, scores: Floats) -> Floats:
    return np.asarray(scores * weights.block(number))
