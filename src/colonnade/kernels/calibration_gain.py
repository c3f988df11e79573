"""What calibrated weights take off the variance of what is learned, told from the rows of a pilot.

A calibrated sum is that of what moments leave unexplained, plus what a regression on them adds by being fitted to the
same rows. With p moments and m rows that is the risk of ridge regression on new rows.
"""

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from colonnade.kernels.arrays import Floats

# What moments explain is estimated at this strength of the ridge, where rows are few and moments many.
PILOT_STRENGTH = 1.0
# What moments explain where nothing else is known of it, and how surely (1 over a variance). Measured on KC House
# and the YearPredictionMSD twin.
USUALLY_EXPLAINED = (0.5, 1 / 0.15**2)
MOST_EXPLAINED = 0.9


def ridge_risk(explained: float, load: float, strength: float) -> float:
    """Give the error of ridge regression on new rows, relative to the variance of what is predicted.

    Many rows would explain the part `explained` of that variance; `load` is how many predictors there are for each row,
    and `strength` is in units of a predictor's mean square. For uncorrelated predictors, in the limit of many of them.
    """
    ridge = strength + load
    for _ in range(200):
        ridge = strength + ridge * load / (1 + ridge)
    kept = ridge / (1 + ridge)
    return (1 - explained + explained * kept**2) / (1 - load / (1 + ridge) ** 2)


def explained_part(parties: Sequence[Floats], w: Floats, gradients: Floats) -> float:
    """Estimate which part of the gradients' variance moments explain, in the limit of many rows: from 0 to 0.9.

    Each row's gradient is predicted from its moments by the other rows: a ridge, in the form of kernels. The parties'
    whitened columns of a pilot's rows have shapes (m0, r_j); the weights w, shape (m0,), add up to about 1; the
    gradients of the rows' losses, shape (m0, p), are in units in which all directions count alike.
    """
    kernel = np.ones((len(w), len(w)))
    n_moments = 1
    for u in parties:
        r = u.shape[1]
        if not r:
            continue
        n_moments += r * (r + 3) // 2
        products = u @ u.T
        norms = np.diag(products)
        # All moments with one mean square: one for each column, and one for each pair of columns.
        kernel += products * (r / (w @ norms)) + np.square(products) * (r**2 / (w @ np.square(norms)))
    root = np.sqrt(w)[:, np.newaxis]
    # With B the kernel plus its strength, a ridge misses B^-1 y; over the diagonal of B^-1, without a row's own part.
    one = np.eye(len(w))
    L = scipy.linalg.solve_triangular(
        np.linalg.cholesky(root * kernel * root.T + PILOT_STRENGTH * one), one, lower=True, check_finite=False
    )
    missed = L.T @ (L @ (root * gradients)) / np.square(L).sum(axis=0)[:, np.newaxis]
    total = float(np.sum(w @ (w[:, np.newaxis] * np.square(gradients))))
    if total <= 0:
        return 0.0
    seen = float(np.sum(w @ np.square(missed))) / total
    # Turn `ridge_risk` round: it is linear in what is explained. The fewer rows for the moments, the less they tell.
    load = n_moments / len(w)
    none, all_of_it = (ridge_risk(part, load, PILOT_STRENGTH) for part in (0.0, 1.0))
    found, precision = (none - seen) / (none - all_of_it), len(w) * (none - all_of_it) ** 2 / (1 + load)
    usual, usual_precision = USUALLY_EXPLAINED
    weighted_mean = (precision * found + usual_precision * usual) / (precision + usual_precision)
    return float(np.clip(weighted_mean, 0.0, MOST_EXPLAINED))
