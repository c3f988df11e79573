"""After the run: what was predicted against what came of it."""

import dataclasses
from collections.abc import Iterable
from typing import TypeVar

from colonnade.ledger import Entry, Ledger, aligned
from colonnade.planning.records import Choice, Excess, Plan
from colonnade.run import Run

M = TypeVar("M")


def with_plan(run: Run[M], plan: Plan) -> Run[M]:
    """Put a plan's pilot on a run's ledger, what it predicted among the run's facts, and why it was chosen."""
    run = sent_before(run, plan.pilot)
    facts = {**run.facts, **planned_facts(plan.bytes, plan.chosen), "sent_bytes": float(run.ledger.bytes)}
    return dataclasses.replace(run, facts=facts, why=plan.why)


def sent_before(run: Run[M], entries: Iterable[Entry]) -> Run[M]:
    """Put what was sent before a run, and for it, on its ledger."""
    return dataclasses.replace(run, ledger=Ledger([*entries, *run.ledger], run_by=run.ledger.run_by))


def planned_facts(n_bytes: float, chosen: Choice) -> dict[str, float]:
    """Give what was predicted, pilot included, as a run keeps it: the interval is for its own excess."""
    return {
        "planned_bytes": float(n_bytes),
        "planned_excess": chosen.excess.mean,
        "planned_excess_low": chosen.one_run.low,
        "planned_excess_high": chosen.one_run.high,
    }


def _expected(excess: Excess | None) -> str:
    return "not known" if excess is None else f"{100 * excess.low:.3g} to {100 * excess.high:.3g} %"


def compared(plan: Plan, run: Run[M], excess: float | None = None) -> str:
    """Lay out what was predicted beside what came of it, the model's excess too where it was measured."""
    actual = run.ledger.by_phase()
    phases = [
        (f"bytes, {phase}", f"{planned:,}", f"{actual[phase].bytes if phase in actual else 0:,}")
        for phase, planned in plan.by_phase.items()
    ]
    seen = "not measured" if excess is None else f"{100 * excess:.3g} %"
    lines = [
        ("", "planned", "actual"),
        *phases,
        ("bytes", f"{plan.bytes:,}", f"{run.ledger.bytes:,}"),
        ("seconds", f"{plan.seconds:.2g}", f"{run.seconds:.2g}"),
        ("excess", _expected(plan.one_run), seen),
    ]
    return aligned(lines, numbers={1, 2})
