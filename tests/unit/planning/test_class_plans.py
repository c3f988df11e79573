"""Plans of classifications: within their budget, as good as they say, of two classes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.transports.loopback import Loopback

N = 20_000
RNG = np.random.default_rng(1)
X = RNG.standard_t(6, size=(N, 8))
LOGITS = X @ [1.0, -0.5, 0.5, 0.0, 0.7, 0.3, -0.4, 0.2] - 1.0
Y = np.where(LOGITS + RNG.logistic(size=N) > 0, "yes", "no")
WIDTHS = [3, 3, 2]
TASK = cn.Classification(l2=1e-4)


@pytest.fixture(scope="module")
def federation() -> cn.Federation:
    return cn.Federation(cn.split_columns(X, Y, WIDTHS))


@pytest.fixture(scope="module")
def best(federation: cn.Federation) -> float:
    return excess_cost(federation.fit(TASK, sampler=cn.AllRows()).model)


def excess_cost(model: Any) -> float:
    return TASK.cost(model, X, (Y == "yes").astype(float))


@pytest.mark.parametrize("budget", [12_000, 40_000])
def test_a_plan_keeps_to_its_budget_and_says_what_is_lost(federation: cn.Federation, best: float, budget: int) -> None:
    """A mean of eight runs is good to a fifth; the interval reaches to about half and twice."""
    plan = federation.plan(TASK, budget_bytes=budget)
    assert plan.excess is not None
    assert plan.r2 is None
    runs = [federation.fit(TASK, plan=plan, seed=seed) for seed in range(8)]
    assert max(run.ledger.bytes for run in runs) <= budget
    assert np.mean([run.ledger.bytes for run in runs]) == pytest.approx(plan.bytes, rel=0.04)
    mean = np.mean([excess_cost(run.model) / best - 1 for run in runs])
    assert plan.excess.low < mean < plan.excess.high
    assert runs[0].model.classes_ == ("no", "yes")


@pytest.mark.parametrize("budget", [12_000, 40_000])
def test_a_planned_fit_keeps_to_its_budget(federation: cn.Federation, best: float, budget: int) -> None:
    for seed in range(3):
        run = federation.fit(TASK, budget_bytes=budget, seed=seed)
        assert run.ledger.bytes <= budget
        kinds = [entry.kind for entry in run.ledger]
        assert kinds.count("AskClasses") == 1, "before all, of the label party alone"
        assert kinds.count("OpenJob") == 3
        assert excess_cost(run.model) / best - 1 < 2 * run.facts["planned_excess_high"]


def test_more_bytes_buy_less_excess(federation: cn.Federation) -> None:
    plan = federation.plan(TASK, budget_bytes=30_000)
    means = [choice.excess.mean for choice in plan.frontier]
    assert means == sorted(means, reverse=True)
    assert len(means) >= 3


def test_a_target_is_met(federation: cn.Federation, best: float) -> None:
    run = federation.fit(TASK, target_excess=0.01)
    assert run.facts["planned_excess"] <= 0.01
    assert excess_cost(run.model) / best - 1 < 0.025


def test_over_bytes_and_after_saving_it_is_the_same(federation: cn.Federation, tmp_path: Path) -> None:
    plan = federation.plan(TASK, budget_bytes=20_000)
    again = cn.Federation(cn.split_columns(X, Y, WIDTHS), transport=Loopback)
    loaded = cn.Plan.load(plan.save(tmp_path / "plan.json"))
    assert loaded == plan
    models = [each.fit(TASK, plan=of, seed=3).model for each, of in ((federation, plan), (again, loaded))]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_scales_penalties_and_rows_held_out(federation: cn.Federation) -> None:
    for task in (
        cn.Classification(l2=1e-3, standardize=True),
        cn.Classification(l1=1e-3),
        cn.Classification(fit_intercept=False),
        cn.Classification(l2=1e-4, classes=("yes", "no")),
    ):
        run = federation.fit(task, budget_bytes=20_000, split=cn.HoldOut(0.2))
        assert run.ledger.bytes <= 20_000
        assert run.model.classes_ == (task.classes or ("no", "yes"))


def test_rare_classes_are_planned_for() -> None:
    labels = (LOGITS + RNG.logistic(size=N) > 4.5).astype(float)
    assert 0.005 < labels.mean() < 0.03
    federation = cn.Federation(cn.split_columns(X, labels, WIDTHS))
    run = federation.fit(TASK, budget_bytes=20_000)
    best = TASK.cost(federation.fit(TASK, sampler=cn.AllRows()).model, X, labels)
    assert TASK.cost(run.model, X, labels) / best - 1 < 0.05
    assert "by scores" in str(run.why)


def test_columns_that_nearly_coincide_are_looked_at_again() -> None:
    rng = np.random.default_rng(0)
    common = rng.normal(size=(N, 3))
    own = [rng.normal(size=(N, 3)) for _ in range(2)]
    logits = common.sum(axis=1) + (own[0] - own[1]).sum(axis=1)
    parties = [
        cn.Party("a", common + 0.03 * own[0]),
        cn.Party("b", common + 0.03 * own[1], label=np.where(logits + rng.logistic(size=N) > 0, "yes", "no")),
    ]
    plan = cn.Federation(parties).plan(TASK, budget_bytes=60_000)
    assert [entry.kind for entry in plan.pilot].count("AskFinerClassRows") == 4, "few rows, and then all, of two"
    assert plan.solver == cn.Central() or getattr(plan.solver, "step", 1.0) < 0.1
    run = cn.Federation(parties).fit(TASK, plan=plan)
    assert run.ledger.bytes <= 60_000


def test_of_more_classes_there_is_no_plan() -> None:
    three = np.digitize(LOGITS + RNG.logistic(size=N), [-2.0, 0.0]).astype(float)
    federation = cn.Federation(cn.split_columns(X, three, WIDTHS))
    for planned in (
        lambda: federation.plan(TASK, budget_bytes=30_000),
        lambda: federation.fit(TASK, budget_bytes=30_000),
    ):
        with pytest.raises(
            cn.UnsupportedError, match=r"of 3 classes cannot be planned.*ImportanceSampling\(size=2000\)"
        ):
            planned()


def test_a_policy_that_never_tells_labels_has_no_plan() -> None:
    parties = cn.split_columns(X, Y, WIDTHS)
    parties[-1] = cn.Party("party3", X[:, 6:], label=Y, policy=cn.Policy(level="open", never=["labels"]))
    with pytest.raises(cn.PolicyRefusedError, match="No plan is possible"):
        cn.Federation(parties).plan(TASK, budget_bytes=30_000)
