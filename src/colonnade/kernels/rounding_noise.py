"""Least squares on rounded rows: what rounding adds to the Gram matrix is taken off again, where that helps.

A rounding error of variance s in a whitened value adds s to the rows' covariance, as a ridge would. Subtracting it
undoes the bias, but not safely: a direction in which the columns of several parties are collinear has nothing left but
rounding, and rounding minus its variance is near zero or negative. So it is subtracted only where less than half of the
variance is rounding. And the subtraction costs variance, which for few rows is more than the bias it removes: the share
of s that is best subtracted is estimated from the rows themselves, and is zero where it would not pay.

Some columns are not rounded, so the noise is given for each, and directions are those along which both, covariance and
noise, have no part of any other: of variance 1, with a part of noise, from 0 to 1.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from colonnade.kernels.arrays import Floats
from colonnade.kernels.leverage import eigen

# A direction with a larger part of noise is taken to be noise alone.
MOST_NOISE = 0.5
# Eigenvalues below this part of the largest are none.
PRESENT = 1e-11


@dataclass(frozen=True, eq=False)
class Parted:
    """A covariance C and the noise N in it, along k directions.

    Parameters
    ----------
    directions : ndarray of float64, shape (r, k)
        directions'C directions = I, and directions'N directions is diagonal.
    back : ndarray of float64, shape (k, r)
        Leads from coordinates along them to the columns: C = back'back.
    noise : ndarray of float64, shape (k,)
        Which part of the variance is noise.
    """

    directions: Floats
    back: Floats
    noise: Floats

    @property
    def is_clear(self) -> np.ndarray:
        """Whether a direction is more than noise, (k,)."""
        return np.asarray(self.noise < MOST_NOISE)


def parted(covariance: Floats, noise: Floats) -> Parted:
    """Take a covariance and the noise in it, both (r, r), apart; where there is no variance, there is no direction."""
    eigenvalues, V = eigen(covariance)
    there = eigenvalues > PRESENT * max(eigenvalues.max(initial=0.0), 1e-300)
    roots, V = np.sqrt(eigenvalues[there]), V[:, there]
    parts, U = eigen((V / roots).T @ noise @ (V / roots))
    return Parted(V / roots @ U, U.T @ (V * roots).T, np.maximum(parts, 0.0))


def correct_rows(rows: Floats, weights: Floats, noise: Floats, share: float) -> Floats:
    """Shrink rounded rows, about their weighted mean, so that their weighted covariance is that before rounding.

    The rows, shape (m, r), are the parties' whitened columns side by side; the weights are non-negative, not all zero.
    `noise`, (r,), is the variance of the rounding error in each column, on weighted average over rows, and `share` how
    much of it to subtract, from 0 to 1. All rows shrink alike, whatever their own: the covariance is right, single rows
    of another variance are not.
    """
    centred = _about_mean(rows, weights)
    found = parted(_covariance(centred, weights), np.diag(noise))
    kept = np.sqrt(np.where(found.is_clear, 1.0 - share * found.noise, 1.0))
    return np.asarray(rows + (centred @ (found.directions * (kept - 1.0))) @ found.back)


def worthwhile_share(rows: Floats, weights: Floats, noise: Floats, features: Floats, label: Floats) -> float:
    """Estimate which share of the rounding variance, from 0 to 1, is best subtracted.

    `features`, shape (r, p), are orthonormal: the directions of the whitened columns that the features span. The label
    is rows @ label, up to its mean. The other parameters are those of `correct_rows`.
    """
    centred = _about_mean(rows, weights)
    squared_weights = np.square(weights / weights.sum())
    return share_worth(_covariance(centred, weights), centred, squared_weights, np.diag(noise), features, label)


def share_worth(
    covariance: Floats, rows: Floats, squared_weights: Floats, noise: Floats, features: Floats, label: Floats
) -> float:
    """Estimate the share from a covariance and the noise in it, (r, r), and rows about their mean.

    With share a the excess loss changes by about (1 - a)^2 B + 2 a C. B = q'H^-1 q, where H is the features' covariance
    and q the gradient of the ridge that rounding amounts to, is the bias. C = tr(H^-1 N H^-1 Gamma), where N is the
    noise in features and Gamma the gradients' sampling covariance, is the variance that a smaller H costs. The best a
    is 1 - C / B, if that is positive. The rows, (m, r), have squares of weights, of a sum of 1, (m,).
    """
    found = parted(features.T @ covariance @ features, features.T @ noise @ features)
    directions, parts = features @ found.directions[:, found.is_clear], found.noise[found.is_clear]
    coefficients = directions.T @ (covariance @ label)
    axes = rows @ directions
    residuals = axes @ coefficients - rows @ label
    pull = parts * coefficients - directions.T @ (noise @ label)
    bias = float(pull @ pull)
    cost = float((squared_weights * np.square(residuals)) @ np.square(axes) @ parts)
    return max(0.0, 1.0 - cost / bias) if bias > 0 else 0.0


def corrected_covariance(covariance: Floats, noise: Floats, share: float) -> Floats:
    """Take a share of the noise off a covariance, both (r, r), as `correct_rows` does."""
    found = parted(covariance, noise)
    less = np.where(found.is_clear, share * found.noise, 0.0)
    return np.asarray(covariance - (found.back.T * less) @ found.back)


def noise_left(rows: Floats, weights: Floats, noise: Floats, share: float) -> Floats:
    """Give the covariance, shape (r, r), of rounding that `correct_rows` leaves on average; the parameters are its."""
    centred = _about_mean(rows, weights)
    found = parted(_covariance(centred, weights), np.diag(noise))
    less = np.where(found.is_clear, share * found.noise, 0.0)
    return np.asarray(np.diag(noise) - (found.back.T * less) @ found.back)


def hidden_directions(rows: Floats, weights: Floats, noise: Floats, features: Floats) -> Floats:
    """Find orthonormal directions of the features, shape (r, h), in which there is little or nothing but rounding.

    The parameters are those of `worthwhile_share`.
    """
    centred = _about_mean(rows, weights)
    found = parted(_covariance(centred @ features, weights), features.T @ (noise[:, np.newaxis] * features))
    # All that is orthogonal, as a form, to what is clear.
    return np.asarray(features @ scipy.linalg.null_space(found.back[found.is_clear], rcond=1e-9))


def _about_mean(rows: Floats, weights: Floats) -> Floats:
    return np.asarray(rows - weights @ rows / weights.sum())


def _covariance(centred: Floats, weights: Floats) -> Floats:
    return np.asarray((centred * (weights / weights.sum())[:, np.newaxis]).T @ centred)
