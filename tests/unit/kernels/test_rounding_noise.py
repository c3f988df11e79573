import numpy as np
import pytest

from colonnade.kernels.rounding_noise import (
    correct_rows,
    hidden_directions,
    mean_variance,
    noise_left,
    worthwhile_share,
)


def rounded_by_two_steps(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Give rows before and after rounding, weights, and each row's variance: heavy rows are rounded finely."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(size, 4)) @ np.diag([1.0, 0.8, 0.6, 0.9])
    fine = np.arange(size) % 3 == 0
    weights, variance = np.where(fine, 2.0, 1.0), np.where(fine, 0.01, 0.1)
    return rows, rows + rng.uniform(-1, 1, size=rows.shape) * np.sqrt(3 * variance)[:, None], weights, variance


def test_a_mean_is_weighted() -> None:
    assert mean_variance(np.array([0.1, 0.4]), np.array([2.0, 1.0])) == pytest.approx(0.2)
    assert mean_variance(0.1, np.array([2.0, 1.0])) == 0.1


def test_rows_of_two_steps_have_their_covariance_again() -> None:
    """What rounding added is the weighted mean of its variances, 0.055, not their plain mean, 0.07.

    The errors' own sampling error is about 0.0005.
    """
    rows, rounded, weights, variance = rounded_by_two_steps(99_999)
    before, after, corrected = (
        np.cov(each.T, aweights=weights, bias=True)
        for each in (rows, rounded, correct_rows(rounded, weights, variance, 1.0))
    )
    np.testing.assert_allclose(np.diag(after - before), 0.055, atol=0.003)
    np.testing.assert_allclose(corrected, before, atol=0.003)
    left = noise_left(rounded, weights, variance, 0.0)
    np.testing.assert_allclose(left, 0.055 * np.eye(4), atol=1e-12)


def test_a_variance_for_each_row_is_that_for_all_where_they_agree() -> None:
    _, rounded, weights, _ = rounded_by_two_steps(300)
    same, features, label = np.full(300, 0.05), np.eye(4)[:, :3], np.eye(4)[3]
    np.testing.assert_allclose(correct_rows(rounded, weights, same, 0.7), correct_rows(rounded, weights, 0.05, 0.7))
    np.testing.assert_allclose(
        worthwhile_share(rounded, weights, same, features, label),
        worthwhile_share(rounded, weights, 0.05, features, label),
    )


def test_what_two_steps_hide_is_found_by_their_mean() -> None:
    """A direction that has rounding alone, and one that has twice as much and more."""
    _, rounded, weights, variance = rounded_by_two_steps(49_998)
    doubled = np.column_stack([rounded, rounded[:, 0]])  # the same rounding, too: nothing is left between the two
    hidden = hidden_directions(doubled, weights, variance, np.eye(5))
    np.testing.assert_allclose(np.abs(hidden[:, 0]), [np.sqrt(0.5), 0, 0, 0, np.sqrt(0.5)], atol=1e-6)
    assert hidden.shape == (5, 1)


@pytest.mark.parametrize(("size", "repeats", "least", "most"), [(10, 100, 0.0, 0.4), (100_000, 1, 0.9, 1.0)])
def test_the_share_that_pays_is_found_with_two_steps(size: int, repeats: int, least: float, most: float) -> None:
    """Of many rows nearly all is taken off, of few a quarter on average (standard error 0.03)."""
    rng, shares = np.random.default_rng(1), []
    for _ in range(repeats):
        Z = rng.normal(size=(size, 4))
        y = Z @ [1.0, -1.0, 0.5, 0.5] + rng.normal(size=size)
        variance = np.where(np.arange(size) % 2 == 0, 0.02, 0.14)
        joined = np.column_stack([Z, y]) + rng.uniform(-1, 1, size=(size, 5)) * np.sqrt(3 * variance)[:, None]
        shares.append(worthwhile_share(joined, np.ones(size), variance, np.eye(5)[:, :4], np.eye(5)[4]))
    assert least <= np.mean(shares) <= most


def test_corrected_rows_have_the_covariance_before_rounding() -> None:
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(50, 4)), rng.random(50)
    w = weights / weights.sum()
    before = np.cov(rows.T, aweights=w, bias=True)
    corrected = correct_rows(rows, weights, 0.05, 1.0)
    np.testing.assert_allclose(np.cov(corrected.T, aweights=w, bias=True), before - 0.05 * np.eye(4), atol=1e-12)
    np.testing.assert_allclose(w @ corrected, w @ rows, atol=1e-12)
    np.testing.assert_allclose(correct_rows(rows, weights, 0.05, 0.0), rows, atol=1e-12)


def test_a_direction_of_rounding_alone_is_left_as_it_is() -> None:
    rng, variance = np.random.default_rng(0), 0.02
    rows = rng.normal(size=(500, 2))
    rows = np.column_stack([rows, rows[:, 0]]) + rng.uniform(-1, 1, size=(500, 3)) * np.sqrt(3 * variance)
    corrected = correct_rows(rows, np.ones(500), variance, 1.0)
    eigenvalues = np.linalg.eigvalsh(np.cov(rows.T, bias=True))
    again = np.linalg.eigvalsh(np.cov(corrected.T, bias=True))
    np.testing.assert_allclose(again, eigenvalues - [0.0, variance, variance], atol=1e-9)


@pytest.mark.parametrize(("size", "least", "most"), [(10, 0.0, 0.2), (100_000, 0.9, 1.0)])
def test_the_correction_is_made_where_it_pays(size: int, least: float, most: float) -> None:
    rng, variance = np.random.default_rng(0), 0.08
    Z = rng.normal(size=(size, 4))
    y = Z @ [1.0, -1.0, 0.5, 0.5] + rng.normal(size=size)
    joined = np.column_stack([Z, y]) + rng.uniform(-1, 1, size=(size, 5)) * np.sqrt(3 * variance)
    share = worthwhile_share(joined, np.ones(size), variance, np.eye(5)[:, :4], np.eye(5)[4])
    assert least <= share <= most


def test_no_rounding_needs_no_correction() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 3))
    assert worthwhile_share(rows, np.ones(30), 0.0, np.eye(3)[:, :2], np.eye(3)[2]) == 0.0
