"""Variances of coefficients: against rows drawn again and again, and where rows say nothing."""

import numpy as np
import pytest

from colonnade.kernels.arrays import Floats
from colonnade.kernels.dependence import inflation, of_triangle
from colonnade.kernels.influence import (
    Curvature,
    Drawn,
    Entered,
    FittedRows,
    Spread,
    curvature,
    satterthwaite,
    spread_of_draw,
    spread_of_rows,
    spreads,
    spreads_of_sums,
)
from colonnade.kernels.linear import reduce_rows, solve_ridge

RNG = np.random.default_rng(0)


def fitted(X: Floats, y: Floats, w: Floats, ridge: float = 0.0) -> tuple[FittedRows, Floats, Curvature]:
    problem = reduce_rows(X, y, w, fit_intercept=True)
    coef = solve_ridge(problem, ridge)
    rows = FittedRows(X, X @ coef + problem.intercept(coef) - y, None, w)
    return rows, coef, curvature(problem, ridge, float(w.sum()), Entered(None, None, True))


def drawn(X: Floats, y: Floats, w: Floats, chances: Floats | None, ridge: float = 0.0) -> tuple[Floats, Spread]:
    rows, coef, at = fitted(X, y, w, ridge)
    return coef, spread_of_draw(rows, at, ridge * coef, Drawn(chances, False), None)


@pytest.mark.parametrize("kind", ["independent", "distinct"])
@pytest.mark.parametrize("ridge", [0.0, 2000.0])
def test_the_variance_of_a_draw_is_that_of_many_draws(kind: str, ridge: float) -> None:
    """Of 1,500 draws. A variance is off by 4 % on average: one beyond 15 % comes once in 10^4."""
    rng = np.random.default_rng(1)
    X = rng.standard_t(5, size=(2000, 3))
    y = X @ [1.0, -1.0, 2.0] + (1 + np.abs(X[:, 0])) * rng.normal(size=2000)
    share = np.linalg.norm(X, axis=1) + 1
    p = share / share.sum()
    chance = np.minimum(400 * p, 1.0)
    coefs, variances = [], []
    for _ in range(1500):
        if kind == "independent":
            rows = rng.choice(2000, 400, p=p)
            coef, spread = drawn(X[rows], y[rows], 1 / (400 * p[rows]), None, ridge)
        else:
            rows = np.flatnonzero(rng.random(2000) < chance)
            coef, spread = drawn(X[rows], y[rows], 1 / chance[rows], chance[rows], ridge)
        coefs.append(coef)
        variances.append(spread.variance[:3])
    np.testing.assert_allclose(np.mean(variances, axis=0), np.var(coefs, axis=0), rtol=0.15)


def test_strata_take_off_what_neighbours_share() -> None:
    w = np.linspace(1.0, 2.0, 400)
    X = np.column_stack([np.sqrt(w) - 1.2, RNG.normal(size=400)])
    y = X @ [1.0, 1.0] + np.sin(6 * w) + 0.01 * RNG.normal(size=400)
    rows, coef, at = fitted(X, y, w)
    plain, stratified = (spread_of_draw(rows, at, 0 * coef, Drawn(None, kind), None).variance for kind in (False, True))
    assert stratified[0] < 0.01 * plain[0], "residuals follow the weight, along which rows were laid out"


def test_a_row_that_decides_alone_says_nothing_unless_it_is_certain() -> None:
    X = np.column_stack([RNG.normal(size=50), np.arange(50) == 3])
    y = RNG.normal(size=50)
    chances = np.full(50, 0.5)
    _, spread = drawn(X, y, np.ones(50), chances)
    assert np.isnan(spread.variance).tolist() == [False, True, False]
    chances[3] = 1.0
    _, spread = drawn(X, y, np.ones(50), chances)
    assert not np.isnan(spread.variance).any()
    rows, coef, at = fitted(X, y, np.ones(50))
    alone, _ = spread_of_rows(rows, at, 0 * coef, drawn=False)
    assert np.isnan(alone.variance).tolist() == [False, True, False]


@pytest.mark.parametrize("n_rows", [1, 3, 4])
def test_without_degrees_of_freedom_no_variance_is_known(n_rows: int) -> None:
    X, y, w = RNG.normal(size=(n_rows, 2)), RNG.normal(size=n_rows), np.ones(n_rows)
    rows, coef, _ = fitted(X, y, w)
    problem, entered = reduce_rows(X, y, w, fit_intercept=True), Entered(None, None, True)
    found = spreads(rows, problem, 0.0, coef, entered, None, None)
    in_sum = spreads_of_sums(problem, 0.0, coef, float(n_rows), entered)
    for each in (found.sandwich, found.classical, in_sum.classical):
        assert each is not None
        assert np.isnan(each.variance).all() == (n_rows < 4)
        assert each.degrees.tolist() == pytest.approx([1.0] * 3)
    np.testing.assert_allclose(found.classical.variance, in_sum.classical.variance)


def test_degrees_are_fewer_where_few_rows_count() -> None:
    """Squares of 4,000 normal numbers: off by 5 % on average."""
    squares = np.square(RNG.normal(size=(4000, 1)))
    assert 3200 < satterthwaite(squares)[0] < 4800
    squares[:5] = 1e6
    assert 1 <= satterthwaite(squares)[0] < 12
    assert satterthwaite(np.zeros((10, 1)))[0] == 1
    assert satterthwaite(np.ones((10, 1)))[0] == 10
    left = np.array([0.0, 1e-33, 4e-32, 1.0, 2.0, 1.5])[:, np.newaxis]  # of three, rounding has left what it liked
    assert satterthwaite(left) == satterthwaite(np.where(left < 1, 0.0, left))


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    X = RNG.normal(size=(100, 3))
    rows, coef, at = fitted(X, RNG.normal(size=100), np.ones(100))
    whole, _ = spread_of_rows(rows, at, 0 * coef, drawn=True)
    monkeypatch.setattr("colonnade.kernels.influence.BLOCK_ROWS", 7)
    parts, _ = spread_of_rows(rows, at, 0 * coef, drawn=True)
    np.testing.assert_allclose(parts.variance, whole.variance)
    np.testing.assert_allclose(parts.degrees, whole.degrees)


def test_inflation_is_infinite_where_columns_depend() -> None:
    X = RNG.normal(size=(50, 4))
    X[:, 2] = X[:, 0] - X[:, 1]
    X[:, 3] = 0.0
    assert np.isinf(inflation(X)).tolist() == [True, True, True, False]
    assert np.isnan(inflation(X)[3])
    condition, found = of_triangle(X, 1e-11)
    assert np.isinf(condition)
    assert [sorted((each.column, *each.others)) for each in found] == [[0, 1, 2]]
    np.testing.assert_allclose(inflation(np.eye(3)), 1.0)
    assert inflation(np.empty((0, 0))).shape == (0,)
