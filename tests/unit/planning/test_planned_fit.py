"""A pilot and the fit it leads to are one run: one sheet, one framing, within the budget."""

from typing import Any

import pytest

import colonnade as cn
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback
from random_parties import make_parties

TASKS = [cn.Regression(l2=0.1, standardize=True), cn.Regression(l2="cv"), cn.KMeans(n_clusters=3, standardize=True)]


@pytest.mark.parametrize("task", TASKS, ids=str)
@pytest.mark.parametrize("budget", [9_000, 25_000])
def test_a_run_plans_and_fits_within_its_budget(task: Any, budget: int) -> None:
    federation = cn.Federation(make_parties(6_000, (2, 3, 2)))
    for seed in range(3):
        run: Any = federation.fit(task, budget_bytes=budget, seed=seed)
        assert run.ledger.bytes <= budget
        assert run.ledger == federation.sent
        assert run.facts["planned_bytes"] == pytest.approx(run.ledger.bytes, rel=0.03)
        kinds = [entry.kind for entry in run.ledger]
        assert kinds.count("OpenJob") == kinds.count("TakeBranch") == 3, "one sheet, and one choice, for each party"
        assert kinds.count("UseFrame") == 3 * getattr(task, "standardize", False), "and one framing, if any"


def test_it_decides_as_a_plan_of_its_own_would() -> None:
    """A sheet and a framing are saved: the budget buys as many rows or a few more."""
    federation = cn.Federation(make_parties(6_000, (2, 3, 2)))
    task = cn.Regression(standardize=True)
    plan = federation.plan(task, budget_bytes=12_000)
    alone, together = federation.fit(task, plan=plan), federation.fit(task, budget_bytes=12_000)
    assert type(together.sampler) is type(alone.sampler)
    assert len(alone.coreset) <= len(together.coreset)
    assert together.facts["planned_excess"] <= plan.chosen.excess.mean


def test_a_target_is_met_and_rows_held_out_stay_out() -> None:
    federation, split = cn.Federation(make_parties(6_000, (2, 3, 2))), cn.HoldOut(0.2)
    run = federation.fit(cn.Regression(), target_excess=0.05, split=split)
    best = federation.fit(cn.Regression(), sampler=cn.AllRows(), split=split)
    assert run.split == split
    assert run.facts["planned_excess"] <= 0.05
    costs = [federation.evaluate(each.model).cost for each in (run, best)]
    assert costs[0] <= 1.3 * costs[1]


def test_moments_are_told_once() -> None:
    """With the pilot's rows: the run's own come without them, in the pilot's run and in one that carries a plan out."""
    federation, task = cn.Federation(make_parties(6_000, (2, 3, 2))), cn.Regression()
    together = federation.fit(task, budget_bytes=20_000)
    alone = federation.fit(task, plan=federation.plan(task, budget_bytes=20_000))
    for run in (together, alone):
        told = [entry for entry in run.ledger if entry.kind == "WhitenedColumns"]
        assert ["moments" in entry.reveals for entry in told] == [True] * 3 + [False] * 3
        assert "labels" in told[-1].reveals, "the label's party still says so"


def test_transports_agree() -> None:
    runs = [
        cn.Federation(make_parties(3_000, (2, 2)), transport=each).fit(cn.Regression(), budget_bytes=9_000, seed=4)
        for each in (InProcess, Loopback)
    ]
    assert runs[0].model.coef_.tobytes() == runs[1].model.coef_.tobytes()
    assert list(runs[0].ledger) == list(runs[1].ledger)
