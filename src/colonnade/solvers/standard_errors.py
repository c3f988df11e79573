"""Standard errors: what the rows that the server solved on say of each coefficient, kept when the rows are gone.

They are found where it is known in which units columns entered, and what rows count: a solver is told neither.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit

from colonnade.contracts import JobView, LinearTask, LogisticTask, Task
from colonnade.coreset import ALL_ROWS, GIVEN, Coreset, StandardErrors, Variances, WeightedRows
from colonnade.kernels.arrays import Flags, Floats
from colonnade.kernels.dependence import inflation, of_triangle
from colonnade.kernels.influence import (
    Curvature,
    FittedRows,
    RoundedSlopes,
    Spread,
    classical_spread,
    curvature,
    residual_variance,
    spread_of_draw,
    spread_of_rows,
)
from colonnade.kernels.linear import RANK_TOLERANCE, LinearProblem, reduce_rows
from colonnade.solvers.precision import Noise

ErrorsInView: TypeAlias = Callable[[JobView], StandardErrors]
# A coefficient has part in a hidden direction where it has so much of it, in columns of one length: a few hundredths
# are what such a direction is off by.
HIDDEN_PART = 0.1


def errors_of(
    task: Task[Any], model: Any, rows: WeightedRows, coreset: Coreset, noise: Noise | None = None
) -> ErrorsInView | None:
    """Say how to find the standard errors of a model, where it has some: without an l1 penalty, of two classes at most.

    The model has `coef_` and `intercept_`, of the columns as the rows have them; noise is what rounding left in these.
    """
    if rows.labels is None or coreset.sampler == GIVEN or not isinstance(task, LinearTask | LogisticTask):
        return None
    if task.penalties_of(model)[1] != 0:
        return None
    if isinstance(task, LinearTask):
        return lambda view: _linear_errors(task, model, rows, coreset, noise, view)
    return (lambda view: _logistic_errors(task, model, rows, coreset, noise, view)) if len(model.coef_) == 1 else None


def errors_of_sums(
    task: LinearTask[Any], model: Any, problem: LinearProblem, total: float, coreset: Coreset
) -> ErrorsInView | None:
    """Say the same where rows are known only in sum, and all of them: classical standard errors need no more.

    The rows' weights add up to `total`.
    """
    l2, l1 = task.penalties_of(model)
    if coreset.sampler != ALL_ROWS or l1 != 0:
        return None

    def found(view: JobView) -> StandardErrors:
        ridge = coreset.total_weight * l2
        at = curvature(problem, ridge, total, view.shift, view.scale, intercept=task.fit_intercept)
        rank = at.basis.shape[1] - ridge * float(np.square(at.basis).sum()) + task.fit_intercept
        squares = float(np.sum(np.square(problem.lhs @ model.coef_ - problem.rhs)))
        degrees = total - rank
        return _record(problem, at, None, None, _classical(at, ridge, squares, degrees), task.fit_intercept, None)

    return found


def _linear_errors(
    task: LinearTask[Any], model: Any, rows: WeightedRows, coreset: Coreset, noise: Noise | None, view: JobView
) -> StandardErrors:
    ridge, intercept = coreset.total_weight * task.penalties_of(model)[0], task.fit_intercept
    residuals = rows.features @ model.coef_ + model.intercept_ - rows.labels
    fitted = FittedRows(rows.features, residuals, None, rows.weights, _counts(coreset, view))
    problem = rows.reduced(fit_intercept=intercept)
    at = curvature(problem, ridge, float(rows.weights.sum()), view.shift, view.scale, intercept=intercept)
    draw, by_rows = _spreads(fitted, at, ridge * model.coef_, coreset, _rounded_residuals(noise, model))
    variance, degrees = residual_variance(fitted, at, drawn=coreset.sampler != ALL_ROWS)
    classical = classical_spread(at, ridge, variance, degrees)
    return _record(problem, at, draw, by_rows, classical, intercept, None if noise is None else noise.hidden)


def _logistic_errors(
    task: LogisticTask[Any], model: Any, rows: WeightedRows, coreset: Coreset, noise: Noise | None, view: JobView
) -> StandardErrors:
    # The loss is not halved: its penalty, n l2 |theta|^2, has twice the curvature.
    ridge, intercept = 2 * coreset.total_weight * task.penalties_of(model)[0], task.fit_intercept
    coef, labels = model.coef_[0], np.zeros(0) if rows.labels is None else rows.labels
    chances = expit(rows.features @ coef + model.intercept_[0])
    bends = chances * (1.0 - chances)
    fitted = FittedRows(rows.features, chances - task.codes_of(labels), bends, rows.weights, _counts(coreset, view))
    problem = reduce_rows(rows.features, np.zeros(len(bends)), fitted.bends, fit_intercept=intercept)
    at = curvature(problem, ridge, float(fitted.bends.sum()), view.shift, view.scale, intercept=intercept)
    # Classes come as they are.
    rounded = None if noise is None else noise.in_slopes(fitted.slopes, np.append(coef, 0.0))
    draw, by_rows = _spreads(fitted, at, ridge * coef, coreset, rounded)
    # A class has the variance that its chance says.
    classical = classical_spread(at, ridge, 1.0, math.inf)
    by_rows = (
        replace(by_rows, degrees=np.full_like(by_rows.degrees, np.inf)) if coreset.sampler == ALL_ROWS else by_rows
    )
    hidden = None if noise is None else noise.hidden
    return _record(rows.reduced(fit_intercept=intercept), at, draw, by_rows, classical, intercept, hidden)


def _rounded_residuals(noise: Noise | None, model: Any) -> RoundedSlopes | None:
    if noise is None or noise.labels is None:
        return None
    return noise.in_slopes(noise.features @ model.coef_ + model.intercept_ - noise.labels, np.append(model.coef_, -1.0))


def _counts(coreset: Coreset, view: JobView) -> Floats | None:
    return None if view.row_weights is None else view.row_weights[coreset.rows]


def _spreads(
    rows: FittedRows, at: Curvature, pull: Floats, coreset: Coreset, rounded: RoundedSlopes | None
) -> tuple[Spread | None, Spread]:
    """Say how coefficients vary with the draw, unless all rows were taken as they are; and with the rows."""
    all_rows = coreset.sampler == ALL_ROWS
    by_rows = spread_of_rows(rows, at, pull, drawn=not all_rows)
    if all_rows and rounded is None:
        return None, by_rows
    chances = _chances(coreset, rows.counts)
    return spread_of_draw(rows, at, pull, chances, rounded, stratified=coreset.stratified), by_rows


def _chances(coreset: Coreset, counts: Floats | None) -> Floats | None:
    """Give the chances of distinct rows: what each counts over its weight."""
    if coreset.sampler == ALL_ROWS:
        return np.ones(len(coreset))
    if not coreset.distinct:
        return None
    return np.asarray(np.minimum((1.0 if counts is None else counts) / coreset.weights, 1.0))


def _classical(at: Curvature, ridge: float, squares: float, degrees: float) -> Spread:
    variance = squares / degrees if degrees > 0 else math.nan
    return classical_spread(at, ridge, variance, max(degrees, 1.0))


def _record(
    problem: LinearProblem,
    at: Curvature,
    draw: Spread | None,
    by_rows: Spread | None,
    classical: Spread,
    intercept: bool,
    hidden: Floats | None,
) -> StandardErrors:
    kept = slice(None) if intercept else slice(-1)
    condition, dependent = of_triangle(problem.lhs, RANK_TOLERANCE)
    return StandardErrors(
        draw=None if draw is None else _variances(draw, kept),
        sandwich=None if by_rows is None else _variances(by_rows, kept),
        classical=_variances(classical, kept),
        inflation=_or_none(inflation(problem.lhs)),
        condition=condition if math.isfinite(condition) else None,
        dependent=tuple((each.column, *each.others) for each in dependent),
        undefined=tuple(np.flatnonzero(at.undecided[kept]).tolist()),
        hidden=() if hidden is None else tuple(np.flatnonzero(_is_hidden(hidden, problem.lhs)).tolist()),
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
