"""What a method is and gives, and the way that all but SAGA share: learn through the federation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from colonnade.paper.design import Draw
from colonnade.paper.drawing import drawn
from colonnade.paper.problem import Problem
from colonnade.paper.variants import Variant
from colonnade.run import Run
from colonnade.solvers import AnySolver


@dataclass(frozen=True)
class Outcome:
    """A model and what was sent for it, from drawing the rows on; epochs are SAGA's."""

    model: Any
    units: int
    bytes: int
    epochs: int | None = None


Learn = Callable[[Problem, Variant, Draw, int], Outcome]


@dataclass(frozen=True)
class Method:
    """A solver of the paper's tables, to be used on all rows, on coresets and on uniform samples.

    Parameters
    ----------
    name : str
        As the paper calls it.
    learn : callable
        ``(problem, variant, draw, seed) -> Outcome``.
    quick_repeats : int
        How many repeats a quick run affords.
    is_slow : bool
        A quick run then leaves out all rows and all sizes but the first.
    fits_all_rows : callable
        Whether it can learn on all rows, in a variant.
    repeats_on_all_rows : bool
        Whether a second fit of all rows is affordable and differs from the first.
    """

    name: str
    learn: Learn
    quick_repeats: int
    is_slow: bool = False
    fits_all_rows: Callable[[Variant], bool] = lambda _: True
    repeats_on_all_rows: bool = False


def through_federation(solver: AnySolver) -> Learn:
    """Draw, and learn by a solver of the library.

    As written, the library does all of it. The authors drew in one process without any protocol: their draw is made
    offline, and charged with what the protocol sends that draws as many rows.
    """

    def learn(problem: Problem, variant: Variant, draw: Draw, seed: int) -> Outcome:
        task, federation = problem.task(variant), problem.federation
        run: Run[Any]
        if variant.by_protocol or not draw.prefix:
            run = federation.fit(task, sampler=draw.sampler(), solver=solver, seed=seed)
            return Outcome(run.model, run.ledger.units, run.ledger.bytes)
        run = federation.fit(task, coreset=drawn(problem, variant, draw, seed), solver=solver, seed=seed)
        drawing, solving = problem.drawing_sent(draw), run.ledger.by_phase()["solving"]
        return Outcome(run.model, drawing.units + solving.units, drawing.bytes + solving.bytes)

    return learn
