"""Weighted least squares with an l2 penalty, safe for any rank.

The rows are first reduced to a small triangle by QR, block by block; the triangle holds all that least squares needs,
and its condition number is that of the rows, not its square.
"""

from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats

BLOCK_ROWS = 8192
# Directions in which the scaled columns shrink below this are taken as exactly collinear. Rounding in the reduction
# is about 1e-15; columns that are truly independent but nearly collinear (condition number up to 1e11) are kept.
RANK_TOLERANCE = 1e-11
ROUNDING = 64 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """All that least squares needs of its rows (x, y): their triangle, about a centre.

    The triangle is R, shape (p, d + 1) with p at most d + 1, where R'R is the weighted Gram matrix of the rows less the
    centre. That, shape (d + 1,), is the weighted mean with an intercept, zero without.
    """

    triangle: Floats
    centre: Floats

    @property
    def lhs(self) -> Floats:
        """The features' part of the triangle, shape (p, d)."""
        return self.triangle[:, :-1]

    @property
    def rhs(self) -> Floats:
        """The label's part of the triangle, shape (p,)."""
        return self.triangle[:, -1]

    def intercept(self, theta: Floats) -> float:
        """Compute the theta_0 that goes with theta."""
        return float(self.centre[-1] - self.centre[:-1] @ theta)


def reduce_rows(features: Floats, labels: Floats, weights: Floats, *, fit_intercept: bool) -> LinearProblem:
    """Reduce rows to a problem whose size does not depend on their number: sum_i w_i (x_i.theta + theta_0 - y_i)^2.

    X has shape (m, d); weights are non-negative, not all zero. theta_0 is zero if it is not fitted.
    """
    joined = np.column_stack([features, labels])
    # Centring is what an unpenalised intercept amounts to, without the cancellation of a column of ones.
    centre = weighted_mean(joined, weights) if fit_intercept else np.zeros(joined.shape[1])
    triangle = weighted_triangle(joined, weights, centre)
    # A constant column leaves its rounding behind, which must not be scaled up to a direction of its own.
    rounding = ROUNDING * np.sqrt(weights @ np.square(joined))
    triangle[:, np.linalg.norm(triangle, axis=0) <= rounding] = 0.0
    return LinearProblem(triangle, centre)


def weighted_mean(matrix: Floats, weights: Floats) -> Floats:
    """Compute the weighted mean of each column, to its last digit."""
    mean = np.average(matrix, axis=0, weights=weights)
    # Once more on what is left: the first mean of a long constant column is off by more than its last digit.
    return mean + np.average(matrix - mean, axis=0, weights=weights)


def weighted_triangle(matrix: Floats, weights: Floats, centre: Floats) -> Floats:
    """Reduce rows a_i, shape (m, p), to an upper triangular R with R'R = sum_i w_i (a_i - centre)(a_i - centre)'."""
    triangle: Floats = np.empty((0, matrix.shape[1]))
    for start in range(0, len(matrix), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        scaled = np.sqrt(weights[block])[:, None] * (matrix[block] - centre)
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle, scaled]), mode="r"))
    return triangle


def solve_ridge(problem: LinearProblem, penalty: float) -> Floats:
    """Minimise |R theta - r|^2 + penalty |theta|^2; of several minimisers give that of least norm in scaled columns.

    The penalty is n * l2.
    """
    d = problem.lhs.shape[1]
    lhs = np.vstack([problem.lhs, np.sqrt(penalty) * np.eye(d)])
    rhs = np.concatenate([problem.rhs, np.zeros(d)])
    scale = np.linalg.norm(lhs, axis=0)
    scale[scale == 0] = 1.0
    theta: Floats = np.linalg.lstsq(lhs / scale, rhs, rcond=RANK_TOLERANCE)[0] / scale
    # A column without any spread has no part in the minimum; lstsq gives it its rounding.
    theta[~problem.lhs.any(axis=0)] = 0.0
    return theta
