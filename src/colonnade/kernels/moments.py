"""Means and spreads of columns, block by block: what standardising takes."""

from collections.abc import Iterable
from functools import partial, reduce

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import Block, RowBlocks
from colonnade.kernels.linear import ROUNDING


def centre_and_spread(rows: RowBlocks, n_features: int, *, centred: bool) -> tuple[Floats, Floats]:
    """Compute each feature's mean and root mean square about it, both of shape (d,).

    Blocks have shape (b, at least d); further columns are ignored. Without `centred`, squares are taken about 0, and
    the centre is 0. Weights are not all 0. A column without spread gets 1, so that one can divide by it.
    """
    weight, total, lowest, highest = reduce(_joined, rows.map(partial(_sums, n_features)))
    # The mean of a constant column would be off by its rounding.
    mean = np.where(lowest == highest, lowest, total / weight)
    centre = mean if centred else np.zeros(n_features)
    spread = np.sqrt(reduce(np.add, rows.map(partial(_squares, centre))) / weight)
    # A column that is constant up to rounding leaves that behind.
    magnitude = np.maximum(np.abs(lowest), np.abs(highest))
    return centre, np.where(spread > ROUNDING * magnitude, spread, 1.0)


_Sums = tuple[float, Floats, Floats, Floats]


def _sums(n_features: int, block: Block) -> _Sums:
    """Add up weights and columns, and find the least and the largest values that count."""
    features = block.values[:, :n_features]
    if block.weights is None:
        return len(features), features.sum(axis=0), features.min(axis=0), features.max(axis=0)
    some = features[block.weights > 0]
    ends = some.min(axis=0, initial=np.inf), some.max(axis=0, initial=-np.inf)
    return float(block.weights.sum()), block.weights @ features, *ends


def _joined(one: _Sums, other: _Sums) -> _Sums:
    ends = np.minimum(one[2], other[2]), np.maximum(one[3], other[3])
    return one[0] + other[0], one[1] + other[1], *ends


def _squares(centre: Floats, block: Block) -> Floats:
    squares = np.square(block.values[:, : len(centre)] - centre)
    return squares.sum(axis=0) if block.weights is None else block.weights @ squares


def mean_and_variance(parts: Iterable[tuple[Floats, Floats | None]]) -> tuple[float, float]:
    """Compute the weighted mean of numbers that come in parts, and the mean square about it, in one pass.

    Each part has its weights, or None where all are 1. There is one number at least, and not all weights are 0.
    """
    total, mean, squares = joined_spread(spread_of(*part) for part in parts)
    return mean, squares / total


# The weight of some numbers, their mean, and the weighted sum of squares about it.
Spread = tuple[float, float, float]


def spread_of(values: Floats, weights: Floats | None = None) -> Spread:
    """Compute the spread of numbers, shape (m,), by weights, or 1 each."""
    weight = float(len(values)) if weights is None else float(weights.sum())
    if weight == 0:
        return 0.0, 0.0, 0.0
    mean = float(values.sum() if weights is None else weights @ values) / weight
    apart = values - mean
    return weight, mean, float(apart @ apart if weights is None else weights @ np.square(apart))


def joined_spread(parts: Iterable[Spread]) -> Spread:
    """Join the spreads of parts."""
    total, mean, squares = 0.0, 0.0, 0.0
    for weight, own, about in parts:
        if weight == 0:
            continue
        # Each part about its own mean, and the means about theirs: nothing cancels (Chan, Golub and LeVeque 1983).
        squares += about + (own - mean) ** 2 * total * weight / (total + weight)
        total += weight
        mean += (own - mean) * weight / total
    return total, mean, squares
