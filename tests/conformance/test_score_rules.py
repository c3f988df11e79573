"""Laws that every registered score rule passes."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.data.tables import read_table
from colonnade.sampling.clustering import ClusteringScores
from colonnade.sampling.leverage import LeverageScores
from colonnade.sampling.rounded import RoundedScores
from colonnade.sampling.rules import AnyRule

RULES = [
    LeverageScores(fit_intercept=True),
    LeverageScores(fit_intercept=False),
    ClusteringScores(n_clusters=3),
    RoundedScores(LeverageScores(fit_intercept=True)),
]

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
    table = read_table("p", X, label=rng.normal(size=n_rows) if labelled else None)
    scores = rule.scores(table)
    assert scores.shape == (n_rows,)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    assert (scores > 0).all(), "every row can be drawn, so the weighted cost is unbiased"
    bound = 2 * (3 + 1) if isinstance(rule, ClusteringScores) else n_features + 2 + 1
    assert scores.sum() <= bound * (1 + (1e-3 if isinstance(rule, RoundedScores) else 1e-9)), (
        "totals are known beforehand (rank + 1; 2 (k + 1))"
    )


def test_the_same_table_scores_the_same(rule: Any) -> None:
    X = np.random.default_rng(0).normal(size=(500, 3))
    np.testing.assert_array_equal(rule.scores(read_table("a", X)), rule.scores(read_table("b", X)))
