"""A classification's penalty chosen by cross-validation on the coreset's rows: nothing more is sent.

Folds, penalties and choice are as in `penalty_path`; what rows left out are judged by is the log-loss. Rows of a class
that only one fold has are always learned from and never left out: a model that has not seen a class cannot be judged on
it.
"""

from typing import Literal

import numpy as np

from colonnade.coreset import WeightedRows
from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.kernels.folds import FOLDS, deal_folds, fold_seed
from colonnade.kernels.linear import reduce_rows
from colonnade.kernels.logistic import log_loss, solve_logistic
from colonnade.tasks.penalty_path import POINTS, RegularisationPath, least, spaced_penalties


def choose_class_penalty(
    rows: WeightedRows,
    codes: Rows,
    n_classes: int,
    vary: Literal["l2", "l1"],
    fixed: float,
    rng: np.random.Generator,
    *,
    fit_intercept: bool,
) -> RegularisationPath:
    """Try a path of penalties on folds of the rows, which `rng` decides; the other penalty, a row, is `fixed`.

    `codes`, shape (m,), are the rows' classes, 0 to K - 1; each has rows of weight.
    """
    folds = _class_folds(rows, codes, rng)
    varied = _penalties(rows, codes, n_classes, vary, fit_intercept=fit_intercept) / rows.total_weight
    pairs = [(p, fixed) if vary == "l2" else (fixed, p) for p in varied.tolist()]
    used = np.unique(folds[folds >= 0])
    if len(used) < 2:
        raise InputError(
            "Cross-validation needs two rows or more of some class in different folds, and there are none. Draw more "
            'rows, or pass a number instead of "cv".'
        )
    errors = [_errors(rows, codes, n_classes, folds == fold, pairs, fit_intercept=fit_intercept) for fold in used]
    weights = np.array([rows.weights[folds == fold].sum() for fold in used])
    return least(pairs, np.array(errors), weights / weights.sum(), "log-loss")


def _class_folds(rows: WeightedRows, codes: Rows, rng: np.random.Generator) -> Rows:
    """Deal folds; -1 is for rows that are never left out, or have no weight."""
    folds = deal_folds(rows.rows, rows.weights, fold_seed(rng))
    weighted = folds >= 0
    there = np.zeros((int(codes.max()) + 1, FOLDS), np.bool_)
    there[codes[weighted], folds[weighted]] = True
    return np.where(there.sum(axis=1)[codes] > 1, folds, -1)


def _penalties(rows: WeightedRows, codes: Rows, n_classes: int, vary: str, *, fit_intercept: bool) -> Floats:
    """Space penalties as for regression: about the model without columns the loss is nearly one of squares.

    Of more than two classes each has its own, and the path is from the largest of all to the smallest.
    """
    ends = []
    for code in range(1, 2) if n_classes == 2 else range(n_classes):
        labels = (codes == code).astype(np.float64)
        share = float(np.average(labels, weights=rows.weights)) if fit_intercept else 1 / n_classes
        curvature = share * (1 - share)
        problem = reduce_rows(
            rows.features, (labels - share) / curvature, 0.5 * curvature * rows.weights, fit_intercept=fit_intercept
        )
        ends.append(spaced_penalties(problem, vary)[[0, -1]])
    return np.geomspace(np.max(ends), np.min(ends), POINTS)


def _errors(
    rows: WeightedRows,
    codes: Rows,
    n_classes: int,
    tried: Flags,
    pairs: list[tuple[float, float]],
    *,
    fit_intercept: bool,
) -> Floats:
    """Fit on all rows but those tried, and give the weighted mean log-loss on these; shape (len(pairs),)."""
    X, w = rows.features[~tried], rows.weights[~tried]
    n = rows.total_weight * w.sum() / rows.weights.sum()
    errors, solution = [], None
    for l2, l1 in pairs:
        solution = solve_logistic(
            X, codes[~tried], w, n_classes, n * l2, n * l1, fit_intercept=fit_intercept, start=solution
        )
        logits = rows.features[tried] @ solution[0].T + solution[1]
        losses = log_loss(logits[:, 0] if n_classes == 2 else logits, codes[tried])
        errors.append(np.average(losses, weights=rows.weights[tried]))
    return np.array(errors)
