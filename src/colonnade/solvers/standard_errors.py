"""Standard errors: what the rows that the server solved on say of each coefficient, kept when the rows are gone.

They are found where it is known in which units columns entered, and what rows count: a solver is told neither.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy

from colonnade.contracts import JobView, LinearTask, LogisticTask, Task
from colonnade.coreset import ALL_ROWS, GIVEN, Coreset, StandardErrors, Variances, WeightedRows
from colonnade.kernels.arrays import Flags, Floats
from colonnade.kernels.dependence import Collinearity, collinearity
from colonnade.kernels.influence import (
    Drawn,
    Entered,
    FittedRows,
    RoundedSlopes,
    Spread,
    Spreads,
    spreads,
    spreads_of_sums,
)
from colonnade.kernels.linear import RANK_TOLERANCE, LinearProblem, reduce_rows
from colonnade.solvers.precision import Noise

ErrorsInView: TypeAlias = Callable[[JobView], StandardErrors]
# A coefficient has part in a hidden direction where it has so much of it, in columns of one length: a few hundredths
# are what such a direction is off by.
HIDDEN_PART = 0.1


def these(rows: WeightedRows) -> WeightedRows:
    """Give rows that are there."""
    return rows


def no_noise() -> None:
    """Say that nothing was rounded."""


def errors_of(
    task: Task[Any],
    model: Any,
    rows: Callable[[], WeightedRows],
    coreset: Coreset,
    noise: Callable[[], Noise | None] = no_noise,
) -> ErrorsInView | None:
    """Say how to find the standard errors of a model, where it has some: without an l1 penalty, of two classes at most.

    The model has `coef_` and `intercept_`, of the columns as the rows have them; noise is what rounding left in these.
    Both are made when errors are asked for.
    """
    if coreset.sampler == GIVEN or not isinstance(task, LinearTask | LogisticTask):
        return None
    l2, l1 = task.penalties_of(model)
    if l1 != 0 or (isinstance(task, LogisticTask) and len(model.coef_) > 1):
        return None
    ridge = coreset.total_weight * l2
    if isinstance(task, LinearTask):
        return partial(_when_asked, _linear_errors, task, model, rows, coreset, noise, ridge)
    # The loss is not halved: its penalty, n l2 |theta|^2, has twice the curvature.
    return partial(_when_asked, _logistic_errors, task, model, rows, coreset, noise, 2 * ridge)


def _when_asked(
    errors: Callable[..., StandardErrors],
    task: Task[Any],
    model: Any,
    rows: Callable[[], WeightedRows],
    coreset: Coreset,
    noise: Callable[[], Noise | None],
    ridge: float,
    view: JobView,
) -> StandardErrors:
    return errors(task, model, rows(), coreset, noise(), ridge, view)


def errors_of_sums(
    task: LinearTask[Any], model: Any, problem: LinearProblem, total: float, coreset: Coreset
) -> ErrorsInView | None:
    """Say the same where rows are known only in sum, and all of them: classical standard errors need no more.

    The rows' weights add up to `total`.
    """
    l2, l1 = task.penalties_of(model)
    if coreset.sampler != ALL_ROWS or l1 != 0:
        return None
    ridge = coreset.total_weight * l2

    def found(view: JobView) -> StandardErrors:
        entered = Entered(view.shift, view.scale, task.fit_intercept)
        spread = spreads_of_sums(problem, ridge, model.coef_, total, entered)
        columns = problem.triangle[:, :-1]
        return _record(columns, collinearity(columns, RANK_TOLERANCE), spread, entered, None)

    return found


def _linear_errors(
    task: LinearTask[Any],
    model: Any,
    rows: WeightedRows,
    coreset: Coreset,
    noise: Noise | None,
    ridge: float,
    view: JobView,
) -> StandardErrors:
    entered = Entered(view.shift, view.scale, task.fit_intercept)
    residuals = rows.features @ model.coef_ + model.intercept_ - rows.labels
    fitted = FittedRows(rows.features, residuals, None, rows.weights, _counts(coreset, view))
    drawn, rounded = _drawn(coreset, fitted.counts), _rounded_residuals(noise, model)
    problem = rows.reduced(fit_intercept=task.fit_intercept)
    found = spreads(fitted, problem, ridge, model.coef_, entered, drawn, rounded)
    columns = problem.triangle[:, :-1]
    return _record(columns, collinearity(columns, RANK_TOLERANCE), found, entered, noise)


def _logistic_errors(
    task: LogisticTask[Any],
    model: Any,
    rows: WeightedRows,
    coreset: Coreset,
    noise: Noise | None,
    ridge: float,
    view: JobView,
) -> StandardErrors:
    entered = Entered(view.shift, view.scale, task.fit_intercept)
    coef, labels = model.coef_[0], np.zeros(0) if rows.labels is None else rows.labels
    chances = scipy.special.expit(rows.features @ coef + model.intercept_[0])
    bends = chances * (1.0 - chances)
    fitted = FittedRows(rows.features, chances - task.codes_of(labels), bends, rows.weights, _counts(coreset, view))
    problem = reduce_rows(rows.features, np.zeros(len(bends)), fitted.bends, fit_intercept=task.fit_intercept)
    # Classes come as they are.
    rounded = None if noise is None else noise.in_slopes(fitted.slopes, np.append(coef, 0.0))
    found = spreads(fitted, problem, ridge, coef, entered, _drawn(coreset, fitted.counts), rounded)
    columns = rows.reduced(fit_intercept=task.fit_intercept).triangle[:, :-1]
    return _record(columns, collinearity(columns, RANK_TOLERANCE), found, entered, noise)


def _rounded_residuals(noise: Noise | None, model: Any) -> RoundedSlopes | None:
    if noise is None or noise.labels is None:
        return None
    return noise.in_slopes(noise.features @ model.coef_ + model.intercept_ - noise.labels, np.append(model.coef_, -1.0))


def _counts(coreset: Coreset, view: JobView) -> Floats | None:
    return None if view.row_weights is None else view.row_weights[coreset.rows]


def _drawn(coreset: Coreset, counts: Floats | None) -> Drawn | None:
    """Say how rows were drawn: the chance of a distinct one is what it counts over its weight."""
    if coreset.sampler == ALL_ROWS:
        return None
    if not coreset.distinct:
        return Drawn(None, coreset.stratified)
    return Drawn(np.minimum((1.0 if counts is None else counts) / coreset.weights, 1.0), False)


def _record(
    triangle: Floats, collinear: Collinearity, found: Spreads, entered: Entered, noise: Noise | None
) -> StandardErrors:
    kept = slice(None) if entered.intercept else slice(-1)
    condition, dependent, factors = collinear
    return StandardErrors(
        draw=None if found.draw is None else _variances(found.draw, kept),
        sandwich=None if found.sandwich is None else _variances(found.sandwich, kept),
        classical=_variances(found.classical, kept),
        inflation=_or_none(factors),
        condition=condition if math.isfinite(condition) else None,
        dependent=tuple((each.column, *each.others) for each in dependent),
        undefined=tuple(np.flatnonzero(found.undecided[kept]).tolist()),
        hidden=() if noise is None else tuple(np.flatnonzero(_is_hidden(noise.hidden, triangle)).tolist()),
    )


def _is_hidden(directions: Floats, triangle: Floats) -> Flags:
    """Tell which coefficients have part in hidden directions, (h, d)."""
    parts = np.abs(directions * np.linalg.norm(triangle, axis=0))
    lengths = np.linalg.norm(parts, axis=1, keepdims=True)
    return np.asarray((parts > HIDDEN_PART * lengths).any(axis=0))


def _variances(spread: Spread, kept: slice) -> Variances:
    return Variances(_or_none(spread.variance[kept]), _or_none(spread.degrees[kept]))


def _or_none(values: Floats) -> tuple[float | None, ...]:
    return tuple(value if math.isfinite(value) else None for value in values.tolist())
