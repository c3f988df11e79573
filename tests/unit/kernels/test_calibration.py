import numpy as np
import pytest

from colonnade.kernels.calibration import calibrate, calibration_strength, what_is_left
from colonnade.kernels.rounding_noise import correct_rows, worthwhile_share


def drawn(size: int, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_t(8, size=(size, 3)) / np.sqrt(8 / 6), rng.normal(size=(size, 2))], np.full(
        size, 1000.0 / size
    )


def missed(parties: list[np.ndarray], w: np.ndarray, total: float = 1000.0) -> float:
    parts = [np.abs(w @ u).max() for u in parties]
    parts += [np.abs((u * w[:, None]).T @ u - total * np.eye(u.shape[1])).max() for u in parties]
    return float(max(parts)) / total


def test_moments_come_nearer() -> None:
    parties, weights = drawn(400)
    calibrated = calibrate(weights, parties, 1000.0, 0.0, 0.1)
    assert missed(parties, calibrated) < 0.3 * missed(parties, weights)
    assert calibrated.min() >= 0
    assert calibrated.sum() == pytest.approx(1000.0)


def test_a_weaker_ridge_meets_them() -> None:
    parties, weights = drawn(400)
    assert missed(parties, calibrate(weights, parties, 1000.0, 0.0, 1e-6)) < 1e-3


def test_it_solves_the_equations_it_says() -> None:
    """The same system, written out: conjugate gradients find its solution."""
    parties, weights = drawn(200)
    w = weights / 1000.0
    columns = [np.ones((200, 1)), *parties, *((u[:, :, None] * u[:, None, :]).reshape(200, -1) for u in parties)]
    A = np.hstack(columns)
    targets = np.concatenate([[1.0], np.zeros(5), np.eye(3).ravel(), np.eye(2).ravel()])
    gram = (A * w[:, None]).T @ A
    D = np.sqrt(np.diag(gram))
    scaled = np.linalg.solve(gram / D / D[:, None] + 0.5 * np.eye(len(D)), (targets - A.T @ w) / D)
    expected = np.maximum(1 + A @ (scaled / D), 0) * w
    np.testing.assert_allclose(
        calibrate(weights, parties, 1000.0, 0.0, 0.5), 1000 * expected / expected.sum(), rtol=1e-4
    )


def test_weights_stay_non_negative_where_few_rows_are_far_off() -> None:
    parties, weights = drawn(12)
    calibrated = calibrate(weights, [u + 3.0 for u in parties], 1000.0, 0.0, 0.01)
    assert calibrated.min() == 0.0
    assert calibrated.sum() == pytest.approx(1000.0)


def test_the_scale_of_weights_does_not_matter() -> None:
    parties, weights = drawn(100)
    once, again = calibrate(weights, parties, 1000.0, 0.0, 0.1), calibrate(1e9 * weights, parties, 1e12, 0.0, 0.1)
    np.testing.assert_allclose(again, 1e9 * once, rtol=1e-9)


def test_a_party_without_columns_takes_no_part() -> None:
    parties, weights = drawn(100)
    np.testing.assert_array_equal(
        calibrate(weights, [*parties, np.empty((100, 0))], 1000.0, 0.0, 0.1),
        calibrate(weights, parties, 1000.0, 0.0, 0.1),
    )


def test_few_rows_are_held_back_more() -> None:
    assert (calibration_strength(300), calibration_strength(301)) == (1.0, 0.1)


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


def test_what_the_moments_explain_does_not_vary_and_the_rest_does() -> None:
    rng = np.random.default_rng(0)
    parties = [rng.normal(size=(2000, 3)), rng.normal(size=(2000, 2))]
    weights, other = rng.uniform(1, 3, size=2000), rng.normal(size=2000)
    moment = parties[0][:, 0] * parties[0][:, 2] + 2 * parties[1][:, 1]
    left = what_is_left(np.column_stack([moment, other]), weights, parties, weights.sum(), 1e-6)
    assert left[:, 0].std() < 1e-4
    np.testing.assert_allclose(left[:, 1].std(), other.std(), rtol=0.02)


def test_too_many_moments_are_left_alone() -> None:
    rng = np.random.default_rng(1)
    u, values = rng.normal(size=(50, 40)), rng.normal(size=(50, 2))
    np.testing.assert_array_equal(what_is_left(values, np.ones(50), [u], 50.0, 0.1), values)
