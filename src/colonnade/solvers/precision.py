"""Precision: what the rows that the server solved on say of the model, kept as a few numbers when the rows are gone."""

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from colonnade.contracts import LinearTask, LogisticTask, Roster, Task
from colonnade.coreset import ALL_ROWS, GIVEN, Coreset, Precision, WeightedRows
from colonnade.kernels.arrays import Floats
from colonnade.kernels.class_sandwich import RoundedFeatures, class_sandwich
from colonnade.kernels.influence import RoundedSlopes
from colonnade.kernels.sandwich import RoundedRows, Sandwich, sandwich

# An audit asks for 16 bits a row for each: beyond a few, a smaller step is cheaper.
MOST_HIDDEN = 8
ALONE = "single rows decide some coefficients alone, so the others say nothing of them"


@dataclass(frozen=True, eq=False)
class Noise:
    """What rounding did to the rows, and what was done about it.

    Parameters
    ----------
    features, labels : ndarray of float64, shape (m, d), and (m,) or None
        The rows as they came, before they were corrected.
    removed, left : ndarray of float64, shape (r, r)
        Covariance of the noise in the parties' whitened columns, side by side: the part that the correction took off,
        and the part that it left.
    mixing : ndarray of float64, shape (r, d + 1)
        Leads from them to the columns, the label last.
    hidden : ndarray of float64, shape (h, d)
        Directions of the coefficients in which there is little but noise.
    uncorrected, rests : callable
        Give what of the rows' parts of a sum calibrated weights do not correct: at most, and as it varies.
    """

    features: Floats
    labels: Floats | None
    removed: Floats
    left: Floats
    mixing: Floats
    hidden: Floats
    uncorrected: Callable[[Floats], Floats]
    rests: Callable[[Floats], Floats]

    def at(self, coef: Floats, intercept: float, total_weight: float) -> RoundedRows:
        """Say what it means for a model. Noise adds to the gradient what a ridge on whitened columns would."""
        residual, columns = self.mixing @ np.append(coef, -1.0), self.mixing[:, :-1].T
        return RoundedRows(
            self.features,
            self.features @ coef + intercept - (0.0 if self.labels is None else self.labels),
            columns @ (self.removed @ residual),
            # At the best model it is larger: by less than half in its square, where eigenvalues are twice the noise.
            math.sqrt(2) * total_weight * columns @ (self.left @ residual),
            self.uncorrected,
        )

    def in_slopes(self, slopes: Floats, direction: Floats) -> RoundedSlopes:
        """Say what it means for the slopes of losses, (m,), where a row is seen along a direction, (d + 1,)."""
        errors = np.column_stack([self.mixing[:, :-1], self.mixing @ direction])
        removed, left = (errors.T @ noise @ errors for noise in (self.removed, self.left))
        return RoundedSlopes(self.features, slopes, removed[:-1, -1], left[:-1, -1], removed + left, self.rests)

    def in_features(self) -> RoundedFeatures:
        """Say what is left of it in the columns."""
        columns = self.mixing[:, :-1]
        return RoundedFeatures(columns.T @ self.left @ columns, self.uncorrected)


def precision_of_all(roster: Roster) -> Precision:
    """Say what all rows tell, as they are: no model is better on them."""
    return Precision(0.0, gradient=dict.fromkeys(roster.names, (0.0, 0.0, 1.0)))


def precision_of(
    task: Task[Any], model: Any, rows: WeightedRows, roster: Roster, coreset: Coreset, noise: Noise | None = None
) -> Precision | None:
    """Say what rows tell of a linear model, or one of two classes, learned on them, for `certify`; of others nothing.

    The model has `coef_` and `intercept_`, of the columns as the rows have them; noise is what rounding left in these.
    """
    if rows.labels is None or not isinstance(task, LinearTask | LogisticTask):
        return None
    if isinstance(task, LogisticTask) and len(task.classes or ()) != 2:
        return None
    if coreset.sampler == GIVEN:
        return Precision(None, "nothing tells how the rows of this coreset were drawn")
    if coreset.sampler == ALL_ROWS and noise is None:
        return precision_of_all(roster)
    if noise is not None and len(noise.hidden) > MOST_HIDDEN:
        return Precision(
            None, f"rounding hides {len(noise.hidden)} directions in which the parties' columns nearly coincide"
        )
    # What rows count is not known here, unless they count 1; it is safe to take draws for independent.
    chances = 1 / coreset.weights if coreset.distinct and roster.weight_party is None else None
    if isinstance(task, LinearTask):
        found, why = _of_line(task, model, rows, roster, noise, chances), ALONE
    else:
        found, why = _of_classes(task, model, rows, roster, noise, chances), f"{ALONE}, or there are too few rows"
    if math.isinf(found.excess):
        return Precision(None, why)
    return Precision(
        found.excess,
        gradient={party: astuple(each) for party, each in zip(roster.names, found.gradients, strict=True)},
        offset_gradient=astuple(found.offset_gradient) if task.fit_intercept else None,
        hidden=() if noise is None else tuple(map(tuple, noise.hidden.tolist())),
    )


def _of_line(
    task: LinearTask[Any], model: Any, rows: WeightedRows, roster: Roster, noise: Noise | None, chances: Floats | None
) -> Sandwich:
    labels = np.zeros(len(rows.features)) if rows.labels is None else rows.labels
    return sandwich(
        rows.features,
        rows.features @ model.coef_ + model.intercept_ - labels,
        rows.weights,
        rows.total_weight * task.penalties_of(model)[0],
        model.coef_,
        tuple(roster.parts.values()),
        fit_intercept=task.fit_intercept,
        problem=rows.reduced(fit_intercept=task.fit_intercept),
        rounded=None if noise is None else noise.at(model.coef_, model.intercept_, rows.total_weight),
        chances=chances,
    )


def _of_classes(
    task: LogisticTask[Any], model: Any, rows: WeightedRows, roster: Roster, noise: Noise | None, chances: Floats | None
) -> Sandwich:
    labels = np.zeros(len(rows.features)) if rows.labels is None else rows.labels
    return class_sandwich(
        rows.features,
        model.logits(rows.features),
        task.codes_of(labels).astype(np.float64),
        rows.weights,
        rows.total_weight * task.penalties_of(model)[0],
        model.coef_[0],
        tuple(roster.parts.values()),
        fit_intercept=task.fit_intercept,
        rounded=None if noise is None else noise.in_features(),
        chances=chances,
    )
