"""How far a model learned on drawn rows can be from the best on all of them, told by these rows alone.

Least squares with a convex penalty has a cost that is at least quadratic around its minimum. Whoever minimises the cost
of drawn rows misses the least cost of all rows by e'H^-1 e at most (exactly that without a penalty), where H is the
Hessian's half on all rows and e the error of the drawn rows' gradient: drawn less true. e is a sum over independent
draws, so it is nearly normal, and its covariance is the sum of w_i^2 r_i^2 x_i x_i', with residuals r_i of models that
were learned without the row. Of distinct rows only 1 - pi_i of that is a matter of chance (Hajek), and nothing of one
that is certain. The excess is then a weighted sum of chi-squares; its 95 % quantile is the bound. H is taken from the
drawn rows, whose inverse is too large by about 1 / (1 - d/m) on average.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from colonnade.kernels.arrays import Floats
from colonnade.kernels.dependence import unit_basis
from colonnade.kernels.estimates import Estimate, exactly, from_errors
from colonnade.kernels.linear import LinearProblem, reduce_rows

CONFIDENCE = 0.95
# A row with more leverage decides a direction alone: nothing in the others says how wrong it is there.
MOST_LEVERAGE = 0.999
# Of the skewness of a sum of squares: below, it is normal to four digits.
NEARLY_NORMAL = 1e-4
NOTHING = exactly(0.0)


@dataclass(frozen=True, eq=False)
class RoundedRows:
    """Rows with rounding errors, and what was done about these.

    Parameters
    ----------
    features : (m, d) array
        As they came.
    residuals : (m,) array
        Of the model there.
    removed : (d,) array
        The part of the gradient that was taken off as rounding's, for each unit of weight.
    bias : (d,) array
        The part that is rounding's and was left, for all rows.
    left : callable
        Takes the rows' parts of the gradient, shape (m, p), and gives what of them calibrated weights do not correct.
    """

    features: Floats
    residuals: Floats
    removed: Floats
    bias: Floats
    left: Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Sandwich:
    """What drawn rows say of the model learned on them.

    Parameters
    ----------
    excess : float
        The objective's excess over the least on all rows stays below this, with 95 % confidence; may be infinite.
    gradients : tuple of Estimate
        What to expect of the gradient on all rows, halved, along each block's part of the coefficients.
    offset_gradient : Estimate
        Likewise along the intercept.
    """

    excess: float
    gradients: tuple[Estimate, ...] = ()
    offset_gradient: Estimate = NOTHING


def sandwich(
    features: Floats,
    residuals: Floats,
    weights: Floats,
    ridge: float,
    coef: Floats,
    blocks: Sequence[slice],
    *,
    fit_intercept: bool,
    problem: LinearProblem | None = None,
    rounded: RoundedRows | None = None,
    chances: Floats | None = None,
) -> Sandwich:
    """Bound the excess of a model, and say what to expect of the gradient that is left at it.

    Parameters
    ----------
    features : (m, d) array
        X, the rows that the model was learned on.
    residuals : (m,) array
        Predictions less labels.
    weights : (m,) array
        w, with which each draw stands for all rows.
    ridge : float
        n l2; a penalty that is not quadratic is convex, and makes the excess no larger.
    blocks : sequence of slice
        Parts of the coefficients.
    problem : LinearProblem, optional
        The rows, reduced, where that was done already; their labels do not matter.
    rounded : RoundedRows, optional
        What the rows were before their rounding was made good for. It is in certain rows too, so all of their errors
        count.
    chances : (m,) array, optional
        Of distinct rows; None where draws are independent.
    """
    m = len(residuals)
    uncertain = np.ones(m) if chances is None or rounded is not None else np.sqrt(1.0 - chances)
    problem = problem or reduce_rows(features, residuals, weights, fit_intercept=fit_intercept)
    centre, triangle = problem.centre[:-1], problem.triangle[:, :-1]
    X = features - centre
    # A constant column leaves its rounding behind.
    X[:, ~triangle.any(axis=0)] = 0.0
    to_unit = _unit_basis(triangle, ridge)
    units = X @ to_unit
    leverage = weights * (np.einsum("ij,ij->i", units, units) + fit_intercept / weights.sum())
    if m <= leverage.sum() or leverage.max(where=uncertain > 0, initial=0.0) > MOST_LEVERAGE:
        return Sandwich(float("inf"))
    too_small = 1.0 - float(leverage @ np.square(uncertain)) / m
    without = residuals / np.where(uncertain > 0, 1.0 - leverage, 1.0)
    one = 1.0 / np.sqrt(weights.sum()) if fit_intercept else 0.0
    if rounded is None:
        gradient, bias = np.column_stack([units * without[:, np.newaxis], one * without]), np.zeros(X.shape[1])
    else:
        own = rounded.residuals / (1.0 - leverage)
        noisy = (rounded.features - centre) @ to_unit
        noisy *= own[:, np.newaxis]
        noisy -= rounded.removed @ to_unit
        gradient, bias = rounded.left(np.column_stack([noisy, one * own])), rounded.bias
    gradient *= (weights * uncertain)[:, np.newaxis]
    eigenvalues, V = np.linalg.eigh(gradient.T @ gradient)
    shift = np.append(bias @ to_unit, 0.0)
    excess = quantile(np.maximum(eigenvalues, 0.0), np.square(shift @ V)) / too_small
    errors = weights * uncertain * without / np.sqrt(too_small)
    # Of its part of the fit: sum_i errors_i^2 (1 - leverage_i) x_i units_i', by the product of a matrix and itself.
    X_learned = X * (errors * np.sqrt(np.maximum(1.0 - leverage, 0.0)))[:, np.newaxis]
    learned = (X_learned.T @ X_learned) @ to_unit
    gradients = []
    for here in blocks:
        # A part of the coefficients has learned the drawn rows' errors too: along it the gradient is not zero on
        # average, but that part of the expected excess which is the block's own. (Squares of residuals of models
        # without the row are too large on average, by 1 / (1 - leverage).)
        expected = float(np.sum(learned[here] * to_unit[here]))
        along = from_errors(expected, errors * (X[:, here] @ coef[here]))
        gradients.append(replace(along, deviation=float(np.hypot(along.deviation, bias[here] @ coef[here]))))
    return Sandwich(excess, tuple(gradients), from_errors(0.0, errors) if fit_intercept else NOTHING)


def _unit_basis(triangle: Floats, ridge: float) -> Floats:
    """Find W with W'(R'R + ridge I) W = I on its span. Safe for any rank."""
    lhs = np.vstack([triangle, np.sqrt(ridge) * np.eye(triangle.shape[1])])
    scale = np.linalg.norm(lhs, axis=0)
    scale[scale == 0] = np.inf
    basis, _ = unit_basis(lhs / scale)
    return np.asarray(basis / scale[:, np.newaxis])


def quantile(factors: Floats, shifts: Floats, probability: float = CONFIDENCE) -> float:
    """Give a quantile of a weighted sum of chi-squares, by its first four moments (Liu, Tang and Zhang 2009).

    The sum of z^2 stays below it with this probability, to about 1 % of it, where z are independent and normal with
    variances `factors` and squared means `shifts`.
    """
    _, exponent = math.frexp(max(factors.max(initial=0.0), shifts.max(initial=0.0)))
    factors, shifts = np.ldexp(factors, -exponent), np.ldexp(shifts, -exponent)
    return math.ldexp(_unit_quantile(factors, shifts, probability), exponent)


def _unit_quantile(factors: Floats, shifts: Floats, probability: float) -> float:
    c1, c2, c3, c4 = (float(np.sum(factors**k + k * factors ** (k - 1) * shifts)) for k in (1, 2, 3, 4))
    if c2 <= 0:
        return c1  # nothing varies
    skewness, kurtosis = c3 / c2**1.5, c4 / c2**2
    if skewness < NEARLY_NORMAL:
        return float(c1 + np.sqrt(2 * c2) * scipy.special.ndtri(probability))
    if skewness**2 > kurtosis:
        a = 1 / (skewness - np.sqrt(skewness**2 - kurtosis))
        shift = skewness * a**3 - a**2
        degrees = a**2 - 2 * shift
    else:
        a, shift, degrees = 1 / skewness, 0.0, 1 / skewness**2
    if shift > 0:
        q = scipy.special.chndtrix(probability, degrees, shift)
    else:
        q = scipy.special.chdtri(degrees, 1 - probability)
    return float(c1 + np.sqrt(c2) * (q - degrees - shift) / np.sqrt(degrees + 2 * shift))
