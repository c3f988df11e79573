import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import ElasticNet

import colonnade as cn
from colonnade.kernels import elastic_net as kernel
from colonnade.kernels.arrays import Floats
from colonnade.kernels.elastic_net import solve_elastic_net
from colonnade.kernels.linear import reduce_rows, solve_ridge

FRACTIONS = [0.9, 0.3, 1e-2, 1e-4, 1e-7]  # of the penalty that leaves nothing


def random_problem(m: int, d: int, seed: int) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * 10.0 ** rng.uniform(-3, 3, size=d) + rng.normal(size=d)
    return X, rng.normal(size=m), rng.uniform(0.1, 3, size=m)


def elastic_net(X: Floats, y: Floats, w: Floats, l2: float, l1: float, *, fit_intercept: bool) -> tuple[Floats, float]:
    problem = reduce_rows(X, y, w, fit_intercept=fit_intercept)
    theta = solve_elastic_net(problem, l2, l1, np.zeros(X.shape[1]))
    return theta, problem.intercept(theta)


def objective(X: Floats, y: Floats, w: Floats, l2: float, l1: float, theta: Floats, theta_0: float) -> float:
    return float(w @ (X @ theta + theta_0 - y) ** 2 + l2 * theta @ theta + l1 * np.abs(theta).sum())


def largest_useful(X: Floats, y: Floats, w: Floats) -> float:
    return float(2 * np.abs((X - np.average(X, axis=0, weights=w)).T @ (w * (y - np.average(y, weights=w)))).max())


def scikit_learns(X: Floats, y: Floats, w: Floats, l2: float, l1: float, *, intercept: bool = True) -> float:
    """Give scikit-learn's objective on all rows; it divides the squares by twice the weight, and halves l2."""
    n = w.sum()
    alpha = (l1 / 2 + l2) / n
    peer = ElasticNet(alpha=alpha, l1_ratio=l1 / 2 / n / alpha, fit_intercept=intercept, tol=1e-12, max_iter=100_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(X, y, sample_weight=w)
    return objective(X, y, w, l2, l1, peer.coef_, float(peer.intercept_))


def assert_optimal(
    X: Floats, y: Floats, w: Floats, l2: float, l1: float, theta: Floats, theta_0: float, tolerance: float = 1e-4
) -> None:
    """Check the conditions of Karush, Kuhn and Tucker, each column in units of its norm, which the penalty adds to.

    An objective within 1e-9 of its minimum has a gradient within 2 sqrt(1e-9) = 6e-5 of them, and no better.
    """
    residual = X @ theta + theta_0 - y
    centred = X - np.average(X, axis=0, weights=w)
    gradient = 2 * centred.T @ (w * residual) + 2 * l2 * theta
    slack = tolerance * (l1 + np.sqrt(w @ centred**2 + l2) * np.sqrt(w @ (y - np.average(y, weights=w)) ** 2))
    free = theta != 0
    assert abs(w @ residual) <= 1e-7 * w @ np.abs(y), "the intercept is free"
    assert (np.abs(gradient + l1 * np.sign(theta))[free] <= slack[free]).all()
    assert (np.abs(gradient)[~free] <= l1 + slack[~free]).all()


@settings(deadline=None)
@given(
    st.integers(5, 60),
    st.integers(1, 6),
    st.sampled_from(FRACTIONS),
    st.sampled_from([0.0, 0.3, 40.0]),
    st.booleans(),
    st.integers(0, 10_000),
)
def test_objective_is_as_low_as_scikit_learns(
    m: int, d: int, fraction: float, l2: float, intercept: bool, seed: int
) -> None:
    X, y, w = random_problem(m, d, seed)
    l1 = fraction * largest_useful(X, y, w)
    theta, theta_0 = elastic_net(X, y, w, l2, l1, fit_intercept=intercept)
    theirs = scikit_learns(X, y, w, l2, l1, intercept=intercept)
    assert objective(X, y, w, l2, l1, theta, theta_0) <= theirs * (1 + 1e-6)


@settings(deadline=None)
@given(st.integers(8, 60), st.integers(1, 6), st.sampled_from(FRACTIONS), st.integers(0, 10_000))
def test_the_conditions_of_a_minimum_hold(m: int, d: int, fraction: float, seed: int) -> None:
    X, y, w = random_problem(m, d, seed)
    l1 = fraction * largest_useful(X, y, w)
    assert_optimal(X, y, w, 0.2, l1, *elastic_net(X, y, w, 0.2, l1, fit_intercept=True))


@given(st.integers(0, 300), st.sampled_from([1e-1, 1e-3, 1e-6]))
@settings(deadline=None, max_examples=30)
def test_columns_that_are_nearly_collinear(seed: int, fraction: float) -> None:
    """Condition number 1e6: coordinate descent alone would need millions of sweeps."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(80, 3))
    X = np.hstack([base, base @ rng.normal(size=(3, 3)) + 1e-6 * rng.normal(size=(80, 3))])
    y, w = X @ rng.normal(size=6) + rng.normal(size=80), np.ones(80)
    l1 = fraction * largest_useful(X, y, w)
    assert_optimal(X, y, w, 0.0, l1, *elastic_net(X, y, w, 0.0, l1, fit_intercept=True))


@pytest.mark.parametrize("columns", [[0, 0], [0, 1, 1], [2, 0], [3, 0, 3], [2], [3]])
@pytest.mark.parametrize("fraction", FRACTIONS)
@pytest.mark.parametrize("l2", [0.0, 0.5])
def test_collinear_zero_and_constant_columns_cost_nothing(columns: list[int], fraction: float, l2: float) -> None:
    rng = np.random.default_rng(0)
    base = np.column_stack([rng.normal(size=(50, 2)), np.zeros(50), np.full(50, 0.1)])
    y, w = base @ [1.0, -2.0, 0.0, 0.0] + rng.normal(size=50), rng.uniform(0.5, 2, size=50)
    l1 = fraction * largest_useful(base, y, w)
    X = base[:, columns]
    theta, theta_0 = elastic_net(X, y, w, l2, l1, fit_intercept=True)
    assert not theta[np.array(columns) >= 2].any(), "a constant is the intercept's"
    assert objective(X, y, w, l2, l1, theta, theta_0) <= scikit_learns(X, y, w, l2, l1) * (1 + 1e-6)
    assert_optimal(X, y, w, l2, l1, theta, theta_0)


def test_penalties_are_in_the_columns_own_units() -> None:
    X, y, w = random_problem(60, 3, 1)
    l1 = 0.01 * largest_useful(X, y, w)
    theta, _ = elastic_net(X, y, w, 0.0, l1, fit_intercept=True)
    tenfold, _ = elastic_net(10 * X, y, w, 0.0, 10 * l1, fit_intercept=True)
    np.testing.assert_allclose(theta, 10 * tenfold, rtol=1e-6)


@settings(deadline=None)
@given(st.integers(0, 1000), st.sampled_from([0.0, 2.0]))
def test_weight_k_equals_k_copies(seed: int, l2: float) -> None:
    X, y, _ = random_problem(20, 3, seed)
    copies = np.random.default_rng(seed).integers(0, 4, size=20)
    copies[:4] = 1
    rows, w = np.repeat(np.arange(20), copies), copies.astype(float)
    l1 = 0.05 * largest_useful(X, y, w)
    weighted, theta_0 = elastic_net(X, y, w, l2, l1, fit_intercept=True)
    repeated, theta_0_2 = elastic_net(X[rows], y[rows], np.ones(len(rows)), l2, l1, fit_intercept=True)
    kept = copies > 0
    np.testing.assert_allclose((X @ weighted + theta_0)[kept], (X @ repeated + theta_0_2)[kept], rtol=1e-5, atol=1e-5)


def test_rows_of_no_weight_do_not_matter() -> None:
    X, y, w = random_problem(40, 4, 2)
    w[::3] = 0.0
    wild = X.copy()
    wild[::3] *= -7.0
    l1 = 0.01 * largest_useful(X, y, w)
    ours, theirs = (elastic_net(x, y, w, 0.1, l1, fit_intercept=True)[0] for x in (X, wild))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("l1", [1.0, 1.001, 1e10, 1e100])
@pytest.mark.parametrize("l2", [0.0, 1.0, 1e100])
def test_a_huge_penalty_leaves_the_mean(l1: float, l2: float) -> None:
    X, y, w = random_problem(30, 4, 3)
    theta, theta_0 = elastic_net(X, y, w, l2, l1 * 1.0001 * largest_useful(X, y, w), fit_intercept=True)
    assert not theta.any()
    assert theta_0 == pytest.approx(np.average(y, weights=w))


@pytest.mark.parametrize("l1", [0.0, 1e-300, 1e-30, 1e-12])
@pytest.mark.parametrize("l2", [0.0, 3.0])
def test_a_tiny_penalty_is_none(l1: float, l2: float) -> None:
    X, y, w = random_problem(30, 4, 3)
    theta, theta_0 = elastic_net(X, y, w, l2, l1, fit_intercept=True)
    problem = reduce_rows(X, y, w, fit_intercept=True)
    free = solve_ridge(problem, l2)
    free_0 = problem.intercept(free)
    np.testing.assert_allclose(X @ theta + theta_0, X @ free + free_0, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("fraction", [1e-3, 1e-6, 1e-9, 1e-12, 1e-15])
def test_fewer_rows_than_columns(fraction: float) -> None:
    rng = np.random.default_rng(4)
    X, y, w = rng.normal(size=(10, 25)), rng.normal(size=10), np.ones(10)
    l1 = fraction * largest_useful(X, y, w)
    theta, theta_0 = elastic_net(X, y, w, 0.0, l1, fit_intercept=True)
    assert_optimal(X, y, w, 0.0, l1, theta, theta_0)


def test_the_start_does_not_matter() -> None:
    X, y, w = random_problem(60, 5, 6)
    problem = reduce_rows(X, y, w, fit_intercept=True)
    l1 = 1e-3 * largest_useful(X, y, w)
    cold = solve_elastic_net(problem, 0.1, l1, np.zeros(5))
    start = np.full(5, 2.0)
    np.testing.assert_allclose(solve_elastic_net(problem, 0.1, l1, start), cold, rtol=1e-4, atol=1e-8)
    assert (start == 2.0).all(), "the start is not written to"


def test_what_did_not_converge_says_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, w = random_problem(60, 5, 6)

    def stay(_: Any, start: Floats, *__: Any) -> Floats:
        return start

    monkeypatch.setattr(kernel, "_coordinate_descent", stay)
    monkeypatch.setattr(kernel, "_active_set", stay)
    with pytest.warns(cn.ConvergenceWarning, match=r"above the minimum.*Raise l2 or l1, or leave out columns"):
        elastic_net(X, y, w, 0.0, 0.1 * largest_useful(X, y, w), fit_intercept=True)


@pytest.mark.parametrize("l1", FRACTIONS)
def test_the_active_set_method_alone_finds_the_minimum(l1: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_coordinate_descent", lambda _, start, __: start)
    rng = np.random.default_rng(8)
    base = rng.normal(size=(100, 6))
    X = np.hstack([base, base[:, :3] - base[:, 3:], 1e4 * base])
    y, w = base @ rng.normal(size=6) + rng.normal(size=100), rng.uniform(size=100)
    l1 *= largest_useful(X, y, w)
    theta, theta_0 = elastic_net(X, y, w, 0.0, l1, fit_intercept=True)
    assert_optimal(X, y, w, 0.0, l1, theta, theta_0, tolerance=1e-9)  # exact, but for rounding
