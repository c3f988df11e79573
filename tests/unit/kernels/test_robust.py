import itertools

import numpy as np
import pytest

from colonnade.kernels.robust import share_set_aside


def by_hand(losses: np.ndarray, rows: np.ndarray, weights: np.ndarray, epsilon: float) -> float:
    """Try every set of rows."""
    n, best = len(losses), np.inf
    for count in range(n):
        for aside in itertools.combinations(range(n), count):
            kept = ~np.isin(np.arange(n), aside)
            drawn = kept[rows]
            gap = losses[kept].sum() - weights[drawn] @ losses[rows[drawn]]
            if abs(gap) <= epsilon * losses.sum() * (1 + 1e-12):
                best = min(best, max(count / n, (~drawn).mean()))
    return float(best)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_never_below_the_best_of_all_sets_and_is_it_where_the_coreset_misses_a_heavy_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    losses = rng.pareto(1.0, size=9) + 0.1
    rows = np.sort(rng.integers(9, size=4))
    weights = np.full(4, 9 / 4)
    found, least = share_set_aside(losses, rows, weights, 0.1), by_hand(losses, rows, weights, 0.1)
    assert found >= least - 1e-12


def test_one_row_that_the_coreset_misses() -> None:
    losses = np.array([1.0, 1.0, 1.0, 1.0, 96.0])
    rows, weights = np.array([0, 1, 2, 3]), np.ones(4)
    assert share_set_aside(losses, rows, weights, 0.1) == 1 / 5 == by_hand(losses, rows, weights, 0.1)
    assert share_set_aside(losses, rows, weights, 0.97) == 0.0


def test_one_row_that_the_coreset_overstates_counts_among_its_own() -> None:
    losses = np.array([1.0] * 9 + [50.0])
    rows, weights = np.array([0, 9]), np.array([9.0, 5.0])
    assert share_set_aside(losses, rows, weights, 0.05) == 0.5 == by_hand(losses, rows, weights, 0.05)


def test_where_every_step_is_too_far_all_rows_are_set_aside() -> None:
    assert share_set_aside(np.array([10.0, 10.0]), np.array([0]), np.array([1.5]), 0.01) == 1.0
