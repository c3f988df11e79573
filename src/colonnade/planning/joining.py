"""Carrying a choice out: rows are drawn and fetched within the budget, and the pilot's rows join them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from colonnade.contracts import Inbox, JobView, Roster, Script, Solution, Task
from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats, Rows
from colonnade.planning.records import Choice
from colonnade.planning.sheet_sizes import telling_bytes
from colonnade.planning.wire_sizes import rounded_messages
from colonnade.protocol.codec import wire_bytes
from colonnade.sampling import ImportanceSampling
from colonnade.sampling.plain.server import Scored
from colonnade.solvers import CompactCentral
from colonnade.solvers.compact import Fetched, PartyColumns
from colonnade.solvers.scaled_columns import ScaledRows
from colonnade.tasks import PaperTask
from colonnade.tasks.jobs import JobResult, sampling_rng, solving_rng, told

T = TypeVar("T")
# What a limit adds to a request, and a longer header to a reply.
LIMIT_BYTES = 8
# Weights that are 1, but for rounding.
CERTAIN = 1e-9


@dataclass(frozen=True, eq=False)
class Pilot:
    """A pilot's rows, ascending, what each stands for, what parties sent of them, and by which step rounded.

    And the totals of the scores that they were drawn by.
    """

    rows: Rows
    weights: Floats
    columns: PartyColumns
    step: float
    scored: Scored


class Meter:
    """Counts the bytes of a script as it is played, and says what is left of a budget, if there is one."""

    def __init__(self, budget: int | None, sent: int) -> None:
        self.budget = budget
        self.sent = sent

    @property
    def left(self) -> int | None:
        """What may still be sent."""
        return None if self.budget is None else self.budget - self.sent

    def counting(self, script: Script[T]) -> Script[T]:
        """Play a script, and add up the bytes of its messages."""
        inbox: Inbox | None = None
        while True:
            try:
                outbox = next(script) if inbox is None else script.send(inbox)
            except StopIteration as end:
                result: T = end.value
                return result
            inbox = yield outbox
            self.sent += sum(len(wire_bytes(message)) for message in (*outbox.values(), *inbox.values()))


def learn_as_chosen(
    task: PaperTask, choice: Choice, pilot: Pilot, view: JobView, roster: Roster, seed: int, meter: Meter
) -> Script[JobResult[Any]]:
    """Draw rows, fetch as many as the budget holds, and learn on them and the pilot's."""
    whole: Task[Any] = task
    coreset = yield from meter.counting(_draw(task, choice, pilot, view, roster, seed))
    rng = solving_rng(seed)
    if not isinstance(choice.solver, CompactCentral):
        solution: Solution[Any] = yield from choice.solver.solve(whole, roster, coreset, rng)
    else:
        most = _most_bytes(task, roster, choice.row_bytes, pilot.columns, len(coreset), choice.solver.step, meter)
        fetched = yield from choice.solver.fetch(whole, roster, coreset.rows, rng, most, pilot.columns)
        weighted = roster.weight_party is not None
        coreset, fetched = joined(coreset, fetched, pilot, choice.pilot_share, weighted=weighted)
        solution = choice.solver.finish(whole, roster, coreset, fetched, rng)
    return (yield from told(whole, solution, coreset, view, roster))


def _draw(task: PaperTask, choice: Choice, pilot: Pilot, view: JobView, roster: Roster, seed: int) -> Script[Coreset]:
    sampler, rule, rng = choice.sampler, task.score_rule(), sampling_rng(seed)
    if isinstance(sampler, ImportanceSampling):
        return sampler.sample(roster, rule, rng, view.row_weights, pilot.scored)
    return sampler.sample(roster, rule, rng, view.row_weights)


def joined(
    coreset: Coreset, fetched: Fetched, pilot: Pilot, share: float, *, weighted: bool
) -> tuple[Coreset, Fetched]:
    """Join the rows that came with the pilot's: each sum over all rows is then the mean of two, by their shares.

    Rows that were drawn for certain stand for themselves, and the pilot has no share in these. Where rows are
    `weighted` it is not known which they are.
    """
    if len(fetched.kept) < len(coreset):
        # Those that were left out are a part at random: the others stand for them.
        factor = len(coreset) / len(fetched.kept)
        weights = coreset.weights[fetched.kept] * factor
        coreset = replace(coreset, rows=coreset.rows[fetched.kept], weights=weights, distinct=False)
    if share == 0:
        return coreset, fetched
    certain = coreset.weights <= 1 + CERTAIN if coreset.distinct and not weighted else np.zeros(len(coreset), bool)
    rows = np.concatenate([coreset.rows, pilot.rows])
    weights = np.concatenate([np.where(certain, 1.0, 1 - share) * coreset.weights, share * pilot.weights])
    there_already = np.concatenate([np.zeros(len(coreset), bool), np.isin(pilot.rows, coreset.rows[certain])])
    order = np.argsort(rows, kind="stable")
    order = order[~there_already[order]]
    columns = {
        party: each.with_rows(pilot.columns[party], order)  # type: ignore[arg-type]  # of the same kind
        for party, each in fetched.columns.items()
    }
    both = replace(coreset, rows=rows[order], weights=weights[order], distinct=False)
    return both, Fetched(columns, np.arange(len(order)))


def _most_bytes(
    task: PaperTask,
    roster: Roster,
    row_bytes: Mapping[str, float],
    columns: PartyColumns,
    size: int,
    step: float,
    meter: Meter,
) -> dict[str, int] | None:
    """Deal what is left of a budget for codes to the parties: what they are expected to take, and a part of the rest.

    Where less is left, those have less who can round more coarsely.
    """
    if meter.left is None:
        return None
    told = sum(telling_bytes(task, card) for card in roster.cards)
    around = sum(each.bytes + LIMIT_BYTES for each in rounded_messages(task, roster, columns, size, step, {}))
    fixed = {party: 0 if isinstance(each, ScaledRows) else each.fixed_bytes(size) for party, each in columns.items()}
    expected = {party: size * length for party, length in row_bytes.items()}
    spare = meter.left - told - around - sum(expected.values())
    if spare > 0:
        return {party: int(each + spare / len(expected)) + fixed[party] for party, each in expected.items()}
    # A step twice as coarse saves a bit a value; what that does not save is taken off all alike.
    saved = {party: min(size * columns[party].n_rounded / 8, each) for party, each in expected.items()}
    coarser = min(-spare / max(sum(saved.values()), 1e-9), 1.0)
    reached = {party: each - coarser * saved[party] for party, each in expected.items()}
    factor = (meter.left - told - around) / max(sum(reached.values()), 1e-9)
    return {party: max(1, int(min(factor, 1.0) * each) + fixed[party]) for party, each in reached.items()}
