"""How far a logistic model of two classes, learned on drawn rows, can be from the best on all: told by these alone.

Around its minimum the loss is nearly quadratic, with the Hessian H = X'diag(w p (1 - p))X + 2 ridge, and whoever
minimises it on drawn rows misses the least on all by e'H^-1 e / 2, where e is the error of the drawn rows' gradient, a
sum over rows of w_i (p_i - y_i) x_i. That is what `sandwich` finds, halved, for least squares on rows of weights
w_i p_i (1 - p_i) and residuals (p_i - y_i) / (p_i (1 - p_i)).

It holds where the model that was learned and the best one give most rows nearly the same logit: in between, curvatures
differ by a factor of exp(d) at most, where logits differ by d. To first order that averages out, as e is as likely as
-e; for the second the bound grows by exp(d^2), with the mean square, by curvature, of the d that it allows itself.
Where d may be more than `MOST_APART` there is none. (Chosen on KC House and credit default, judged on Covertype and the
years.)
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.class_audit import curvatures
from colonnade.kernels.logits import probabilities
from colonnade.kernels.sandwich import RoundedRows, Sandwich, sandwich

MOST_APART = 1.0
# What rounding adds to the gradient is larger at the best model than at one that it has drawn towards zero: by less
# than half in its square, where there is twice as much in a direction as rounding.
GROWS = math.sqrt(2)


@dataclass(frozen=True, eq=False)
class RoundedFeatures:
    """What is known of rounding in rows that a logistic model was learned on, which nothing was done about.

    Parameters
    ----------
    covariance : (d, d) array
        Of a row's rounding errors, on weighted average.
    left : callable
        Takes the rows' parts of a sum, shape (m, p), and gives what of them calibrated weights do not correct.
    """

    covariance: Floats
    left: Callable[[Floats], Floats]

    def at(self, features: Floats, logits: Floats, residuals: Floats, weights: Floats, coef: Floats) -> RoundedRows:
        """Say what it means for a model, of rows about the centre that the intercept is free of; weights are bends.

        To second order, an error e adds (e.theta)^2 p (1 - p) / 2 to a row's loss: the gradient of its mean is what
        rounding adds to the model's, on all rows.
        """
        pull, k = self.covariance @ coef, curvatures(logits)[:, np.newaxis]
        skewed = weights * (1.0 - 2.0 * probabilities(logits))
        bias = weights.sum() * pull + 0.5 * float(coef @ pull) * (skewed @ features)
        return RoundedRows(
            features, residuals, np.zeros(len(coef)), GROWS * bias, lambda values: self.left(k * values) / k
        )


def class_sandwich(
    features: Floats,
    logits: Floats,
    classes: Floats,
    weights: Floats,
    ridge: float,
    coef: Floats,
    blocks: Sequence[slice],
    *,
    fit_intercept: bool,
    rounded: RoundedFeatures | None = None,
    chances: Floats | None = None,
) -> Sandwich:
    """Bound the excess of a model, and say what to expect of the gradient that is left at it, which is not halved.

    `logits` and `classes`, 1 or 0, are of the rows, shape (m,). The other parameters are those of `sandwich`.
    """
    k = curvatures(logits)
    bends, residuals = weights * k, (probabilities(logits) - classes) / k
    X = features - (bends @ features / bends.sum() if fit_intercept else 0.0)
    found = sandwich(
        X,
        residuals,
        bends,
        2 * ridge,
        coef,
        blocks,
        fit_intercept=fit_intercept,
        rounded=None if rounded is None else rounded.at(X, logits, residuals, bends, coef),
        chances=chances,
    )
    # The mean square of how far logits may be apart.
    apart = found.excess / bends.sum()
    return replace(found, excess=found.excess / 2 * math.exp(apart) if apart <= MOST_APART**2 else float("inf"))
