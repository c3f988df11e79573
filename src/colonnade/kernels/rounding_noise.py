"""Least squares on rounded rows: what rounding adds to the Gram matrix is taken off again, where that helps.

A rounding error of variance s in every whitened value adds s to each eigenvalue of the rows' covariance, as a ridge
would. Subtracting s undoes the bias, but not safely: a direction in which the columns of several parties are collinear
has nothing left but rounding, and rounding minus its variance is near zero or negative. So s is subtracted only where
the eigenvalue is more than twice s (in the parties' whitened columns the generalised eigenvalues of Gram matrix and
rounding are the plain ones). And the subtraction costs variance, which for few rows is more than the bias it removes:
the share of s that is best subtracted is estimated from the rows themselves, and is zero where it would not pay.
"""

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.leverage import eigen

# A direction with less is taken to be rounding alone.
TIMES_THE_VARIANCE = 2.0


def mean_variance(variance: float | Floats, weights: Floats) -> float:
    """Give the weighted mean of a variance that may differ by row, shape (m,)."""
    return float(weights @ variance / weights.sum()) if isinstance(variance, np.ndarray) else variance


def correct_rows(rows: Floats, weights: Floats, variance: float | Floats, share: float) -> Floats:
    """Shrink rounded rows, about their weighted mean, so that their weighted covariance is that before rounding.

    The rows, shape (m, r), are the parties' whitened columns side by side; the weights are non-negative, not all zero.
    `variance` is s, of the rounding error of each value, for all rows or for each, (m,), and `share` how much of it to
    subtract, from 0 to 1. What rounding adds to the covariance is the weighted mean of s. All rows shrink alike,
    whatever their own: the covariance is right, single rows of another variance are not.
    """
    s = mean_variance(variance, weights)
    mean = weights @ rows / weights.sum()
    eigenvalues, V = _spectrum(rows, weights)
    safe = eigenvalues > TIMES_THE_VARIANCE * s
    kept = np.where(safe, 1.0 - share * s / np.where(safe, eigenvalues, 1.0), 1.0)
    return np.asarray(mean + (rows - mean) @ ((V * np.sqrt(kept)) @ V.T))


def worthwhile_share(rows: Floats, weights: Floats, variance: float | Floats, features: Floats, label: Floats) -> float:
    """Estimate which share of the rounding variance, from 0 to 1, is best subtracted.

    With share a the excess loss changes by about (1 - a)^2 s^2 B + 2 a s C. B = q'H^-1 q, where H is the features'
    covariance and q the gradient of the ridge that rounding amounts to, is the bias. C = tr(H^-1 Gamma H^-1), where
    Gamma is the gradients' sampling covariance, is the variance that a smaller H costs. The best a is 1 - C / (s B), if
    that is positive.

    `features`, shape (r, p), are orthonormal: the directions of the whitened columns that the features span. The label
    is rows @ label, up to its mean. The other parameters are those of `correct_rows`; s is the mean there too, while
    Gamma has every row's own residual, and so its own variance.
    """
    s, w = mean_variance(variance, weights), weights / weights.sum()
    centred = rows - w @ rows
    Z, y = centred @ features, centred @ label
    eigenvalues, V = eigen((Z * w[:, np.newaxis]).T @ Z)
    safe = eigenvalues > TIMES_THE_VARIANCE * s
    eigenvalues, A, directions = eigenvalues[safe], Z @ V[:, safe], features @ V[:, safe]
    coefficients = (w * y) @ A / eigenvalues
    residuals = A @ coefficients - y
    bias = float(np.sum(np.square(coefficients - label @ directions) / eigenvalues))
    cost = float(np.sum((np.square(w * residuals) @ np.square(A)) / np.square(eigenvalues)))
    return max(0.0, 1.0 - cost / (s * bias)) if s * bias > 0 else 0.0


def noise_left(rows: Floats, weights: Floats, variance: float | Floats, share: float) -> Floats:
    """Give the covariance, shape (r, r), of rounding that `correct_rows` leaves on average; the parameters are its."""
    s = mean_variance(variance, weights)
    eigenvalues, V = _spectrum(rows, weights)
    safe = V[:, eigenvalues > TIMES_THE_VARIANCE * s]
    return s * (np.eye(len(V)) - share * safe @ safe.T)


def hidden_directions(rows: Floats, weights: Floats, variance: float | Floats, features: Floats) -> Floats:
    """Find orthonormal directions of the features, shape (r, h), in which there is little or nothing but rounding.

    The parameters are those of `worthwhile_share`.
    """
    eigenvalues, V = _spectrum(rows @ features, weights)
    return np.asarray(features @ V[:, eigenvalues <= TIMES_THE_VARIANCE * mean_variance(variance, weights)])


def _spectrum(rows: Floats, weights: Floats) -> tuple[Floats, Floats]:
    w = weights / weights.sum()
    centred = rows - w @ rows
    return eigen((centred * w[:, np.newaxis]).T @ centred)
