"""Least squares from parts: each party's columns in an orthonormal basis, and the inner products of these bases.

A Gram matrix squares the condition number. So a party tells the server the factor R of its own weighted, centred
columns (R'R is its own Gram matrix), and only products of orthonormal columns, all between -1 and 1, are computed
across parties. Columns that depend on each other inside one party are found with the tolerance of `linear`; across
parties, as far as the fixed point of the products shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.linear import RANK_TOLERANCE, ROUNDING, LinearProblem, weighted_mean


@dataclass(frozen=True, eq=False)
class LocalBasis:
    """A party's columns of some rows, taken apart: sqrt(w_i) (a_i - mean) = sum_k directions_ik factor_k.

    The weighted mean has shape (c,). R, the factor, has shape (c, c); its last lines are zero where columns depend on
    each other, or rows are few. Q, the directions, has shape (m, c): orthonormal columns, and zeros where R is.
    """

    mean: Floats
    factor: Floats
    directions: Floats


def local_basis(columns: Floats, weights: Floats) -> LocalBasis:
    """Take one party's weighted columns apart, shape (m, c), the label among them where it has it.

    Weights are non-negative, not all zero. The basis has the products across parties that the columns have.
    """
    n_columns = columns.shape[1]
    mean = weighted_mean(columns, weights)
    scaled = np.sqrt(weights)[:, None] * (columns - mean)
    norms = np.linalg.norm(scaled, axis=0)
    # A constant column leaves its rounding behind, which must not be scaled up to a direction of its own.
    norms[norms <= ROUNDING * np.sqrt(weights @ np.square(columns))] = 0.0
    scaled[:, norms == 0] = 0.0
    U, S, Vt = np.linalg.svd(scaled / np.where(norms > 0, norms, 1.0), full_matrices=False)
    smallest = RANK_TOLERANCE * S.max(initial=0.0)
    rank = np.count_nonzero(smallest < S)
    factor, directions = np.zeros((n_columns, n_columns)), np.zeros(columns.shape)
    factor[:rank] = S[:rank, None] * Vt[:rank] * norms
    directions[:, :rank] = U[:, :rank]
    return LocalBasis(mean, factor, directions)


@dataclass(frozen=True, eq=False)
class Summary:
    """All that least squares needs of some rows a = (x, y), whatever the centre.

    Their weights add up to `weight`; their weighted mean, the label's last, has shape (d + 1,). The triangle is R,
    shape (p, d + 1), with R'R = sum_i w_i (a_i - mean)(a_i - mean)'.
    """

    weight: float
    mean: Floats
    triangle: Floats

    def about(self, centre: Floats) -> Floats:
        """Give R with R'R = sum_i w_i (a_i - centre)(a_i - centre)'; shape (at most d + 1, d + 1)."""
        moved = np.sqrt(self.weight) * (self.mean - centre)
        return np.asarray(np.linalg.qr(np.vstack([self.triangle, moved]), mode="r"))

    def problem(self, *, fit_intercept: bool) -> LinearProblem:
        """Give the least-squares problem of the rows."""
        if fit_intercept:
            return LinearProblem(self.triangle, self.mean)
        return LinearProblem(self.about(np.zeros_like(self.mean)), np.zeros_like(self.mean))


def join_bases(factors: Sequence[Floats], products: Floats, tolerance: float) -> Floats:
    """Put parties' columns together: R, shape (p, c), with R'R the Gram matrix of all columns.

    The factors R_j have shapes (c_j, c_j), and c is the sum of the c_j. `products`, shape (c, c), is Q'Q of all
    parties' directions side by side; what belongs to zero directions is zero. Directions of less than the tolerance are
    taken as exactly dependent: what is left of them is rounding.
    """
    values, vectors = np.linalg.eigh(products)
    kept = values > tolerance
    root = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    ends = np.cumsum([len(factor) for factor in factors])
    starts = ends - [len(factor) for factor in factors]
    blocks = [root[:, start:end] @ factor for start, end, factor in zip(starts, ends, factors, strict=True)]
    return np.hstack(blocks)


def merge(summaries: Sequence[Summary]) -> Summary:
    """Sum up the rows of several summaries, all different, as one; one summary at least has weight."""
    if len(summaries) == 1:
        return summaries[0]
    weights = np.array([each.weight for each in summaries])
    mean = np.average([each.mean for each in summaries], axis=0, weights=weights)
    triangle = np.asarray(np.linalg.qr(np.vstack([each.about(mean) for each in summaries]), mode="r"))
    # Means of a constant column differ by rounding, which is no direction of its own.
    rounding = ROUNDING * np.sqrt(weights.sum()) * np.abs(mean)
    triangle[:, np.linalg.norm(triangle, axis=0) <= rounding] = 0.0
    return Summary(float(weights.sum()), mean, triangle)
