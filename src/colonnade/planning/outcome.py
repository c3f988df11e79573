"""After the run: what was predicted against what came of it."""

import dataclasses
from typing import TypeVar

from colonnade.ledger import Ledger, aligned
from colonnade.planning.records import Plan
from colonnade.run import Run

M = TypeVar("M")


def with_plan(run: Run[M], plan: Plan) -> Run[M]:
    """Put a plan's pilot on a run's ledger, and what it predicted among the run's facts."""
    facts = {
        "planned_bytes": float(plan.bytes),
        "sent_bytes": float(plan.pilot_bytes + run.ledger.bytes),
        "planned_excess": plan.excess.mean,
        "planned_excess_low": plan.excess.low,
        "planned_excess_high": plan.excess.high,
    }
    ledger = Ledger([*plan.pilot, *run.ledger], run_by=run.ledger.run_by)
    return dataclasses.replace(run, facts={**run.facts, **facts}, ledger=ledger)


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
        ("excess", f"{100 * plan.excess.low:.3g} to {100 * plan.excess.high:.3g} %", seen),
    ]
    return aligned(lines, numbers={1, 2})
