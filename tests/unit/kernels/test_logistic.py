"""Logistic and softmax regression: as low as scikit-learn, on any columns; separable classes are named."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from colonnade.errors import ConvergenceWarning
from colonnade.kernels import logistic as kernel
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.logistic import Separable, Solution, log_loss, solve_logistic

PENALTIES = [(0.0, 0.0), (1e-4, 0.0), (0.05, 0.0), (0.0, 1e-3), (0.0, 0.05), (1e-3, 1e-2)]  # a row: l2, l1


def random_rows(m: int, d: int, n_classes: int, seed: int) -> tuple[Floats, Rows, Floats]:
    """Draw rows of all classes, which overlap: a fifth have a class drawn without regard to the columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * 10.0 ** rng.uniform(-1, 1, size=d) + rng.normal(size=d)
    logits = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(d, n_classes))
    codes = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    codes[: m // 5] = rng.integers(n_classes, size=m // 5)
    codes[:n_classes] = np.arange(n_classes)
    return X, codes, rng.uniform(0.1, 3, size=m)


def objective(X: Floats, codes: Rows, w: Floats, l2: float, l1: float, solution: Solution) -> float:
    coef, intercept = solution
    logits = X @ coef.T + intercept
    losses = log_loss(logits[:, 0] if len(coef) == 1 else logits, codes)
    return float(w @ losses + l2 * np.sum(coef**2) + l1 * np.abs(coef).sum())


def scikit_learns(X: Floats, codes: Rows, w: Floats, l2: float, l1: float, *, fit_intercept: bool = True) -> Solution:
    total = l1 + 2 * l2  # theirs is C times the loss, and half the squares
    solver = "saga" if l1 else "lbfgs"
    peer = LogisticRegression(
        C=1 / total if total else np.inf,
        l1_ratio=l1 / total if total else 0.0,
        solver=solver,
        tol=1e-10,
        max_iter=20_000,
        fit_intercept=fit_intercept,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(X, codes, sample_weight=w)
    return peer.coef_, np.broadcast_to(peer.intercept_, len(peer.coef_))


def gradient(X: Floats, codes: Rows, w: Floats, l2: float, solution: Solution) -> tuple[Floats, Floats]:
    """Compute the smooth part's derivatives in coef and intercept."""
    coef, intercept = solution
    logits = X @ coef.T + intercept
    logits = np.column_stack([np.zeros(len(X)), logits]) if len(coef) == 1 else logits
    pulls = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
    pulls[np.arange(len(X)), codes] -= 1
    pulls = w[:, None] * (pulls[:, 1:] if len(coef) == 1 else pulls)
    return pulls.T @ X + 2 * l2 * coef, pulls.sum(axis=0)


def assert_optimal(
    X: Floats, codes: Rows, w: Floats, l2: float, l1: float, solution: Solution, tolerance: float = 1e-4
) -> None:
    """Check the conditions of Karush, Kuhn and Tucker, each column in units of its norm, which the penalty adds to."""
    by_coef, by_intercept = gradient(X, codes, w, l2, solution)
    slack = tolerance * (l1 + np.sqrt(w @ X**2 + l2) * np.sqrt(w.sum()))
    free = solution[0] != 0
    assert np.abs(by_intercept).max() <= tolerance * w.sum(), "the intercepts are free"
    excess = np.where(free, np.abs(by_coef + l1 * np.sign(solution[0])), np.abs(by_coef) - l1)
    assert (excess <= slack).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("l2", "l1"), PENALTIES)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_objective_is_scikit_learns(n_classes: int, l2: float, l1: float, fit_intercept: bool) -> None:
    X, codes, w = random_rows(150, 4, n_classes, n_classes)
    l2, l1 = l2 * w.sum(), l1 * w.sum()
    found = solve_logistic(X, codes, w, n_classes, l2, l1, fit_intercept=fit_intercept)
    theirs = scikit_learns(X, codes, w, l2, l1, fit_intercept=fit_intercept)
    reached, least = (objective(X, codes, w, l2, l1, solution) for solution in (found, theirs))
    assert reached == pytest.approx(least, rel=1e-6)
    assert reached <= least * (1 + 1e-9)
    assert found[0].shape == theirs[0].shape
    assert fit_intercept or not found[1].any()


@settings(deadline=None)
@given(
    st.integers(30, 80), st.integers(1, 5), st.sampled_from([2, 3, 4]), st.sampled_from(PENALTIES), st.integers(0, 9999)
)
def test_the_conditions_of_a_minimum_hold(
    m: int, d: int, n_classes: int, penalties: tuple[float, float], seed: int
) -> None:
    X, codes, w = random_rows(m, d, n_classes, seed)
    l2, l1 = (penalty * w.sum() for penalty in penalties)
    try:
        found = solve_logistic(X, codes, w, n_classes, l2, l1, fit_intercept=True)
    except Separable:
        assert l2 == l1 == 0
        return
    assert_optimal(X, codes, w, l2, l1, found, tolerance=1e-4 if l1 else 1e-6)
    if n_classes > 2:
        assert found[1].sum() == pytest.approx(0.0, abs=1e-9 * np.abs(found[1]).max())
        assert l1 or np.abs(found[0].sum(axis=0)).max() <= 1e-9 * np.abs(found[0]).max()


@settings(deadline=None)
@given(st.sampled_from([2, 3]), st.sampled_from(PENALTIES), st.integers(0, 9999))
def test_weight_k_equals_k_copies_and_rows_without_weight_do_not_matter(
    n_classes: int, penalties: tuple[float, float], seed: int
) -> None:
    X, codes, _ = random_rows(60, 3, n_classes, seed)
    copies = np.random.default_rng(seed).integers(0, 4, size=60)
    copies[:12] = 1
    rows, w = np.repeat(np.arange(60), copies), copies.astype(float)
    wild = np.where(copies[:, None] > 0, X, 1e6)
    l2, l1 = (penalty * w.sum() for penalty in penalties)
    try:
        weighted = solve_logistic(wild, codes, w, n_classes, l2, l1, fit_intercept=True)
    except Separable:
        with pytest.raises(Separable):
            solve_logistic(X[rows], codes[rows], np.ones(len(rows)), n_classes, l2, l1, fit_intercept=True)
        return
    repeated = solve_logistic(X[rows], codes[rows], np.ones(len(rows)), n_classes, l2, l1, fit_intercept=True)
    scale = X.std(axis=0)
    np.testing.assert_allclose(weighted[0] * scale, repeated[0] * scale, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weighted[1], repeated[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("l1", [0.0, 1e-3])
@pytest.mark.parametrize("l2", [0.0, 1e-3])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_dependent_constant_and_badly_scaled_columns_cost_nothing(n_classes: int, l2: float, l1: float) -> None:
    base, codes, w = random_rows(200, 3, n_classes, 7)
    base = (base - base.mean(axis=0)) / base.std(axis=0)
    extra = [base @ [1.0, 1.0, 0.0], np.zeros(200), np.full(200, 0.1), 1e9 + base[:, 2], base[:, 0]]
    X = np.column_stack([base * [1e9, 1e-6, 1.0], *extra])
    n = w.sum()
    found = solve_logistic(X, codes, w, n_classes, l2 * n, l1 * n, fit_intercept=True)
    assert not found[0][:, [4, 5]].any(), "a constant is the intercept's"
    assert np.isfinite(found[0]).all()
    reached = objective(X, codes, w, l2 * n, l1 * n, found)
    if l2 == l1 == 0:
        plain = solve_logistic(base, codes, w, n_classes, 0.0, 0.0, fit_intercept=True)
        assert reached == pytest.approx(objective(base, codes, w, 0.0, 0.0, plain), rel=1e-7)
    else:
        # A column of scale 1e9 is as good as free of penalties, one of 1e-6 as good as absent.
        scaled = np.column_stack([base[:, 0] * 1e4, base[:, 2], *extra])
        scaled[:, -2] = base[:, 2]
        near = solve_logistic(scaled, codes, w, n_classes, l2 * n, l1 * n, fit_intercept=True)
        assert reached == pytest.approx(objective(scaled, codes, w, l2 * n, l1 * n, near), rel=1e-5)


def standardised(data_folder: Path, name: str, count: int) -> tuple[Floats, Floats]:
    """Read a table with its label last; columns of more than two values are standardised."""
    import pyarrow.parquet as pq

    table = pq.read_table(data_folder / name)
    values = np.column_stack([table[column].to_numpy().astype(float) for column in table.column_names])
    values = values[np.random.default_rng(0).permutation(len(values))[:count]]
    X = values[:, :-1]
    many = [len(np.unique(column)) > 2 for column in X.T]
    X[:, many] = (X[:, many] - X[:, many].mean(axis=0)) / X[:, many].std(axis=0)
    return X, values[:, -1]


@pytest.mark.slow
@pytest.mark.parametrize(("l2", "l1"), [(0.0, 0.0), (1e-4, 0.0), (1e-8, 0.0), (0.0, 1e-3), (1e-4, 1e-3)])
def test_credit_default_as_scikit_learn(data_folder: Path, l2: float, l1: float) -> None:
    X, y = standardised(data_folder, "credit_default.parquet", 30_000)
    n, w, codes = len(X), np.ones(len(X)), y.astype(np.int64)
    found = solve_logistic(X, codes, w, 2, n * l2, n * l1, fit_intercept=True)
    theirs = scikit_learns(X, codes, w, n * l2, n * l1)
    values = [objective(X, codes, w, n * l2, n * l1, one) for one in (found, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


@pytest.mark.slow
def test_covertype_as_scikit_learn(data_folder: Path) -> None:
    """Dummies that depend on each other, constant ones, and some that a class lacks."""
    X, y = standardised(data_folder, "covtype.parquet", 20_000)
    n, w = len(X), np.ones(len(X))
    for n_classes, codes in ((2, (y == 2).astype(np.int64)), (7, y.astype(np.int64) - 1)):
        with pytest.raises(Separable) as caught:
            solve_logistic(X, codes, w, n_classes, 0.0, 0.0, fit_intercept=True)
        for column in caught.value.columns:
            assert len(np.unique(X[:, column])) == 2, "the columns that grow are dummies"
            assert len(np.unique(codes[X[:, column] == 1])) < n_classes, "of rows that lack a class"
        found = solve_logistic(X, codes, w, n_classes, n * 1e-4, 0.0, fit_intercept=True)
        theirs = scikit_learns(X, codes, w, n * 1e-4, 0.0)
        values = [objective(X, codes, w, n * 1e-4, 0.0, one) for one in (found, theirs)]
        assert values[0] == pytest.approx(values[1], rel=1e-6)
        assert values[0] <= values[1] * (1 + 1e-9)
        for l2, l1, tolerance in ((1e-8, 0.0, 1e-7), (1e-5, 1e-4, 1e-4)):
            found = solve_logistic(X, codes, w, n_classes, n * l2, n * l1, fit_intercept=True)
            assert_optimal(X, codes, w, n * l2, n * l1, found, tolerance)
            assert l1 == 0 or (found[0] == 0).any()


def test_two_classes_by_hand() -> None:
    """Intercept alone: the logit of the share. One dummy: the difference of two logits."""
    codes, w = np.array([0, 0, 0, 1, 0, 1, 1]), np.array([1.0, 2.0, 1.0, 2.0, 1.0, 3.0, 1.0])
    coef, intercept = solve_logistic(np.empty((7, 0)), codes, w, 2, 0.0, 0.0, fit_intercept=True)
    assert coef.shape == (1, 0)
    assert intercept == pytest.approx(np.log(6 / 5))
    dummy = np.array([0.0, 0, 0, 0, 1, 1, 1])
    coef, intercept = solve_logistic(dummy[:, None], codes, w, 2, 0.0, 0.0, fit_intercept=True)
    assert intercept == pytest.approx(np.log(2 / 4))
    assert coef[0] == pytest.approx(np.log(4 / 1) - np.log(2 / 4))


def test_many_classes_by_hand() -> None:
    codes, w = np.array([0, 1, 2, 2]), np.array([1.0, 2.0, 3.0, 3.0])
    for l1 in (0.0, 1.0):
        coef, intercept = solve_logistic(np.full((4, 2), 7.0), codes, w, 3, 0.0, l1, fit_intercept=True)
        logs = np.log([1.0, 2.0, 6.0])
        np.testing.assert_allclose(intercept, logs - logs.mean(), rtol=1e-9)
        assert not coef.any()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("l2", [1e-2, 1e-8, 1e-14])
def test_separable_classes_converge_under_a_penalty(n_classes: int, l2: float) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 4))
    codes = np.argmax(X[:, :n_classes], axis=1)
    for penalties in ((l2 * 120, 0.0), (0.0, l2 * 120)):
        found = solve_logistic(X, codes, np.ones(120), n_classes, *penalties, fit_intercept=True)
        value = objective(X, codes, np.ones(120), *penalties, found)
        for factor in (0.99, 1.01):
            moved = objective(X, codes, np.ones(120), *penalties, (found[0] * factor, found[1] * factor))
            assert value <= moved * (1 + 1e-9)
        assert (
            np.mean(np.argmax(np.column_stack([0 * X[:, 0], X @ found[0].T + found[1]])[:, -n_classes:], 1) == codes)
            > 0.9
        )


def with_dummy(n_classes: int, in_classes: list[int], m: int = 300) -> tuple[Floats, Rows, Floats]:
    """Overlapping rows and a last column that is 1 in four rows of each of some classes."""
    X, codes, w = random_rows(m, 3, n_classes, 11)
    dummy = np.zeros(m)
    for code in in_classes:
        dummy[np.flatnonzero(codes == code)[:4]] = 1.0
    return np.column_stack([X, dummy]), codes, w


def test_separable_classes_without_a_penalty_are_refused() -> None:
    rng = np.random.default_rng(4)
    X, w = rng.normal(size=(100, 3)), rng.uniform(1e-3, 1, size=100)
    for n_classes in (2, 3):
        with pytest.raises(Separable, match=r"told apart without error.*Pass an l2 above 0"):
            solve_logistic(X, np.argmax(X[:, :n_classes], axis=1), w, n_classes, 0.0, 0.0, fit_intercept=False)


@pytest.mark.parametrize(("n_classes", "in_classes"), [(2, [1]), (2, [0]), (3, [2]), (3, [0, 1]), (4, [1, 3])])
def test_a_column_that_some_class_lacks_separates(n_classes: int, in_classes: list[int]) -> None:
    X, codes, w = with_dummy(n_classes, in_classes)
    with pytest.raises(Separable, match="columns 3 grow") as caught:
        solve_logistic(X, codes, w, n_classes, 0.0, 0.0, fit_intercept=True)
    assert caught.value.columns == (3,)
    found = solve_logistic(X, codes, w, n_classes, 1e-8 * w.sum(), 0.0, fit_intercept=True)
    assert_optimal(X, codes, w, 1e-8 * w.sum(), 0.0, found)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_column_that_all_classes_have_does_not_separate(n_classes: int) -> None:
    X, codes, w = with_dummy(n_classes, list(range(n_classes)))
    found = solve_logistic(X, codes, w, n_classes, 0.0, 0.0, fit_intercept=True)
    assert_optimal(X, codes, w, 0.0, 0.0, found, tolerance=1e-8)


def test_one_row_in_doubt_is_enough_for_a_minimum() -> None:
    """All but one of the dummy's rows are of class 1: the coefficient is large, and there is a minimum."""
    X, codes, w = with_dummy(2, [1])
    X[np.flatnonzero(codes == 0)[0], 3] = 1.0
    for weight in (1.0, 1e-6):
        w[np.flatnonzero(codes == 0)[0]] = weight
        coef, _ = solve_logistic(X, codes, w, 2, 0.0, 0.0, fit_intercept=True)
        assert np.isfinite(coef).all()
        assert_optimal(X, codes, w, 0.0, 0.0, (coef, _), tolerance=1e-9)


@settings(deadline=None, max_examples=60)
@given(st.integers(6, 16), st.integers(1, 3), st.sampled_from([2, 3]), st.integers(0, 9999))
def test_it_says_separable_where_a_linear_programme_does(m: int, d: int, n_classes: int, seed: int) -> None:
    """Few rows of few values: complete, quasi-complete and no separation are all frequent."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(m, d)).astype(float)
    codes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=m - n_classes)])
    try:
        solve_logistic(X, codes, np.ones(m), n_classes, 0.0, 0.0, fit_intercept=True)
        separable = False
    except Separable:
        separable = True
    assert separable == loss_has_no_minimum(X, codes, n_classes)


def loss_has_no_minimum(X: Floats, codes: Rows, n_classes: int) -> bool:
    from scipy.optimize import linprog

    rows = np.column_stack([X, np.ones(len(X))])
    pairs = [
        np.kron(np.eye(n_classes)[code] - np.eye(n_classes)[other], row)
        for row, code in zip(rows, codes, strict=True)
        for other in range(n_classes)
        if other != code
    ]
    found = linprog(-np.sum(pairs, axis=0), A_ub=-np.array(pairs), b_ub=np.zeros(len(pairs)), bounds=(-1, 1))
    return bool(found.fun < -1e-6)


def test_a_class_without_rows_of_weight_is_an_error() -> None:
    X, codes, w = random_rows(30, 2, 3, 0)
    w[codes == 1] = 0.0
    with pytest.raises(ValueError, match=r"3 classes, of which these have rows with weight: \[0, 2\]"):
        solve_logistic(X, codes, w, 3, 1.0, 0.0, fit_intercept=True)
    with pytest.raises(ValueError, match="There must be two or more"):
        solve_logistic(X, np.zeros(30, np.int64), w, 1, 1.0, 0.0, fit_intercept=True)


@pytest.mark.parametrize(("l2", "l1"), PENALTIES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_start_does_not_matter(n_classes: int, l2: float, l1: float) -> None:
    X, codes, w = random_rows(150, 4, n_classes, 1)
    l2, l1 = l2 * w.sum(), l1 * w.sum()
    cold = solve_logistic(X, codes, w, n_classes, l2, l1, fit_intercept=True)
    for start in (cold, (cold[0] * -3, cold[1] + 1), (cold[0] * 1e6, cold[1])):
        warm = solve_logistic(X, codes, w, n_classes, l2, l1, fit_intercept=True, start=start)
        values = [objective(X, codes, w, l2, l1, solution) for solution in (warm, cold)]
        assert values[0] == pytest.approx(values[1], rel=1e-9)


@pytest.mark.parametrize(("l2", "l1"), [pair for pair in PENALTIES if pair != (0.0, 0.0)])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_many_parameters_are_left_to_l_bfgs(
    n_classes: int, l2: float, l1: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, codes, w = random_rows(200, 5, n_classes, 2)
    l2, l1 = l2 * w.sum(), l1 * w.sum()
    newton = solve_logistic(X, codes, w, n_classes, l2, l1, fit_intercept=True)
    monkeypatch.setattr(kernel, "NEWTON_PARAMETERS", 0)
    found = solve_logistic(X, codes, w, n_classes, l2, l1, fit_intercept=True)
    values = [objective(X, codes, w, l2, l1, solution) for solution in (found, newton)]
    assert values[0] == pytest.approx(values[1], rel=1e-8)
    np.testing.assert_array_equal(found[0] == 0, newton[0] == 0)


def test_what_did_not_converge_says_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    X, codes, w = random_rows(60, 3, 2, 0)
    monkeypatch.setattr(kernel, "STEPS", 1)
    with pytest.warns(ConvergenceWarning, match=r"still falling.*Raise l2"):
        solve_logistic(X, codes, w, 2, 1.0, 0.0, fit_intercept=True)


@pytest.mark.parametrize("l2", [1e3, 1e30, 1e100])
def test_a_huge_penalty_leaves_the_shares(l2: float) -> None:
    X, codes, w = random_rows(60, 3, 3, 5)
    shares = np.bincount(codes, weights=w)
    for penalties in ((l2 * 1e4, 0.0), (0.0, l2), (l2, l2)):
        coef, intercept = solve_logistic(X, codes, w, 3, *penalties, fit_intercept=True)
        assert np.abs(coef * X.std(axis=0)).max() < 1e-4
        np.testing.assert_allclose(intercept, np.log(shares) - np.log(shares).mean(), atol=1e-3)
        assert penalties[1] == 0 or not coef.any()
