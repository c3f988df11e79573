"""Calibrated weights where rows are few for all moments: those that matter for a regression alone.

Coefficients are off by what drawn rows make of the sum of columns times residuals, which is 0 over all rows. A residual
is a sum of parts, each of one party's columns, and of products of such a part with the same party's columns the totals
over all rows are known. So there are two moments a column, itself and that product, in place of all products of two
columns. The residual is that of a fit with the weights as they come.

All moments cost far more, and where they are many for the rows (`calibration.are_too_many`) mostly gain less: beyond a
quarter a row the excess with these was 0.5 to 1.13 times as large, on a dozen real tables and 130 to 3,000 rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from colonnade.kernels.arrays import Floats
from colonnade.kernels.calibration import LEAST_FREE

# Of the ridge that holds weights back, in units of one moment's own mean square: at least, and for each moment a row.
STRENGTH, STRENGTH_OF_LOAD = 0.3, 2.0
# No row's weight becomes less: it may be the only one that tells of a level.
LEAST_KEPT = 0.5
# Of a column's variance, for directions that rows hardly tell of.
RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class ResidualMoments:
    """What weights are bent to.

    Parameters
    ----------
    rows : ndarray of float64, shape (m, p)
        The moments of each row, in units of their own mean square.
    missed : ndarray of float64, shape (p,)
        What weights as they come lack, likewise.
    chance : ndarray of float64, shape (m,)
        What of the weights, of a sum of about 1, is chance.
    """

    rows: Floats
    missed: Floats
    chance: Floats

    @property
    def strength(self) -> float:
        """Of the ridge."""
        return max(STRENGTH, STRENGTH_OF_LOAD * len(self.missed) / len(self.chance))


def residual_moments(
    weights: Floats,
    parties: Sequence[Floats],
    total: float,
    noise: Sequence[Floats],
    features: Floats,
    label: Floats,
    free: Floats,
) -> ResidualMoments:
    """Find the moments of a fit with weights w >= 0, shape (m,).

    Of the whitened columns side by side, features are along directions (r, p), and the label along (r,). The other
    parameters are those of `calibration.calibrate`.
    """
    w = weights / total
    residual = _residual(np.hstack(parties), w, features, label)
    ends = np.cumsum([u.shape[1] for u in parties])
    A, targets, end = np.ones((len(w), 1 + 2 * len(residual))), [np.ones(1)], 1
    for u, own, variance in zip(parties, np.split(residual, ends[:-1]), noise, strict=True):
        A[:, end : end + len(own)] = u
        np.multiply(u, (u @ own)[:, np.newaxis], out=A[:, end + len(own) : end + 2 * len(own)])
        targets += [np.zeros(len(own)), (1.0 + variance) * own]
        end += 2 * len(own)
    chance, missed, squares = w * free, np.concatenate(targets) - A.T @ w, np.square(A)
    scale = np.sqrt(np.maximum(chance @ squares, LEAST_FREE * (w @ squares)))
    scale[scale == 0] = 1.0
    A /= scale
    return ResidualMoments(A, missed / scale, chance)


def calibrate_residuals(weights: Floats, moments: ResidualMoments, total: float, free: Floats) -> Floats:
    """Bend weights towards these moments; all are then rescaled to add up to `total`."""
    B = np.sqrt(moments.chance)[:, np.newaxis] * moments.rows
    bent = free * (moments.rows @ _solved(B.T @ B, moments.strength, moments.missed))
    calibrated = weights * np.maximum(1.0 + bent, LEAST_KEPT)
    return np.asarray(calibrated * (total / calibrated.sum()))


def _residual(rows: Floats, w: Floats, features: Floats, label: Floats) -> Floats:
    """Fit the label, rows @ label, by features, rows @ features, and give residuals likewise."""
    centred = np.sqrt(w)[:, np.newaxis] * (rows - w @ rows / w.sum())
    covariance = centred.T @ centred
    rhs = features.T @ (covariance @ label)
    return np.asarray(label - features @ _solved(features.T @ covariance @ features, RIDGE, rhs))


def _solved(matrix: Floats, ridge: float, b: Floats) -> Floats:
    matrix.flat[:: len(matrix) + 1] += ridge
    return np.asarray(scipy.linalg.solve(matrix, b, assume_a="pos", overwrite_a=True, check_finite=False))
