import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, Ridge

from colonnade.kernels.arrays import Floats
from colonnade.kernels.linear import reduce_rows, solve_ridge, weighted_triangle


def ridge(X: Floats, y: Floats, w: Floats, penalty: float, *, fit_intercept: bool) -> tuple[Floats, float]:
    problem = reduce_rows(X, y, w, fit_intercept=fit_intercept)
    theta = solve_ridge(problem, penalty)
    return theta, problem.intercept(theta)


def random_problem(m: int, d: int, seed: int) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * 10.0 ** rng.uniform(-3, 3, size=d) + rng.normal(size=d)
    return X, rng.normal(size=m), rng.uniform(0, 3, size=m)


def objective(X: Floats, y: Floats, w: Floats, penalty: float, theta: Floats, theta_0: float) -> float:
    return float(w @ (X @ theta + theta_0 - y) ** 2 + penalty * theta @ theta)


@settings(deadline=None)
@given(st.integers(5, 60), st.integers(1, 6), st.sampled_from([0.0, 0.3, 40.0]), st.booleans(), st.integers(0, 10_000))
def test_objective_is_as_low_as_scikit_learns(m: int, d: int, penalty: float, intercept: bool, seed: int) -> None:
    X, y, w = random_problem(m, d, seed)
    theta, theta_0 = ridge(X, y, w, penalty, fit_intercept=intercept)
    # The SVD solver: scikit-learn's Cholesky squares the condition number.
    peer = (
        Ridge(alpha=penalty, fit_intercept=intercept, solver="svd")
        if penalty
        else LinearRegression(fit_intercept=intercept)
    )
    peer.fit(X, y, sample_weight=w)
    theirs = objective(X, y, w, penalty, peer.coef_, float(peer.intercept_))
    ours = objective(X, y, w, penalty, theta, theta_0)
    assert ours <= theirs * (1 + 1e-6) + 1e-9


@given(st.integers(0, 1000))
def test_weight_k_equals_k_copies(seed: int) -> None:
    X, y, _ = random_problem(20, 3, seed)
    copies = np.random.default_rng(seed).integers(0, 4, size=20)
    copies[:4] = 1
    weighted, intercept = ridge(X, y, copies.astype(float), 2.0, fit_intercept=True)
    rows = np.repeat(np.arange(20), copies)
    repeated, intercept_2 = ridge(X[rows], y[rows], np.ones(len(rows)), 2.0, fit_intercept=True)
    np.testing.assert_allclose(X @ weighted + intercept, X @ repeated + intercept_2, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("columns", [[0, 0], [0, 1, 1], [2, 0], [3, 0, 3]])
def test_collinear_zero_and_constant_columns_cost_nothing(columns: list[int]) -> None:
    rng = np.random.default_rng(0)
    base = np.column_stack([rng.normal(size=(50, 2)), np.zeros(50), np.full(50, 7.0)])
    X, y, w = base[:, columns], rng.normal(size=50), rng.uniform(0.5, 2, size=50)
    theta, theta_0 = ridge(X, y, w, 0.0, fit_intercept=True)
    assert np.isfinite(theta).all()
    assert np.abs(theta).max() < 10, "the solution of least norm, not one that has run away"
    basis = np.column_stack([X, np.ones(50)]) * np.sqrt(w)[:, None]
    best = np.linalg.lstsq(basis, np.sqrt(w) * y, rcond=1e-10)[0]
    assert objective(X, y, w, 0, theta, theta_0) == pytest.approx(float(np.sum((basis @ best - np.sqrt(w) * y) ** 2)))


@pytest.mark.parametrize("constant", [0.1, 1e-3, 47.55, -122.2, 1e8, 7.0])
@pytest.mark.parametrize("n", [20, 200, 100_000])
def test_a_constant_column_gets_no_coefficient_of_its_own(constant: float, n: int) -> None:
    """What is left of it after centring is rounding, and must not be blown up to a direction."""
    rng = np.random.default_rng(n)
    x, w = rng.normal(size=n), rng.uniform(0.5, 2.0, size=n)
    theta, theta_0 = ridge(np.column_stack([x, np.full(n, constant)]), 1e6 + x, w, 0.0, fit_intercept=True)
    assert theta[1] == 0.0
    assert theta[0] == pytest.approx(1.0, rel=1e-6)
    assert theta_0 == pytest.approx(1e6, rel=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 8.0])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_constant_column_has_coefficient_0_wherever_it_stands(place: int, penalty: float) -> None:
    """To the bit: the model's table once showed -1.13687e-13."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 5)) * [1, 100, 3, 1, 1] + [0, 1000, 40, 0, 0]
    y = X @ np.arange(5.0) + rng.normal(size=800)
    X[:, place] = 47.55
    theta, _ = ridge(X, y, np.ones(800), penalty, fit_intercept=True)
    assert theta[place] == 0.0
    assert np.count_nonzero(theta) == 4


def test_a_small_coefficient_is_no_rounding() -> None:
    x = np.random.default_rng(0).normal(size=(500, 2)) * [1.0, 1e9]
    theta, _ = ridge(x, x @ [1.0, 1e-13], np.ones(500), 0.0, fit_intercept=True)
    assert theta[1] == pytest.approx(1e-13, rel=1e-6)


def test_a_column_that_hardly_varies_is_not_taken_for_a_constant() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    theta, _ = ridge((1.0 + 1e-9 * x)[:, None], x, np.ones(500), 0.0, fit_intercept=True)
    assert theta[0] == pytest.approx(1e9, rel=1e-5)


def test_fewer_rows_than_columns() -> None:
    X, y, w = random_problem(3, 8, 1)
    theta, theta_0 = ridge(X, y, w, 0.0, fit_intercept=False)
    np.testing.assert_allclose(X @ theta + theta_0, y, atol=1e-8)


def test_large_offsets_do_not_cancel() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=1000)
    theta, _ = ridge((1.5e9 + x)[:, None], 2.0 * x, np.ones(1000), 0.0, fit_intercept=True)
    assert theta[0] == pytest.approx(2.0, rel=1e-6)


def test_a_triangle_of_blocks_is_the_triangle_of_the_whole() -> None:
    rng = np.random.default_rng(5)
    A, w = rng.normal(size=(20_000, 4)), rng.uniform(size=20_000)
    centre = np.average(A, axis=0, weights=w)
    R = weighted_triangle(A, w, centre)
    assert R.shape == (4, 4)
    np.testing.assert_allclose(R.T @ R, ((A - centre).T * w) @ (A - centre), rtol=1e-10, atol=1e-8)
