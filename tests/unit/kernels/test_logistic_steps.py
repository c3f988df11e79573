"""Directions of a classification without rows: conjugate where the loss is a quadratic; what sums tell of one row."""

import numpy as np
import pytest

from colonnade.kernels.gram import Summary
from colonnade.kernels.logistic_steps import curvature_of, new_direction, told_of_one_row

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 4)) + 3.0
Y = (RNG.random(50) < 0.3).astype(float)
MEAN = np.append(X.mean(axis=0), Y.mean())
SUMMARY = Summary(50.0, MEAN, np.asarray(np.linalg.qr(np.column_stack([X, Y]) - MEAN, mode="r")))


@pytest.mark.parametrize("intercept", [True, False])
def test_the_curvature_is_that_of_equal_chances(intercept: bool) -> None:
    columns = X - X.mean(axis=0) if intercept else X
    h = 0.3 * 0.7 if intercept else 0.25
    B = h * columns.T @ columns + 2 * 5.0 * np.eye(4)
    curvature, first = curvature_of(SUMMARY, 0.3, 5.0, fit_intercept=intercept)
    gradient = RNG.normal(size=4)
    np.testing.assert_allclose(curvature.newton_step(gradient), np.linalg.solve(B, gradient))
    assert curvature.gain(gradient) == pytest.approx(0.5 * gradient @ np.linalg.solve(B, gradient))
    np.testing.assert_allclose(first, np.linalg.solve(B, columns.T @ (Y - Y.mean() if intercept else Y)))


def test_directions_are_orthonormal_in_their_units_and_end_with_the_columns() -> None:
    units, found = np.array([1.0, 1e4, 1e-4, 2.0]), np.empty((0, 4))
    for _ in range(4):
        direction = new_direction(RNG.normal(size=4), found, units)
        assert direction is not None
        found = np.vstack([found, direction])
    np.testing.assert_allclose((found * units) @ (found * units).T, np.eye(4), atol=1e-12)
    assert new_direction(RNG.normal(size=4), found, units) is None
    assert new_direction(np.zeros(4), np.empty((0, 4)), units) is None


def test_what_sums_tell_of_one_row_is_its_leverage() -> None:
    rows = np.arange(40)
    alike = np.ones(40)
    assert told_of_one_row(alike[:, None], rows) == pytest.approx(1 / 40)
    but_one = np.where(rows == 7, 0.0, 1.0)
    assert told_of_one_row(np.column_stack([alike, but_one]), rows) == pytest.approx(1.0)
    copies = np.append(rows, 7)
    assert told_of_one_row(np.ones((41, 1)), copies) == pytest.approx(4 / 43), "a row twice counts double"
    nearly = but_one + 1e-3 * RNG.normal(size=40)
    assert 0.9 < told_of_one_row(np.column_stack([alike, nearly]), rows) < 1.0
