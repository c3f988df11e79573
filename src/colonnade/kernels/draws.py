"""Drawing rows: by scores (Algorithm 1, line 5), evenly, and to hold them out."""

import numpy as np

from colonnade.kernels.arrays import Flags, Floats, Rows

# exp(-35) is below 10^-15.
UNLIKELY = 35.0


def draw_by_scores(scores: Floats, count: int, rng: np.random.Generator, *, stratified: bool) -> Rows:
    """Draw rows with replacement, row i count g_i / G times on average.

    Independent draws are Algorithm 1 to the letter. Stratified ones lay the rows end to end in the order of their
    scores, each as long as its score, cut that line into `count` equal parts and draw one point in each. Both give any
    row the same expected number, so weights and unbiasedness are the same, and the draws stay independent of each
    other; the variance of any weighted sum is never larger, because what varied between the strata no longer does.

    Parameters
    ----------
    scores : ndarray of float64, shape (n,)
        g, non-negative, with a sum that is positive and not subnormal.
    count : int
        a_j, how many to draw.
    rng : numpy.random.Generator
        The only source of randomness.
    stratified : bool
        Which of the two.

    Returns
    -------
    ndarray of int64, shape (count,)
        Row ids, ascending; a row drawn twice is there twice. A row of score zero is never drawn.
    """
    if not stratified:
        return _draw_independently(scores, count, rng)
    order = np.argsort(scores, kind="stable")
    upper_ends = np.cumsum(scores[order])
    points = (np.arange(count) + rng.random(count)) / max(count, 1) * upper_ends[-1]
    # The last point can round to G itself, which lies in the last row.
    positions = np.minimum(np.searchsorted(upper_ends, points, side="right"), len(order) - 1)
    return np.sort(order[positions])


def _draw_independently(scores: Floats, count: int, rng: np.random.Generator) -> Rows:
    upper_ends = np.cumsum(scores)
    points = rng.random(count) * upper_ends[-1]
    points.sort()
    # u <= 1 - 2^-53, so u G rounds to less than G and every point falls below the last end.
    rows: Rows = np.searchsorted(upper_ends, points, side="right")
    return rows


def most_copies(share: Floats, count: int, *, stratified: bool) -> Floats:
    """Bound how often rows can be among `count` draws by scores.

    Parameters
    ----------
    share : ndarray of float64, shape (k,)
        g_i / G at most.
    count : int
        a.
    stratified : bool
        Whether one point is drawn in each of a strata.

    Returns
    -------
    ndarray of float64, shape (k,)
        Stratified, no draw exceeds it: a row as long as b strata meets at most b + 2, those at its ends in part.
        Else one in 10^15 does, by Bernstein's inequality.
    """
    expected: Floats = count * np.minimum(share, 1.0)
    most: Floats = expected + UNLIKELY / 3 + np.sqrt(UNLIKELY**2 / 9 + 2 * UNLIKELY * expected)
    return np.floor(expected) + 2 if stratified else most


def draw_evenly(n_rows: int, count: int, rng: np.random.Generator, weights: Floats | None = None) -> Rows:
    """Draw rows with replacement, each with probability 1 / n, or by its weight: as if a weight counted copies.

    Parameters
    ----------
    n_rows : int
        n.
    count : int
        m, how many to draw.
    rng : numpy.random.Generator
        The only source of randomness.
    weights : ndarray of float64, shape (n,), optional
        Row weights, not all 0.

    Returns
    -------
    ndarray of int64, shape (count,)
        Row ids, ascending.
    """
    if weights is None:
        return np.sort(rng.integers(n_rows, size=count, dtype=np.int64))
    return _draw_independently(weights, count, rng)


def hold_out(n_rows: int, fraction: float, rng: np.random.Generator) -> Flags:
    """Mark round(fraction n) rows, all choices of them alike.

    Parameters
    ----------
    n_rows : int
        n.
    fraction : float
        From 0 to 1.
    rng : numpy.random.Generator
        The only source of randomness.

    Returns
    -------
    ndarray of bool, shape (n,)
        True where a row is held out.
    """
    held_out = np.zeros(n_rows, dtype=np.bool_)
    held_out[rng.permutation(n_rows)[: round(fraction * n_rows)]] = True
    return held_out
