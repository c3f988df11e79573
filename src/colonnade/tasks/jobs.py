"""Whole jobs as scripts: agree on rows and learn, or select rows and apply a model to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

import numpy as np

from colonnade.contracts import (
    JobView,
    LogisticTask,
    Model,
    Predictions,
    Report,
    Roster,
    Rounding,
    Sampler,
    Script,
    Solution,
    Solver,
    Task,
)
from colonnade.coreset import Coreset, Evidence, Precision, StandardErrors, listed
from colonnade.errors import InputError
from colonnade.evaluation.classes.server import deliver_classes
from colonnade.evaluation.delivery import deliver
from colonnade.evaluation.telling import tell_model
from colonnade.kernels.arrays import Rows
from colonnade.kernels.class_predictions import ClassPredictions
from colonnade.kernels.selections import ListedRows, Selection
from colonnade.protocol.conductor import reading
from colonnade.protocol.splits import AnySplit
from colonnade.protocol.viewing import agree_on_view
from colonnade.sampling.committed.opening import open_rows
from colonnade.sampling.rules.classes import tells_classes
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.sampling.selecting import use_counted_rows, use_even_draw, use_rows

M = TypeVar("M")
A = TypeVar("A", bound=Model[Any])
R = TypeVar("R", bound=Report)


@dataclass(frozen=True, eq=False)
class JobResult(Generic[M]):
    """What a job gives: the coreset, the model, what is worth knowing of how it was found, and what its rows say.

    Sampler and solver too, where they were chosen within the run, and why. What rows say may be there, or how to find
    it.
    """

    coreset: Coreset
    model: M
    facts: Mapping[str, float]
    precision: Precision | Callable[[], Precision | None] | None = None
    chosen: tuple[Any, Any] | None = None
    why: str | None = None
    errors: StandardErrors | Callable[[], StandardErrors] | None = None


def draw(
    task: Task[object], sampler: Sampler, split: AnySplit | None, roster: Roster, seed: int
) -> Script[JobResult[None]]:
    """Agree on a coreset for a task, and learn nothing."""
    view = yield from agree_on_view(roster, split, "train", task.scaling)
    if isinstance(task, LogisticTask):
        yield from task.settled(roster, rows_told(task, sampler, roster))
    coreset = yield from sampler.sample(roster, task.score_rule(), sampling_rng(seed), view.row_weights)
    return JobResult(coreset, None, {})


def learn(
    task: Task[A],
    source: Sampler | Coreset,
    solver: Solver,
    split: AnySplit | None,
    roster: Roster,
    seed: int,
) -> Script[JobResult[A]]:
    """Let all parties look at their tables alike, and learn."""
    view = yield from agree_on_view(roster, split, "train", task.scaling)
    if isinstance(task, LogisticTask):
        task = yield from task.settled(roster, rows_told(task, source, roster))
    return (yield from learn_in_view(task, source, solver, view, roster, seed))


def rows_told(task: Task[object], source: Sampler | Coreset, roster: Roster) -> int:
    """Say of how many rows a draw tells the class."""
    if isinstance(source, Coreset) or not tells_classes(source.scored_by(task.score_rule(), roster)):
        return 0
    return int(getattr(source, "size", 0))


def learn_in_view(
    task: Task[A], source: Sampler | Coreset, solver: Solver, view: JobView, roster: Roster, seed: int
) -> Script[JobResult[A]]:
    """Agree on a coreset, or share one made before (Theorem 2.5), and learn on it."""
    if isinstance(source, Coreset):
        _check_held_out(source, view)
        yield from use_rows(roster, source.rows)
        coreset = listed(source)
    else:
        coreset = yield from source.sample(roster, task.score_rule(), sampling_rng(seed), view.row_weights)
    solution = yield from solver.solve(task, roster, coreset, solving_rng(seed))
    return (yield from told(task, solution, coreset, view, roster))


def told(task: Task[A], solution: Solution[A], coreset: Coreset, view: JobView, roster: Roster) -> Script[JobResult[A]]:
    """Tell parties their parts of the model, and find what the rows say of it, unless that may wait."""
    model = task.in_own_units(solution.model, view)
    yield from tell_model(model.parts(roster))
    errors = None if solution.errors is None else partial(solution.errors, view)
    if not solution.later:
        precision = None if solution.precision is None else solution.precision()
        return JobResult(coreset, model, solution.facts, precision, errors=None if errors is None else errors())
    # After the run nothing of what follows from what parties sent may go wrong unseen either.
    precision_later = None if solution.precision is None else partial(reading, roster.names, solution.precision)
    errors_later = None if errors is None else partial(reading, roster.names, errors)
    return JobResult(coreset, model, solution.facts, precision_later, errors=errors_later)


def open_commitments(
    task: Task[object],
    rule: IntegerScores,
    split: AnySplit | None,
    roster: Roster,
    evidence: Evidence,
    rows: Rows,
) -> Script[Evidence]:
    """Let all parties look at their tables as in the run, and open rows of what they committed to then."""
    yield from agree_on_view(roster, split, "train", task.scaling)
    return (yield from open_rows(roster, rule, evidence, rows))


def predict(
    model: Model[Any], rows: Rows | None, to: str | None, bits: int | None, roster: Roster
) -> Script[Predictions]:
    """Predict the given rows (ascending), or all."""
    selected = yield from _asked_for(rows, roster)
    predictions = yield from model.predictions(roster, selected, rounding_of(bits, roster, shared_seed(0)))
    if to is None:
        return predictions
    if isinstance(predictions, ClassPredictions):
        yield from deliver_classes(to, selected, predictions)
    else:
        yield from deliver(to, selected, predictions)
    return predictions


def deliver_in_secret(model: Model[Any], rows: Rows | None, to: str, roster: Roster) -> Script[None]:
    """Let a party learn predictions of the given rows (ascending), or of all, and nobody else."""
    yield from model.delivery(roster, (yield from _asked_for(rows, roster)), to)


def _asked_for(rows: Rows | None, roster: Roster) -> Script[Selection]:
    """Let all parties take the given rows, or all."""
    if rows is None:
        return (yield from use_counted_rows(roster))
    return ListedRows((yield from use_rows(roster, rows)))


def evaluate(
    model: Model[R], size: int | None, split: AnySplit | None, bits: int | None, roster: Roster, seed: int
) -> Script[R]:
    """Count a model's cost on all rows (held-out ones, where there is a split), or on an even draw of `size` rows."""
    view = yield from agree_on_view(roster, split, "test", "own")
    selected = yield from _evaluated(size, view, roster, seed)
    rounding = rounding_of(bits, roster, shared_seed(seed))
    return (yield from model.evaluation(roster, selected, rounding, sampled=size is not None))


def evaluate_in_secret(
    model: Model[R], size: int | None, split: AnySplit | None, by: str, roster: Roster, seed: int
) -> Script[R]:
    """As `evaluate`, but one party learns the rows' residuals or distances, and the server only their sums."""
    view = yield from agree_on_view(roster, split, "test", "own")
    selected = yield from _evaluated(size, view, roster, seed)
    return (yield from model.evaluation_by(roster, selected, by, sampled=size is not None))


def _evaluated(size: int | None, view: JobView, roster: Roster, seed: int) -> Script[Selection]:
    """Let all parties take every row that counts, or an even draw of so many."""
    if size is None:
        return (yield from use_counted_rows(roster, view.row_weights))
    drawn = yield from use_even_draw(roster, size, sampling_rng(seed), view.row_weights)
    return ListedRows(drawn.rows, drawn.weights)


def _check_held_out(coreset: Coreset, view: JobView) -> None:
    if view.row_weights is not None and not view.row_weights[coreset.rows].all():
        row = int(coreset.rows[view.row_weights[coreset.rows] == 0][0])
        raise InputError(
            f"The coreset has row {row}, which is held out or weighs nothing. Draw the coreset with the same split."
        )


# Streams of one seed: the solver's draws do not depend on how the coreset came about.
def sampling_rng(seed: int) -> np.random.Generator:
    """Give the generator that a run's rows are drawn with."""
    return np.random.default_rng([seed, 0])


@lru_cache(maxsize=64)
def shared_seed(seed: int) -> int:
    """Give the seed of what server and parties draw alike while they learn or apply; it stands on the job sheet."""
    return int(np.random.default_rng([seed, 1]).integers(2**63))


def solving_rng(seed: int) -> np.random.Generator:
    """Give the generator that a run's solver draws with."""
    return np.random.default_rng(shared_seed(seed))


def rounding_of(bits: int | None, roster: Roster, shared: int) -> Rounding | None:
    """Draw the dithers' seeds, if parts of predictions are rounded."""
    return None if bits is None else Rounding.of(bits, roster, np.random.default_rng([shared, 2]))
