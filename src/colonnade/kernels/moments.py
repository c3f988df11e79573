"""Means and spreads of columns, block by block: what standardising takes."""

from collections.abc import Iterable, Iterator

import numpy as np

from colonnade.kernels.arrays import Blocks, Floats
from colonnade.kernels.linear import ROUNDING


def centre_and_spread(
    blocks: Blocks, n_features: int, *, centred: bool, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Compute each feature's mean and root mean square about it, both of shape (d,).

    Blocks have shape (b, at least d); further columns are ignored. Without `centred`, squares are taken about 0, and
    the centre is 0. Weights are not all 0. A column without spread gets 1, so that one can divide by it.
    """
    weight, total = 0.0, np.zeros(n_features)
    lowest, highest = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    for features, w in _weighted(blocks, n_features, weights):
        weight += w.sum()
        total += w @ features
        counted = w[:, None] > 0
        lowest = np.minimum(lowest, features.min(axis=0, initial=np.inf, where=counted))
        highest = np.maximum(highest, features.max(axis=0, initial=-np.inf, where=counted))
    # The mean of a constant column would be off by its rounding.
    mean = np.where(lowest == highest, lowest, total / weight)
    centre = mean if centred else np.zeros(n_features)
    squares = np.zeros(n_features)
    for features, w in _weighted(blocks, n_features, weights):
        squares += w @ np.square(features - centre)
    spread = np.sqrt(squares / weight)
    # A column that is constant up to rounding leaves that behind.
    magnitude = np.maximum(np.abs(lowest), np.abs(highest))
    return centre, np.where(spread > ROUNDING * magnitude, spread, 1.0)


def _weighted(blocks: Blocks, n_features: int, weights: Floats | None) -> Iterator[tuple[Floats, Floats]]:
    start = 0
    for block in blocks():
        end = start + len(block)
        yield block[:, :n_features], np.ones(len(block)) if weights is None else weights[start:end]
        start = end


def mean_and_variance(parts: Iterable[Floats], weights: Floats | None = None) -> tuple[float, float]:
    """Compute the weighted mean of numbers that come in parts, and the mean square about it, in one pass.

    The parts are consecutive numbers, n in all, at least one; the weights, shape (n,), are not all 0.
    """
    start, total, mean, squares = 0, 0.0, 0.0, 0.0
    for values in parts:
        w = np.ones(len(values)) if weights is None else weights[start : start + len(values)]
        start, weight = start + len(values), float(w.sum())
        if weight == 0:
            continue
        own = float(w @ values) / weight
        # Each part about its own mean, and the means about theirs: nothing cancels (Chan, Golub and LeVeque 1983).
        squares += float(w @ np.square(values - own)) + (own - mean) ** 2 * total * weight / (total + weight)
        total += weight
        mean += (own - mean) * weight / total
    return mean, squares / total
