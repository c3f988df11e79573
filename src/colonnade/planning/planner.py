"""The planner: from limits and a pilot to a plan."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from colonnade.contracts import Roster, Script
from colonnade.errors import AssumptionWarning, InputError
from colonnade.ledger import Entry
from colonnade.options import positive_number, whole_number
from colonnade.planning.choosing import (
    Arm,
    Found,
    all_arms,
    best_within,
    cheapest_meeting,
    cheapest_of,
    frontier,
    least_bytes,
)
from colonnade.planning.drawing import PlanInputs
from colonnade.planning.laws import Law, law_of
from colonnade.planning.pilot import (
    PilotRows,
    least_pilot,
    least_run_bytes,
    pilot_bytes,
    play_pilot,
    usual_pilot,
)
from colonnade.planning.reasons import reason
from colonnade.planning.records import Choice, PilotSample, Plan, fingerprint
from colonnade.planning.terms import Terms
from colonnade.planning.wire_sizes import MessageSize
from colonnade.protocol.fingerprints import Tables
from colonnade.protocol.splits import AnySplit
from colonnade.tasks import PaperTask

FRAMING = "framing"
# What a choice takes on a plan's sheet, at most.
CHOICE_BYTES = 40
ASKING = "finding out what parties' policies allow"
# Of leverage that no party's columns show by themselves, a row that the pilot might have missed has at most so much.
MOST_LOOSE = 0.35
# Along any direction of a party's columns the pilot's rows have at least this part of the variance of all rows.
LEAST_SEEN = 0.1
# Of the variance that is left of the label, what is not rounding is at least so much.
LEAST_UNROUNDED = 0.3
# And of the label's variance at least so much is left.
LEAST_LEFT = 1e-8
# The same of a pilot that was drawn evenly: where few rows have most of it, most pilots have none of these.
LEAST_SEEN_EVENLY = 0.5


@dataclass(frozen=True)
class Limits:
    """What a plan must keep to: either bytes, of pilot and run, or excess, or neither; and rounds, after the pilot's.

    The excess is the mean, expected, of cost over that of a model of all rows, relative.
    """

    budget_bytes: int | None
    target_excess: float | None
    max_rounds: int | None

    def __post_init__(self) -> None:
        if self.budget_bytes is not None and self.target_excess is not None:
            raise InputError(
                f"budget_bytes={self.budget_bytes!r} and target_excess={self.target_excess!r} may contradict each "
                "other. Pass one of them; the plan's frontier shows what the other would be."
            )
        if self.budget_bytes is None and self.target_excess is None and self.max_rounds is None:
            raise InputError("A plan needs a limit. Pass for instance budget_bytes=100_000, or target_excess=0.02.")
        if self.budget_bytes is not None:
            whole_number("budget_bytes", self.budget_bytes, least=1, example="Pass for instance 100_000.")
        if self.target_excess is not None:
            positive_number("target_excess", self.target_excess, example="Pass for instance 0.02, an excess of 2 %.")
        if self.max_rounds is not None:
            whole_number(
                "max_rounds", self.max_rounds, least=1, example="Drawing evenly takes 4 rounds, drawing by scores 5."
            )

    def less(self, n_bytes: int, what: str = "preparing columns") -> "Limits":
        """Give what is left of the budget, if there is one, once so many bytes were sent before."""
        if self.budget_bytes is None or not n_bytes:
            return self
        if self.budget_bytes <= n_bytes:
            raise InputError(
                f"budget_bytes={self.budget_bytes:,} is used up: {what} took {n_bytes:,}. Allow many more."
            )
        return Limits(self.budget_bytes - n_bytes, self.target_excess, self.max_rounds)


def pilot_size(task: PaperTask, roster: Roster, limits: Limits, wanted: int | None, terms: Terms) -> int:
    """Choose or check m0, the pilot's size, before anything is sent."""
    least = least_pilot(task, roster)
    if wanted is not None:
        example = (
            f"Fewer rows say too little about this task; if left out, {usual_pilot(task, roster, None):,} are used."
        )
        size = whole_number("pilot", wanted, least=least, example=example)
    else:
        size = usual_pilot(task, roster, limits.budget_bytes)
    if "most" in terms.limited_by and terms.choice.most < size:
        most = terms.choice.most
        if wanted is not None or most < least:
            raise InputError(
                f"The policy of {terms.limited_by['most']!r} answers for {most:,} rows at most, and the pilot would "
                f"have {size:,}. " + (f"Pass pilot={most}." if most >= least else "Name a sampler and a solver.")
            )
        size = most
    if limits.budget_bytes is not None and limits.budget_bytes < (needed := _least_budget(task, roster, size)):
        raise InputError(
            f"budget_bytes={limits.budget_bytes:,} is too small for any plan after a pilot of {size:,} rows. "
            f"Allow {needed:,}" + (f", or a pilot of {least:,} rows." if size > least else ".")
        )
    return size


def planned_pilot(
    task: PaperTask, roster: Roster, split: AnySplit | None, limits: Limits, wanted: int | None, seed: int, terms: Terms
) -> tuple[Script[PilotRows], int]:
    """Give the script of a pilot, of as many rows as are wanted or the limits suggest, and their number."""
    limits = limits.less(terms.bytes + CHOICE_BYTES * len(roster.cards) * bool(terms.limited_by), ASKING)
    size, evenly = pilot_size(task, roster, limits, wanted, terms), terms.choice.evenly
    return play_pilot(task, roster, split, size, spare_bytes(task, roster, limits, size), seed, evenly=evenly), size


def spare_bytes(task: PaperTask, roster: Roster, limits: Limits, size: int) -> int | None:
    """Give what a budget leaves beside a pilot of so many rows and the smallest run; None where there is none."""
    return None if limits.budget_bytes is None else limits.budget_bytes - _least_budget(task, roster, size)


def _least_budget(task: PaperTask, roster: Roster, size: int) -> int:
    return pilot_bytes(task, roster, size) + least_run_bytes(task, roster)


def make_plan(
    task: PaperTask,
    roster: Roster,
    split: AnySplit | None,
    limits: Limits,
    seed: int,
    pilot: PilotRows,
    sent: Sequence[Entry],
    seconds: float,
    tables: Tables,
    terms: Terms,
) -> Plan:
    """Make of a pilot of some tables, and of what it sent in how many seconds, the best or cheapest plan in limits."""
    sent = [*terms.refused, *sent]
    framing = [entry for entry in sent if entry.phase == FRAMING]
    inputs = PlanInputs(
        task,
        roster,
        split,
        pilot,
        _law(task, pilot, seed),
        tuple(MessageSize(entry.phase, entry.party, entry.bytes) for entry in framing),
        len({entry.round for entry in framing}),
        seed,
        terms.choice,
    )
    arms, n_sent = _arms(inputs, limits), sum(entry.bytes for entry in sent)
    found, unclear_why = _chosen(arms, limits, n_sent), unclear(inputs)
    chosen, r2 = found.choice, _r2(inputs.law, roster.n_rows)
    messages = [*(MessageSize(entry.phase, entry.party, entry.bytes) for entry in sent)]
    messages += found.way.arm.messages(found.way.size)
    n_rounds = len({entry.round for entry in sent})
    plan = Plan(
        task=task,
        split=split,
        parties=roster.cards,
        budget_bytes=limits.budget_bytes,
        target_excess=limits.target_excess,
        max_rounds=limits.max_rounds,
        seed=seed,
        chosen=chosen,
        by_phase=_sums([(message.phase, message.bytes) for message in messages]),
        by_party=_sums([(message.party, message.bytes) for message in messages]),
        pilot=tuple(sent),
        sample=_sample(pilot),
        tables=replace(tables, preparations={}),
        seconds=seconds * chosen.rounds / n_rounds,
        frontier=frontier(arms, found),
        r2=None if r2 is None else 1 - (1 - r2) * (1 + chosen.excess.mean),
        r2_of_all_rows=r2,
        unclear=unclear_why,
        why=_why(arms, found, limits, n_sent, terms, is_clear=unclear_why is None),
    )
    warn_if_unclear(plan.unclear)
    return replace(plan, fingerprint=fingerprint(plan))


def choose_branch(
    task: PaperTask,
    roster: Roster,
    split: AnySplit | None,
    limits: Limits,
    seed: int,
    pilot: PilotRows,
    sent: int,
    terms: Terms,
) -> tuple[Choice, str]:
    """Choose how the run of a pilot, that has sent so many bytes, goes on, and say why."""
    inputs = PlanInputs(task, roster, split, pilot, _law(task, pilot, seed), None, 0, seed, terms.choice)
    unclear_why = unclear(inputs)
    warn_if_unclear(unclear_why)
    arms = _arms(inputs, limits)
    found = _chosen(arms, limits, sent)
    return found.choice, _why(arms, found, limits, sent, terms, is_clear=unclear_why is None)


def _why(arms: list[Arm], found: Found, limits: Limits, sent: int, terms: Terms, *, is_clear: bool) -> str:
    left = None if limits.target_excess is not None else _left(limits, sent)
    return reason(arms, found, terms, left, limits.target_excess, is_clear=is_clear)


def _left(limits: Limits, sent: int) -> float:
    """Give what a budget leaves after a pilot."""
    return float("inf") if limits.budget_bytes is None else limits.budget_bytes - sent


def unclear(inputs: PlanInputs) -> str | None:
    """Say why a pilot does not tell the excess, if so, and what to do."""
    if inputs.pilot.unclear:
        return (
            "Columns of different parties agree so closely that rounding hides how they differ, and the label may hang "
            "on that. Allow more bytes, or leave out columns that two parties share."
        )
    if inputs.law.least_seen < (LEAST_SEEN_EVENLY if inputs.choice.evenly else LEAST_SEEN):
        return (
            "The pilot saw next to nothing of what some columns differ by: rare levels, or few extreme values. Make "
            "the pilot larger (pilot=), or put rare levels together."
        )
    if inputs.law.unrounded < LEAST_UNROUNDED or (inputs.law.r2 or 0.0) > 1 - LEAST_LEFT:
        return (
            "What the columns leave of the label is hardly more than rounding, so that an excess would be a part of "
            "next to nothing. Is the label a sum of columns? Leave out the one that tells it, or look at plan.r2."
        )
    missed = inputs.law.heaviest(inputs.pilot.chances) if inputs.choice.evenly else inputs.law.loose
    if missed > MOST_LOOSE:
        return (
            "Single rows of the pilot, drawn by chance, decide parts of the model alone: others may be unseen. "
            "Look at rows that break what else holds between the parties' columns, or make the pilot larger (pilot=)."
        )
    return None


def warn_if_unclear(why: str | None) -> None:
    """Warn that an excess is not known."""
    if why is not None:
        warnings.warn(f"The excess of this plan is not known. {why}", AssumptionWarning, stacklevel=5)


def _sample(pilot: PilotRows) -> PilotSample:
    rows, weights = tuple(pilot.rows.tolist()), tuple(pilot.weights.tolist())
    return PilotSample(rows, weights, tuple(pilot.totals.tolist()), dict(pilot.replies), dict(pilot.finer))


def _r2(law: Law, n_rows: int) -> float | None:
    """Give R2 on new rows of a model of all rows: on these it is larger, by what learning from them does."""
    if law.r2 is None:
        return None
    part = min(law.n_coefficients / n_rows, 0.5)
    return 1 - (1 - law.r2) * (1 + part) / (1 - part)


def _law(task: PaperTask, pilot: PilotRows, seed: int) -> Law:
    return law_of(task, pilot, np.random.default_rng([seed, 6]))


def _arms(inputs: PlanInputs, limits: Limits) -> list[Arm]:
    arms = all_arms(inputs, limits.max_rounds)
    if not arms:
        least = min(arm.rounds for arm in all_arms(inputs, None))
        raise InputError(f"max_rounds={limits.max_rounds} is too few: every plan takes {least} or more. Allow {least}.")
    return arms


def _chosen(arms: list[Arm], limits: Limits, pilot_sent: int) -> Found:
    if limits.target_excess is not None:
        found = cheapest_meeting(arms, limits.target_excess)
    else:
        found = best_within(arms, _left(limits, pilot_sent))
    if found is not None:
        return found
    if limits.target_excess is not None:
        raise InputError(f"No plan is expected to meet target_excess={limits.target_excess:g}. Allow more.")
    cheapest = cheapest_of(arms)
    if limits.budget_bytes is not None and pilot_sent + cheapest.way.arm.fixed_bytes <= limits.budget_bytes:
        return cheapest  # with as many of its rows as the budget holds
    raise InputError(
        f"budget_bytes={limits.budget_bytes:,} is too small for any plan: {pilot_sent:,} were sent by the pilot, and "
        f"the cheapest plan needs {pilot_sent + least_bytes(arms):,} in all. Allow that much."
    )


def _sums(amounts: Sequence[tuple[str, float]]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for name, amount in amounts:
        sums[name] += amount  # type: ignore[assignment]  # rounded below
    return {name: round(amount) for name, amount in sums.items()}
