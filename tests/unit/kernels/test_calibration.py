import numpy as np
import pytest

from colonnade.kernels import calibration
from colonnade.kernels.arrays import Floats
from colonnade.kernels.calibration import calibrate, calibration_strength, what_is_left


def drawn(size: int, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_t(8, size=(size, 3)) / np.sqrt(8 / 6), rng.normal(size=(size, 2))], np.full(
        size, 1000.0 / size
    )


def none(parties: list[Floats]) -> list[Floats]:
    """No rounding in any column."""
    return [np.zeros(u.shape[1]) for u in parties]


def all_of(weights: Floats) -> Floats:
    """Say that all rows' weights are chance."""
    return np.ones(len(weights))


def missed(parties: list[np.ndarray], w: np.ndarray, total: float = 1000.0) -> float:
    parts = [np.abs(w @ u).max() for u in parties]
    parts += [np.abs((u * w[:, None]).T @ u - total * np.eye(u.shape[1])).max() for u in parties]
    return float(max(parts)) / total


def test_moments_come_nearer() -> None:
    parties, weights = drawn(400)
    calibrated = calibrate(weights, parties, 1000.0, none(parties), 0.1, all_of(weights))
    assert missed(parties, calibrated) < 0.3 * missed(parties, weights)
    assert calibrated.min() >= 0
    assert calibrated.sum() == pytest.approx(1000.0)


def test_a_weaker_ridge_meets_them() -> None:
    parties, weights = drawn(400)
    assert missed(parties, calibrate(weights, parties, 1000.0, none(parties), 1e-6, all_of(weights))) < 1e-3


def written_out(parties: list[Floats], weights: Floats, strength: float, free: Floats) -> Floats:
    """Solve the same system with all its matrices."""
    w, m = weights / 1000.0, len(weights)
    parties = [u @ calibration.turn(u.shape[1]) for u in parties]
    columns = [np.ones((m, 1)), *parties, *((u[:, :, None] * u[:, None, :]).reshape(m, -1) for u in parties)]
    A = np.hstack(columns)
    firsts = np.zeros(sum(u.shape[1] for u in parties))
    targets = np.concatenate([[1.0], firsts, *(np.eye(u.shape[1]).ravel() for u in parties)])
    gram = (A * (w * free)[:, None]).T @ A
    D = np.sqrt(np.maximum(np.diag(gram), 0.01 * (w @ np.square(A))))
    scaled = np.linalg.solve(gram / D / D[:, None] + strength * np.eye(len(D)), (targets - A.T @ w) / D)
    expected = np.maximum(1 + free * (A @ (scaled / D)), 0) * w
    return np.asarray(1000 * expected / expected.sum())


def test_it_solves_the_equations_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "ACCURACY", 1e-5)
    parties, weights = drawn(1200)  # more than a chunk
    for free in (np.ones(1200), np.random.default_rng(5).random(1200) * (np.arange(1200) > 300)):
        found = calibrate(weights, parties, 1000.0, none(parties), 0.5, free)
        np.testing.assert_allclose(found, written_out(parties, weights, 0.5, free), rtol=1e-4)


@pytest.mark.parametrize("strength", [1.0, 0.1])
def test_it_stops_where_the_ridge_leaves_more(strength: float) -> None:
    """What is left unsolved is a few per cent of what changes, at both strengths in use."""
    for seed in range(5):
        parties, weights = drawn(400, seed)
        exactly = written_out(parties, weights, strength, np.ones(400))
        found = calibrate(weights, parties, 1000.0, none(parties), strength, all_of(weights))
        assert np.abs(found - exactly).sum() < 0.05 * np.abs(exactly - weights).sum()


def test_rows_rounded_by_two_steps_meet_the_moments_of_all_rows() -> None:
    """A half has variance 0.02, a half 0.2: targets are 1 plus their mean, so weights need not bend."""
    rng, m = np.random.default_rng(0), 20_000
    variance = np.where(np.arange(m) < m // 2, 0.02, 0.2)
    parties = [rng.normal(size=(m, 3)), rng.normal(size=(m, 2))]
    rounded = [u + rng.uniform(-1, 1, size=u.shape) * np.sqrt(3 * variance)[:, None] for u in parties]
    weights = np.full(m, 1000.0 / m)
    calibrated = calibrate(
        weights, rounded, 1000.0, [np.full(u.shape[1], 0.11) for u in rounded], 0.1, np.ones(len(weights))
    )
    # One sampling error of a second moment is 0.01: weights that follow a wrong variance are off by 0.09.
    assert abs(calibrated[: m // 2].sum() / 500.0 - 1) < 0.02
    for u in parties:
        assert np.abs((u * calibrated[:, None]).T @ u / 1000.0 - np.eye(u.shape[1])).max() < 0.02


def test_weights_stay_non_negative_where_few_rows_are_far_off() -> None:
    parties, weights = drawn(12)
    calibrated = calibrate(weights, [u + 3.0 for u in parties], 1000.0, none(parties), 0.01, all_of(weights))
    assert calibrated.min() == 0.0
    assert calibrated.sum() == pytest.approx(1000.0)


def test_the_scale_of_weights_does_not_matter() -> None:
    parties, weights = drawn(100)
    once, again = (
        calibrate(weights, parties, 1000.0, none(parties), 0.1, all_of(weights)),
        calibrate(1e9 * weights, parties, 1e12, none(parties), 0.1, all_of(weights)),
    )
    np.testing.assert_allclose(again, 1e9 * once, rtol=1e-9)


def test_a_party_without_columns_takes_no_part() -> None:
    parties, weights = drawn(100)
    np.testing.assert_array_equal(
        calibrate(
            weights,
            [*parties, np.empty((100, 0))],
            1000.0,
            none([*parties, np.empty((100, 0))]),
            0.1,
            np.ones(len(weights)),
        ),
        calibrate(weights, parties, 1000.0, none(parties), 0.1, all_of(weights)),
    )


def test_few_rows_are_held_back_more() -> None:
    assert (calibration_strength(300), calibration_strength(301)) == (1.0, 0.1)


def test_what_the_moments_explain_does_not_vary_and_the_rest_does() -> None:
    rng = np.random.default_rng(0)
    parties = [rng.normal(size=(2000, 3)), rng.normal(size=(2000, 2))]
    weights, other = rng.uniform(1, 3, size=2000), rng.normal(size=2000)
    moment = parties[0][:, 0] * parties[0][:, 2] + 2 * parties[1][:, 1]
    left = what_is_left(np.column_stack([moment, other]), weights, parties, weights.sum(), 1e-6, np.ones(2000))
    assert left[:, 0].std() < 1e-4
    np.testing.assert_allclose(left[:, 1].std(), other.std(), rtol=0.02)


def test_too_many_moments_are_left_alone() -> None:
    rng = np.random.default_rng(1)
    u, values = rng.normal(size=(50, 40)), rng.normal(size=(50, 2))
    np.testing.assert_array_equal(what_is_left(values, np.ones(50), [u], 50.0, 0.1, np.ones(50)), values)


def test_rows_that_stand_for_themselves_keep_their_weights() -> None:
    """Ten rows far out, each drawn for certain, beside some of many others: nothing is wrong with their weights."""
    parties, weights = drawn(400)
    parties = [u * np.where(np.arange(400) < 10, 20.0, 1.0)[:, None] for u in parties]
    weights = np.where(np.arange(400) < 10, 1.0, weights)
    free = (np.arange(400) >= 10).astype(float)
    calibrated = calibrate(weights, parties, weights.sum(), none(parties), 0.1, free)
    np.testing.assert_allclose(calibrated[:10] / calibrated[:10].mean(), 1.0, rtol=1e-12)
    assert calibrated[10:].std() > 0.01
    bent = calibrate(weights, parties, weights.sum(), none(parties), 0.1, np.ones(400))
    assert np.abs(bent[:10] - 1).max() > 0.2


def test_a_basis_of_levels_does_no_harm() -> None:
    """Most moments of dummies are the same ones: columns are turned, so that these do not count more than others."""
    rng = np.random.default_rng(3)
    level = rng.choice(6, 4000, p=[0.6, 0.3, 0.07, 0.02, 0.007, 0.003])
    columns = np.column_stack([np.eye(6)[level][:, 1:], rng.normal(size=(4000, 3)) + level[:, None]])
    columns -= columns.mean(axis=0)
    u = columns @ np.linalg.inv(np.linalg.cholesky(columns.T @ columns / 4000)).T
    chances = np.minimum(1.0, 0.1 + 0.02 * np.square(u).sum(axis=1))
    rows = rng.random(4000) < chances
    weights, free = 1 / chances[rows], 1 - chances[rows]
    calibrated = calibrate(weights, [u[rows]], 4000.0, [np.zeros(8)], 0.1, free)
    assert missed([u[rows]], calibrated, 4000.0) < 0.3 * missed([u[rows]], weights, 4000.0)
