import numpy as np
import pytest
from scipy import stats

from colonnade.kernels.separation import draw_pairs, separation_ratios, squared_distances, usual_largest


def test_pairs_are_two_different_rows_and_all_alike() -> None:
    """Chi-square over the 20 ordered pairs of 5 rows at 40,000 draws; false alarm 1e-4."""
    pairs = draw_pairs(5, 40_000, np.random.default_rng(0))
    assert np.all(pairs[:, 0] != pairs[:, 1])
    counts = np.bincount(pairs[:, 0] * 5 + pairs[:, 1], minlength=25).reshape(5, 5)
    assert stats.chisquare(counts[~np.eye(5, dtype=bool)]).pvalue > 1e-4


def test_distances() -> None:
    assert squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).tolist() == [25.0]


def test_ratios_with_rows_that_some_or_all_cannot_tell_apart() -> None:
    distances = np.array([[1.0, 0.0, 0.0, 2.0], [3.0, 5.0, 0.0, 0.0]])
    found = separation_ratios(distances)
    np.testing.assert_array_equal(found, [[4.0, np.inf, 1.0, 1.0], [4 / 3, 1.0, 1.0, np.inf]])


def test_the_usual_largest_is_the_median_of_largest_ones() -> None:
    """Against 4,000 simulated maxima of 50: the median's rank is off by three sigma (2.4 %) at most; alarm 0.3 %."""
    rng = np.random.default_rng(1)
    ratios = rng.pareto(1.0, size=100_000) + 1
    maxima = rng.choice(ratios, size=(4_000, 50)).max(axis=1)
    assert (maxima <= usual_largest(ratios, 50)).mean() == pytest.approx(0.5, abs=0.024)


def test_the_usual_largest_grows_with_the_number_of_pairs_and_may_be_infinite() -> None:
    ratios = np.concatenate([np.linspace(1, 2, 990), np.full(10, np.inf)])
    assert usual_largest(ratios, 1) < usual_largest(ratios, 20) < 2.01
    assert usual_largest(ratios, 1000) == np.inf
