"""A planned fit: a pilot, and what it leads to, in one run that one job sheet opens."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from colonnade.branches import Branch
from colonnade.catalogue import codec
from colonnade.contracts import JobView, Roster, Script
from colonnade.job_sheets import FINE_STEP, PILOT_STEP
from colonnade.planning.joining import Meter, Pilot, learn_as_chosen
from colonnade.planning.looking import read_all
from colonnade.planning.outcome import planned_facts
from colonnade.planning.pilot import PilotRows, pilot_requests, pilot_rows, settled
from colonnade.planning.planner import Limits, choose_branch, pilot_size, spare_bytes
from colonnade.planning.records import Plan
from colonnade.planning.sheet_sizes import opening_bytes
from colonnade.planning.terms import Terms
from colonnade.protocol.sheet import take_branch
from colonnade.protocol.splits import AnySplit
from colonnade.protocol.viewing import agree_on_view
from colonnade.sampling.plain.server import Scored
from colonnade.solvers.compact import read_columns
from colonnade.tasks import Classification, PaperTask
from colonnade.tasks.jobs import JobResult, rows_told, shared_seed


def planned_fit(
    task: PaperTask, limits: Limits, split: AnySplit | None, roster: Roster, seed: int, terms: Terms
) -> tuple[Script[JobResult[Any]], dict[str, Any]]:
    """Give the script of a planned fit on terms that no party has objected to, and what decides it."""
    what = {
        "task": task,
        "split": split,
        "seed": seed,
        "pilot": pilot_size(task, roster, limits, None, terms),
        "branches": terms.choice,
        "limits": limits,
    }
    return _learn_as_planned(task, split, limits, roster, what, terms), what


def _learn_as_planned(
    task: PaperTask, split: AnySplit | None, limits: Limits, roster: Roster, what: Mapping[str, Any], terms: Terms
) -> Script[JobResult[Any]]:
    """Draw a pilot, choose by it how to go on, tell all parties, and learn."""
    opening, seed = opening_bytes("planned", what, roster) * len(roster.cards), what["seed"]
    meter = Meter(limits.budget_bytes, opening)
    view, rows = yield from meter.counting(_look(task, split, what["pilot"], roster, limits, seed, terms))
    sent = meter.sent
    chosen, why = choose_branch(task, roster, split, limits, seed, rows, sent, terms)
    branch = Branch.of(chosen.sampler, chosen.solver).encoded()
    yield from meter.counting(take_branch(roster.names, branch))
    pilot = Pilot(rows.rows, rows.weights, rows.columns, rows.step, Scored(rows.totals, here=True))
    learned = yield from learn_as_chosen(rows.task, chosen, pilot, view, roster, seed, meter)
    facts = {**learned.facts, **planned_facts(sent + chosen.bytes, chosen)}
    return replace(learned, facts=facts, chosen=(chosen.sampler, chosen.solver), why=why)


def fit_by_plan(
    plan: Plan, roster: Roster, seed: int, what: Mapping[str, Any]
) -> tuple[Script[JobResult[Any]], dict[str, Any]]:
    """Give the script of a run of its own that carries a plan out, and what decides it."""
    return _learn_by_plan(plan, roster, seed, what), {**what, "plan": plan.fingerprint}


def _learn_by_plan(plan: Plan, roster: Roster, seed: int, what: Mapping[str, Any]) -> Script[JobResult[Any]]:
    task, opening = plan.task, opening_bytes("fit", what, roster) * len(roster.cards)
    pilot = _pilot_of(plan, roster)
    meter = Meter(plan.budget_bytes, plan.pilot_bytes + opening)
    view = yield from meter.counting(agree_on_view(roster, plan.split, "train", task.scaling))
    if isinstance(task, Classification):
        task = yield from meter.counting(settled(task, roster, rows_told(task, plan.chosen.sampler, roster)))
    return (yield from learn_as_chosen(task, plan.chosen, pilot, view, roster, seed, meter))


def _pilot_of(plan: Plan, roster: Roster) -> Pilot:
    """Read a pilot's rows as a plan has kept them."""
    sample, asked = plan.sample, pilot_requests(plan.task, roster, plan.seed)
    rows, weights = np.array(sample.rows, np.int64), np.array(sample.weights)
    coarse, fine = (
        {party: codec().decode(reply, party=party) for party, reply in replies.items()}
        for replies in (sample.replies, sample.finer)
    )
    columns, scored = read_columns(roster, rows, asked, coarse).columns, Scored(np.array(sample.totals), here=False)
    if not fine:
        return Pilot(rows, weights, columns, PILOT_STEP, scored)
    finer = read_all(plan.task, roster, columns, np.arange(len(rows)), shared_seed(plan.seed), fine)
    return Pilot(rows, weights, finer, FINE_STEP, scored)


def _look(
    task: PaperTask, split: AnySplit | None, pilot: int, roster: Roster, limits: Limits, seed: int, terms: Terms
) -> Script[tuple[JobView, PilotRows]]:
    view = yield from agree_on_view(roster, split, "train", task.scaling)
    spare = spare_bytes(task, roster, limits, pilot)
    return view, (yield from pilot_rows(task, roster, view, pilot, spare, seed, evenly=terms.choice.evenly))
