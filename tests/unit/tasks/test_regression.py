import warnings
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, LinearRegression, Ridge

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.kernels.folds import FOLDS, deal_folds
from colonnade.tasks.penalty_path import POINTS

RNG = np.random.default_rng(0)


def made(n: int = 400, d: int = 12, noise: float = 1.0, seed: int = 0) -> tuple[Floats, Floats]:
    """Make rows of which three features matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, :3] @ [3.0, -2.0, 1.0] + noise * rng.normal(size=n)


def fit(task: cn.Regression, sampler: Any = None, seed: int = 0, **options: Any) -> cn.Run[cn.LinearModel]:
    X, y = made(**options)
    federation = cn.Federation(cn.split_columns(X, y, [4, X.shape[1] - 4]))
    return federation.fit(task, sampler=sampler or cn.ImportanceSampling(size=100), seed=seed)


def chosen(vary: str) -> cn.Regression:
    return cn.Regression(l2="cv") if vary == "l2" else cn.Regression(l1="cv")


# Each penalty, on all rows of KC House: the objective is scikit-learn's, or lower.


def objective(X: Floats, y: Floats, l2: float, l1: float, coef: Floats, intercept: float) -> float:
    penalty = len(y) * (l2 * coef @ coef + l1 * np.abs(coef).sum())
    return float(np.sum((X @ coef + intercept - y) ** 2) + penalty)


def scikit_learns(X: Floats, y: Floats, l2: float, l1: float) -> Any:
    if l1:
        alpha = l1 / 2 + l2
        return ElasticNet(alpha=alpha, l1_ratio=l1 / 2 / alpha, tol=1e-10, max_iter=20_000).fit(X, y)
    return Ridge(alpha=len(y) * l2, solver="svd").fit(X, y) if l2 else LinearRegression().fit(X, y)


@pytest.mark.parametrize("standard", [True, False], ids=["standardised", "raw"])
@pytest.mark.parametrize(
    ("l2", "l1"),
    [
        (0.0, 0.0), (1e-6, 0.0), (0.1, 0.0), (1e3, 0.0),
        (0.0, 1e-2), (0.0, 1e2), (0.0, 1e4), (0.0, 1e8), (0.1, 1e2), (1e-3, 1e4),
    ],
)  # fmt: skip
def test_central_equals_scikit_learn_on_all_rows(
    kc_house: tuple[Floats, Floats], l2: float, l1: float, standard: bool
) -> None:
    X, y = kc_house
    X = (X - X.mean(axis=0)) / X.std(axis=0) if standard else X
    model = cn.Federation(cn.split_columns(X, y, [9, 9])).fit(cn.Regression(l2=l2, l1=l1), sampler=cn.AllRows()).model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's: sweeps that ran out, on raw columns
        theirs = scikit_learns(X, y, l2, l1)
    best = objective(X, y, l2, l1, theirs.coef_, float(theirs.intercept_))
    ours = objective(X, y, l2, l1, model.coef_, model.intercept_)
    assert ours <= best * (1 + 1e-6)
    if standard:
        assert ours == pytest.approx(best, rel=1e-6), "both have converged"


# Cross-validation.


@pytest.mark.parametrize("vary", ["l2", "l1"])
def test_the_path_is_in_the_run_and_the_model_is_that_of_the_choice(vary: str) -> None:
    run = fit(chosen(vary))
    path = run.model.path
    assert path is not None
    varied = [getattr(point, vary) for point in path.points]
    assert len(varied) == POINTS
    assert varied == sorted(varied, reverse=True)
    assert path.chosen.error == min(point.error for point in path.points)
    assert all(point.std_error > 0 for point in path.points)
    again = fit(cn.Regression(l2=path.chosen.l2, l1=path.chosen.l1)).model
    assert again.path is None
    np.testing.assert_array_equal(again.coef_, run.model.coef_)


@pytest.mark.parametrize("vary", ["l2", "l1"])
def test_nothing_more_is_sent(vary: str) -> None:
    """But for the sheet's bytes, which says that a penalty is to be chosen."""
    ours, plain = (
        [entry for entry in fit(task).ledger if entry.kind != "OpenJob"] for task in (chosen(vary), cn.Regression())
    )
    assert ours == plain


def test_much_noise_asks_for_a_larger_penalty_than_little() -> None:
    """The best ridge penalty is about d * noise^2 / (n |theta|^2): for 12 features and 60 rows 1.4, or 1.4e-4."""
    much, little = (fit(cn.Regression(l2="cv"), cn.AllRows(), n=60, noise=noise).model.path for noise in (10.0, 0.1))
    assert much is not None
    assert little is not None
    assert much.chosen.l2 > 100 * little.chosen.l2
    assert little.chosen.error == pytest.approx(0.1**2, rel=1.0)
    assert much.chosen.error == pytest.approx(10.0**2, rel=1.0)


def test_a_chosen_lasso_predicts_better_than_none_where_few_features_matter() -> None:
    """5 draws of 60 rows with 40 features, 3 of which matter: the lasso must win on average by far."""
    X, y = made(n=5000, d=40)
    federation = cn.Federation(cn.split_columns(X, y, [20, 20]))
    excess = np.zeros((5, 2))
    for seed in range(5):
        for column, task in enumerate([cn.Regression(l1="cv"), cn.Regression()]):
            model = federation.fit(task, sampler=cn.UniformSampling(size=60), seed=seed).model
            excess[seed, column] = np.mean((X @ model.coef_ + model.intercept_ - y) ** 2) - 1
    assert excess[:, 0].mean() < 0.5 * excess[:, 1].mean()


def test_the_other_penalty_is_kept() -> None:
    for task in (cn.Regression(l2="cv", l1=0.3), cn.Regression(l2=0.3, l1="cv")):
        path = fit(task).model.path
        assert path is not None
        assert {point.l1 if task.l2 == "cv" else point.l2 for point in path.points} == {0.3}


def test_the_same_seed_gives_the_same_bits_and_another_seed_other_folds() -> None:
    first, again, other = (fit(cn.Regression(l1="cv"), cn.AllRows(), seed=seed).model for seed in (1, 1, 2))
    assert first.path == again.path
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert first.path != other.path


def test_copies_of_a_row_are_in_one_fold() -> None:
    rows = np.sort(RNG.integers(0, 30, size=200))
    folds = deal_folds(rows, np.ones(len(rows)), 0)
    assert set(folds) == set(range(FOLDS))
    assert all(len(set(folds[rows == row])) == 1 for row in rows)
    distinct = np.bincount([folds[rows == row][0] for row in np.unique(rows)])
    assert distinct.max() - distinct.min() <= 1


def test_rows_of_no_weight_are_in_no_fold() -> None:
    folds = deal_folds(np.arange(7), np.array([1.0, 0, 1, 1, 1, 1, 0]), 0)
    assert (folds[[1, 6]] == -1).all()
    assert sorted(folds[[0, 2, 3, 4, 5]]) == list(range(FOLDS))


def test_a_row_drawn_often_does_not_flatter_the_error() -> None:
    """Copies in training and validation would let the free fit of 20 rows with 15 features look exact."""
    X, y = made(n=20, d=15)
    rows = np.repeat(np.arange(20), 10)
    coreset = cn.Coreset(rows, np.full(200, 0.1), n_rows=20, total_weight=20.0)
    path = cn.Federation(cn.split_columns(X, y, [8, 7])).fit(cn.Regression(l2="cv"), coreset=coreset).model.path
    assert path is not None
    assert path.points[-1].error > 1.0


def test_a_weight_counts_as_copies_in_cross_validation() -> None:
    """A row listed three times has the error, and so the choice, of one listed once with three times the weight."""
    X, y = made(n=30)
    federation = cn.Federation(cn.split_columns(X, y, [4, 8]))
    copies = np.arange(30) % 3 + 1
    listed = cn.Coreset(np.repeat(np.arange(30), copies), np.ones(copies.sum()), n_rows=30, total_weight=60.0)
    weighted = cn.Coreset(np.arange(30), copies.astype(float), n_rows=30, total_weight=60.0)
    one, other = (federation.fit(cn.Regression(l2="cv"), coreset=c).model.path for c in (listed, weighted))
    assert one is not None
    assert other is not None
    np.testing.assert_allclose([p.error for p in one.points], [p.error for p in other.points], rtol=1e-6)
    assert one.chosen.l2 == pytest.approx(other.chosen.l2, rel=1e-6)


@pytest.mark.filterwarnings("ignore:21 coefficients were learned on 12:colonnade.AssumptionWarning")
@pytest.mark.parametrize("vary", ["l2", "l1"])
@pytest.mark.parametrize("case", ["constant features", "constant label", "exact", "collinear", "wide", "scales"])
def test_odd_data_still_has_a_path(vary: str, case: str) -> None:
    X, y = made(n=12 if case == "wide" else 60, d=20 if case == "wide" else 6)
    cases: dict[str, tuple[Floats, Floats]] = {
        "constant features": (np.full_like(X, 0.1), y),
        "constant label": (X, np.full_like(y, 7.0)),
        "exact": (X, X @ np.arange(X.shape[1]) + 3.0),
        "collinear": (np.hstack([X, X]), y),
        "wide": (X, y),
        "scales": (X * np.logspace(-8, 8, X.shape[1]), y),
    }
    X, y = cases[case]
    federation = cn.Federation(cn.split_columns(X, y, [4, X.shape[1] - 4]))
    model = federation.fit(chosen(vary), sampler=cn.AllRows()).model
    assert model.path is not None
    assert np.isfinite([point.error for point in model.path.points]).all()
    if case in {"exact", "scales"}:
        free = federation.fit(cn.Regression(), sampler=cn.AllRows()).model
        ours, theirs = (np.sum((X @ m.coef_ + m.intercept_ - y) ** 2) for m in (model, free))
        assert ours <= 1.1 * theirs + 1e-5 * np.sum(y**2), "the path reaches down to where the penalty does nothing"


# Bad input.


@pytest.mark.parametrize("n_rows", [2, 4])
def test_fewer_distinct_rows_than_folds(n_rows: int) -> None:
    coreset = cn.Coreset(np.repeat(np.arange(n_rows), 10), np.ones(10 * n_rows), n_rows=400, total_weight=400.0)
    federation = cn.Federation(cn.split_columns(*made(), [6, 6]))
    with pytest.raises(cn.InputError, match=rf"at least 5 distinct rows, one a fold, and there are {n_rows}\. Draw"):
        federation.fit(cn.Regression(l2="cv"), coreset=coreset)


def test_both_penalties_cannot_be_chosen() -> None:
    with pytest.raises(cn.InputError, match=r"chooses one penalty.*Make one a number"):
        cn.Regression(l2="cv", l1="cv")


@pytest.mark.parametrize("value", ["CV", "", "0.1", "auto", -1.0, np.nan, None, True, [0.1]])
@pytest.mark.parametrize("name", ["l2", "l1"])
def test_a_penalty_is_a_number_or_cv(name: str, value: Any) -> None:
    with pytest.raises(cn.InputError, match=rf'{name} must be a number from 0 to 1e\+100, got .* or "cv" to let it'):
        cn.Regression(**{name: value})


def test_only_central_chooses() -> None:
    assert cn.Regression(l2=0.1, l1=0.2).penalties() == (0.1, 0.2)
    with pytest.raises(cn.UnsupportedError, match=r"Only Central and SecureGram can choose.*or pass numbers"):
        cn.Regression(l1="cv").penalties()


# What is saved.


@pytest.mark.parametrize("vary", ["l2", "l1"])
def test_a_saved_run_keeps_the_path(vary: str, tmp_path: Path) -> None:
    run = fit(chosen(vary))
    again = cn.Run.load(run.save(tmp_path / "run"))
    assert again.task == run.task
    assert again.model.path == run.model.path


@pytest.mark.parametrize(
    ("text", "l2", "l1"),
    [('l2 = "cv"', "cv", 0.0), ('l1 = "cv"\nl2 = 1', 1.0, "cv"), ("l1 = 0.5", 0.0, 0.5)],
)
def test_toml(text: str, l2: float | Literal["cv"], l1: float | Literal["cv"]) -> None:
    found = msgspec.toml.decode(f'kind = "regression"\n{text}', type=cn.Regression)
    assert found == cn.Regression(l2=l2, l1=l1)


@pytest.mark.parametrize("l2", [-0.1, np.nan, np.inf, "much"])
def test_penalties_must_be_finite_and_not_negative(l2: Any) -> None:
    with pytest.raises(cn.InputError, match=r"l2 must be a number from 0 to 1e\+100"):
        cn.Regression(l2=l2)


# Constant columns


@pytest.mark.filterwarnings("ignore::colonnade.ConvergenceWarning")
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("solver", [cn.Central(), cn.CompactCentral(), cn.SecureGram(), cn.Saga(max_epochs=3)])
def test_constant_columns_have_coefficient_0_to_the_bit(solver: Any, standardize: bool) -> None:
    X, y = made(d=6)
    X = X * [1.0, 100.0, 3.0, 1.0, 1.0, 1.0] + [0.0, 1000.0, 40.0, 0.0, 0.0, 0.0]
    X[:, 2], X[:, 4] = 47.55, 1e6 / 3
    federation = cn.Federation(cn.split_columns(X, y, [2, 2, 2]))
    task = cn.Regression(standardize=standardize)
    model = federation.fit(task, sampler=cn.ImportanceSampling(size=100), solver=solver).model
    assert (model.coef_ == 0).tolist() == [False, False, True, False, True, False]


# Fewer rows than coefficients


@pytest.mark.parametrize("sampler", [cn.ImportanceSampling(size=12), cn.UniformSampling(size=12)])
@pytest.mark.parametrize("solver", [cn.Central(), cn.CompactCentral(), cn.Saga()])
def test_a_size_below_the_number_of_coefficients_is_refused_before_anything_is_sent(sampler: Any, solver: Any) -> None:
    federation = cn.Federation(cn.split_columns(*made(), [4, 8]))
    before = len(federation.ledger)
    with pytest.raises(cn.InputError, match=r"size is 12, and so few rows do not determine 13 coefficients.* l2=0\.1"):
        federation.fit(cn.Regression(), sampler=sampler, solver=solver)
    assert len(federation.ledger) == before
    assert len(federation.coreset(cn.Regression(), sampler).coreset) == 12, "which is no model"


WARNED = "13 coefficients were learned on {} distinct rows"


@pytest.mark.parametrize("task", [cn.Regression(l2=0.1), cn.Regression(l1=0.1), cn.Regression(l2="cv")])
def test_few_rows_and_a_penalty_are_warned_of(task: cn.Regression) -> None:
    federation = cn.Federation(cn.split_columns(*made(), [4, 8]))
    with pytest.warns(cn.AssumptionWarning, match=WARNED.format(12)) as caught:
        federation.fit(task, sampler=cn.UniformSampling(size=12), seed=1)
    assert caught[0].filename == __file__


def test_few_distinct_rows_are_warned_of_however_they_came_about() -> None:
    few = cn.Federation(cn.split_columns(*made(n=10), [4, 8]))
    for sampler in (cn.AllRows(), cn.ImportanceSampling(size=50)):
        with pytest.warns(cn.AssumptionWarning, match=WARNED.format(10)):
            few.fit(cn.Regression(), sampler=sampler)
    parties = cn.Federation(cn.split_columns(*made(n=20), [4, 8]))
    with pytest.warns(cn.AssumptionWarning, match=WARNED.format(10)):
        parties.fit(cn.Regression(), sampler=cn.AllRows(), split=cn.HoldOut(0.5))
    coreset = cn.Coreset(np.array([1, 1, 2, 3]), np.ones(4), n_rows=20, total_weight=20.0)
    with pytest.warns(cn.AssumptionWarning, match=WARNED.format(3)):
        parties.fit(cn.Regression(), coreset=coreset)


def test_one_row_more_than_coefficients_is_not_warned_of() -> None:
    """As many as there are pass through every row: their objective is 0."""
    X, y = made(n=14)
    with pytest.warns(cn.AssumptionWarning, match=WARNED.format(13)):
        run = cn.Federation(cn.split_columns(X[:13], y[:13], [4, 8])).fit(cn.Regression(), sampler=cn.AllRows())
    assert run.facts["cost"] < 1e-12
    assert cn.Federation(cn.split_columns(X, y, [4, 8])).fit(cn.Regression(), sampler=cn.AllRows()).facts["cost"] > 0.1
