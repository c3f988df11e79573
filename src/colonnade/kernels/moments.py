"""Means and spreads of columns, block by block: what standardising takes."""

from collections.abc import Iterable, Iterator

import numpy as np

from colonnade.kernels.arrays import Blocks, Floats
from colonnade.kernels.linear import ROUNDING


def centre_and_spread(
    blocks: Blocks, n_features: int, *, centred: bool, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Compute each feature's mean and root mean square about it.

    Parameters
    ----------
    blocks : callable
        Reads the table once: row blocks of shape (b, at least n_features).
    n_features : int
        d; further columns are ignored.
    centred : bool
        Whether to take squares about the means; if not, about 0, and the centre is 0.
    weights : ndarray of float64, shape (n,), optional
        Row weights, not all 0.

    Returns
    -------
    centre, spread : ndarray of float64, shape (d,)
        A column without spread gets 1, so that one can divide by it.
    """
    weight, total, magnitude = 0.0, np.zeros(n_features), np.zeros(n_features)
    for features, w in _weighted(blocks, n_features, weights):
        weight += w.sum()
        total += w @ features
        magnitude = np.maximum(magnitude, np.abs(features).max(axis=0, initial=0.0, where=w[:, None] > 0))
    centre = total / weight if centred else np.zeros(n_features)
    squares = np.zeros(n_features)
    for features, w in _weighted(blocks, n_features, weights):
        squares += w @ np.square(features - centre)
    spread = np.sqrt(squares / weight)
    # A constant column leaves its rounding behind.
    return centre, np.where(spread > ROUNDING * magnitude, spread, 1.0)


def _weighted(blocks: Blocks, n_features: int, weights: Floats | None) -> Iterator[tuple[Floats, Floats]]:
    start = 0
    for block in blocks():
        end = start + len(block)
        yield block[:, :n_features], np.ones(len(block)) if weights is None else weights[start:end]
        start = end


def mean_and_variance(parts: Iterable[Floats], weights: Floats | None = None) -> tuple[float, float]:
    """Compute the mean and variance of numbers that come in parts, in one pass.

    Parameters
    ----------
    parts : iterable of ndarray of float64, shape (b,)
        Consecutive numbers, n in all, at least one.
    weights : ndarray of float64, shape (n,), optional
        Not all 0; 1 each if left out.

    Returns
    -------
    mean, variance : float
        Weighted; the variance is the mean square about the mean.
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
