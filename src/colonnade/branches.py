"""How a planned run goes on after its pilot: a branch, within the caps on the job sheet."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Self

import msgspec

from colonnade.contracts import LinearTask, LogisticTask, Task
from colonnade.errors import InputError
from colonnade.messages import Message
from colonnade.protocol.caps import Branches
from colonnade.protocol.sheet import TakeBranch
from colonnade.routes import Ask, Route
from colonnade.sampling import AllRows, AnySampler, ImportanceSampling, UniformSampling
from colonnade.solvers import AnySolver, Central, CompactCentral

# Of a planned draw by scores: the share that is drawn evenly, and the step of rounded scores. Both optima are flat.
EVEN_SHARE, SCORE_STEP = 0.1, 0.8
Draw = Literal["scores", "evenly", "all"]
DRAWS: dict[Draw, type] = {"scores": ImportanceSampling, "evenly": UniformSampling, "all": AllRows}


def pilot_draw(task: Task[object], size: int, *, evenly: bool) -> ImportanceSampling | UniformSampling:
    """Say how the rows of a pilot are drawn."""
    return UniformSampling(size) if evenly else planned_draw(task, size)


def planned_draw(task: Task[object], size: int) -> ImportanceSampling:
    """Say how a plan, and its pilot, draw rows by scores."""
    sharpened = isinstance(task, LinearTask | LogisticTask)
    return ImportanceSampling(size, EVEN_SHARE, draws="distinct", round_scores=SCORE_STEP, sharpened=sharpened)


class Branch(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One way to go on: how rows are drawn, how many, unless all are taken, and by which step they are rounded, if any.

    It has no more words than that: what else a planned draw is, all sides know.
    """

    draw: Draw
    size: int | None
    step: float | None

    @classmethod
    def of(cls, sampler: AnySampler, solver: AnySolver) -> Self:
        """Name what a planner chose."""
        draw = next(draw for draw, kind in DRAWS.items() if isinstance(sampler, kind))
        return cls(draw, getattr(sampler, "size", None), getattr(solver, "step", None))

    def encoded(self) -> bytes:
        """Give the bytes that are told to all parties."""
        return msgspec.msgpack.encode(self)

    def sampler(self, task: Task[object]) -> AnySampler:
        """Say how rows are drawn."""
        if (self.draw == "all") != (self.size is None):
            raise InputError(f"A branch draws {self.draw}, {self.size} rows. Run the same version on all sides.")
        if self.size is None:
            return AllRows()
        return planned_draw(task, self.size) if self.draw == "scores" else UniformSampling(self.size)

    @property
    def solver(self) -> Central | CompactCentral:
        """How the model is learned."""
        return Central() if self.step is None else CompactCentral(self.step)


_branches: msgspec.msgpack.Decoder[Branch] = msgspec.msgpack.Decoder(Branch)


@dataclass(frozen=True)
class Branching(Route):
    """A branch is taken: one that stays within the caps, and asks for nothing that was not judged by these.

    The parties hold so many rows; `route_of` gives what a server that takes a branch for the task may ask.
    """

    task: Task[object]
    caps: Branches
    n_rows: int
    route_of: Callable[[Branch], Route]

    def after(self, request: Message) -> Route | None:
        """Go on by the branch that is taken, if it may be."""
        return self._way(request.choice) if isinstance(request, TakeBranch) else None

    def next_asks(self) -> Iterator[Ask]:
        """Expect that a branch is taken."""
        yield Ask(TakeBranch, choice=_Within(self.caps, self._way))

    def asks(self) -> Iterator[Ask]:
        """List that, and what any branch asks for."""
        yield from self.next_asks()
        for branch in self._widest():
            yield from self.route_of(branch).asks()

    @property
    def can_end(self) -> bool:
        """No: a pilot alone is a plan."""
        return False

    def _way(self, choice: bytes) -> Route | None:
        try:
            branch = _branches.decode(choice)
            if not self._is_judged(branch):
                return None
            way = self.route_of(branch)
        except (msgspec.MsgspecError, InputError, RecursionError):
            return None
        size = self.n_rows if branch.size is None else branch.size
        return way if self.caps.least <= size <= self.caps.most else None

    def _widest(self) -> Iterator[Branch]:
        """List what a planner chooses between, as large as it may be."""
        for step in (None, CompactCentral().step):
            for draw in DRAWS:
                branch = Branch(draw, None if draw == "all" else self.caps.most, step)
                if self._is_judged(branch):
                    yield branch

    def _is_judged(self, branch: Branch) -> bool:
        """Tell whether an owner's policy has looked at such draws and such a solver."""
        by_scores = branch.draw == "scores"
        return _kind(branch.solver) in self.caps.solvers and not (by_scores and self.caps.evenly)


def _kind(solver: Central | CompactCentral) -> str:
    return str(solver.__struct_config__.tag)


@dataclass(frozen=True)
class _Within:
    """A choice that the caps allow."""

    caps: Branches
    way: Callable[[bytes], Route | None]

    def __call__(self, choice: bytes) -> bool:
        return self.way(choice) is not None

    def __str__(self) -> str:
        return f"one of {', '.join(self.caps.solvers)} on {self.caps.least:,} to {self.caps.most:,} rows"
