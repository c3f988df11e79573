"""The successor's comparison: its weights decide more than its scores."""

import numpy as np
import pytest

from colonnade.kernels.arrays import Floats
from colonnade.paper.successor import SCORES, Split, SuccessorPlan, _as_coded, _correct, successor, table

PLAN = SuccessorPlan(cs=(1e-4,), sizes=(300,), repeats=3)


@pytest.fixture
def classes() -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.standard_t(5, size=(12_000, 6))
    X /= X.std(axis=0)
    return X, (X @ [1.0, -1.0, 0.5, 0.0, 0.5, 0.0] + rng.logistic(size=12_000) > 1).astype(np.float64)


def test_a_penalty_that_counts_n_over_m_times_costs_more_than_any_scores_gain(classes: tuple[Floats, Floats]) -> None:
    results = list(successor(*classes, [2, 2, 2], PLAN, seed=0))
    mean = {
        (name, weighing): np.mean([r.excess for r in results if (r.scores, r.weights) == (name, weighing)])
        for name in SCORES
        for weighing in ("as coded", "correct")
    }
    assert mean["uniform", "as coded"] > 10 * mean["uniform", "correct"]
    assert mean["2022", "as coded"] > 3 * mean["2022", "correct"]
    assert abs(mean["root of ridge leverage", "as coded"] - mean["root of ridge leverage", "correct"]) < 0.005
    assert results == list(successor(*classes, [2, 2, 2], PLAN, seed=0))
    lines = table(results).splitlines()
    assert len(lines) == 1 + len(SCORES)
    assert "300 as coded  300 correct" in lines[0]


@pytest.mark.parametrize(("name", "sum_of_weights"), [("uniform", 302.0), ("2022", 3000.0), ("Lewis", 12_000.0)])
def test_weights_as_coded(classes: tuple[Floats, Floats], name: str, sum_of_weights: float) -> None:
    X, labels = classes
    scores = SCORES[name](Split([X[:, :2], X[:, 2:4], X[:, 4:]], 2 * labels - 1))
    _, weights = _as_coded(name, scores, labels.astype(np.int64), 300, np.random.default_rng(0))
    assert weights.sum() == pytest.approx(sum_of_weights, rel=1e-9 if name != "Lewis" else 0.2)
    _, weights = _correct(name, scores, labels.astype(np.int64), 300, np.random.default_rng(0))
    assert weights.sum() == pytest.approx(12_000, rel=0.2)
