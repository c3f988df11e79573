"""What calibrated weights leave of values, with the variance that it had before the fit to these rows.

A fit makes errors that are unrelated to the moments smaller, by (I - H)^2 with H the ridge regression's hat matrix.
Weights that are calibrated are as much more uneven. Rests are those of the ridge regression of `calibration`; each is
then divided by the root of its entry on the diagonal of (I - H)^2.

Few moments are written out. Many are not: I - H is strength (K + strength I)^-1, where K has the products of the rows'
moments. A product of all u_a u_b is the square of a product of the u, so K takes no more than the columns do, if the
moment u_a u_b counts v_a v_b. That it does nearly, as columns are turned at random: on four real tables standard errors
were off by a part in 1,000 on average, and by 1 to 2 in 100 upwards because the diagonal is estimated, by random signs.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy

from colonnade.kernels.arrays import Floats
from colonnade.kernels.calibration import LEAST_FREE, moments_of, scaled_moments, turn

# So many products take half a second; and where there are so many moments a row, a fit explains next to nothing.
MOST_PRODUCTS, MOST_LOAD = 1e10, 4
# Of moments a row: up to here it is faster to write them out.
FEW_MOMENTS = 0.25
# No rest is taken for smaller than this part of what is usual.
LEAST_LEFT = 0.01
# By which the diagonal is estimated: each entry is off by a sixth, what many rows add up to by 1 or 2 parts in 100.
N_SIGNS = 64
# Of a pass: so few that what is made of them stays in the cache.
CHUNK_ROWS = 64
# K has a trace of MOST_LOAD m at most, and the ridge, 0.1 or 1, below it: seven digits are enough, and twice as fast.
Singles = npt.NDArray[np.float32]


def fitted_rests(
    values: Floats, weights: Floats, parties: Sequence[Floats], total: float, strength: float, free: Floats
) -> Floats:
    """Take off values, (m, p), what calibration corrects of their sums, and undo what the fit did to the rest.

    Where rows or moments are very many, the values themselves: they vary more. The other parameters are those of
    `calibrate`, before it.
    """
    n_moments, m = moments_of(parties), len(weights)
    if m * n_moments * min(m, n_moments) > MOST_PRODUCTS or n_moments > MOST_LOAD * m:
        return values
    w = weights / total
    if n_moments <= FEW_MOMENTS * m:
        return rests_of_moments(values, *scaled_moments(w, parties, free), strength)
    roots = np.sqrt(w * free)[:, np.newaxis]
    return _as_before(values, roots, *_by_rows(roots * values, w, parties, strength, free))


def rests_of_moments(values: Floats, A: Floats, chance: Floats, strength: float) -> Floats:
    """Do the same by the moments of each row, (p, m), of which (m,) of the weight is chance."""
    roots = np.sqrt(chance)
    A, scaled = A * roots, roots[:, np.newaxis] * values
    back = np.linalg.inv(A @ A.T + strength * np.eye(len(A))) @ A
    # H is A'back, and its square H - strength back'back.
    left = 1.0 - np.einsum("ki,ki->i", A, back) - strength * np.einsum("ki,ki->i", back, back)
    return _as_before(values, roots[:, np.newaxis], scaled - A.T @ (back @ scaled), left)


def _as_before(values: Floats, roots: Floats, rests: Floats, left: Floats) -> Floats:
    """Give rests the variance that they had before the fit, of which so much is left, (m,)."""
    # A row that is right as it is takes no part in the fit.
    scale = np.where(roots > 0, roots * np.sqrt(np.maximum(left, LEAST_LEFT * left.mean()))[:, np.newaxis], 1.0)
    return np.where(roots > 0, rests / scale, values)


def _by_rows(
    values: Floats, w: Floats, parties: Sequence[Floats], strength: float, free: Floats
) -> tuple[Floats, Floats]:
    """Give the same, nearly, by products of rows."""
    K = _products(w, parties, free)
    K.flat[:: len(w) + 1] += np.float32(strength)
    factor = scipy.linalg.cholesky(K.T, overwrite_a=True, check_finite=False)
    # The same each time. R z, with R = I - H and random signs z, has squares of mean diag(R^2).
    signs = np.random.default_rng(len(w)).choice([-1.0, 1.0], size=(len(w), N_SIGNS))
    lengths = np.linalg.norm(values, axis=0)
    lengths[lengths == 0] = 1.0
    both = np.hstack([values / lengths, signs]).astype(np.float32)
    rests = strength * scipy.linalg.cho_solve((factor, False), both, check_finite=False).astype(np.float64)
    return rests[:, :-N_SIGNS] * lengths, np.square(rests[:, -N_SIGNS:]).mean(axis=1)


def _products(w: Floats, parties: Sequence[Floats], free: Floats) -> Singles:
    """Compute the products of the rows' moments, (m, m), on and below the diagonal."""
    chance = w * free
    roots = np.sqrt(chance)[:, np.newaxis]
    columns, factors, squared = [np.ones((len(w), 1))], [_inverse(chance.sum(keepdims=True), w.sum(keepdims=True))], []
    for u in (u @ turn(u.shape[1]) for u in parties):
        squares = np.square(u)
        pairs = _inverse(squares.T @ (chance[:, np.newaxis] * squares), squares.T @ (w[:, np.newaxis] * squares))
        v = _side(pairs)
        columns += [u, squares]
        # Those of a square are known as they are; the square of a sum has all other pairs twice.
        factors += [_inverse(chance @ squares, w @ squares), np.diag(pairs) - np.square(v) / 2]
        squared.append(_sides(np.sqrt(roots) * u, v / np.sqrt(2)))
    linear = _sides(roots * np.hstack(columns), np.concatenate(factors))
    K = np.zeros((len(w), len(w)), np.float32)
    for start in range(0, len(w), CHUNK_ROWS):
        some, until = slice(start, start + CHUNK_ROWS), slice(min(start + CHUNK_ROWS, len(w)))
        K[some, until] = linear[0][some] @ linear[1][until].T
        for left, right in squared:
            K[some, until] += np.square(left[some] @ right[until].T)
    return K


def _sides(columns: Floats, factors: Floats) -> tuple[Singles, Singles]:
    """Give both sides of a product of rows in which columns count by factors."""
    return (columns * factors).astype(np.float32), columns.astype(np.float32)


def _side(pairs: Floats) -> Floats:
    """Find v, (r,), for which a matrix is nearly v v' beside its diagonal."""
    r, sums = len(pairs), pairs.sum(axis=1) - np.diag(pairs)
    return np.asarray(sums * np.sqrt(r / (r - 1) / sums.sum()) if sums.any() else sums)


def _inverse(free_sums: Floats, sums: Floats) -> Floats:
    """Invert mean squares of moments, as far as they are chance; 0 where there are none."""
    found = np.maximum(free_sums, LEAST_FREE * sums)
    return np.asarray(np.where(found > 0, 1 / np.where(found > 0, found, 1.0), 0.0))
