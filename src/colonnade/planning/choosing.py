"""Choosing: every sampler with every step, as many rows as a budget holds or a target needs, and the best of them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from msgspec.structs import replace

from colonnade.branches import Branch
from colonnade.contracts import Roster
from colonnade.kernels.arrays import Floats
from colonnade.kernels.regression_law import Draw
from colonnade.planning.code_lengths import Lengths, row_lengths, score_lengths
from colonnade.planning.laws import Law, draw_of
from colonnade.planning.pilot import PilotRows, ScaledRows, least_size
from colonnade.planning.records import Choice, Excess
from colonnade.planning.wire_sizes import (
    MessageSize,
    branch_messages,
    n_rounds,
    plain_messages,
    rounded_messages,
    sampling_messages,
    sheet_messages,
)
from colonnade.protocol.splits import AnySplit
from colonnade.sampling import AllRows, AnySampler, ImportanceSampling, UniformSampling
from colonnade.solvers import Central, CompactCentral
from colonnade.tasks import PaperTask

STEPS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9, 1.1, 1.4)
SAMPLERS = (
    UniformSampling(1),
    ImportanceSampling(1, round_scores=True),
    ImportanceSampling(1, 0.3, round_scores=True),
    AllRows(),
)
# Standard errors that a budget keeps away from the bytes expected, and what is kept in any case. They are known from
# eight parts of the pilot: by Student's law with seven degrees of freedom, 4 of them are exceeded once in 400 pilots.
SURE, LEAST_MARGIN = 4.0, 0.005
# So many sizes tell how bytes grow with them.
GRID = 8
# Budgets of the frontier, in units of the chosen one.
FACTORS = (0.25, 0.5, 2.0, 4.0)


@dataclass(frozen=True, eq=False)
class PlanInputs:
    """All that predictions are made of.

    A run of its own starts with the same framing as the pilot, in so many rounds; where the pilot's run goes on, that
    is None. `score_lengths` are those found so far, by sampler.
    """

    task: PaperTask
    roster: Roster
    split: AnySplit | None
    pilot: PilotRows
    law: Law
    framing: tuple[MessageSize, ...] | None
    framing_rounds: int
    score_lengths: dict[AnySampler, Lengths] = field(default_factory=dict)


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
        """List what so many rows send."""
        inputs, step = self.inputs, self.step
        scores = {} if self._scores is None else dict(self._scores.by_party)
        if inputs.framing is None:
            yield from branch_messages(inputs.task, inputs.roster, Branch(self._sampler(size), self._solver))
        else:
            yield from inputs.framing
            yield from sheet_messages(inputs.task, inputs.roster, inputs.split, self._sampler(size), self._solver)
        yield from sampling_messages(inputs.task, inputs.roster, self._sampler(size), inputs.pilot, scores)
        if self._rows is None or step is None:
            yield from plain_messages(inputs.task, inputs.roster, size)
        else:
            yield from rounded_messages(inputs.roster, inputs.pilot, size, step, dict(self._rows.by_party))

    def choice(self, size: int) -> Choice:
        """Predict what so many rows send and lose."""
        sent, most = round(self._bytes(size)), math.ceil(self._most(size))
        return Choice(self._sampler(size), self._solver, sent, most, self.rounds, self._interval(size))

    def within(self, budget: float) -> int | None:
        """Give the most rows whose bytes stay below a budget; none where not even the fewest do."""
        size = _largest(self._grid, self._most_bytes, budget)
        # The curve between two sizes of the grid is not quite straight.
        while size is not None and self._most(size) > budget:
            size = size - max(1, size // 1000) if size > self.sizes[0] else None
        return size

    def meeting(self, target: float) -> int | None:
        """Give the fewest rows that meet a target; none where not even the most do."""
        least, most = self.sizes
        if self._excess(most) > target:
            return None
        while most - least > max(1, least // 1000):
            middle = (least + most) // 2
            least, most = (least, middle) if self._excess(middle) <= target else (middle, most)
        return least if self._excess(least) <= target else most

    @property
    def sizes(self) -> tuple[int, int]:
        """The fewest rows and the most: with more, all rows once would be better."""
        n_rows, least = self.inputs.roster.n_rows, least_size(self.inputs.task, self.inputs.roster)
        return (n_rows, n_rows) if isinstance(self.kind, AllRows) else (least, max(n_rows, least))

    def _sampler(self, size: int) -> AnySampler:
        return self.kind if isinstance(self.kind, AllRows) else replace(self.kind, size=size)

    def _bytes(self, size: int) -> float:
        return sum(message.bytes for message in self.messages(size))

    def _most(self, size: int) -> float:
        scaled = [columns for columns in self.inputs.pilot.columns.values() if isinstance(columns, ScaledRows)]
        # As much again as is expected.
        unseen = 0.0 if self.step is None else sum(columns.unseen_bytes(size) for columns in scaled)
        return self._bytes(size) * (1 + self._margin(size)) + unseen

    @cached_property
    def _grid(self) -> Floats:
        return np.unique(np.geomspace(*self.sizes, GRID).astype(np.int64)).astype(np.float64)

    @cached_property
    def _most_bytes(self) -> Floats:
        return np.array([self._most(int(size)) for size in self._grid])

    def _margin(self, size: int) -> float:
        coded = [lengths for lengths in (self._scores, self._rows) if lengths is not None]
        return max(SURE * max((lengths.relative_error(size) for lengths in coded), default=0.0), LEAST_MARGIN)

    def _excess(self, size: int) -> float:
        law = self.inputs.law
        if isinstance(self.kind, AllRows):
            return 0.0 if self.step is None else law.excess_of_all(size, self.step)
        return law.excess(self._draw, size, self.step)

    def _interval(self, size: int) -> Excess:
        """Put a 95 % interval around the excess: it is a product, so the interval is one of factors."""
        excess = self._excess(size)
        factor = math.exp(1.96 * self.inputs.law.relative_error(self._draw, self.step))
        return Excess(excess, excess / factor, excess * factor)

    @cached_property
    def _draw(self) -> Draw:
        return draw_of(self.kind, self.inputs.pilot)

    @cached_property
    def _scores(self) -> Lengths | None:
        if not isinstance(self.kind, ImportanceSampling):
            return None
        inputs = self.inputs
        if self.kind not in inputs.score_lengths:  # the same whatever the step
            inputs.score_lengths[self.kind] = score_lengths(inputs.pilot, inputs.roster.names, self._shares)
        return inputs.score_lengths[self.kind]

    @cached_property
    def _rows(self) -> Lengths | None:
        if self.step is None:
            return None
        return row_lengths(self.inputs.pilot, self._shares, self.step, np.random.default_rng(0))

    @property
    def _shares(self) -> Floats:
        """How often rows of the pilot stand for such as would be drawn."""
        by_scores = isinstance(self.kind, ImportanceSampling)
        return self.inputs.pilot.weights / self._draw.weights if by_scores else self.inputs.law.weights


def all_arms(inputs: PlanInputs, max_rounds: int | None) -> list[Arm]:
    """List every sampler with every step, of those that need no more rounds."""
    arms = [Arm(inputs, kind, step) for kind in SAMPLERS for step in (*STEPS, None)]
    return [arm for arm in arms if max_rounds is None or arm.rounds <= max_rounds]


def best_within(arms: Sequence[Arm], budget: float) -> tuple[Arm, int] | None:
    """Find what has the least excess expected within a budget, and its size."""
    fitting = [(arm, size) for arm in arms if (size := arm.within(budget)) is not None]
    return min(fitting, key=lambda found: found[0].choice(found[1]).excess.mean, default=None)


def cheapest_meeting(arms: Sequence[Arm], target: float) -> tuple[Arm, int] | None:
    """Find what meets a target with the fewest bytes, and its size."""
    fitting = [(arm, size) for arm in arms if (size := arm.meeting(target)) is not None]
    return min(fitting, key=lambda found: found[0].choice(found[1]).bytes, default=None)


def least_bytes(arms: Sequence[Arm]) -> int:
    """Give the smallest budget that something fits."""
    return min(arm.choice(arm.sizes[0]).most_bytes for arm in arms)


def frontier(arms: Sequence[Arm], chosen: Choice) -> tuple[Choice, ...]:
    """List what other budgets would buy, ascending, as far as more bytes buy less excess."""
    found = [chosen]
    for factor in FACTORS:
        best = best_within(arms, factor * chosen.most_bytes)
        if best is not None:
            found.append(best[0].choice(best[1]))
    cheaper = [other for other in found if other.bytes < chosen.bytes]
    better = [other for other in found if other.excess.mean < chosen.excess.mean and other.bytes > chosen.bytes]
    return tuple(sorted({choice.bytes: choice for choice in [*better, *cheaper, chosen]}.values(), key=_bytes))


def _bytes(choice: Choice) -> int:
    return choice.bytes


def _largest(sizes: Floats, amounts: Floats, limit: float) -> int | None:
    """Give the largest size whose amount is within a limit, where amounts ascend with sizes; None if there is none."""
    if amounts[0] > limit:
        return None
    return int(np.interp(limit, amounts, sizes))
