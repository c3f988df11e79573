"""Drawing rows: by scores (Algorithm 1, line 5), evenly, each at most once, and to hold them out."""

import numpy as np

from colonnade.kernels.arrays import Flags, Floats, Rows

# exp(-35) is below 10^-15.
UNLIKELY = 35.0
# Of a product and a quotient.
ROUNDING = 2.0**-50


def draw_by_scores(scores: Floats, count: int, rng: np.random.Generator, *, stratified: bool) -> Rows:
    """Draw rows with replacement, row i count g_i / G times on average.

    Independent draws are Algorithm 1 to the letter. Stratified ones lay the rows end to end in the order of their
    scores, each as long as its score, cut that line into `count` equal parts and draw one point in each. Both give any
    row the same expected number, so weights and unbiasedness are the same, and the draws stay independent of each
    other; the variance of any weighted sum is never larger, because what varied between the strata no longer does.

    The scores g, shape (n,), are non-negative, with a sum that is positive and not subnormal. Row ids ascend; a row
    drawn twice is there twice, and one of score zero never.
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
    """Bound how often rows, whose g_i / G is `share` at most, can be among `count` draws by scores.

    Stratified, no draw exceeds it: a row as long as b strata meets at most b + 2, those at its ends in part. Else one
    in 10^15 does, by Bernstein's inequality.
    """
    expected: Floats = count * np.minimum(share, 1.0)
    most: Floats = expected + UNLIKELY / 3 + np.sqrt(UNLIKELY**2 / 9 + 2 * UNLIKELY * expected)
    return np.floor(expected) + 2 if stratified else most


def chances(scores: Floats, count: int) -> tuple[float, Floats]:
    """Give the factor c, and the chances min(1, c g_i) of distinct draws: they add up to `count`, or to all rows.

    A row that c g_i brings to 1 is certain; the rest share what is left, which can bring more of them to 1. Where
    `count` is no less than the number of positive scores, all of these are certain.

    The scores g, shape (n,), are non-negative; positive ones are no less than 10^-300.
    """
    rest, left = scores[scores > 0], count
    factor, least_certain = 0.0, np.inf
    while len(rest) and left > 0:
        factor = left / float(rest.sum())
        reached = rest * factor >= 1 if left < len(rest) else np.ones(len(rest), np.bool_)
        if not reached.any():
            break
        least_certain = min(least_certain, float(rest[reached].min()))
        rest, left = rest[~reached], left - int(np.count_nonzero(reached))
    # So that the product with c is no less than 1, however it rounds.
    factor = max(factor, (1 + ROUNDING) / least_certain)
    return factor, np.minimum(1.0, factor * scores)


def draw_distinct(chance: Floats, rng: np.random.Generator) -> Rows:
    """Draw distinct rows, row i with chance pi_i: as many as the chances, shape (n,), add up to, a whole number.

    Rows that are certain, and of the others, laid end to end in a random order, each as long as its chance, those that
    the points u, u + 1, ... fall on. Row ids ascend; one without a chance is never among them.
    """
    certain = np.flatnonzero(chance >= 1)
    others = rng.permutation(np.flatnonzero((chance > 0) & (chance < 1)))
    upper_ends = np.cumsum(chance[others])
    count = round(float(upper_ends[-1])) if len(others) else 0
    if count == 0:
        return certain
    points = (np.arange(count) + rng.random()) * (upper_ends[-1] / count)
    places = np.searchsorted(upper_ends, points, side="right")
    # A row is shorter than 1, and met once; only where ends and points were rounded could two meet one, or none.
    numbers = np.arange(count)
    places = np.maximum.accumulate(places - numbers) + numbers
    places = np.minimum(places, len(others) - count + numbers)
    return np.sort(np.concatenate([certain, others[places]]))


def log_of(chance: Floats) -> Floats:
    """Give -log(1 - pi_i), infinite where a row is certain: a row is among several draws with 1 - exp(-their sum)."""
    logs = np.full(len(chance), np.inf)
    np.negative(np.log1p(-chance, where=chance < 1, out=np.zeros(len(chance))), where=chance < 1, out=logs)
    return logs


def even_chances(n_rows: int, count: int, weights: Floats | None = None) -> tuple[float, Floats]:
    """Give `chances` of so many distinct rows that are drawn evenly, or by their weight, as if it counted copies."""
    return chances(np.ones(n_rows) if weights is None else weights, count)


def draw_evenly(n_rows: int, count: int, rng: np.random.Generator, weights: Floats | None = None) -> Rows:
    """Draw rows with replacement, ascending: each with probability 1 / n, or by its weight, as if it counted copies."""
    if weights is None:
        return np.sort(rng.integers(n_rows, size=count, dtype=np.int64))
    return _draw_independently(weights, count, rng)


def hold_out(n_rows: int, fraction: float, rng: np.random.Generator) -> Flags:
    """Mark round(fraction n) rows, all choices of them alike."""
    held_out = np.zeros(n_rows, dtype=np.bool_)
    held_out[rng.permutation(n_rows)[: round(fraction * n_rows)]] = True
    return held_out
