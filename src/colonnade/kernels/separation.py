"""τ of Assumption 5.1: how much farther apart two rows are in all columns than in one party's, by sampled pairs."""

import numpy as np

from colonnade.kernels.arrays import Floats, Rows


def draw_pairs(n_rows: int, count: int, rng: np.random.Generator) -> Rows:
    """Draw pairs of two different rows, all pairs alike; shape (count, 2)."""
    first = rng.integers(n_rows, size=count, dtype=np.int64)
    second = rng.integers(n_rows - 1, size=count, dtype=np.int64)
    return np.column_stack([first, second + (second >= first)])


def squared_distances(first: Floats, second: Floats) -> Floats:
    """Compute |a_i - b_i|² row by row, shape (p,), of two (p, d) arrays."""
    squared: Floats = np.square(first - second).sum(axis=1)
    return squared


def separation_ratios(distances: Floats) -> Floats:
    """Compute what τ each pair needs at each party, from each party's squared distance of each pair; both (T, p).

    It is the squared distance in all columns over the party's: 1 or more; infinite where the party cannot tell two rows
    apart that others can; 1 where nobody can.
    """
    total = distances.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Floats = total / distances
    ratios[:, total == 0] = 1.0
    return np.maximum(ratios, 1.0)


def usual_largest(ratios: Floats, count: int) -> float:
    """Find the median of the largest ratio among `count` pairs, from a sample of as many or more; it may be infinite.

    That no more than half of such largest ratios exceed r means P(ratio <= r)^count = 1/2: a quantile.
    """
    return float(np.quantile(ratios, 0.5 ** (1 / count), method="inverted_cdf"))
