"""Standard errors: what the rows that the server solved on say of each coefficient, kept when the rows are gone."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from colonnade.contracts import JobView, LinearTask, Task
from colonnade.coreset import ALL_ROWS, GIVEN, Coreset, StandardErrors, Variances, WeightedRows
from colonnade.kernels.arrays import Flags, Floats
from colonnade.kernels.dependence import inflation, of_triangle
from colonnade.kernels.influence import (
    Curvature,
    FittedRows,
    Spread,
    classical_spread,
    curvature,
    residual_variance,
    spread_of_draw,
    spread_of_rows,
)
from colonnade.kernels.linear import RANK_TOLERANCE, LinearProblem
from colonnade.kernels.sandwich import RoundedRows
from colonnade.solvers.precision import Noise

# Found where it is known in which units columns entered, and what rows count: the solver is told neither.
ErrorsInView: TypeAlias = Callable[[JobView], StandardErrors]
# A coefficient has part in a hidden direction where it has so much of it, in columns of one length.
HIDDEN_PART = 1e-3


def errors_of(
    task: Task[Any], model: Any, rows: WeightedRows, coreset: Coreset, noise: Noise | None = None
) -> ErrorsInView | None:
    """Say how to find the standard errors of a linear model without an l1 penalty; of other models there are none.

    The model has `coef_` and `intercept_`, of the columns as the rows have them; noise is what rounding left in these.
    """
    if not isinstance(task, LinearTask) or rows.labels is None or coreset.sampler == GIVEN:
        return None
    l2, l1 = task.penalties_of(model)
    if l1 != 0:
        return None
    residuals = rows.features @ model.coef_ + model.intercept_ - rows.labels

    def found(view: JobView) -> StandardErrors:
        counts = None if view.row_weights is None else view.row_weights[coreset.rows]
        fitted = FittedRows(rows.features, residuals, None, rows.weights, counts)
        problem = rows.reduced(fit_intercept=task.fit_intercept)
        return _errors(fitted, problem, rows.total_weight * l2, task.fit_intercept, model, coreset, noise, view)

    return found


def _errors(
    rows: FittedRows,
    problem: LinearProblem,
    ridge: float,
    intercept: bool,
    model: Any,
    coreset: Coreset,
    noise: Noise | None,
    view: JobView,
) -> StandardErrors:
    at = curvature(problem, ridge, float(rows.bends.sum()), view.shift, view.scale, intercept=intercept)
    pull = ridge * model.coef_
    all_rows = coreset.sampler == ALL_ROWS
    draw = None
    if noise is not None or not all_rows:
        rounded = None if noise is None else _rounded(noise, model, coreset.total_weight)
        chances = _chances(coreset, rows.counts)
        draw = spread_of_draw(rows, at, pull, chances, rounded, stratified=coreset.stratified)
    by_rows = spread_of_rows(rows, at, pull, drawn=not all_rows)
    variance, degrees = residual_variance(rows, at, drawn=not all_rows)
    classical = classical_spread(at, ridge, variance, degrees)
    return _record(problem, at, draw, by_rows, classical, intercept, None if noise is None else noise.hidden)


def _rounded(noise: Noise, model: Any, total_weight: float) -> RoundedRows:
    return replace(noise.at(model.coef_, model.intercept_, total_weight), left=noise.rests)


def _chances(coreset: Coreset, counts: Floats | None) -> Floats | None:
    """Give the chances of distinct rows: what each counts over its weight."""
    if coreset.sampler == ALL_ROWS:
        return np.ones(len(coreset))
    if not coreset.distinct:
        return None
    return np.minimum((1.0 if counts is None else counts) / coreset.weights, 1.0)


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
    factors = inflation(problem.lhs)
    return StandardErrors(
        draw=None if draw is None else _variances(draw, kept),
        sandwich=None if by_rows is None else _variances(by_rows, kept),
        classical=_variances(classical, kept),
        inflation=tuple(_or_none(factors)),
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
    return Variances(tuple(_or_none(spread.variance[kept])), tuple(_or_none(spread.degrees[kept])))


def _or_none(values: Floats) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]
