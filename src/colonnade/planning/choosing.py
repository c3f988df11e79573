"""Choosing: every sampler with any step, as many rows as a budget holds or a target needs, and the best of them.

Ways are compared by the law's first order, which costs little; the best of each sampler is rehearsed on the pilot.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby

import numpy as np

from colonnade.branches import Branch, planned_draw
from colonnade.kernels.arrays import Floats
from colonnade.planning.drawing import Drawing, PlanInputs
from colonnade.planning.forecast import Forecast, forecast
from colonnade.planning.records import Choice
from colonnade.planning.wire_sizes import (
    MessageSize,
    branch_messages,
    n_rounds,
    plain_messages,
    rounded_messages,
    sheet_messages,
)
from colonnade.sampling import AllRows, AnySampler, ImportanceSampling, UniformSampling
from colonnade.solvers import Central, CompactCentral
from colonnade.solvers.scaled_columns import ScaledRows

# Four steps for a factor of two: the excess is within some per cent of its least at the nearest.
STEPS = tuple(float(f"{step:.3g}") for step in 0.002 * 2.0 ** (np.arange(39) / 4))
# So far apart, in places, are those that are tried first; then those near the best of them.
APART = 4
# Rows that an even draw may miss have a weight times leverage of at most this; else rows are drawn by scores.
MOST_HEAVY = 0.3
# Standard errors that are kept between the bytes expected and a budget, and what is kept in any case; a run that would
# send more all the same rounds more coarsely, or leaves out rows.
SURE, LEAST_MARGIN = 1.5, 0.004
# A budget is used up to this part of it.
NEARLY = 0.002
# A rehearsal gives at least so much of the first order (0.63 was the least on the tables of benchmarks/promises.py).
LEAST_OF_FIRST_ORDER = 0.6
# Budgets of the frontier, in units of the chosen one.
FACTORS = (0.25, 0.5, 2.0, 4.0)


@dataclass(frozen=True, eq=False)
class Arm:
    """A way to draw rows and a way to send them, however many: rounded by `step`, or as they are if it is None."""

    drawing: Drawing
    step: float | None

    @property
    def kind(self) -> AnySampler:
        """How rows are drawn, however many."""
        return self.drawing.kind

    @property
    def _solver(self) -> Central | CompactCentral:
        return Central() if self.step is None else CompactCentral(self.step)

    @property
    def _inputs(self) -> PlanInputs:
        return self.drawing.inputs

    @property
    def rounds(self) -> int:
        """How many a run takes."""
        return self._inputs.framing_rounds + n_rounds(self.kind, self._inputs.roster.names)

    def messages(self, size: int) -> Iterator[MessageSize]:
        """List what so many draws send."""
        inputs, drawn, n_sent = self._inputs, self.drawing.of(size), round(self.drawing.of(size).n_rows)
        if inputs.framing is None:
            yield from branch_messages(inputs.roster, Branch.of(drawn.sampler, self._solver))
        else:
            yield from inputs.framing
            yield from sheet_messages(inputs.task, inputs.roster, inputs.split, drawn.sampler, self._solver)
        yield from inputs.telling
        yield from drawn.messages
        if self.step is None:
            yield from plain_messages(inputs.task, inputs.roster, n_sent)
        else:
            lengths = dict(drawn.rows.at(self.step).by_party)
            yield from rounded_messages(inputs.task, inputs.roster, inputs.pilot.columns, n_sent, self.step, lengths)

    def within(self, budget: float) -> int | None:
        """Give the most draws whose bytes stay below a budget, or nearly; none where not even the fewest do."""
        fewest, high = self.sizes
        most = self.most_bytes(high)
        if most <= budget:
            return high
        for low in (max(fewest, int(high * budget / most) // 2), fewest):
            least = self.most_bytes(low)
            if least <= budget:
                break
            high, most = low, least
        else:
            return None
        while high - low > 1 and least < budget * (1 - NEARLY):
            # Bytes are nearly straight in the number of draws.
            size = low + int((high - low) * (budget * (1 - NEARLY / 2) - least) / (most - least))
            size = min(max(size, low + 1), high - 1)
            sent = self.most_bytes(size)
            low, least, high, most = (size, sent, high, most) if sent <= budget else (low, least, size, sent)
        return low

    @property
    def sizes(self) -> tuple[int, int]:
        """The fewest draws and the most."""
        return self.drawing.sizes

    def is_offered(self, size: int) -> bool:
        """Whether no single row that the draw may miss matters too much; by scores such rows are drawn."""
        return not isinstance(self.kind, UniformSampling) or self.heaviest(size) <= MOST_HEAVY

    def heaviest(self, size: int) -> float:
        """Give the largest weight times leverage of a row that the draw may miss."""
        return self._inputs.law.heaviest(self._joined(size)[1])

    def first_order(self, size: int) -> float:
        """Predict the mean excess where errors are small."""
        if isinstance(self.kind, AllRows) and self.step is None:
            return 0.0
        _, chances, step = self._joined(size)
        return self._inputs.law.first_order(chances, step)

    def forecast(self, size: int) -> Forecast:
        """Rehearse it."""
        if isinstance(self.kind, AllRows) and self.step is None:
            return Forecast.none(self._inputs.law)
        share, chances, step = self._joined(size)
        return forecast(self._inputs.law, chances, step, share, np.random.default_rng([self._inputs.seed, 7]))

    def choice(self, size: int, expected: Forecast) -> Choice:
        """Say what so many draws send, beside what they are expected to lose."""
        sent, most = round(self._bytes(size)), math.ceil(self.most_bytes(size))
        drawn, share = self.drawing.of(size), self._joined(size)[0]
        lengths = {} if self.step is None else dict(drawn.rows.at(self.step).by_party)
        return Choice(
            drawn.sampler, self._solver, share, sent, most, lengths, self.rounds, expected.mean, expected.one_run
        )

    @property
    def fixed_bytes(self) -> float:
        """Give what it sends beside codes of rows, with the fewest draws."""
        codes, drawn = 0.0, self.drawing.of(self.sizes[0])
        if self.step is not None:
            codes = sum(drawn.rows.at(self.step).by_party.values()) * drawn.n_rows
        return self._bytes(self.sizes[0]) - 0.9 * codes

    def most_bytes(self, size: int) -> float:
        """Give the bytes that a plan counts with."""
        scaled = [columns for columns in self._inputs.pilot.columns.values() if isinstance(columns, ScaledRows)]
        # As much again as is expected.
        unseen = 0.0 if self.step is None else sum(columns.unseen_bytes(size) for columns in scaled)
        return self._bytes(size) * (1 + self._margin(size)) + unseen

    def _bytes(self, size: int) -> float:
        return sum(message.bytes for message in self.messages(size))

    def _margin(self, size: int) -> float:
        drawn = self.drawing.of(size)
        coded = [] if self.step is None else [drawn.rows.at(self.step)]
        coded += [] if drawn.scores is None else [drawn.scores]
        return max(SURE * max((each.relative_error(drawn.n_rows) for each in coded), default=0.0), LEAST_MARGIN)

    def _joined(self, size: int) -> tuple[float, Floats, float | None]:
        """Give the pilot's share in the coreset, and the chances and the step that the whole of it is as good as.

        A sum over both, each weighed by its share, varies as one over rows that are drawn with these chances.
        """
        drawn, pilot = self.drawing.of(size), self._inputs.pilot
        if self.step is None or isinstance(self.kind, AllRows):
            return 0.0, drawn.chances, self.step
        share = pilot_share(len(pilot.chances), drawn.n_rows)
        variance = (1 - share) ** 2 * (1 / drawn.chances - 1) + share**2 * (1 / pilot.chances - 1)
        variance = np.where(drawn.chances < 1, variance, 0.0)
        step = math.sqrt((1 - share) * self.step**2 + share * pilot.step**2)
        return share, 1 / (1 + variance), step


@dataclass(frozen=True, eq=False)
class Way:
    """An arm with so many draws."""

    arm: Arm
    size: int

    @cached_property
    def first_order(self) -> float:
        """The mean excess, predicted where errors are small."""
        return self.arm.first_order(self.size)

    @cached_property
    def most_bytes(self) -> float:
        """The bytes that a plan counts with."""
        return self.arm.most_bytes(self.size)

    @cached_property
    def is_offered(self) -> bool:
        """Whether no single row that the draw may miss matters too much."""
        return self.arm.is_offered(self.size)


def pilot_share(n_pilot: float, n_drawn: float) -> float:
    """Say which share of the coreset's weight a pilot's rows have: as many of all rows as there are of them."""
    return n_pilot / (n_pilot + n_drawn)


def all_arms(inputs: PlanInputs, max_rounds: int | None) -> list[Arm]:
    """List every sampler with every step, of those that may be chosen and need no more rounds."""
    choice, samplers = inputs.choice, (UniformSampling(1), planned_draw(inputs.task, 1), AllRows())
    kinds = [kind for kind in samplers if not (choice.evenly and isinstance(kind, ImportanceSampling))]
    kinds = [kind for kind in kinds if not isinstance(kind, AllRows) or inputs.roster.n_rows <= choice.most]
    steps = (*STEPS, None) if "central" in choice.solvers else STEPS
    arms = [Arm(drawing, step) for drawing in (Drawing(inputs, kind) for kind in kinds) for step in steps]
    return [arm for arm in arms if max_rounds is None or arm.rounds <= max_rounds]


@dataclass(frozen=True, eq=False)
class Found:
    """A way to go, and what was rehearsed of it.

    `beside` has what decided, of the best of each sampler: what they are expected to lose, or to send for a target.
    """

    way: Way
    expected: Forecast
    beside: Mapping[AnySampler, float] = field(default_factory=dict)

    @classmethod
    def rehearsed(cls, way: Way) -> "Found":
        """Rehearse a way."""
        return cls(way, way.arm.forecast(way.size))

    @property
    def choice(self) -> Choice:
        """What it is, as a plan has it."""
        return self.way.arm.choice(self.way.size, self.expected)

    @property
    def factor(self) -> float:
        """By how much a rehearsal differs from the first order."""
        first = self.way.first_order
        return self.expected.mean.mean / first if first > 0 and math.isfinite(first) else 1.0


def best_within(arms: Sequence[Arm], budget: float) -> Found | None:
    """Find what has the least excess within a budget: of the ways that are best in first order, by a rehearsal."""
    ways = _best_of_each(arms, lambda arm: arm.within(budget), _first_order)
    beside = {way.arm.kind: way.first_order for way in ways}
    best: Found | None = None
    for way in sorted(ways, key=_first_order):
        if best is None or LEAST_OF_FIRST_ORDER * way.first_order < best.expected.mean.mean:
            found = Found.rehearsed(way)
            beside[way.arm.kind] = found.expected.mean.mean
            best = found if best is None or found.expected.mean.mean < best.expected.mean.mean else best
    return None if best is None else replace(best, beside=beside)


def cheapest_meeting(arms: Sequence[Arm], target: float) -> Found | None:
    """Find what meets a target with the fewest bytes: by the first order, corrected by a rehearsal of what it found."""
    aim = target
    for _ in range(4):
        cheapest = _best_of_each(arms, lambda arm, aim=aim: fewest_meeting(arm, aim), _most_bytes)  # type: ignore[misc]
        if not cheapest:
            return None
        beside = {way.arm.kind: way.most_bytes for way in cheapest}
        tried = replace(Found.rehearsed(min(cheapest, key=_most_bytes)), beside=beside)
        if tried.expected.mean.mean <= target:
            return tried
        aim = 0.97 * tried.way.first_order * target / tried.expected.mean.mean
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


def _best_of_each(arms: Sequence[Arm], size_of: Callable[[Arm], int | None], loss: Callable[[Way], float]) -> list[Way]:
    """Find the best way of each drawing, with as many draws as `size_of` gives, if any."""
    found = [_best_of(list(some), size_of, loss) for _, some in groupby(arms, key=lambda arm: arm.drawing)]
    return _offered([way for way in found if way is not None])


def _best_of(arms: Sequence[Arm], size_of: Callable[[Arm], int | None], loss: Callable[[Way], float]) -> Way | None:
    """Find the best of arms with ascending steps, and plain rows: as steps grow, losses fall, and then grow.

    Even draws that may miss rows which matter too much count only where there are no others.
    """
    found: dict[int, Way] = {}
    last = len(arms) - 1
    places, best = {0, last, *range(last - 1, 0, -APART)}, 0
    for near in (APART // 2, APART // 4, 0):
        for place in places - found.keys():
            if 0 <= place <= last and (size := size_of(arms[place])) is not None:
                found[place] = Way(arms[place], size)
        if not found:
            return None
        best = min(found, key=lambda place: (not found[place].is_offered, loss(found[place])))
        places = {best - near, best + near}
    return found[best]


def _offered(ways: list[Way]) -> list[Way]:
    """Leave out even draws that may miss rows which matter too much, unless limits leave no other way."""
    return [way for way in ways if way.is_offered] or ways


def cheapest_of(arms: Sequence[Arm]) -> Found:
    """Find what sends the fewest bytes."""
    return Found.rehearsed(min(_smallest(arms), key=_most_bytes))


def least_bytes(arms: Sequence[Arm]) -> int:
    """Give the smallest budget that something fits."""
    return math.ceil(min(way.most_bytes for way in _smallest(arms)))


def _smallest(arms: Sequence[Arm]) -> list[Way]:
    return _offered([Way(arm, arm.sizes[0]) for arm in arms])


def frontier(arms: Sequence[Arm], chosen: Found) -> tuple[Choice, ...]:
    """List what other budgets would buy, ascending, as far as more bytes buy less excess.

    That is the first order, off by the same factor as it is for the one chosen.
    """
    first = chosen.choice
    found = [first]
    for factor in FACTORS:
        budget = factor * first.most_bytes
        ways = _best_of_each(arms, lambda arm, budget=budget: arm.within(budget), _first_order)  # type: ignore[misc]
        if ways:
            best = min(ways, key=_first_order)
            expected = chosen.expected.scaled(chosen.factor * best.first_order)
            found.append(best.arm.choice(best.size, expected))
    cheaper = [other for other in found if other.bytes < first.bytes]
    better = [other for other in found if other.excess.mean < first.excess.mean and other.bytes > first.bytes]
    return tuple(sorted({choice.bytes: choice for choice in [*better, *cheaper, first]}.values(), key=_bytes))


def _bytes(choice: Choice) -> int:
    return choice.bytes


def _first_order(way: Way) -> float:
    return way.first_order


def _most_bytes(way: Way) -> float:
    return way.most_bytes
