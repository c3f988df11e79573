"""The server's side of a classification without rows: the Gram matrix once, then directions and gradients in steps."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from colonnade.contracts import LogisticTask, Roster, Script, Solution
from colonnade.coreset import Coreset
from colonnade.errors import ConvergenceWarning, InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.gram import Summary
from colonnade.kernels.logistic_steps import Curvature, curvature_of, new_direction
from colonnade.kernels.shares import LIMBS, from_limbs, limb_products, packed_size, unpack_words
from colonnade.messages import sendable_floats
from colonnade.privacy.pair_keys import LostKey, compare, until_kept
from colonnade.privacy.primitives import TAG_BYTES
from colonnade.protocol import checks
from colonnade.solvers.gram.moments import senseless
from colonnade.solvers.gram.question import GramQuestion, check_size, question_of
from colonnade.solvers.gram.shares.server import Shared, share_columns, summaries
from colonnade.solvers.gram.steps.messages import AskStepColumn, AskStepPart, StepColumn, StepPart

M = TypeVar("M")
# Steps end where the next would lower the objective by no more than this part of it; more is worth a warning.
ENOUGH, TOO_MUCH = 1e-6, 1e-4
# Of the norm of residuals and of sums of them.
SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class _Problem:
    """What stays the same in all steps.

    Parameters
    ----------
    penalty : float
        n times l2.
    largest : float
        The coreset's largest weight, to which the question's are relative.
    curvature : Curvature
        Of all columns, the label party's among them.
    units : ndarray of float64, shape (d,)
        Directions are orthonormal in these: 1 with a penalty, for which that makes it the same in all directions, and
        else the columns' own.
    """

    roster: Roster
    question: GramQuestion
    shared: Shared
    fit_intercept: bool
    values: Floats
    penalty: float
    largest: float
    curvature: Curvature
    units: Floats

    @property
    def label_party(self) -> str:
        return self.question.to

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(name for name in self.shared.keys.parties if name != self.label_party)

    @property
    def own(self) -> slice:
        """The label party's columns."""
        return self.roster.parts[self.label_party]

    def mean(self, party: str) -> Floats:
        return np.asarray(self.shared.replies[party].means[0])

    def factor(self, party: str) -> Floats:
        return self.shared.replies[party].factors


@dataclass(frozen=True, eq=False)
class _Point:
    """How far it is: directions, shape (k, d); coefficients and intercept; the objective, and what it would still fall.

    `gain` is None where the label party told no gradient.
    """

    directions: Floats
    coef: Floats
    intercept: float
    cost: float
    gain: float | None
    gradient: Floats

    @property
    def steps(self) -> int:
        return len(self.directions)


def classify_by_shares(task: LogisticTask[M], roster: Roster, coreset: Coreset, steps: int) -> Script[Solution[M]]:
    """Learn a classification of two classes; the server is shown no row, and the label party sums of the others'."""
    check_size(len(coreset), roster)
    question = question_of(roster, coreset, None, steps)
    point = yield from until_kept(lambda: _attempt(task, roster, coreset, question))
    part = None if point.gain is None else point.gain / point.cost if point.cost > 0 else 0.0
    if part is None or part > TOO_MUCH:
        _warn(point.steps, part)
    facts = {"cost": point.cost, "steps": float(point.steps)}
    model = task.class_model(point.coef[np.newaxis], np.array([point.intercept]), roster)
    return Solution(model, facts if part is None else {**facts, "gain": part})


def _warn(steps: int, part: float | None) -> None:
    left = (
        "another would tell too much of a single row, so that the label party ended them"
        if part is None
        else f"another would still lower the objective by about {part:.2g} of it"
    )
    warnings.warn(
        f"SecureGram stopped after {steps} steps: {left}. Raise steps, if the other parties have more columns than "
        "that and their policies let them; draw more rows, which hide each other; raise l2; or use Central.",
        ConvergenceWarning,
        stacklevel=2,
    )


def _attempt(
    task: LogisticTask[object], roster: Roster, coreset: Coreset, question: GramQuestion
) -> Script[_Point | LostKey]:
    shared = yield from share_columns(roster, question)
    if isinstance(shared, LostKey):
        return shared
    (summary,) = summaries(roster, coreset, question, shared.replies)
    problem, step = _problem(task, roster, coreset, question, shared, summary)
    point = _start(problem)
    while point.steps < question.steps:
        direction = new_direction(_of_others(problem, step), point.directions, problem.units)
        if direction is None:
            break
        after = yield from _step(problem, point, direction)
        if isinstance(after, LostKey):
            return after
        point = after
        if point.gain is None or point.gain <= ENOUGH * point.cost:
            break
        step = problem.curvature.newton_step(point.gradient)
    yield from compare(roster, shared.transcript, shared.signed, shared.circle)
    return point


def _problem(
    task: LogisticTask[object],
    roster: Roster,
    coreset: Coreset,
    question: GramQuestion,
    shared: Shared,
    summary: Summary,
) -> tuple[_Problem, Floats]:
    values, penalty = task.label_values(), float(coreset.total_weight * task.penalties()[0])
    pi = (summary.mean[-1] - values[0]) / (values[1] - values[0])
    if not 0 < pi < 1:
        raise InputError(
            f"The drawn rows are all of one class, by what {question.to!r} says. Draw more rows, or by scores, which "
            "give each class its share: ImportanceSampling(size=...)."
        )
    curvature, step = curvature_of(summary, float(pi), penalty, fit_intercept=task.fit_intercept)
    spreads = np.linalg.norm(summary.about(np.zeros_like(summary.mean))[:, :-1], axis=0)
    units = np.ones(len(spreads)) if penalty else np.where(spreads > 0, spreads, 1.0)
    largest = float(coreset.weights.max())
    return _Problem(
        roster, question, shared, task.fit_intercept, sendable_floats(values), penalty, largest, curvature, units
    ), step


def _start(problem: _Problem) -> _Point:
    n_features = len(problem.roster.feature_names)
    return _Point(np.empty((0, n_features)), np.zeros(n_features), 0.0, 0.0, np.inf, np.zeros(n_features))


def _of_others(problem: _Problem, step: Floats) -> Floats:
    """Leave out the label party's columns: it is at its best with these by itself."""
    direction = step.copy()
    direction[problem.own] = 0.0
    return direction


def _step(problem: _Problem, point: _Point, direction: Floats) -> Script[_Point | LostKey]:
    """Show the label party one more direction, and ask for the gradient where it is best with all of them."""
    parts = {party: direction[problem.roster.parts[party]] for party in problem.others}
    turned = {party: problem.factor(party) @ part for party, part in parts.items()}
    largest = max(float(np.linalg.norm(each)) for each in turned.values())
    unit = float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest > 0 else 1.0
    inbox = yield {party: AskStepPart(point.steps, sendable_floats(each / unit)) for party, each in turned.items()}
    told = checks.replies(inbox, StepPart)
    for party, reply in told.items():
        if not reply.box:
            return LostKey(party)
        _check_part(problem, party, reply)
    offset = 0.0 if problem.fit_intercept else float(sum(problem.mean(party) @ part for party, part in parts.items()))
    request = AskStepColumn(
        point.steps,
        tuple(told[party].box for party in problem.others),
        unit,
        offset,
        problem.penalty / problem.largest,
        problem.fit_intercept,
        problem.values,
    )
    inbox = yield {problem.label_party: request}
    column = checks.replies(inbox, StepColumn)[problem.label_party]
    if not column.coef.size:
        return LostKey(problem.label_party)
    _check_column(problem, column, point.steps + 1)
    return _moved(problem, replace(point, directions=np.vstack([point.directions, direction])), column, told)


def _check_part(problem: _Problem, party: str, reply: StepPart) -> None:
    size, n_columns = len(problem.question.rows), len(problem.factor(party))
    due = (size, packed_size(size) + TAG_BYTES, packed_size(LIMBS, n_columns, 1))
    if (reply.size, len(reply.box), len(reply.block)) != due:
        raise checks.wrong(party, reply, f"other than {size} rows in {due[1]} bytes, and a block of {due[2]} bytes")


def _check_column(problem: _Problem, column: StepColumn, n_directions: int) -> None:
    party, n_own = problem.label_party, problem.own.stop - problem.own.start
    checks.shape(party, column, column.coef, (n_directions + n_own,))
    checks.in_range(party, column, np.append(column.coef, [column.intercept, column.total]))
    checks.non_negative(party, column, np.array([column.loss]))
    weight = float(problem.question.row_weights().sum())
    if abs(column.total) > weight * (1 + SLACK) or (not problem.fit_intercept and column.intercept):
        raise checks.wrong(party, column, "residuals above 1, or an intercept where there is none")
    n_others = sum(len(problem.factor(each)) for each in problem.others)
    due = (packed_size(len(problem.question.rows), LIMBS), packed_size(LIMBS, n_others, 1))
    if column.share is not None and (len(column.share), len(column.blocks)) != due:
        raise checks.wrong(party, column, f"a share or blocks of other than {due[0]} and {due[1]} bytes")


def _moved(problem: _Problem, point: _Point, column: StepColumn, told: Mapping[str, StepPart]) -> _Point:
    """Read where the label party is best: coefficients, intercept, objective, gradient."""
    coef = column.coef[: point.steps] @ point.directions
    coef[problem.own] = column.coef[point.steps :]
    intercept = column.intercept
    if problem.fit_intercept:
        intercept -= float(sum(problem.mean(party) @ coef[problem.roster.parts[party]] for party in problem.others))
    cost = problem.largest * column.loss + problem.penalty * float(coef @ coef)
    after = replace(point, coef=coef, intercept=intercept, cost=cost, gain=None)
    if column.share is None:
        return after
    gradient = _gradient(problem, column, told, coef)
    return replace(after, gradient=gradient, gain=problem.curvature.gain(gradient))


def _gradient(problem: _Problem, column: StepColumn, told: Mapping[str, StepPart], coef: Floats) -> Floats:
    """Add up what the server holds and what was told of the products: the objective's gradient, shape (d,).

    It is zero in the label party's columns.
    """
    size, bits, start = len(problem.question.rows), problem.question.low_bits, 0
    shared = unpack_words(column.share or b"", 1, LIMBS, size)
    norm = np.sqrt(problem.question.row_weights().sum())
    gradient = np.zeros(len(coef))
    for party in problem.others:
        n_columns = len(problem.factor(party))
        held = limb_products(unpack_words(problem.shared.replies[party].share or b"", n_columns, LIMBS, size), shared)
        end = start + packed_size(LIMBS, n_columns, 1)
        theirs = unpack_words(column.blocks[start:end], LIMBS, n_columns, 1)
        products = from_limbs(held + unpack_words(told[party].block, LIMBS, n_columns, 1) + theirs, bits)[:, 0]
        if not (np.abs(products) <= 1 + SLACK).all():
            raise senseless(party, problem.label_party)
        here, start = problem.roster.parts[party], end
        sums = norm * products @ problem.factor(party) + column.total * problem.mean(party)
        gradient[here] = problem.largest * sums + 2 * problem.penalty * coef[here]
    return gradient
