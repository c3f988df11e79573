"""Calibrated weights: a coreset's weights, bent a little so that its moments are those of all rows.

In whitened columns the moments of all rows are known: mean 0, second moments the identity, party by party. A draw
misses them by chance. The weights w_i (1 + lambda.a_i), with a_i the row's 1, u and u u', hit them (the generalised
regression estimator of survey sampling). There are many moments, so lambda is held back by a ridge: it solves

    (D^-1 A'WA D^-1 + strength I) D lambda = D^-1 (targets - A'w),

with D^2 the diagonal of A'WA. The strength is thus in units of one moment's own mean square: at 1 a moment that is
unrelated to the others is corrected by half, at 0.1 by ten elevenths.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats

# Few rows cannot meet many moments without weights that vary more than they gain. Measured on KC House (120 moments).
FEW_ROWS, STRENGTH_OF_FEW, STRENGTH = 300, 1.0, 0.1
ACCURACY, MOST_ITERATIONS = 1e-6, 200
# For `what_is_left`, which makes the matrix of all of them.
MOST_MOMENTS, MOST_LEVERAGE = 600, 0.9


def calibration_strength(size: int) -> float:
    """Choose how much to hold back the calibration of so many rows."""
    return STRENGTH_OF_FEW if size <= FEW_ROWS else STRENGTH


@dataclass(frozen=True, eq=False)
class _Moments:
    """One number for each moment: of 1, of each party's u, and of each party's u u'."""

    count: Floats
    firsts: tuple[Floats, ...]
    seconds: tuple[Floats, ...]

    def combine(self, other: "_Moments", op: Callable[[Floats, Floats], Floats]) -> "_Moments":
        return _Moments(
            op(self.count, other.count),
            tuple(op(a, b) for a, b in zip(self.firsts, other.firsts, strict=True)),
            tuple(op(a, b) for a, b in zip(self.seconds, other.seconds, strict=True)),
        )

    def __mul__(self, factor: float) -> "_Moments":
        return self.combine(self, lambda a, _: a * factor)

    def dot(self, other: "_Moments") -> float:
        products = self.combine(other, np.multiply)
        return float(products.count.sum() + sum(a.sum() for a in (*products.firsts, *products.seconds)))


def calibrate(weights: Floats, parties: Sequence[Floats], total: float, variance: float, strength: float) -> Floats:
    """Bend weights w >= 0, shape (m,), towards the known moments of the parties' whitened columns, shapes (m, r_j).

    `variance` is of the rounding error of each value, 0 where there is none: rounded rows have second moments 1 +
    variance. `strength` is of the ridge, positive. A weight that would become negative is 0, and all are then rescaled
    to add up to `total`, the weight of all rows.
    """
    # Seen from the mean weight: no quantity depends on the scale of the weights.
    w = weights / total
    squares = [np.square(u) for u in parties]
    # The square roots of the diagonal of A'WA: what a moment varies by from row to row.
    scale = _sums(w, squares, squares, np.ones(1) * w.sum())
    scale = scale.combine(scale, lambda a, _: np.sqrt(np.where(a > 0, a, 1.0)))
    targets = _Moments(
        np.ones(1),
        tuple(np.zeros(u.shape[1]) for u in parties),
        tuple((1.0 + variance) * np.eye(u.shape[1]) for u in parties),
    )
    missed = targets.combine(_moments(w, parties), np.subtract).combine(scale, np.divide)

    def normal(x: _Moments) -> _Moments:
        change = w * _apply(x.combine(scale, np.divide), parties)
        return _moments(change, parties).combine(scale, np.divide).combine(x * strength, np.add)

    factors = 1.0 + _apply(_conjugate_gradients(normal, missed).combine(scale, np.divide), parties)
    calibrated = w * np.maximum(factors, 0.0)
    return np.asarray(calibrated * (total / calibrated.sum()))


def _moments(w: Floats, parties: Sequence[Floats]) -> _Moments:
    """A'w, shape by shape."""
    return _sums(w, parties, parties, np.ones(1) * w.sum())


def _sums(w: Floats, firsts: Sequence[Floats], pairs: Sequence[Floats], count: Floats) -> _Moments:
    return _Moments(count, tuple(w @ u for u in firsts), tuple((u * w[:, np.newaxis]).T @ u for u in pairs))


def _apply(x: _Moments, parties: Sequence[Floats]) -> Floats:
    """Compute A x, one number a row."""
    values = np.full(len(parties[0]), x.count[0])
    for u, first, second in zip(parties, x.firsts, x.seconds, strict=True):
        values += np.einsum("ij,ij->i", u @ second + first, u)
    return values


def _conjugate_gradients(normal: Callable[[_Moments], _Moments], b: _Moments) -> _Moments:
    """Solve normal(x) = b: the matrix itself would have the square of some thousand entries."""
    x, residual, direction = b * 0.0, b, b
    square = first = b.dot(b)
    for _ in range(MOST_ITERATIONS):
        if square <= ACCURACY**2 * first:
            break
        image = normal(direction)
        length = square / direction.dot(image)
        x = x.combine(direction * length, np.add)
        residual = residual.combine(image * length, np.subtract)
        last, square = square, residual.dot(residual)
        direction = residual.combine(direction * (square / last), np.add)
    return x


def what_is_left(values: Floats, weights: Floats, parties: Sequence[Floats], total: float, strength: float) -> Floats:
    """Take off values, (m, p), what calibration corrects of their sums: only the rest still varies from draw to draw.

    These are the values less their ridge regression on the moments, each as predicted from the other rows. Where there
    are very many moments, the values themselves: they vary more. The other parameters are those of `calibrate`, before
    it.
    """
    if sum(u.shape[1] * (u.shape[1] + 3) // 2 for u in parties) > MOST_MOMENTS:
        return values
    w = weights / total
    A = np.hstack([np.ones((len(w), 1)), *(_own_moments(u) for u in parties)])
    scale = np.sqrt(w @ np.square(A))
    A /= np.where(scale > 0, scale, 1.0)
    inverse = np.linalg.inv((A * w[:, np.newaxis]).T @ A + strength * np.eye(A.shape[1]))
    leverage = np.minimum(w * np.einsum("ij,ij->i", A @ inverse, A), MOST_LEVERAGE)
    rests = values - A @ (inverse @ (A.T @ (w[:, np.newaxis] * values)))
    return np.asarray(rests / (1.0 - leverage)[:, np.newaxis])


def _own_moments(u: Floats) -> Floats:
    first, second = np.triu_indices(u.shape[1])
    return np.hstack([u, u[:, first] * u[:, second]])
