"""A planned fit: a pilot, and what it leads to, in one run that one job sheet opens."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from colonnade.branches import Branch
from colonnade.contracts import JobView, Roster, Script, Task
from colonnade.planning.outcome import planned_facts
from colonnade.planning.pilot import PilotRows, least_size, pilot_rows
from colonnade.planning.planner import Limits, choose_branch, pilot_size
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


def planned_fit(
    task: PaperTask, limits: Limits, split: AnySplit | None, roster: Roster, seed: int
) -> tuple[Script[JobResult[Any]], dict[str, Any]]:
    """Give the script of a planned fit, and what decides it."""
    fewest = least_size(task, roster)
    what = {
        "task": task,
        "split": split,
        "seed": seed,
        "pilot": pilot_size(task, roster, limits, None),
        "branches": Branches(SOLVERS, fewest, max(roster.n_rows, fewest)),
        "limits": limits,
    }
    return _learn_as_planned(task, split, limits, roster, what), what


def _learn_as_planned(
    task: PaperTask, split: AnySplit | None, limits: Limits, roster: Roster, what: Mapping[str, Any]
) -> Script[JobResult[Any]]:
    """Draw a pilot, choose by it how to go on, tell all parties, and learn."""
    whole: Task[Any] = task
    opening, seed = opening_bytes("planned", what, roster) * len(roster.cards), what["seed"]
    (view, rows), sent = yield from _weighed(_look(task, split, what["pilot"], roster, seed))
    chosen = choose_branch(task, roster, split, limits, seed, rows, opening + sent)
    yield from take_branch(roster.names, Branch(chosen.sampler, chosen.solver).encoded())
    learned = yield from learn_in_view(whole, chosen.sampler, chosen.solver, view, roster, seed)
    facts = {**learned.facts, **planned_facts(opening + sent + chosen.bytes, chosen.excess)}
    return replace(learned, facts=facts, chosen=(chosen.sampler, chosen.solver))


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
