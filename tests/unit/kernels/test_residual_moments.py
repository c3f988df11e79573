import numpy as np
import pytest

from colonnade.kernels.arrays import Floats
from colonnade.kernels.calibration import are_too_many, left_by_moments, moments_of
from colonnade.kernels.fitted_rests import rests_of_moments
from colonnade.kernels.residual_moments import _residual, calibrate_residuals, residual_moments

N_ROWS, WIDTHS = 20_000, (15, 15, 16)


def whitened(seed: int, heavy: int = 6) -> list[Floats]:
    """Whitened columns of all rows: the last party's last is the label's own part."""
    rng = np.random.default_rng(seed)
    common = rng.standard_t(heavy, size=(N_ROWS, 3))
    parties = [rng.standard_t(heavy, size=(N_ROWS, r)) + common @ rng.normal(size=(3, r)) / 2 for r in WIDTHS]
    for u in parties:
        u -= u.mean(axis=0)
        u[:] = u @ np.linalg.inv(np.linalg.cholesky(u.T @ u / N_ROWS)).T
    return parties


def label_of(seed: int) -> tuple[Floats, Floats]:
    """Return the directions of features, and of a label, which has the last column for itself."""
    r = sum(WIDTHS)
    label = np.zeros(r)
    label[-WIDTHS[-1] :] = np.random.default_rng(seed).normal(size=WIDTHS[-1])
    return np.eye(r)[:, :-1], label


def none(parties: list[Floats]) -> list[Floats]:
    """No rounding in any column."""
    return [np.zeros(u.shape[1]) for u in parties]


def bend(weights: Floats, parties: list[Floats], features: Floats, label: Floats, free: Floats) -> Floats:
    total = weights.sum()
    moments = residual_moments(weights, parties, total, none(parties), features, label, free)
    return calibrate_residuals(weights, moments, total, free)


def excess(parties: list[Floats], rows: np.ndarray, weights: Floats, label: Floats) -> float:
    """Say how much more a fit of weighted rows costs on all rows than the best."""
    U = np.hstack(parties)
    X, y = np.column_stack([np.ones(len(U)), U[:, :-1]]), U @ label
    roots = np.sqrt(weights)[:, np.newaxis]
    theta = np.linalg.lstsq(roots * X[rows], roots[:, 0] * y[rows], rcond=None)[0]
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    return float(np.mean(np.square(y - X @ theta)) / np.mean(np.square(y - X @ best)) - 1)


def test_models_of_few_rows_come_nearer() -> None:
    """Of 300 rows and 423 moments, on average over 20 draws."""
    parties = whitened(0)
    features, label = label_of(1)
    assert are_too_many(moments_of(parties), 300)
    weights, found = np.full(300, N_ROWS / 300), []
    for seed in range(20):
        rows = np.random.default_rng(seed).choice(N_ROWS, 300, replace=False)
        bent = bend(weights, [u[rows] for u in parties], features, label, np.ones(300))
        found.append([excess(parties, rows, each, label) for each in (weights, bent)])
    before, after = np.mean(found, axis=0)
    assert after < 0.95 * before


def test_totals_of_residuals_come_nearer() -> None:
    parties, m = whitened(2), 100
    features, label = label_of(3)
    rows = np.random.default_rng(4).choice(N_ROWS, m, replace=False)
    weights, drawn = np.full(m, N_ROWS / m), [u[rows] for u in parties]
    bent = bend(weights, drawn, features, label, np.ones(m))
    residual = _residual(np.hstack(drawn), weights / N_ROWS, features, label)
    ends = np.cumsum(WIDTHS)[:-1]

    def missed(w: Floats) -> float:
        parts = zip(drawn, np.split(residual, ends), strict=True)
        return float(max(np.abs(u.T @ (w * (u @ own)) / N_ROWS - own).max() for u, own in parts))

    assert missed(bent) < 0.8 * missed(weights)
    assert bent.sum() == pytest.approx(N_ROWS)


def test_no_row_loses_more_than_half_nor_what_is_right() -> None:
    parties, m = whitened(5, heavy=3), 200
    features, label = label_of(6)
    drawn, free = [1.5 * u[:m] + 0.2 for u in parties], (np.arange(m) >= 5).astype(float)
    weights = np.full(m, 10.0)
    bent = bend(weights, drawn, features, label, free)
    scale = bent[0] / weights[0]
    np.testing.assert_allclose(bent[:5], bent[0], rtol=1e-12)
    assert bent.min() == pytest.approx(0.5 * scale * weights[0])
    assert bent.max() > 1.1 * scale * weights[0]


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_scale_of_weights_does_not_matter(scale: float) -> None:
    parties, m = whitened(7), 80
    features, label = label_of(8)
    drawn, weights = [u[:m] for u in parties], np.random.default_rng(9).uniform(1, 5, size=m)
    rest = features, label, np.ones(m)
    once, again = bend(weights, drawn, *rest), bend(scale * weights, drawn, *rest)
    np.testing.assert_allclose(again, scale * once, rtol=1e-9)


def test_columns_that_repeat_or_are_missing_do_no_harm() -> None:
    """A level that no drawn row has, a party's columns that are another's, and a party without any."""
    parties, m = [u[:50] for u in whitened(10)], 50
    parties[1][:] = parties[0]
    parties[2][:, 3] = 0.0
    features, label = label_of(11)
    weights = np.full(m, 2.0)
    rest = features, label, np.ones(m)
    bent = bend(weights, parties, *rest)
    assert np.isfinite(bent).all()
    assert (bent > 0).all()
    more = [*parties[:2], np.empty((m, 0)), parties[2]]
    np.testing.assert_allclose(bend(weights, more, *rest), bent, rtol=1e-12)


def test_what_moments_explain_is_taken_off() -> None:
    """What residuals' moments tell of a sum does not vary; what is unrelated keeps its variance: of 40, to a tenth."""
    parties, m = [u[:300] for u in whitened(12)], 300
    features, label = label_of(13)
    weights, rng = np.full(m, 5.0), np.random.default_rng(14)
    moments = residual_moments(weights, parties, 1500.0, none(parties), features, label, np.ones(m))
    given = moments.rows.T, moments.chance, 0.1
    told, other = moments.rows @ rng.normal(size=(moments.rows.shape[1], 5)), rng.normal(size=(m, 40))
    for rests_of in (left_by_moments, rests_of_moments):
        assert np.square(rests_of(told, *given)).mean() < 0.4 * np.square(told).mean()
    assert np.square(rests_of_moments(other, *given)).mean() == pytest.approx(1.0, rel=0.1)
