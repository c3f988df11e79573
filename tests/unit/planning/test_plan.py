"""Plans keep to their limits, say what they will send, and are carried out as they say."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.planning.outcome import compared
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback
from random_parties import make_parties


def parties(n_rows: int = 6000, widths: tuple[int, ...] = (2, 3, 2)) -> list[cn.Party]:
    return make_parties(n_rows, widths)


TASKS = [
    cn.Regression(),
    cn.Regression(l2=0.1, standardize=True),
    cn.Regression(l1=0.05, fit_intercept=False),
    cn.Regression(l2="cv"),
    cn.KMeans(n_clusters=4),
    cn.KMeans(n_clusters=3, standardize=True),
]


@pytest.mark.parametrize("task", TASKS, ids=str)
@pytest.mark.parametrize("budget", [9_000, 25_000])
def test_a_run_sends_what_was_planned_and_never_more_than_the_budget(task: Any, budget: int) -> None:
    federation = cn.Federation(parties())
    plan = federation.plan(task, budget_bytes=budget, seed=1)
    assert sum(plan.by_phase.values()) == pytest.approx(plan.bytes, abs=5)
    assert sum(plan.by_party.values()) == pytest.approx(plan.bytes, abs=5)
    for seed in range(3):
        run: Any = federation.fit(task, plan=plan, seed=seed)
        assert run.ledger.bytes <= budget
        assert run.ledger.bytes == pytest.approx(plan.bytes, rel=0.03)
        for phase, totals in run.ledger.by_phase().items():
            assert totals.bytes == pytest.approx(plan.by_phase[phase], rel=0.06, abs=30)
        for party, totals in run.ledger.by_party().items():
            assert totals.bytes == pytest.approx(plan.by_party[party], rel=0.08)
        assert (run.sampler, run.solver, run.split) == (plan.sampler, plan.solver, None)


def test_plans_of_many_parties_count_what_one_vouches_for() -> None:
    """Beyond 33 parties one checks what all have signed to have drawn, in a round of its own."""
    rng, count = np.random.default_rng(0), 36
    X = rng.standard_t(2.2, size=(60_000, count))
    federation = cn.Federation(cn.split_columns(X, X.sum(axis=1) + 5 * rng.normal(size=60_000), [1] * count))
    plan = federation.plan(cn.Regression(l2=0.1), budget_bytes=700_000, seed=1)
    assert isinstance(plan.sampler, cn.ImportanceSampling)
    run = federation.fit(cn.Regression(l2=0.1), plan=plan, seed=1)
    asked = [entry.receiver for entry in run.ledger if entry.kind == "AskVouched"]
    assert asked == ["party1"] * 2, "in the pilot, and in the run"
    assert run.ledger.bytes == pytest.approx(plan.bytes, rel=0.03)
    assert run.ledger.by_phase()["sampling"].bytes == pytest.approx(plan.by_phase["sampling"], rel=0.01)
    assert run.ledger.by_phase()["summing"].bytes == pytest.approx(plan.by_phase["summing"], rel=0.02)
    assert plan.rounds + len({entry.round for entry in plan.pilot}) == run.ledger.n_rounds


def test_the_pilot_stands_on_the_runs_ledger() -> None:
    federation = cn.Federation(parties())
    position = len(federation.ledger)
    plan = federation.plan(cn.Regression(), budget_bytes=10_000)
    pilot = federation.ledger.since(position)
    assert (tuple(pilot), pilot.bytes) == (plan.pilot, plan.pilot_bytes)
    run = federation.fit(cn.Regression(), plan=plan)
    assert tuple(run.ledger)[: len(plan.pilot)] == plan.pilot
    assert federation.ledger.since(position) == run.ledger, "here nothing was sent beside pilot and run"
    facts = run.diagnostics
    assert facts["planned_bytes"] == plan.bytes
    assert facts["sent_bytes"] == run.ledger.bytes
    assert facts["planned_excess_low"] < facts["planned_excess"] < facts["planned_excess_high"]


def test_more_bytes_buy_less_excess_and_a_target_costs_what_it_buys() -> None:
    federation = cn.Federation(parties())
    plan = federation.plan(cn.Regression(), budget_bytes=9_000)
    assert [choice.bytes for choice in plan.frontier] == sorted({choice.bytes for choice in plan.frontier})
    means = [choice.excess.mean for choice in plan.frontier]
    assert means == sorted(means, reverse=True)
    assert plan.chosen in plan.frontier
    for target in (0.05, 0.005):
        met = federation.plan(cn.Regression(), target_excess=target)
        assert met.chosen.excess.mean <= target
        again = federation.plan(cn.Regression(), budget_bytes=met.pilot_bytes + met.chosen.most_bytes, pilot=150)
        # Another pilot, a quarter as large, tells it within its interval.
        assert again.chosen.excess.low < target
        assert again.chosen.excess.mean < 2 * target


def test_few_rounds_leave_only_even_draws() -> None:
    federation = cn.Federation(parties())
    plan = federation.plan(cn.Regression(), budget_bytes=9_000, max_rounds=4)
    assert (plan.rounds, type(plan.sampler)) == (4, cn.UniformSampling)
    everything = federation.plan(cn.Regression(), max_rounds=4)
    assert (everything.sampler, everything.solver, everything.chosen.excess.mean) == (cn.AllRows(), cn.Central(), 0.0)
    run = federation.fit(cn.Regression(), plan=everything)
    assert run.ledger.bytes == pytest.approx(everything.bytes, rel=1e-4)


def test_a_plan_is_decided_by_task_limits_pilot_and_seed() -> None:
    first, again, other = (
        cn.Federation(parties(), transport=transport).plan(cn.Regression(), budget_bytes=9_000, seed=seed)
        for transport, seed in ((InProcess, 3), (Loopback, 3), (Loopback, 4))
    )
    same = {"seconds": 0.0, "fingerprint": ""}
    assert msgspec.structs.replace(first, **same) == msgspec.structs.replace(again, **same)
    assert other.pilot != first.pilot
    near, far = (
        cn.Federation(parties(), transport=transport).fit(cn.Regression(), plan=first, seed=1)
        for transport in (InProcess, Loopback)
    )
    np.testing.assert_array_equal(near.model.coef_, far.model.coef_)


def test_split_and_weights() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_t(4, size=(4000, 5))
    federation = cn.Federation(
        cn.split_columns(X, X.sum(axis=1) + rng.normal(size=4000), [3, 2], weight=rng.integers(1, 4, 4000))
    )
    split = cn.HoldOut(0.25)
    plan = federation.plan(cn.Regression(), budget_bytes=150_000, split=split)
    run = federation.fit(cn.Regression(), plan=plan)
    assert run.split == split
    assert run.ledger.bytes <= 150_000
    assert plan.by_phase["framing"] > 32_000, "the weights of all rows, in pilot and run"
    assert run.ledger.by_phase()["framing"].bytes == plan.by_phase["framing"]
    assert federation.evaluate(run.model, split=run.split).n_evaluated == 1000


def test_saved_and_read_again(tmp_path: Path) -> None:
    federation = cn.Federation(parties())
    plan = federation.plan(cn.KMeans(n_clusters=4), budget_bytes=20_000)
    assert cn.Plan.load(plan.save(tmp_path / "plan.json")) == plan


def test_printed() -> None:
    federation = cn.Federation(parties())
    plan = federation.plan(cn.Regression(), budget_bytes=9_000)
    run = federation.fit(cn.Regression(), plan=plan)
    text = str(plan)
    assert f"a pilot of {plan.pilot_rows:,} rows" in text
    assert text.count("  chosen") == 1
    assert f"By phase: opening {plan.by_phase['opening']:,}, sampling {plan.by_phase['sampling']:,}" in text
    assert f"{run.ledger.bytes:,}" in compared(plan, run)
    assert "1.2 %" in compared(plan, run, 0.012)


@pytest.mark.parametrize("slope", [0.0, 1.0], ids=["constant label", "label of its party's own columns"])
@pytest.mark.filterwarnings("ignore:The excess of this plan is not known")
def test_labels_without_noise_are_planned_for(slope: float) -> None:
    """Where there is nothing to lose a plan says so; where columns tell the label, that nobody knows."""
    X = np.random.default_rng(0).normal(size=(5000, 4))
    federation = cn.Federation(cn.split_columns(X, 3.0 + slope * X[:, 2:].sum(axis=1), [2, 2]))
    plan = federation.plan(cn.Regression(), budget_bytes=20_000)
    assert (plan.excess is None) == (slope > 0)
    for run in (federation.fit(cn.Regression(), plan=plan), federation.fit(cn.Regression(), budget_bytes=20_000)):
        assert run.ledger.bytes <= 20_000
        np.testing.assert_allclose(run.model.coef_, slope * np.array([0, 0, 1, 1]), atol=0.05)


def test_a_label_that_columns_tell_has_no_excess_to_speak_of() -> None:
    """Floors add up to the whole: nothing is left but rounding, and no number is a part of that."""
    rng = np.random.default_rng(0)
    above, below = rng.gamma(4.0, 500.0, size=3000).round(), rng.gamma(1.0, 300.0, size=3000).round()
    others = rng.normal(size=(3000, 3))
    parties = [cn.Party("a", np.column_stack([above, others])), cn.Party("b", below[:, None], label=above + below)]
    with pytest.warns(cn.AssumptionWarning, match="hardly more than rounding"):
        plan = cn.Federation(parties).plan(cn.Regression(), budget_bytes=12_000)
    assert plan.excess is None
    assert plan.r2 is not None
    assert plan.r2 > 0.99
    itself = [cn.Party("a", others), cn.Party("b", np.column_stack([above, below]), label=above)]
    with pytest.warns(cn.AssumptionWarning, match="hardly more than rounding"):
        assert cn.Federation(itself).plan(cn.Regression(), budget_bytes=12_000).excess is None
