"""Playing a plan's pilot, or a planned fit, on terms that all parties' policies allow."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, Protocol, TypeVar

from colonnade.contracts import Roster, Script
from colonnade.errors import PolicyRefusedError
from colonnade.ledger import Ledger
from colonnade.planning.outcome import sent_before
from colonnade.planning.pilot import PilotRows
from colonnade.planning.planned_fit import planned_fit
from colonnade.planning.planner import ASKING, Limits, make_plan, planned_pilot
from colonnade.planning.records import Plan
from colonnade.planning.terms import Terms
from colonnade.protocol.conductor import reading
from colonnade.protocol.fingerprints import Tables
from colonnade.protocol.splits import AnySplit
from colonnade.run import Run
from colonnade.tasks import PaperTask
from colonnade.tasks.jobs import JobResult

T = TypeVar("T")
M = TypeVar("M")


class Player(Protocol):
    """Plays scripts with these parties.

    `sent` is what the last one sent, also where it was refused; `tables` are those that the last run was on.
    """

    roster: Roster
    sent: Ledger
    tables: Tables

    def play(self, script: Script[T], verb: str, /, **what: object) -> tuple[T, Ledger]:
        """Play a script, and give its result and what it sent."""

    def learn(self, verb: str, script: Script[JobResult[M]], what: dict[str, Any]) -> Run[M]:
        """Play a script that learns."""


def plan_with(
    player: Player, task: PaperTask, split: AnySplit | None, limits: Limits, wanted: int | None, seed: int
) -> Plan:
    """Send a pilot, of so many rows if that is said, and make a plan of it."""
    roster = player.roster

    def play(terms: Terms) -> tuple[PilotRows, Ledger]:
        script, size = planned_pilot(task, roster, split, limits, wanted, seed, terms)
        choice = {"branches": terms.choice} if terms.limited_by else {}
        return player.play(script, "plan", task=task, split=split, pilot=size, seed=seed, **choice)

    started = perf_counter()
    (rows, sent), terms = _agreed(player, task, play)
    seconds = perf_counter() - started
    told = (rows, list(sent), seconds, player.tables, terms)
    return reading(roster.names, make_plan, task, roster, split, limits, seed, *told)


def fit_with(player: Player, task: PaperTask, split: AnySplit | None, limits: Limits, seed: int) -> Run[Any]:
    """Plan and fit in one run."""

    def play(terms: Terms) -> Run[Any]:
        script, what = planned_fit(task, limits.less(terms.bytes, ASKING), split, player.roster, seed, terms)
        return player.learn("planned", script, what)

    run, terms = _agreed(player, task, play)
    return sent_before(run, terms.refused)


def _agreed(player: Player, task: PaperTask, play: Callable[[Terms], T]) -> tuple[T, Terms]:
    """Play on all terms, and on narrower ones as long as a party refuses the sheet and offers these."""
    terms = Terms.widest(task, player.roster)
    while True:
        try:
            return play(terms), terms
        except PolicyRefusedError as refusal:
            terms = terms.narrowed(refusal, player.sent)
