"""Calibrated weights where rows are few for all moments of wide parties: those that matter for the model alone.

A model's coefficients are off by what drawn rows make of the sum of columns times residuals, which is 0 over all rows.
A residual is a sum of parts of each party's own columns, and of these parts' products with the party's columns, the
totals of all rows are known. So there are two moments a column, itself and that product, in place of all products of
columns. The residual is that of a fit with the weights as they come.

Of more than `MOST_LOAD` moments a row, all of them cost far more and gain less: at that load on six real tables the
excess was 0.6 to 0.9 times as large with these.
"""

from collections.abc import Sequence

import numpy as np
import scipy

from colonnade.kernels.arrays import Floats
from colonnade.kernels.calibration import LEAST_FREE

# Of moments a row: beyond, not all of them are met.
MOST_LOAD = 4
STRENGTH = 0.3
# No row loses more: it may be the only one that tells of a level.
LEAST_KEPT = 0.5
# Of the columns' variance, for directions that rows hardly tell of.
RIDGE = 1e-3


def are_too_many(widths: Sequence[int], size: int) -> bool:
    """Tell whether all moments of parties with so many whitened columns are too many for so many rows."""
    return 1 + sum(r * (r + 3) // 2 for r in widths) > MOST_LOAD * size


def calibrate_residuals(
    weights: Floats,
    parties: Sequence[Floats],
    total: float,
    noise: Sequence[Floats],
    features: Floats,
    label: Floats,
    free: Floats,
) -> Floats:
    """Bend weights w >= 0, shape (m,), towards what is known of residuals of a fit with them.

    Of the whitened columns side by side, features are along directions (r, p), and the label along (r,). The other parameters are those of `calibration.calibrate`; all weights are rescaled to add up to `total`.
    """
    w = weights / total
    residual = _residual(np.hstack(parties), w, features, label)
    ends = np.cumsum([u.shape[1] for u in parties])
    columns, targets = [np.ones((len(w), 1))], [np.ones(1)]
    for u, own, variance in zip(parties, np.split(residual, ends[:-1]), noise, strict=True):
        columns += [u, u * (u @ own)[:, np.newaxis]]
        targets += [np.zeros(len(own)), (1.0 + variance) * own]
    A, missed = np.hstack(columns), np.concatenate(targets)
    missed -= A.T @ w
    squares = np.square(A)
    scale = np.sqrt(np.maximum((w * free) @ squares, LEAST_FREE * (w @ squares)))
    scale[scale == 0] = 1.0
    A /= scale
    B = np.sqrt(w * free)[:, np.newaxis] * A
    lhs = B.T @ B
    lhs.flat[:: len(lhs) + 1] += STRENGTH
    bent = free * (A @ scipy.linalg.solve(lhs, missed / scale, assume_a="pos", check_finite=False))
    calibrated = w * np.maximum(1.0 + bent, LEAST_KEPT)
    return np.asarray(calibrated * (total / calibrated.sum()))


def _residual(rows: Floats, w: Floats, features: Floats, label: Floats) -> Floats:
    """Fit the label, rows @ label, by features, rows @ features, and give residuals likewise."""
    centred = rows - w @ rows / w.sum()
    centred *= np.sqrt(w)[:, np.newaxis]
    covariance = centred.T @ centred
    lhs = features.T @ covariance @ features
    lhs.flat[:: len(lhs) + 1] += RIDGE
    rhs = features.T @ (covariance @ label)
    return np.asarray(label - features @ scipy.linalg.solve(lhs, rhs, assume_a="pos", check_finite=False))
