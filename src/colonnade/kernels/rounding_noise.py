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
from functools import cached_property

import numpy as np
import scipy

from colonnade.kernels.arrays import Floats
from colonnade.kernels.leverage import eigen

# A direction with a larger part of noise is taken to be noise alone.
MOST_NOISE = 0.5
# Eigenvalues below this part of the largest are none.
PRESENT = 1e-11
# Where all eigenvalues are above this part of their mean, sums of products say as much as rows do, to 1e-8.
FAR_FROM_SINGULAR = 1e-7
# A label has a part of its own where this part of its square is none of the features'.
OWN = 1e-12


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

    def taken_off(self, share: float) -> Floats:
        """Give the part of the noise, (r, r), that is subtracted where a share of it is, from 0 to 1."""
        less = np.where(self.is_clear, share * self.noise, 0.0)
        return np.asarray((self.back.T * less) @ self.back)


def parted(covariance: Floats, noise: Floats) -> Parted:
    """Take a covariance and the noise in it, both (r, r), apart; where there is no variance, there is no direction."""
    eigenvalues, V = eigen(covariance)
    there = eigenvalues > PRESENT * max(eigenvalues.max(initial=0.0), 1e-300)
    roots, V = np.sqrt(eigenvalues[there]), V[:, there]
    variance = _common(noise)
    if variance is not None:
        return Parted(V / roots, (V * roots).T, variance / eigenvalues[there])
    parts, U = eigen((V / roots).T @ noise @ (V / roots))
    return Parted(V / roots @ U, U.T @ (V * roots).T, np.maximum(parts, 0.0))


def _common(noise: Floats) -> float | None:
    """Give the variance of noise, (r, r), where that is the same along all directions."""
    variance = float(noise[0, 0]) if noise.size else 0.0
    return variance if np.array_equal(noise, variance * np.eye(len(noise))) else None


def _along(features: Floats, covariance: Floats, noise: Floats) -> Parted:
    variance, k = _common(noise), features.shape[1]
    own = features.T @ noise @ features if variance is None else variance * np.eye(k)
    return parted(features.T @ covariance @ features, own)


@dataclass(frozen=True, eq=False)
class RoundedColumns:
    """The parties' whitened columns side by side, rounded, and what is to be done about that.

    Parameters
    ----------
    rows : ndarray of float64, shape (m, r)
        As they came.
    weights : ndarray of float64, shape (m,)
        Non-negative, not all zero.
    noise : ndarray of float64, shape (r,)
        The variance of the rounding error in each column, on weighted average over rows.
    features : ndarray of float64, shape (r, p)
        Orthonormal: the directions of the columns that the features span.
    """

    rows: Floats
    weights: Floats
    noise: Floats
    features: Floats

    @cached_property
    def _shares(self) -> Floats:
        return np.asarray(self.weights / self.weights.sum())

    @cached_property
    def _centred(self) -> Floats:
        return np.asarray(self.rows - self.mean)

    @cached_property
    def _covariance(self) -> Floats:
        return _products(self._centred, self._shares)

    @cached_property
    def mean(self) -> Floats:
        """The weighted mean of rows, corrected or not, (r,)."""
        return np.asarray(self._shares @ self.rows)

    @cached_property
    def _inverse(self) -> Floats | None:
        """The inverse of the covariance, where it is far from singular."""
        C = self._covariance
        least = FAR_FROM_SINGULAR * float(C.trace()) / max(len(C), 1)
        return None if _triangle(C - least * np.eye(len(C))) is None else _inverted(C)

    @cached_property
    def _is_clear(self) -> bool:
        return _triangle(self._covariance - np.diag(self.noise / MOST_NOISE)) is not None

    def _noisy(self, inverse: Floats) -> tuple[Floats, Floats]:
        return (np.empty((len(inverse), 0)), np.empty(0)) if self._is_clear else _noisy(inverse, self.noise)

    def triangle(self, share: float) -> Floats | None:
        """Give an upper triangular R, (r, r), with R'R the weighted covariance of `corrected` rows.

        None where some direction is nearly lost: of such ones only rows tell.
        """
        if self._inverse is None:
            return None
        directions, parts = self._noisy(self._inverse)
        back = self._covariance @ directions
        return _triangle(self._covariance - share * (np.diag(self.noise) - (back * parts) @ back.T))

    @cached_property
    def _parted(self) -> Parted:
        return parted(self._covariance, np.diag(self.noise))

    @cached_property
    def _parted_features(self) -> Parted:
        return _along(self.features, self._covariance, np.diag(self.noise))

    def corrected(self, share: float) -> Floats:
        """Shrink rows, about their weighted mean, so that their weighted covariance is that before rounding.

        `share`, from 0 to 1, is how much of the noise to subtract. All rows shrink alike, whatever their own: the
        covariance is right, single rows of another variance are not.
        """
        found = self._parted
        kept = np.sqrt(np.where(found.is_clear, 1.0 - share * found.noise, 1.0))
        return np.asarray(self.rows + self._centred @ ((found.directions * (kept - 1.0)) @ found.back))

    def left(self, share: float) -> Floats:
        """Give the covariance, shape (r, r), of rounding that `corrected` leaves on average."""
        return np.asarray(np.diag(self.noise) - self._parted.taken_off(share))

    def worthwhile_share(self, label: Floats) -> float:
        """Estimate which share of the noise, from 0 to 1, is best subtracted; the label is rows @ label, (r,)."""
        inverse = self._clear_inverse(label)
        return _share_worth(inverse, self._covariance, self._centred, np.square(self._shares), self.noise, label)

    def _clear_inverse(self, label: Floats) -> Floats:
        """Invert the covariance of features along their directions that are more than noise.

        Where features lack nothing but the label's own part, it is the inverse for all columns less what that has.
        """
        own, (r, p) = label - self.features @ (self.features.T @ label), self.features.shape
        if self._inverse is None or p < r - (own @ own > OWN * (label @ label)):
            return _clear_inverse(self._parted_features, self.features)
        inverse = self._inverse
        if p < r:
            along = inverse @ own
            inverse = inverse - np.outer(along, along / (own @ along))
        directions, _ = self._noisy(inverse)
        # What rounding would leave of nothing is no direction.
        return np.asarray(inverse - directions @ directions.T if directions.shape[1] < p else np.zeros((r, r)))

    def hidden(self) -> Floats:
        """Find orthonormal directions of the features, shape (r, h), in which there is little or nothing but noise."""
        found = self._parted_features
        if len(found.noise) == self.features.shape[1] and found.is_clear.all():
            return np.empty((len(self.features), 0))
        # All that is orthogonal, as a form, to what is clear.
        return np.asarray(self.features @ scipy.linalg.null_space(found.back[found.is_clear], rcond=1e-9))


def share_worth(
    covariance: Floats, rows: Floats, squared_weights: Floats, noise: Floats, features: Floats, label: Floats
) -> float:
    """Estimate the share from a covariance and the noise in it, (r, r), and rows about their mean.

    With share a the excess loss changes by about (1 - a)^2 B + 2 a C. B = q'H^-1 q, where H is the features' covariance
    and q the gradient of the ridge that rounding amounts to, is the bias. C = tr(H^-1 N H^-1 Gamma), where N is the
    noise in features and Gamma the gradients' sampling covariance, is the variance that a smaller H costs. The best a
    is 1 - C / B, if that is positive. The rows, (m, r), have squares of weights, of a sum of 1, (m,).
    """
    inverse = _clear_inverse(_along(features, covariance, noise), features)
    return _share_worth(inverse, covariance, rows, squared_weights, np.diag(noise), label)


def _clear_inverse(found: Parted, features: Floats) -> Floats:
    """Invert the covariance of features, (r, r), along their directions that are more than noise."""
    directions = features @ found.directions[:, found.is_clear]
    return np.asarray(directions @ directions.T)


def _share_worth(
    inverse: Floats, covariance: Floats, rows: Floats, squared_weights: Floats, noise: Floats, label: Floats
) -> float:
    apart = inverse @ (covariance @ label) - label
    pull = noise * apart
    bias = float(pull @ inverse @ pull)
    gradients = _products(rows, squared_weights * np.square(rows @ apart))
    cost = float(noise @ np.einsum("ik,ik->i", inverse @ gradients, inverse))
    return max(0.0, 1.0 - cost / bias) if bias > 0 else 0.0


def _triangle(S: Floats) -> Floats | None:
    """Give an upper triangular R with R'R = S, (r, r), symmetric; None where S is not positive definite."""
    if not S.size:
        return S
    # Not NumPy's, as in `leverage.eigen`.
    R, failed = scipy.linalg.lapack.dpotrf(S)
    return None if failed else np.asarray(R)


def _inverted(S: Floats) -> Floats:
    """Invert a positive definite matrix, (r, r)."""
    if not S.size:
        return S
    upper, _ = scipy.linalg.lapack.dpotri(_triangle(S))
    return np.asarray(upper + np.triu(upper, 1).T)


def _noisy(inverse: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Find the directions, as `Parted` has them, that are half noise or more, and the part of each that is noise.

    The covariance has this inverse, (r, r), all directions times themselves, and the noise is (r,).
    """
    roots = np.sqrt(noise)[:, np.newaxis]
    parts, V, count, _, failed = scipy.linalg.lapack.dsyevr(
        roots * inverse * roots.T, range="V", vl=MOST_NOISE, vu=np.inf, lower=1
    )
    if failed:
        raise np.linalg.LinAlgError(f"eigenvalues of {len(noise)} columns were not found ({failed})")
    parts, V = parts[:count], V[:, :count]
    return np.asarray(inverse @ (roots * V) / np.sqrt(parts)), parts


def _products(rows: Floats, weights: Floats) -> Floats:
    """Compute sum_i w_i x_i x_i', (r, r): as a product with itself, of which BLAS makes only one half."""
    scaled = np.sqrt(weights)[:, np.newaxis] * rows
    return np.asarray(scaled.T @ scaled)


def corrected_covariance(covariance: Floats, noise: Floats, share: float) -> Floats:
    """Take a share of the noise off a covariance, both (r, r), as `RoundedColumns.corrected` does."""
    return np.asarray(covariance - parted(covariance, noise).taken_off(share))
