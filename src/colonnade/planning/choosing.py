"""Choosing: every sampler with every step, as many rows as a budget holds or a target needs, and the best of them.

Many ways are compared by the law's first order, which costs nothing; the best few are rehearsed on the pilot.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from msgspec.structs import replace

from colonnade.branches import Branch, planned_draw
from colonnade.contracts import Roster
from colonnade.kernels.arrays import Floats
from colonnade.planning.code_lengths import Lengths, RowLengths, row_lengths, score_lengths
from colonnade.planning.forecast import Forecast, forecast
from colonnade.planning.laws import Law, chances_of
from colonnade.planning.pilot import PilotRows
from colonnade.planning.records import Choice
from colonnade.planning.wire_sizes import (
    MessageSize,
    branch_messages,
    n_rounds,
    plain_messages,
    rounded_messages,
    sampling_messages,
    sheet_messages,
)
from colonnade.protocol.caps import Branches
from colonnade.protocol.splits import AnySplit
from colonnade.sampling import AllRows, AnySampler, ImportanceSampling, UniformSampling
from colonnade.solvers import Central, CompactCentral
from colonnade.solvers.scaled_columns import ScaledRows
from colonnade.tasks import PaperTask

# Four steps for a factor of two: the excess is within some per cent of its least at the nearest.
STEPS = tuple(float(f"{step:.3g}") for step in 0.002 * 2.0 ** (np.arange(39) / 4))
# Rows that an even draw may miss have a weight times leverage of at most this; else rows are drawn by scores.
MOST_HEAVY = 0.3
# Standard errors that are kept between the bytes expected and a budget, and what is kept in any case; a run that would
# send more all the same leaves out rows.
SURE, LEAST_MARGIN = 1.5, 0.004
# So many sizes tell how bytes grow with them.
GRID = 8
# Sizes that are nearer to each other than this factor have rows of one length.
ALIKE = 3
# Of the ways that first order finds best, so many are rehearsed, beside the best of every sampler.
REHEARSED = 2
# Budgets of the frontier, in units of the chosen one.
FACTORS = (0.25, 0.5, 2.0, 4.0)


@dataclass(frozen=True, eq=False)
class PlanInputs:
    """All that predictions are made of, and what may be chosen.

    A run of its own starts with the same framing as the pilot, in so many rounds; where the pilot's run goes on, that
    is None. `lengths` are those found so far, of rows and scores by sampler.
    """

    task: PaperTask
    roster: Roster
    split: AnySplit | None
    pilot: PilotRows
    law: Law
    framing: tuple[MessageSize, ...] | None
    framing_rounds: int
    seed: int
    choice: Branches
    lengths: dict[tuple[AnySampler, int], tuple[RowLengths, Lengths | None]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Arm:
    """A way to draw rows and a way to send them, however many: rounded by `step`, or as they are if it is None."""

    inputs: PlanInputs
    kind: AnySampler
    step: float | None

    @property
    def _solver(self) -> Central | CompactCentral:
        return Central() if self.step is None else CompactCentral(self.step)

    @property
    def rounds(self) -> int:
        """How many a run takes."""
        return self.inputs.framing_rounds + n_rounds(self.kind)

    def messages(self, size: int) -> Iterator[MessageSize]:
        """List what so many draws send."""
        inputs, step, sampler = self.inputs, self.step, self._sampler(size)
        rows, scores = self._lengths(size)
        if inputs.framing is None:
            yield from branch_messages(inputs.task, inputs.roster, Branch(sampler, self._solver))
        else:
            yield from inputs.framing
            yield from sheet_messages(inputs.task, inputs.roster, inputs.split, sampler, self._solver)
        told, n_sent = {} if scores is None else dict(scores.by_party), round(self._n_sent(size))
        yield from sampling_messages(inputs.task, inputs.roster, sampler, inputs.pilot, n_sent, told)
        if step is None:
            yield from plain_messages(inputs.task, inputs.roster, n_sent)
        else:
            yield from rounded_messages(inputs.roster, inputs.pilot.columns, n_sent, step, dict(rows.at(step).by_party))

    def within(self, budget: float) -> int | None:
        """Give the most draws whose bytes stay below a budget; none where not even the fewest do."""
        size = _largest(self._grid, self._most_bytes, budget)
        # The curve between two sizes of the grid is not quite straight.
        while size is not None and self.most_bytes(size) > budget:
            size = max(size - max(1, size // 500), self.sizes[0]) if size > self.sizes[0] else None
        return size

    @property
    def sizes(self) -> tuple[int, int]:
        """The fewest draws and the most: with more, all rows once would be better."""
        n_rows, least = self.inputs.roster.n_rows, self.inputs.choice.least
        if isinstance(self.kind, AllRows):
            return n_rows, n_rows
        most = n_rows // 2 if isinstance(self.kind, UniformSampling) else n_rows
        return least, min(max(most, least), self.inputs.choice.most)

    def is_offered(self, size: int) -> bool:
        """Whether no single row that the draw may miss matters too much; by scores such rows are drawn."""
        return not isinstance(self.kind, UniformSampling) or self.heaviest(size) <= MOST_HEAVY

    def heaviest(self, size: int) -> float:
        """Give the largest weight times leverage of a row that the draw may miss."""
        return self.inputs.law.heaviest(self._joined(size)[1])

    def first_order(self, size: int) -> float:
        """Predict the mean excess where errors are small."""
        if isinstance(self.kind, AllRows) and self.step is None:
            return 0.0
        _, chances, step = self._joined(size)
        return self.inputs.law.first_order(chances, step)

    def forecast(self, size: int) -> Forecast:
        """Rehearse it."""
        if isinstance(self.kind, AllRows) and self.step is None:
            return Forecast.none()
        share, chances, step = self._joined(size)
        return forecast(self.inputs.law, chances, step, share, np.random.default_rng([self.inputs.seed, 7]))

    def choice(self, size: int, expected: Forecast) -> Choice:
        """Say what so many draws send, beside what they are expected to lose."""
        sent, most = round(self._bytes(size)), math.ceil(self.most_bytes(size))
        share = self._joined(size)[0]
        return Choice(
            self._sampler(size), self._solver, share, sent, most, self.rounds, expected.mean, expected.one_run
        )

    @property
    def fixed_bytes(self) -> float:
        """Give what it sends beside codes of rows, with the fewest draws."""
        codes = 0.0
        if self.step is not None:
            codes = sum(self._lengths(self.sizes[0])[0].at(self.step).by_party.values()) * self._n_sent(self.sizes[0])
        return self._bytes(self.sizes[0]) - 0.9 * codes

    def most_bytes(self, size: int) -> float:
        """Give the bytes that a plan counts with."""
        scaled = [columns for columns in self.inputs.pilot.columns.values() if isinstance(columns, ScaledRows)]
        # As much again as is expected.
        unseen = 0.0 if self.step is None else sum(columns.unseen_bytes(size) for columns in scaled)
        return self._bytes(size) * (1 + self._margin(size)) + unseen

    def _sampler(self, size: int) -> AnySampler:
        return self.kind if isinstance(self.kind, AllRows) else replace(self.kind, size=size)

    def _bytes(self, size: int) -> float:
        return sum(message.bytes for message in self.messages(size))

    @cached_property
    def _grid(self) -> Floats:
        return np.unique(np.geomspace(*self.sizes, GRID).astype(np.int64).clip(self.sizes[0])).astype(np.float64)

    @cached_property
    def _most_bytes(self) -> Floats:
        return np.array([self.most_bytes(int(size)) for size in self._grid])

    def _margin(self, size: int) -> float:
        rows, scores = self._lengths(size)
        coded = [] if self.step is None else [rows.at(self.step)]
        coded += [] if scores is None else [scores]
        n_sent = self._n_sent(size)
        return max(SURE * max((each.relative_error(n_sent) for each in coded), default=0.0), LEAST_MARGIN)

    def _drawn(self, size: int) -> Floats:
        return chances_of(self._sampler(size), self.inputs.pilot, self.inputs.roster)

    def _n_sent(self, size: int) -> float:
        """How many rows so many draws are expected to give."""
        pilot = self.inputs.pilot
        if isinstance(self.kind, ImportanceSampling):
            return min(float((1 / pilot.chances) @ self._drawn(size)), float(size))
        return float(size)

    def _joined(self, size: int) -> tuple[float, Floats, float | None]:
        """Give the pilot's share in the coreset, and the chances and the step that the whole of it is as good as.

        A sum over both, each weighed by its share, varies as one over rows that are drawn with these chances.
        """
        own, pilot = self._drawn(size), self.inputs.pilot
        if self.step is None or isinstance(self.kind, AllRows):
            return 0.0, own, self.step
        share = pilot_share(len(pilot.chances), self._n_sent(size))
        variance = (1 - share) ** 2 * (1 / own - 1) + share**2 * (1 / pilot.chances - 1)
        step = math.sqrt((1 - share) * self.step**2 + share * pilot.step**2)
        return share, 1 / (1 + variance), step

    def _lengths(self, size: int) -> tuple[RowLengths, Lengths | None]:
        """Give the lengths of rows as so many draws give them, or about as many: more draws give lighter rows."""
        inputs, alike = self.inputs, ALIKE ** round(math.log(size, ALIKE))
        if (self.kind, alike) not in inputs.lengths:  # the same whatever the step
            shares = self._drawn(min(alike, self.sizes[1])) / inputs.pilot.chances
            rows = row_lengths(inputs.pilot, shares, np.random.default_rng(0))
            by_scores = isinstance(self.kind, ImportanceSampling)
            scores = score_lengths(inputs.pilot, inputs.roster.names, shares) if by_scores else None
            inputs.lengths[self.kind, alike] = rows, scores
        return inputs.lengths[self.kind, alike]


Way = tuple[Arm, int]


def pilot_share(n_pilot: float, n_drawn: float) -> float:
    """Say which share of the coreset's weight a pilot's rows have: as many of all rows as there are of them."""
    return n_pilot / (n_pilot + n_drawn)


def all_arms(inputs: PlanInputs, max_rounds: int | None) -> list[Arm]:
    """List every sampler with every step, of those that may be chosen and need no more rounds."""
    choice, samplers = inputs.choice, (UniformSampling(1), planned_draw(inputs.task, 1), AllRows())
    kinds = [kind for kind in samplers if not (choice.evenly and isinstance(kind, ImportanceSampling))]
    kinds = [kind for kind in kinds if not isinstance(kind, AllRows) or inputs.roster.n_rows <= choice.most]
    steps = (*STEPS, None) if "central" in choice.solvers else STEPS
    arms = [Arm(inputs, kind, step) for kind in kinds for step in steps]
    return [arm for arm in arms if max_rounds is None or arm.rounds <= max_rounds]


@dataclass(frozen=True, eq=False)
class Found:
    """A way to go, with so many draws, and what was rehearsed of it.

    `beside` has what decided, of the best of each sampler: what they are expected to lose, or to send for a target.
    """

    arm: Arm
    size: int
    expected: Forecast
    beside: Mapping[AnySampler, float] = field(default_factory=dict)

    @property
    def choice(self) -> Choice:
        """What it is, as a plan has it."""
        return self.arm.choice(self.size, self.expected)

    @property
    def factor(self) -> float:
        """By how much a rehearsal differs from the first order."""
        first = self.arm.first_order(self.size)
        return self.expected.mean.mean / first if first > 0 and math.isfinite(first) else 1.0


def best_within(arms: Sequence[Arm], budget: float) -> Found | None:
    """Find what has the least excess within a budget: of the ways that are best in first order, by a rehearsal."""
    fitting = _offered([(arm, size) for arm in arms if (size := arm.within(budget)) is not None])
    return _rehearsed(_best_of_each(fitting))


def cheapest_meeting(arms: Sequence[Arm], target: float) -> Found | None:
    """Find what meets a target with the fewest bytes: by the first order, corrected by a rehearsal of what it found."""
    aim = target
    for _ in range(4):
        fitting = _offered([(arm, size) for arm in arms if (size := fewest_meeting(arm, aim)) is not None])
        ordered = sorted(((arm.most_bytes(size), arm, size) for arm, size in fitting), key=lambda each: each[0])
        if not ordered:
            return None
        _, arm, size = ordered[0]
        tried = Found(arm, size, arm.forecast(size), {arm.kind: sent for sent, arm, _ in reversed(ordered)})
        if tried.expected.mean.mean <= target:
            return tried
        aim *= 0.97 * target / tried.expected.mean.mean
    return None


def fewest_meeting(arm: Arm, target: float) -> int | None:
    """Give the fewest draws that meet a target in first order; none where not even the most do."""
    least, most = arm.sizes
    if arm.first_order(most) > target:
        return None
    while most - least > max(1, least // 500):
        middle = (least + most) // 2
        least, most = (least, middle) if arm.first_order(middle) <= target else (middle, most)
    return least if arm.first_order(least) <= target else most


def _offered(ways: list[Way]) -> list[Way]:
    """Leave out even draws that may miss rows which matter too much, unless limits leave no other way."""
    return [(arm, size) for arm, size in ways if arm.is_offered(size)] or ways


def _best_of_each(ways: Sequence[Way]) -> list[Way]:
    """Take the best way by the first order of each sampler, with the steps next to it for the very best."""
    ordered = sorted(ways, key=lambda found: found[0].first_order(found[1]))
    best = {arm.kind: (arm, size) for arm, size in reversed(ordered)}
    return list(dict.fromkeys([*ordered[:REHEARSED], *best.values()]))


def _rehearsed(ways: Sequence[Way]) -> Found | None:
    found = [Found(arm, size, arm.forecast(size)) for arm, size in ways]
    found.sort(key=lambda each: each.expected.mean.mean)
    beside = {each.arm.kind: each.expected.mean.mean for each in reversed(found)}
    return dataclasses.replace(found[0], beside=beside) if found else None


def cheapest_of(arms: Sequence[Arm]) -> Found:
    """Find what sends the fewest bytes."""
    offered = _offered([(arm, arm.sizes[0]) for arm in arms])
    arm, size = min(offered, key=lambda each: each[0].most_bytes(each[1]))
    return Found(arm, size, arm.forecast(size))


def least_bytes(arms: Sequence[Arm]) -> int:
    """Give the smallest budget that something fits."""
    return math.ceil(min(arm.most_bytes(size) for arm, size in _offered([(arm, arm.sizes[0]) for arm in arms])))


def frontier(arms: Sequence[Arm], chosen: Found) -> tuple[Choice, ...]:
    """List what other budgets would buy, ascending, as far as more bytes buy less excess.

    That is the first order, off by the same factor as it is for the one chosen.
    """
    first = chosen.choice
    found = [first]
    for factor in FACTORS:
        within = [(arm, arm.within(factor * first.most_bytes)) for arm in arms]
        fitting = _offered([(arm, size) for arm, size in within if size is not None])
        best = min(fitting, key=lambda each: each[0].first_order(each[1]), default=None)
        if best is not None:
            expected = chosen.expected.scaled(chosen.factor * best[0].first_order(best[1]))
            found.append(best[0].choice(best[1], expected))
    cheaper = [other for other in found if other.bytes < first.bytes]
    better = [other for other in found if other.excess.mean < first.excess.mean and other.bytes > first.bytes]
    return tuple(sorted({choice.bytes: choice for choice in [*better, *cheaper, first]}.values(), key=_bytes))


def _bytes(choice: Choice) -> int:
    return choice.bytes


def _largest(sizes: Floats, amounts: Floats, limit: float) -> int | None:
    """Give the largest size whose amount is within a limit, where amounts ascend with sizes; None if there is none."""
    if amounts[0] > limit:
        return None
    return int(np.interp(limit, amounts, sizes))
