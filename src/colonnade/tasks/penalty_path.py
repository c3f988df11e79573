"""A penalty chosen by cross-validation on the coreset's rows: nothing more is sent.

Copies of one row are always in the same fold: a coreset is a multiset, and a model must not be tried on rows it has
seen. The penalty with the least weighted error is chosen, the larger of equal ones; there is no one-standard-error
rule, but the standard errors are kept for those who want it.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from colonnade.coreset import WeightedRows
from colonnade.kernels.arrays import Floats
from colonnade.kernels.elastic_net import solve_elastic_net
from colonnade.kernels.folds import FOLDS, deal_folds, fold_seed
from colonnade.kernels.gram import Summary, merge
from colonnade.kernels.linear import LinearProblem, reduce_rows, solve_ridge, weighted_triangle
from colonnade.ledger import aligned

POINTS = 50

Measure = Literal["squared error", "log-loss"]


class PathPoint(msgspec.Struct, frozen=True):
    """One pair of penalties and how well it predicts rows left out.

    Parameters
    ----------
    l2, l1 : float
        The penalties a row, as the task takes them.
    error : float
        Weighted mean error on the rows left out, over all folds: squared, or the log-loss of a classification.
    std_error : float
        Its standard error, from the spread over folds.
    """

    l2: float
    l1: float
    error: float
    std_error: float


class RegularisationPath(msgspec.Struct, frozen=True):
    """What cross-validation tried, from the largest penalty down; the chosen point has the least error."""

    chosen: PathPoint
    points: tuple[PathPoint, ...]
    measure: Measure = "squared error"

    def __str__(self) -> str:
        """Show every seventh penalty that was tried, and the chosen one."""
        header = ("l2", "l1", f"{self.measure} left out", "standard error", "")
        lines = [
            (f"{point.l2:.4g}", f"{point.l1:.4g}", f"{point.error:.6g}", f"{point.std_error:.2g}", "chosen" * chosen)
            for number, point in enumerate(self.points)
            if (chosen := point == self.chosen) or number % 7 == 0
        ]
        return (
            f"Chosen by cross-validation: l2 = {self.chosen.l2:.6g}, l1 = {self.chosen.l1:.6g}. Of the "
            f"{len(self.points)} penalties tried:\n{aligned([header, *lines], numbers=range(4))}"
        )


def choose_penalty(
    rows: WeightedRows,
    labels: Floats,
    vary: Literal["l2", "l1"],
    fixed: float,
    rng: np.random.Generator,
    *,
    fit_intercept: bool,
) -> RegularisationPath:
    """Try a path of penalties on folds of the rows, which `rng` decides; the other penalty, a row, is `fixed`."""
    folds = deal_folds(rows.rows, rows.weights, fold_seed(rng))
    varied = spaced_penalties(rows.reduced(fit_intercept=fit_intercept), vary) / rows.total_weight
    pairs = [(p, fixed) if vary == "l2" else (fixed, p) for p in varied.tolist()]
    errors, shares = np.empty((FOLDS, len(pairs))), np.empty(FOLDS)
    for fold in range(FOLDS):
        tried = folds == fold
        shares[fold] = rows.weights[tried].sum() / rows.weights.sum()
        errors[fold] = _errors(rows, labels, tried, pairs, fit_intercept=fit_intercept)
    return least(pairs, errors, shares)


def choose_penalty_of_parts(
    parts: Sequence[Summary], total_weight: float, vary: Literal["l2", "l1"], fixed: float, *, fit_intercept: bool
) -> RegularisationPath:
    """Try the same path where the folds' rows are known only in sum, one summary a fold; `total_weight` is n."""
    varied = spaced_penalties(merge(parts).problem(fit_intercept=fit_intercept), vary) / total_weight
    pairs = [(p, fixed) if vary == "l2" else (fixed, p) for p in varied.tolist()]
    weights = np.array([part.weight for part in parts])
    errors = []
    for fold, tried in enumerate(parts):
        kept = merge([part for other, part in enumerate(parts) if other != fold])
        problem = kept.problem(fit_intercept=fit_intercept)
        n = total_weight * kept.weight / weights.sum()
        errors.append(_along(problem, tried.about(problem.centre), tried.weight, n, pairs))
    return least(pairs, np.array(errors), weights / weights.sum())


def least(
    pairs: list[tuple[float, float]], errors: Floats, shares: Floats, measure: Measure = "squared error"
) -> RegularisationPath:
    """Average the folds' errors, shape (folds, len(pairs)), and choose."""
    mean = shares @ errors
    std_error = np.std(errors, axis=0, ddof=1) / np.sqrt(len(errors))
    points = tuple(
        PathPoint(l2, l1, error, spread)
        for (l2, l1), error, spread in zip(pairs, mean.tolist(), std_error.tolist(), strict=True)
    )
    return RegularisationPath(points[int(np.argmin(mean))], points, measure)


def spaced_penalties(problem: LinearProblem, vary: str) -> Floats:
    """Space penalties evenly in logarithm, from one that leaves nothing of the model to one that changes nothing.

    At the top all coefficients are zero (l1), or a hundredth of the free ones at most (l2). At the bottom the penalty
    on the free solution is a thousandth of its error, whatever the scales of the columns.
    """
    A, b = problem.lhs, problem.rhs
    free = solve_ridge(problem, 0.0)
    error = float(np.sum((A @ free - b) ** 2))
    if vary == "l1":
        top, extent = 2 * np.abs(A.T @ b).max(), np.abs(free).sum()
    else:
        top, extent = 100 * np.linalg.norm(A, 2) ** 2, free @ free
    top = top if top > 0 else 1.0  # constant columns: any penalty gives the same model
    small = max(1e-3 * error, 1e-9 * float(b @ b))
    bottom = min(1e-4 * top, small / extent) if small > 0 and extent > 0 else 1e-4 * top
    return np.geomspace(top, bottom, POINTS)


def _errors(
    rows: WeightedRows,
    labels: Floats,
    tried: npt.NDArray[np.bool_],
    pairs: list[tuple[float, float]],
    *,
    fit_intercept: bool,
) -> Floats:
    """Fit on all rows but those tried, and give the weighted mean squared error on these; shape (len(pairs),)."""
    X, w = rows.features, rows.weights
    problem = reduce_rows(X[~tried], labels[~tried], w[~tried], fit_intercept=fit_intercept)
    # The rows left out are reduced too, about the same centre: each error then takes one small product.
    out = weighted_triangle(np.column_stack([X[tried], labels[tried]]), w[tried], problem.centre)
    # Part of the rows with part of the weight: a penalty a row stays what it is.
    n = rows.total_weight * w[~tried].sum() / w.sum()
    return _along(problem, out, w[tried].sum(), n, pairs)


def _along(problem: LinearProblem, out: Floats, weight: float, n: float, pairs: list[tuple[float, float]]) -> Floats:
    """Solve along the path; give each solution's weighted mean squared error on rows whose triangle is `out`."""
    errors, theta = [], np.zeros(problem.lhs.shape[1])
    for l2, l1 in pairs:
        theta = solve_elastic_net(problem, n * l2, n * l1, theta)
        errors.append(np.sum((out[:, :-1] @ theta - out[:, -1]) ** 2) / weight)
    return np.array(errors)
