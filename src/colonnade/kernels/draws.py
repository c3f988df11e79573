"""Drawing rows: by scores (Algorithm 1, line 5) and evenly. Multisets, in ascending order."""

import numpy as np

from colonnade.kernels.arrays import Floats, Rows


def draw_by_scores(scores: Floats, count: int, rng: np.random.Generator) -> Rows:
    """Draw rows with replacement, each with probability g_i / G.

    Parameters
    ----------
    scores : ndarray of float64, shape (n,)
        g, non-negative, with a sum that is positive and not subnormal.
    count : int
        a_j, how many to draw.
    rng : numpy.random.Generator
        The only source of randomness.

    Returns
    -------
    ndarray of int64, shape (count,)
        Row ids, ascending; a row drawn twice is there twice. A row of score zero is never drawn.
    """
    upper_ends = np.cumsum(scores)
    points = rng.random(count) * upper_ends[-1]
    points.sort()
    # u <= 1 - 2^-53, so u G rounds to less than G and every point falls below the last end.
    rows: Rows = np.searchsorted(upper_ends, points, side="right")
    return rows


def draw_evenly(n_rows: int, count: int, rng: np.random.Generator) -> Rows:
    """Draw rows with replacement, each with probability 1 / n.

    Parameters
    ----------
    n_rows : int
        n.
    count : int
        m, how many to draw.
    rng : numpy.random.Generator
        The only source of randomness.

    Returns
    -------
    ndarray of int64, shape (count,)
        Row ids, ascending.
    """
    return np.sort(rng.integers(n_rows, size=count, dtype=np.int64))
