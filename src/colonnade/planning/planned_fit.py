"""A planned fit: a pilot, and what it leads to, in one run that one job sheet opens."""

from dataclasses import dataclass
from typing import Any, TypeVar

from colonnade.contracts import JobView, Roster, Script, Task
from colonnade.job_sheets import Branch
from colonnade.planning.outcome import planned_facts
from colonnade.planning.pilot import PilotRows, least_size, pilot_rows
from colonnade.planning.planner import Limits, choose_branch
from colonnade.planning.records import Choice
from colonnade.planning.sheet_sizes import opening_bytes
from colonnade.protocol.codec import wire_bytes
from colonnade.protocol.sheet import Branches, take_branch
from colonnade.protocol.splits import AnySplit
from colonnade.protocol.viewing import agree_on_view
from colonnade.tasks import PaperTask
from colonnade.tasks.jobs import JobResult, learn_in_view

T = TypeVar("T")
# What a planner chooses between.
SOLVERS = ("central", "compact")


@dataclass(frozen=True, eq=False)
class PlannedFit:
    """What a planned fit gives: what was chosen, after a pilot of so many bytes, and what came of it."""

    chosen: Choice
    pilot_bytes: int
    learned: JobResult[Any]

    @property
    def facts(self) -> dict[str, float]:
        """What was predicted, for the run's facts."""
        return {**planned_facts(self.pilot_bytes + self.chosen.bytes, self.chosen.excess), **self.learned.facts}


def branches_of(task: PaperTask, roster: Roster) -> Branches:
    """Say what is left to choose after a pilot."""
    return Branches(SOLVERS, least_size(task, roster), max(roster.n_rows, least_size(task, roster)))


def learn_as_planned(
    task: PaperTask, split: AnySplit | None, limits: Limits, pilot: int, roster: Roster, seed: int
) -> Script[PlannedFit]:
    """Draw a pilot, choose by it how to go on, tell all parties, and learn."""
    what = {"task": task, "split": split, "pilot": pilot, "seed": seed, "branches": branches_of(task, roster)}
    opening = opening_bytes("planned", what, roster) * len(roster.cards)
    (view, rows), sent = yield from _weighed(_look(task, split, pilot, roster, seed))
    chosen = choose_branch(task, roster, split, limits, seed, rows, opening + sent)
    yield from take_branch(roster.names, Branch(chosen.sampler, chosen.solver).encoded())
    whole: Task[Any] = task
    learned = yield from learn_in_view(whole, chosen.sampler, chosen.solver, view, roster, seed)
    return PlannedFit(chosen, opening + sent, learned)


def _look(
    task: PaperTask, split: AnySplit | None, pilot: int, roster: Roster, seed: int
) -> Script[tuple[JobView, PilotRows]]:
    view = yield from agree_on_view(roster, split, "train", task.scaling)
    return view, (yield from pilot_rows(task, roster, view, pilot, seed))


def _weighed(script: Script[T]) -> Script[tuple[T, int]]:
    """Play a script, and add up the bytes of its messages."""
    outbox, sent = next(script), 0
    while True:
        inbox = yield outbox
        sent += sum(len(wire_bytes(message)) for message in (*outbox.values(), *inbox.values()))
        try:
            outbox = script.send(inbox)
        except StopIteration as end:
            return end.value, sent
