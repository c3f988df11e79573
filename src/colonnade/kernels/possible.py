"""Whether numbers can be of any data at all: what a party tells of its rows in one place bounds what it can elsewhere.

Tolerances are wide: they are there for what rounding does to honest numbers, and lies that matter are larger.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from colonnade.kernels.arrays import Flags, Floats, Rows

# Relative, of what honest arithmetic may be off by.
ROUNDING = 1e-6
# Rows whose temporaries stay in the cache.
ROWS_AT_ONCE = 8192
# Squared distances that are off by more are none of which products are sure: squares of them may overflow.
LARGEST_SLACK = 1e80


def first_copies(rows: Rows) -> Rows:
    """Give the places of ascending rows, shape (m,), at which each stands for the first time."""
    is_first = np.ones(len(rows), np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


def each_once(rows: Rows) -> Rows:
    """List rows ascending, each once: NumPy's `unique` takes ten times as long for whole numbers, or more."""
    ordered = np.sort(rows)
    return ordered[first_copies(ordered)]


def moments_fit(values: Floats, parts: Floats, mean: float, variance: float, error: float) -> bool:
    """Tell whether some of all rows can have these values, where all have this mean and variance.

    Values and parts of the weight of all rows, shape (k,), are of distinct rows; each value is off by `error` at most.
    The other rows must take the mean to where it is: their squares about it are then at least those of their own mean.
    """
    seen = float(parts.sum())
    rest = max(1.0 - seen, ROUNDING)
    apart = values - mean
    error += ROUNDING * float(np.abs(values).max(initial=0.0))
    least = np.sqrt(parts @ np.square(apart) + (parts @ apart) ** 2 / rest)
    slack = error * np.sqrt(seen + seen**2 / rest)
    deviation = np.sqrt(variance) * (1 + ROUNDING)
    return bool(least <= deviation + slack and (rest > ROUNDING or deviation <= least + slack))


def norm_fits(values: Floats, most: float, error: float, order: Literal[2, "fro"] = 2) -> bool:
    """Tell whether distinct rows, shape (k, r), can be among all, of which this norm is at most `most`.

    No norm of some rows is larger than that of all. Each value is off by `error` at most.
    """
    if not values.size:
        return True
    limit = (most + error * np.sqrt(values.size)) * (1 + ROUNDING)
    return bool((_spectral_norm(values, limit) if order == 2 else np.linalg.norm(values)) <= limit)


def _spectral_norm(values: Floats, limit: float) -> float:
    """Compute the largest singular value, or a number that is at least that, where it is within the limit."""
    scale = float(np.abs(values).max()) or 1.0  # no square overflows
    scaled = values / scale
    products = scaled.T @ scaled if scaled.shape[0] > scaled.shape[1] else scaled @ scaled.T
    # No eigenvalue is larger than the largest sum of a row's magnitudes: of honest rows that is nearly always enough.
    most = scale * float(np.sqrt(np.abs(products).sum(axis=1).max()))
    return most if most <= limit else scale * float(np.sqrt(np.linalg.eigvalsh(products)[-1]))


@dataclass(frozen=True, eq=False)
class PossibleDistances:
    """Which squared distances points have to some centres, k of them.

    Differences of distances to two centres are linear in the point: they fix its place among the centres, and the rest
    of any distance is how far it is off there. Products with a few fixed columns settle nearly all rows that fit, by a
    tolerance that is no larger than it need be. The others are looked at one by one.

    Parameters
    ----------
    squares : ndarray of float64, shape (k,)
        Of the centres about their mean, A.
    U, S : ndarray of float64, shapes (k, r) and (r,)
        A = U S V', without directions that are lost in rounding.
    fixed : float
        What rounding is a part of, beside distances.
    is_full : bool
        Whether the centres span all columns.
    """

    squares: Floats
    U: Floats
    S: Floats
    fixed: float
    is_full: bool

    @classmethod
    def to(cls, centers: Floats) -> "PossibleDistances":
        """Look at centres, shape (k, d)."""
        n_centers, d = centers.shape
        if not n_centers or not d:
            return cls(np.zeros(n_centers), np.empty((n_centers, 0)), np.empty(0), 0.0, is_full=True)
        A = centers - centers.mean(axis=0)
        squares = np.square(A).sum(axis=1)
        U, S, _ = np.linalg.svd(A, full_matrices=False)
        kept = ROUNDING * S.max(initial=0.0) < S
        fixed = squares.max() + float(np.square(centers).max()) * ROUNDING
        return cls(squares, U[:, kept], S[kept], fixed, bool(np.count_nonzero(kept) == d))

    def fit(self, distances: Floats, error: Floats | float) -> Flags:
        """Tell which rows, shape (m, k), some point has; each distance is off by `error`, (m, 1) or one for all."""
        if self.is_full and not len(self.S):  # there are no columns, or no centres
            return np.asarray((distances <= error).all(axis=1))
        off_by = np.broadcast_to(error, (len(distances), 1))[:, 0]
        fits = np.empty(len(distances), np.bool_)
        for start in range(0, len(distances), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            fits[some] = self.fit_surely(distances[some].T, off_by[some])
        (doubtful,) = np.nonzero(~fits)
        fits[doubtful] = self._fit_closely(distances[doubtful], off_by[doubtful])
        return fits

    @cached_property
    def _products(self) -> "_Products":
        k, half = len(self.squares), (self.squares - self.squares.mean()) / 2
        return _Products(
            factors=np.vstack([self.U.T, np.full((1, k), k**-0.5), 4 * half]),
            taken_off=2 * (half @ self.U)[:, np.newaxis],
            inverses=self.S**-2.0 / 4,
            spread=4 * float(half @ half),
            mean_square=float(self.squares.mean()),
            slack=k**0.5 * ROUNDING * self.fixed,
        )

    def fit_surely(self, distances: Floats, error: Floats | float) -> Flags:
        """Tell which rows, here shape (k, m), fit by products; `error` is of shape (m,), or one.

        1e-8 of the distances may be lost in these: a hundredth of the tolerance.
        """
        (k, r), products = self.U.shape, self._products
        found = np.empty((r + 3, distances.shape[1]))
        np.matmul(products.factors, distances, out=found[:-1])
        np.einsum("li,li->i", distances, distances, out=found[-1])
        along, mean = found[:r], found[r]
        along -= products.taken_off
        slack, far = mean * ROUNDING, mean * k**-0.5
        slack += products.slack + k**0.5 * error
        far -= products.mean_square
        np.square(found[: r + 1], out=found[: r + 1])
        near = products.inverses @ along
        near -= far
        if self.is_full:
            np.abs(near, out=near)
        # Four times the square of how far distances are from any that points have.
        off = np.subtract.reduce(found[::-1], axis=0)
        off += products.spread
        fits = near <= slack
        fits &= (slack >= 0) & (slack <= LARGEST_SLACK)
        slack *= 2
        fits &= off <= np.square(slack, out=slack)
        return np.asarray(fits)

    def _fit_closely(self, distances: Floats, error: Floats) -> Flags:
        """Tell which rows fit by differences, of which nothing is lost."""
        squares, mean = self.squares, distances.mean(axis=1)
        target = (squares - squares.mean() - (distances - mean[:, np.newaxis])) / 2
        slack = np.sqrt(len(squares)) * (error + ROUNDING * (distances.max(axis=1) + self.fixed))
        along = target @ self.U
        off = np.linalg.norm(target - along @ self.U.T, axis=1)
        # How far the point is from the centres' mean, along them and in all.
        near, far = np.linalg.norm(along / self.S, axis=1), mean - squares.mean()
        loose = slack / self.S.min(initial=np.inf)
        fits = (off <= slack) & (far >= -slack) & (near <= np.sqrt(np.maximum(far + slack, 0.0)) + loose)
        if self.is_full:
            fits &= near >= np.sqrt(np.maximum(far - slack, 0.0)) - loose
        return np.asarray(fits)


@dataclass(frozen=True, eq=False)
class _Products:
    """What distances to centres are multiplied with, what is taken off, and what squares of it are."""

    factors: Floats
    taken_off: Floats
    inverses: Floats
    spread: float
    mean_square: float
    slack: float


def places_of(distances: Floats, d: int) -> Floats:
    """Give points, shape (p, d), that are apart as near to these squared distances, shape (p, p), as d columns allow.

    The inner products of points about their mean follow from distances (classical scaling).
    """
    centred = distances - distances.mean(axis=0) - distances.mean(axis=1)[:, np.newaxis] + distances.mean()
    values, vectors = np.linalg.eigh(-(centred + centred.T) / 4)
    points = np.zeros((len(distances), d))
    kept = min(d, len(distances))
    points[:, :kept] = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, len(values) - kept :]
    return points
