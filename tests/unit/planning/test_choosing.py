"""A few steps and sizes are tried: what is found is as good as what trying all of them finds."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade import coreset
from colonnade.kernels import sandwich
from colonnade.kernels.regression_law import RegressionLaw
from colonnade.planning import planner
from colonnade.planning.choosing import NEARLY, Arm, all_arms, best_within, cheapest_meeting
from colonnade.planning.drawing import PlanInputs
from colonnade.protocol.caps import PLANNED, Branches
from random_parties import make_parties

TASKS = [cn.Regression(), cn.KMeans(n_clusters=4)]


def arms_of(task: Any, monkeypatch: pytest.MonkeyPatch, parties: list[cn.Party]) -> list[Arm]:
    """Let a plan be made, and take what it chose between."""
    seen: list[PlanInputs] = []

    def overheard(inputs: PlanInputs, max_rounds: int | None) -> list[Arm]:
        seen.append(inputs)
        return all_arms(inputs, max_rounds)

    monkeypatch.setattr(planner, "all_arms", overheard)
    cn.Federation(parties).plan(task, budget_bytes=60_000)
    return all_arms(seen[0], None)


def nearly_alike() -> list[cn.Party]:
    """Two parties whose columns differ by little, and a label that hangs on the differences: it takes a small step."""
    rng = np.random.default_rng(0)
    common, own = rng.normal(size=(6000, 3)), rng.normal(size=(2, 6000, 3))
    X = np.hstack([common, common + 0.1 * own[0]])
    return cn.split_columns(X, 10 * own[0].sum(axis=1) + own[1].sum(axis=1), [3, 3])


@pytest.mark.parametrize("parties", [make_parties(6000), nearly_alike()], ids=["heavy rows", "nearly alike"])
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_no_step_that_was_left_out_is_better_by_more_than_a_part_in_50(
    task: Any, parties: list[cn.Party], monkeypatch: pytest.MonkeyPatch
) -> None:
    arms = arms_of(task, monkeypatch, parties)
    for budget in (4_000, 30_000, 300_000):
        look_at_all(arms, budget)


def look_at_all(arms: list[Arm], budget: int) -> None:
    sizes = {arm: arm.within(budget) for arm in arms}
    fitting = {arm: arm.first_order(size) for arm, size in sizes.items() if size and arm.is_offered(size)}
    found = best_within(arms, budget)
    assert (found is None) == (not fitting)
    if found is not None:
        kind = found.way.arm.drawing
        assert found.way.first_order <= 1.02 * min(loss for arm, loss in fitting.items() if arm.drawing is kind)
        assert found.expected.mean.mean <= 1.02 * found.factor * min(fitting.values())


@pytest.mark.parametrize("task", TASKS, ids=str)
@pytest.mark.parametrize(
    "choice",
    [Branches(("compact",), 40, 6000), Branches(PLANNED, 700, 900), Branches(("compact",), 500, 500)],
    ids=["rounded", "700 to 900", "500, rounded"],
)
def test_nor_where_policies_leave_less(task: Any, choice: Branches, monkeypatch: pytest.MonkeyPatch) -> None:
    arms = all_arms(replace(arms_of(task, monkeypatch, make_parties(6000))[0].drawing.inputs, choice=choice), None)
    assert {arm.step is None for arm in arms} == {False, "central" in choice.solvers}
    assert {arm.sizes for arm in arms} <= {(choice.least, min(choice.most, most)) for most in (3000, 6000)} | {
        (6000, 6000)
    }
    for budget in (4_000, 30_000, 300_000):
        look_at_all(arms, budget)


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_what_decided_is_kept_of_every_draw(task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    arms = arms_of(task, monkeypatch, make_parties(6000))
    for found in (best_within(arms, 30_000), cheapest_meeting(arms, 0.02)):
        assert found is not None
        fitting = {arm.kind for arm in arms if arm.within(30_000) is not None}
        assert found.way.arm.kind in found.beside
        assert found.beside.keys() <= fitting
        assert len(found.beside) >= 2
        assert found.beside[found.way.arm.kind] == min(found.beside.values())


def test_choosing_weighs_few_ways_and_rows_are_reduced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a planned fit takes beside a plain one, counted: times would hang on the machine."""
    calls: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        called = getattr(owner, name)

        def counting(*args: Any, **options: Any) -> Any:
            calls[name] += 1
            return called(*args, **options)

        monkeypatch.setattr(owner, name, counting)

    count(Arm, "most_bytes")
    count(RegressionLaw, "rehearse")
    count(coreset, "reduce_rows")
    count(sandwich, "reduce_rows")
    cn.Federation(make_parties(6000)).fit(cn.Regression(), budget_bytes=30_000)
    assert 0 < calls["most_bytes"] < 250, "of 120 ways, each with sizes to be found"
    assert 1 <= calls["rehearse"] <= 3
    assert calls["reduce_rows"] == 1, "by the fit; its precision uses that"


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_a_budget_is_used_up_and_never_exceeded(task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for arm in arms_of(task, monkeypatch, make_parties(6000))[::4]:
        fewest, most = arm.sizes
        for budget in (4_000.0, 20_000.0, 90_000.0):
            size = arm.within(budget)
            if size is None:
                assert arm.most_bytes(fewest) > budget
            else:
                assert arm.most_bytes(size) <= budget
                assert size == most or arm.most_bytes(size) > (1 - NEARLY) * budget or arm.most_bytes(size + 1) > budget


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_every_target_is_met_since_all_rows_meet_any(task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the fewest draws have a first order far below the target, and rehearsed lose more than it."""
    arms = arms_of(task, monkeypatch, make_parties(6000))
    for target in (0.2, 0.05, 0.02, 0.01, 0.001, 1e-6):
        found = cheapest_meeting(arms, target)
        assert found is not None
        assert found.expected.mean.mean <= target
