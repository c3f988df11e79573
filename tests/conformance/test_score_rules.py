"""Laws that every registered score rule passes."""

import math
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.contracts import PartyCard, Table
from colonnade.data.tables import read_table
from colonnade.kernels.per_row import numbers_in
from colonnade.protocol.viewed_table import ViewedTable
from colonnade.sampling.rules import AnyRule
from colonnade.sampling.rules.classes import ClassScores
from colonnade.sampling.rules.clustering import ClusteringScores
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.rules.rounded import RoundedScores, rounded_rule
from colonnade.sampling.rules.sharpened import SharpenedScores

RULES = [
    LeverageScores(fit_intercept=True),
    LeverageScores(fit_intercept=False),
    ClusteringScores(n_clusters=3),
    rounded_rule(LeverageScores(fit_intercept=True), round_scores=True),
    FilledScores(LeverageScores(fit_intercept=True)),
    FilledScores(ClusteringScores(n_clusters=3)),
    IntegerScores(LeverageScores(fit_intercept=False), 57),
    RoundedScores(LeverageScores(fit_intercept=True), 0.2),
    SharpenedScores(fit_intercept=True, residuals=1.5),
    SharpenedScores(fit_intercept=False, residuals=1.5),
    RoundedScores(SharpenedScores(fit_intercept=True, residuals=1.5), 0.2),
    FilledScores(SharpenedScores(fit_intercept=True, residuals=1.5)),
    IntegerScores(SharpenedScores(fit_intercept=False, residuals=1.5), 57),
    ClassScores(fit_intercept=True),
    ClassScores(fit_intercept=True, n_columns=6),
    ClassScores(fit_intercept=False, n_columns=6),
    ClassScores(fit_intercept=True, n_columns=6, sharpened=True),
    ClassScores(fit_intercept=False, n_columns=6, sharpened=True),
    RoundedScores(ClassScores(fit_intercept=True, n_columns=6), 0.2),
    FilledScores(ClassScores(fit_intercept=True, n_columns=6)),
    IntegerScores(ClassScores(fit_intercept=False, n_columns=6), 57),
]


def rounded_by(rule: Any, otherwise: float) -> float:
    """Say how far rounding may take a score or a total, or where a party's own model ends."""
    if isinstance(rule, ClassScores) and rule.sharpened:
        return 1e-5
    return math.expm1(rule.log_step / 2) if isinstance(rule, RoundedScores) else otherwise


pytestmark = pytest.mark.parametrize("rule", RULES, ids=str)


def test_every_rule_is_here(rule: Any) -> None:
    assert {type(rule) for rule in RULES} == set(get_args(AnyRule))
    assert hash(rule) == hash(type(rule)(*(getattr(rule, name) for name in rule.__struct_fields__)))


@settings(deadline=None, max_examples=25)
@given(
    st.integers(3, 40),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from(["normal", "ties", "zero"]),
    st.integers(0, 999),
)
def test_scores_are_finite_and_positive_and_bounded(
    rule: Any, n_rows: int, n_features: int, labelled: bool, shape: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    size = (n_rows, n_features)
    X = {"normal": rng.normal(size=size), "ties": rng.integers(0, 2, size=size), "zero": np.zeros(size)}[shape]
    table = read_table("p", X, label=rng.normal(size=n_rows).round() if labelled else None)
    scores = np.asarray(rule.scores(table))
    assert scores.shape == (n_rows,)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    assert (scores > 0).all(), "every row can be drawn, so the weighted cost is unbiased"
    bounds = rule.bounds(PartyCard("p", n_rows, table.feature_names, table.label_name), n_rows)
    assert scores.max() <= bounds.score * (1 + 1e-9)
    assert scores.sum() <= bounds.total * (1 + 1e-9), "totals are known beforehand"
    assert (scores >= (1 - 1e-9) / (1 + rounded_by(rule, 1e-9)) / n_rows).all(), "no score is below the part of weight"
    inner = getattr(rule, "rule", rule)
    if not isinstance(inner, SharpenedScores | ClassScores):
        bound = 2 * (3 + 1) if isinstance(inner, ClusteringScores) else n_features + 2 + 1
        assert scores.sum() <= bound * (1 + rounded_by(rule, 1e-9)), "rank + 1; 2 (k + 1)"


def test_the_same_table_scores_the_same(rule: Any) -> None:
    X = np.random.default_rng(0).normal(size=(500, 3))
    np.testing.assert_array_equal(rule.scores(read_table("a", X)), rule.scores(read_table("b", X)))


# Rows with weights of their own. Where values are few and clusters as many, the local clustering is the same whatever
# the order of rows, so that scores can be compared one by one.


def weighted_table(table: Table, weights: Any) -> ViewedTable:
    return ViewedTable(table, numbers_in(weights.astype(np.float64)), None, None)


def tables(shape: str, seed: int) -> tuple[ViewedTable, Table, Any]:
    """Make a table with weights, the same with copies of its rows, and how many there are of each."""
    rng = np.random.default_rng(seed)
    copies = rng.integers(0, 5, size=60)
    X = rng.normal(size=(60, 3)) if shape == "normal" else 10.0 * np.eye(3)[rng.integers(0, 3, size=60)]
    X += 0.01 * rng.normal(size=X.shape) if shape == "blobs" else 0.0
    y = rng.normal(size=60).round()
    repeated = np.repeat(np.arange(60), copies)
    weighted = weighted_table(read_table("p", X, label=y), copies)
    return weighted, read_table("p", X[repeated], label=y[repeated]), copies


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", ["normal", "ties", "blobs"])
def test_a_row_of_weight_k_scores_as_its_k_copies_together(rule: Any, shape: str, seed: int) -> None:
    if isinstance(rule, ClusteringScores) and shape == "normal":
        pytest.skip("two local clusterings of rows without clusters end in different optima")
    weighted, copied, copies = tables(shape, seed)
    ours, theirs = np.asarray(rule.scores(weighted)), np.asarray(rule.scores(copied))
    summed = np.zeros(60)
    np.add.at(summed, np.repeat(np.arange(60), copies), theirs)
    # Rounding is the same for all rows of one score, but a row's score is not that of its copies together.
    tolerance = 2.1 * rounded_by(rule, 1e-8)
    np.testing.assert_allclose(ours, summed, rtol=tolerance, atol=1e-12)
    assert ours.sum() == pytest.approx(theirs.sum(), rel=tolerance), "so the law g / G is that of the copies"


def test_the_scale_of_weights_does_not_matter_and_zero_scores_zero(rule: Any) -> None:
    weighted, _, copies = tables("normal", 7)
    scores = np.asarray(rule.scores(weighted))
    again = rule.scores(weighted_table(weighted.base, 1024.0 * copies))
    np.testing.assert_allclose(scores, again, rtol=rounded_by(rule, 1e-9))
    assert ((scores > 0) == (copies > 0)).all()


def test_rows_that_weigh_nothing_might_as_well_not_be_there(rule: Any) -> None:
    weighted, _, copies = tables("blobs", 8)
    values = weighted.base.take(np.flatnonzero(copies))
    fewer = weighted_table(read_table("p", values[:, :3], label=values[:, 3]), copies[copies > 0])
    np.testing.assert_allclose(
        rule.scores(weighted)[np.flatnonzero(copies)], rule.scores(fewer), rtol=rounded_by(rule, 1e-7)
    )
