"""Standard errors as statisticians know them: beside statsmodels, and where there are none, why."""

import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from statsmodels.stats.outliers_influence import variance_inflation_factor

import colonnade as cn
from colonnade.coreset import Variances
from colonnade.kernels.arrays import Floats

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 6))
X[:, 1] += 100
X[:, 3] = RNG.random(400) < 0.02
X[:, 4] += X[:, 0]
Y = X @ [1.0, 2.0, 3.0, -1.0, 0.0, 2.0] + RNG.normal(size=400) * (1 + X[:, 0] ** 2)
FEW = np.random.default_rng(1).normal(size=(7, 6))
LATE = np.where(X[:, [0, 2]] @ [1.0, -0.5] + RNG.logistic(size=400) > 0, "yes", "no")


def fit(task: Any = None, X: Floats = X, y: Any = Y, **how: Any) -> cn.Run[Any]:
    widths = [X.shape[1] - X.shape[1] // 2, X.shape[1] // 2]
    return cn.Federation(cn.split_columns(X, y, widths)).fit(
        task or cn.Regression(), **{"sampler": cn.AllRows(), **how}
    )


def column(summary: cn.Summary, name: str) -> Floats:
    return np.array([getattr(each, name) for each in summary.coefficients], np.float64)


def agree(summary: cn.Summary, theirs: Any) -> None:
    found = [column(summary, name) for name in ("coefficient", "standard_error", "statistic", "p_value", "low", "high")]
    expected = [theirs.params, theirs.bse, theirs.tvalues, theirs.pvalues, *theirs.conf_int().T]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("standardize", [False, True])
def test_all_rows_give_the_numbers_of_statsmodels(standardize: bool) -> None:
    run, ols = fit(cn.Regression(standardize=standardize)), sm.OLS(Y, sm.add_constant(X)).fit()
    agree(run.summary(covariance="classical"), ols)
    agree(run.summary(), ols.get_robustcov_results("HC2", use_t=True))
    ninety = run.summary(covariance="classical", confidence=0.9)
    np.testing.assert_allclose(column(ninety, "low"), ols.conf_int(0.1)[:, 0], rtol=1e-6)
    inflation = [variance_inflation_factor(sm.add_constant(X), place) for place in range(1, 7)]
    np.testing.assert_allclose(column(ninety, "inflation")[1:], inflation, rtol=1e-6)


@pytest.mark.parametrize("standardize", [False, True])
def test_so_do_classes(standardize: bool) -> None:
    task = cn.Classification(standardize=standardize)
    logit = sm.Logit(LATE == "yes", sm.add_constant(X)).fit(disp=0, tol=1e-14, maxiter=100)
    run = fit(task, y=LATE)
    agree(run.summary(covariance="classical"), logit)
    # statsmodels has no HC2 of a Logit: its own formula, from its own parts.
    ones = sm.add_constant(X)
    chance = logit.predict()
    inverse = logit.cov_params()
    leverage = chance * (1 - chance) * np.einsum("ij,jk,ik->i", ones, inverse, ones)
    slopes = ((LATE == "yes") - chance) / np.sqrt(1 - leverage)
    errors = np.sqrt(np.diag(inverse @ (ones * slopes[:, None] ** 2).T @ ones @ inverse))
    np.testing.assert_allclose(column(run.summary(), "standard_error"), errors, rtol=1e-6)
    assert column(run.summary(), "degrees")[0] != column(run.summary(), "degrees")[0], "z: there is no end to them"


def test_without_an_intercept_there_is_none() -> None:
    run = fit(cn.Regression(fit_intercept=False, standardize=True))
    agree(run.summary(covariance="classical"), sm.OLS(Y, X).fit())
    assert [each.feature for each in run.summary().coefficients] == list(run.model.feature_names_in_)


@pytest.mark.parametrize("covariance", ["sandwich", "classical"])
def test_a_row_of_weight_k_is_k_rows(covariance: Any) -> None:
    weights = RNG.integers(0, 4, size=400).astype(np.float64)
    parties = cn.split_columns(X, Y, [3, 3], weight=weights)
    weighted = cn.Federation(parties).fit(cn.Regression(), sampler=cn.AllRows())
    copies = np.repeat(np.arange(400), weights.astype(int))
    agree_with = fit(X=X[copies], y=Y[copies]).summary(covariance=covariance)
    for name in ("standard_error", "degrees", "p_value"):
        found = column(weighted.summary(covariance=covariance), name)
        np.testing.assert_allclose(found, column(agree_with, name), rtol=1e-8)


def test_a_ridge_has_the_errors_of_its_own_formula() -> None:
    task = cn.Regression(l2=0.5)
    summary = fit(task).summary(covariance="classical")
    centred = X - X.mean(axis=0)
    inverse = np.linalg.inv(centred.T @ centred + 400 * 0.5 * np.eye(6))
    residuals = (Y - Y.mean()) - centred @ (inverse @ centred.T @ (Y - Y.mean()))
    degrees = 399 - np.trace(inverse @ centred.T @ centred)
    covariance = residuals @ residuals / degrees * inverse @ centred.T @ centred @ inverse
    np.testing.assert_allclose(column(summary, "standard_error")[1:], np.sqrt(np.diag(covariance)), rtol=1e-8)
    assert "under the penalty l2 = 0.5" in str(summary)


def test_secure_gram_gives_classical_ones_of_all_rows() -> None:
    federation = cn.Federation(cn.split_columns(X, Y, [2, 2, 2]))
    run = federation.fit(cn.Regression(standardize=True), sampler=cn.AllRows(), solver=cn.SecureGram())
    agree(run.summary(covariance="classical"), sm.OLS(Y, sm.add_constant(X)).fit())
    with pytest.raises(cn.UnsupportedError, match=r'kept no residual of a row.*Use covariance="classical"'):
        run.summary()
    drawn = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(200), solver=cn.SecureGram())
    with pytest.raises(cn.UnsupportedError, match="unless all rows were taken"):
        drawn.summary(covariance="classical")


def test_the_population_has_more_errors_than_the_table() -> None:
    run = fit(sampler=cn.ImportanceSampling(200))
    table, population = (column(run.summary(of), "standard_error") for of in ("table", "population"))
    all_rows = column(fit().summary(), "standard_error")
    assert (population > table).all()
    np.testing.assert_allclose(np.sqrt(population**2 - table**2), all_rows, rtol=0.7)


def test_columns_that_depend_on_each_other_are_named() -> None:
    both = np.column_stack([X[:, :2], X[:, 2], X[:, 0] + X[:, 1], np.full(400, 7.0), X[:, 5]])
    summary = fit(X=both).summary()
    why = {each.feature: each.undefined for each in summary.coefficients}
    assert "depends on party1_1, party2_0" in (why["party1_0"] or "")
    assert "depends on party1_0, party1_1" in (why["party2_0"] or "")
    assert why["party2_1"] == "does not vary"
    assert [why[name] for name in ("(intercept)", "party1_2", "party2_2")] == [None, None, None]
    assert summary.condition is None
    assert "undefined" in str(summary)
    assert "infinite" in str(summary)
    under = fit(cn.Regression(l2=0.1), X=both).summary()
    assert {each.feature for each in under.coefficients if each.undefined} == {"party2_1"}


def test_dummies_of_all_levels_leave_the_intercept_undefined_too() -> None:
    dummies = np.eye(3)[RNG.integers(3, size=400)]
    lines = fit(X=np.column_stack([dummies[:, :2], X[:, 0], dummies[:, 2]])).summary().coefficients
    assert {each.feature for each in lines if each.undefined} == {"(intercept)", "party1_0", "party1_1", "party2_1"}


def test_rounding_hides_what_depends() -> None:
    both = np.column_stack([X[:, :3], X[:, 0] + X[:, 2], X[:, 4:]])
    both[:, 4] -= both[:, 0]
    run = fit(X=both, solver=cn.CompactCentral(), sampler=cn.ImportanceSampling(300))
    why = {each.feature: each.undefined for each in run.summary("table").coefficients}
    assert "rounding hides" in (why["party1_0"] or "")
    assert why["party1_1"] is None


def test_a_level_of_one_row_is_undefined() -> None:
    rare = X.copy()
    rare[:, 3] = np.arange(400) == 17
    run = fit(X=rare)
    lines = {each.feature: each for each in run.summary().coefficients}
    assert lines["party2_0"].undefined == "a single row decides it, so that no other says how wrong it is"
    assert lines["party1_0"].undefined is None
    assert {each.feature: each for each in run.summary(covariance="classical").coefficients}["party2_0"].p_value


@pytest.mark.filterwarnings("ignore:.*coefficients were learned on:colonnade.AssumptionWarning")
@pytest.mark.parametrize("covariance", ["sandwich", "classical"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n_rows", "width"), [(1, 1), (1, 3), (2, 1), (2, 2), (3, 2), (4, 4)])
@pytest.mark.parametrize("weight", [None, 1 / 3, "one row"])
def test_few_rows_say_nothing_or_something_finite(
    n_rows: int, width: int, weight: Any, fit_intercept: bool, covariance: Any
) -> None:
    """They divided by zero, in the fit; rows that count a third had fewer than no degrees of freedom."""
    weights = {None: np.ones(n_rows), "one row": np.eye(n_rows)[0]}.get(weight, np.full(n_rows, 1 / 3))
    (party,) = cn.split_columns(FEW[:n_rows, :width], Y[:n_rows], [width], weight=weights)
    run = cn.Federation([party]).fit(cn.Regression(fit_intercept=fit_intercept), sampler=cn.AllRows())
    lines = run.summary(covariance=covariance).coefficients
    told = [each for each in lines if each.undefined is None]
    assert len(lines) == width + fit_intercept
    if weights.sum() <= min(n_rows, width + fit_intercept):
        assert not told
    for each in told:
        numbers = (each.standard_error, each.statistic, each.p_value, each.low, each.high)
        assert all(number is not None and np.isfinite(number) for number in numbers)


@pytest.mark.filterwarnings("ignore:.*coefficients were learned on:colonnade.AssumptionWarning")
def test_as_many_rows_as_coefficients_are_named_as_the_reason() -> None:
    lines = fit(X=FEW, y=Y[:7]).summary().coefficients
    assert {each.undefined for each in lines} == {
        "there are no more rows, in weight, than coefficients, so that none says how wrong they are"
    }


def test_a_coefficient_of_zero_without_error_is_no_finding() -> None:
    intercept, *features = fit(y=np.full(400, 2.0)).summary().coefficients
    assert (intercept.coefficient, intercept.p_value) == (2.0, 0.0)
    assert {(each.coefficient, each.statistic, each.p_value) for each in features} == {(0.0, 0.0, 1.0)}


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"task": cn.Regression(l1=0.1)}, "An l1 penalty"),
        ({"task": cn.Regression(l1="cv")}, "An l1 penalty"),
        ({"solver": cn.Saga()}, "Saga shows the server no residual"),
        ({"task": cn.KMeans(2), "y": None}, "KMeans has no coefficients"),
        ({"task": cn.Classification(l2=0.1), "y": np.arange(400) % 3}, "for two classes"),
    ],
)
@pytest.mark.filterwarnings("ignore::colonnade.ConvergenceWarning")
def test_where_there_are_none_the_reason_is_said(how: dict[str, Any], message: str) -> None:
    run = fit(how.pop("task", None), **how)
    with pytest.raises(cn.UnsupportedError, match=message):
        run.summary()


def test_other_refusals() -> None:
    run = fit()
    with pytest.raises(cn.UnsupportedError, match="without any error"):
        run.summary("table")
    with pytest.raises(cn.UnsupportedError, match="known from its chances"):
        run.summary("table", "classical")
    for wrong in ({"of": "rows"}, {"covariance": "HC3"}, {"confidence": 1.0}, {"confidence": 0}):
        with pytest.raises(cn.InputError, match=re.escape(f"got {next(iter(wrong.values()))!r}")):
            run.summary(**wrong)
    federation = cn.Federation(cn.split_columns(X, Y, [3, 3]))
    with pytest.raises(cn.UnsupportedError, match="learned no model"):
        federation.coreset(cn.Regression(), cn.AllRows()).summary()
    given = cn.Coreset(np.arange(100), np.full(100, 4.0), 400, 400.0)
    with pytest.raises(cn.UnsupportedError, match="how the rows of this coreset were drawn"):
        federation.fit(cn.Regression(), coreset=given).summary()
    with pytest.raises(cn.UnsupportedError, match="Fit again"):
        replace(run, errors=None).summary()


def test_rounded_rows_have_errors_of_the_table_also_where_all_are_taken() -> None:
    run = fit(X=X.copy(), solver=cn.CompactCentral())
    assert (column(run.summary("table"), "standard_error") < column(fit().summary(), "standard_error")).all()


def test_it_prints_by_party_and_leaves_as_a_frame_and_a_file(tmp_path: Path) -> None:
    frames = [pd.DataFrame(X[:, :3], columns=["a", "<b>", "c"]), pd.DataFrame(X[:, 3:], columns=list("def"))]
    frames[1]["y"] = Y
    parties = [cn.Party("left", frames[0]), cn.Party("right", frames[1], label="y")]
    run = cn.Federation(parties).fit(cn.Regression(), sampler=cn.ImportanceSampling(200))
    summary = run.summary()
    lines = str(summary).splitlines()
    assert lines[2].split() == ["party", "feature", "coefficient", "std.", "t", "p", "low", "high", "VIF"]
    assert lines[3].split() == ["error"], "the second line of its header"
    assert [line.split()[:2] for line in lines[4:7]][1] == ["left", "a"]
    assert max(map(len, lines[2:])) <= 80
    assert "&lt;b&gt;" in summary._repr_html_()
    assert "<b>" not in summary._repr_html_()
    frame = summary.to_pandas()
    assert list(frame.index)[:2] == [("", "(intercept)"), ("left", "a")]
    assert frame.loc[("right", "f"), "coefficient"] == run.model.coef_[-1]
    assert cn.Run.load(run.save(tmp_path / "run")).summary() == summary


def test_a_file_with_other_standard_errors_is_refused(tmp_path: Path) -> None:
    run = fit(sampler=cn.ImportanceSampling(200))
    assert run.errors is not None
    for wrong in ({"inflation": (1.0,)}, {"undefined": (99,)}, {"classical": Variances((-1.0,) * 7, (1.0,) * 7)}):
        saved = replace(run, errors=msgspec.structs.replace(run.errors, **wrong)).save(tmp_path / "run")
        with pytest.raises(cn.InputError, match="standard errors are not one a coefficient"):
            cn.Run.load(saved)


def test_even_draws_of_heavy_tails_warn() -> None:
    """Of 20 even draws each: always where few rows decide, never of normal columns. Seeds are fixed."""
    rng = np.random.default_rng(1)
    heavy = rng.standard_t(1.5, size=(5000, 4))
    normal = rng.normal(size=(5000, 4))
    for table, warned in ((heavy, 20), (normal, 0)):
        federation = cn.Federation(cn.split_columns(table, table @ np.ones(4) + rng.normal(size=5000), [2, 2]))
        runs = [federation.fit(cn.Regression(), sampler=cn.UniformSampling(300), seed=seed) for seed in range(20)]
        assert sum(_warns(run) for run in runs) == warned


def _warns(run: cn.Run[Any]) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run.summary("table")
    return any("Draw by scores" in str(each.message) for each in caught)
