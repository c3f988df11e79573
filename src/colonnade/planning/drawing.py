"""Drawing: a sampler with any number of draws, and what all steps by which its rows may be rounded have in common."""

import math
from dataclasses import dataclass, field
from functools import cached_property

from msgspec.structs import replace

from colonnade.contracts import Roster
from colonnade.kernels.arrays import Floats
from colonnade.planning.code_lengths import Lengths, RowLengths, row_lengths, score_lengths
from colonnade.planning.laws import Law, chances_of
from colonnade.planning.pilot import PilotRows
from colonnade.planning.wire_sizes import MessageSize, sampling_messages, telling_messages
from colonnade.protocol.caps import Branches
from colonnade.protocol.splits import AnySplit
from colonnade.sampling import AllRows, AnySampler, ImportanceSampling, UniformSampling
from colonnade.tasks import PaperTask

# Sizes that are nearer to each other than this factor have rows of one length.
ALIKE = 3


@dataclass(frozen=True, eq=False)
class PlanInputs:
    """All that predictions are made of, and what may be chosen.

    A run of its own starts with the same framing as the pilot, in so many rounds; where the pilot's run goes on, that
    is None.
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

    @cached_property
    def telling(self) -> tuple[MessageSize, ...]:
        """What ends a run: every party is told its part of the model."""
        return tuple(telling_messages(self.task, self.roster))


@dataclass(frozen=True, eq=False)
class Drawn:
    """So many draws: the chances of the pilot's rows, the rows they are expected to give, and their bytes."""

    sampler: AnySampler
    chances: Floats
    n_rows: float
    rows: RowLengths
    scores: Lengths | None
    messages: tuple[MessageSize, ...]


@dataclass(frozen=True, eq=False)
class Drawing:
    """A sampler, whatever its size, and what was found of it so far."""

    inputs: PlanInputs
    kind: AnySampler
    _drawn: dict[int, Drawn] = field(default_factory=dict)
    _alike: dict[int, tuple[RowLengths, Lengths | None]] = field(default_factory=dict)

    @property
    def sizes(self) -> tuple[int, int]:
        """The fewest draws and the most: with more, all rows once would be better."""
        n_rows, choice = self.inputs.roster.n_rows, self.inputs.choice
        if isinstance(self.kind, AllRows):
            return n_rows, n_rows
        most = n_rows // 2 if isinstance(self.kind, UniformSampling) else n_rows
        return choice.least, min(max(most, choice.least), choice.most)

    def of(self, size: int) -> Drawn:
        """Give what is known of so many draws."""
        if size not in self._drawn:
            self._drawn[size] = self._of(size)
        return self._drawn[size]

    def _of(self, size: int) -> Drawn:
        inputs, sampler = self.inputs, self._sampler(size)
        chances, n_rows = chances_of(sampler, inputs.pilot, inputs.roster), float(size)
        if isinstance(self.kind, ImportanceSampling):
            n_rows = min(float((1 / inputs.pilot.chances) @ chances), n_rows)
        rows, scores = self._lengths(size)
        told = {} if scores is None else dict(scores.by_party)
        here = inputs.framing is None
        messages = sampling_messages(inputs.task, inputs.roster, sampler, inputs.pilot, round(n_rows), told, here=here)
        return Drawn(sampler, chances, n_rows, rows, scores, tuple(messages))

    def _sampler(self, size: int) -> AnySampler:
        return self.kind if isinstance(self.kind, AllRows) else replace(self.kind, size=size)

    def _lengths(self, size: int) -> tuple[RowLengths, Lengths | None]:
        """Give the lengths of rows as so many draws give them, or about as many: more draws give lighter rows."""
        by_scores, most = isinstance(self.kind, ImportanceSampling), self.sizes[1]
        alike = min(ALIKE ** round(math.log(size, ALIKE)), most) if by_scores else most
        if alike not in self._alike:
            pilot, roster = self.inputs.pilot, self.inputs.roster
            shares = chances_of(self._sampler(alike), pilot, roster) / pilot.chances
            scores = score_lengths(pilot, roster.names, shares) if by_scores else None
            self._alike[alike] = row_lengths(pilot, shares), scores
        return self._alike[alike]
