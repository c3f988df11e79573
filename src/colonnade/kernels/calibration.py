"""Calibrated weights: a coreset's weights, bent a little so that its moments are those of all rows.

In whitened columns the moments of all rows are known: mean 0, second moments the identity, party by party. A draw
misses them by chance. The weights w_i (1 + q_i lambda.a_i), with a_i the row's 1, u and u u', hit them (the generalised
regression estimator of survey sampling). q_i is the part of a row's weight that is chance: a row that is drawn in any
case, and stands for itself, is right as it is. There are many moments, so lambda is held back by a ridge: it solves

    (D^-1 A'WQA D^-1 + strength I) D lambda = D^-1 (targets - A'w),

with D^2 the diagonal of A'WQA. Columns u are turned at random first: which moments the ridge holds back most must not
hang on a basis in which many of them are the same, as those of levels are. The strength is thus in units of one
moment's own mean square: at 1 a moment that is unrelated to the others is corrected by half, at 0.1 by ten elevenths.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats

# In single precision products take half as long: enough on the way to an answer that is off by more.
Numbers = npt.NDArray[np.floating[Any]]

# Few rows cannot meet many moments without weights that vary more than they gain. Measured on KC House (120 moments).
FEW_ROWS, STRENGTH_OF_FEW, STRENGTH = 300, 1.0, 0.1
# Relative to what the ridge leaves of a moment that is unrelated to the others. To solve more exactly takes up to five
# times as long, and changes the excess by less than a part in 100 (KC House, the YearPredictionMSD twin).
ACCURACY, MOST_ITERATIONS = 0.3, 200
# A moment of rows that are right as they are is held back as if they were free by so much.
LEAST_FREE = 0.01
# Of a pass: so few that what is made of them stays in the cache.
CHUNK_ROWS = 512
# For `what_is_left`, which makes the matrix of all of them.
MOST_MOMENTS, MOST_LEVERAGE = 600, 0.9


def calibration_strength(size: int) -> float:
    """Choose how much to hold back the calibration of so many rows."""
    return STRENGTH_OF_FEW if size <= FEW_ROWS else STRENGTH


def calibrate(
    weights: Floats, parties: Sequence[Floats], total: float, noise: Sequence[Floats], strength: float, free: Floats
) -> Floats:
    """Bend weights w >= 0, shape (m,), towards the known moments of the parties' whitened columns, shapes (m, r_j).

    `noise` is the variance of the rounding error in each column, (r_j,), 0 where there is none: rounded rows have
    second moments 1 + that. (Where it differs by row it is the mean, by the weights as they come. Bent ones give
    another, by as little as rounding is related to the moments.) `strength` is of the ridge, positive; `free`, (m,), is
    q, from 0 to 1. A weight that would become negative is 0, and all are then rescaled to add up to `total`, the weight
    of all rows.
    """
    # Seen from the mean weight: no quantity depends on the scale of the weights.
    w, turns = weights / total, [turn(u.shape[1]) for u in parties]
    parts = [slice(start, start + CHUNK_ROWS) for start in range(0, len(w), CHUNK_ROWS)]
    chunks = [_chunk(parties, turns, part) for part in parts]
    widths = [1 + u.shape[1] for u in parties]
    targets = _flat([_target(each, turn) for each, turn in zip(noise, turns, strict=True)])
    squares = [[np.square(block) for block in blocks] for blocks in chunks]
    free_squares, all_squares = (
        _summed(_moments(each[part], blocks) for part, blocks in zip(parts, squares, strict=True))
        for each in (w * free, w)
    )
    scale = _scale(np.maximum(free_squares, LEAST_FREE * all_squares), widths)
    missed = (targets - _summed(_moments(w[part], blocks) for part, blocks in zip(parts, chunks, strict=True))) / scale
    chance = [(w * free)[part].astype(np.float32) for part in parts]
    singles = [[block.astype(np.float32) for block in blocks] for blocks in chunks]

    def normal(x: Floats) -> Floats:
        forms = [form.astype(np.float32) for form in _forms(x / scale, widths)]
        images = (_moments(each * _apply(forms, blocks), blocks) for each, blocks in zip(chance, singles, strict=True))
        return np.asarray(_summed(images) / scale + strength * x)

    forms = _forms(_conjugate_gradients(normal, missed, ACCURACY * min(strength, STRENGTH)) / scale, widths)
    bent = np.concatenate([_apply(forms, blocks) for blocks in chunks])
    calibrated = w * np.maximum(1.0 + free * bent, 0.0)
    return np.asarray(calibrated * (total / calibrated.sum()))


def turn(width: int) -> Floats:
    """Draw a rotation, the same each time."""
    return np.asarray(np.linalg.qr(np.random.default_rng(width).normal(size=(width, width)))[0])


def _target(noise: Floats, turn: Floats) -> Floats:
    """Give the moments of (1, u) of all rows, where u has this noise, turned."""
    target = np.eye(len(noise) + 1)
    target[1:, 1:] += turn.T @ (noise[:, np.newaxis] * turn)
    return target


def _chunk(parties: Sequence[Floats], turns: Sequence[Floats], some: slice) -> list[Floats]:
    """Take of some rows each party's (1, u), turned: the moments of 1, u and u u' are those of its square."""
    rows = [u[some] for u in parties]
    blocks = [np.ones((len(u), 1 + u.shape[1])) for u in rows]  # row by row, which products are fastest with
    for block, u, turn in zip(blocks, rows, turns, strict=True):
        np.matmul(u, turn, out=block[:, 1:])
    return blocks


def _scale(squares: Floats, widths: Sequence[int]) -> Floats:
    """Take the roots of the diagonal of A'WA: what moments vary by. One that is there twice never counts again."""
    scales = _forms(np.sqrt(np.where(squares > 0, squares, 1.0)), widths)
    for number, scale in enumerate(scales):
        scale[1:, 0] = np.inf
        if number:
            scale[0, 0] = np.inf
    return _flat(scales)


def _moments(w: Numbers, blocks: Sequence[Numbers]) -> Floats:
    """A'w, block by block."""
    return _flat([(block * w[:, np.newaxis]).T @ block for block in blocks])


def _summed(parts: Iterable[Floats]) -> Floats:
    return reduce(np.add, parts)


def _apply(forms: Sequence[Numbers], blocks: Sequence[Numbers]) -> Numbers:
    """Compute A x, one number a row."""
    return reduce(
        np.add, (np.einsum("ij,ij->i", block @ form, block) for form, block in zip(forms, blocks, strict=True))
    )


def _flat(forms: Sequence[Numbers]) -> Floats:
    return np.concatenate([form.ravel() for form in forms], dtype=np.float64)


def _forms(x: Floats, widths: Sequence[int]) -> list[Floats]:
    ends = np.cumsum([width**2 for width in widths])
    return [part.reshape(width, width) for part, width in zip(np.split(x, ends[:-1]), widths, strict=True)]


def _conjugate_gradients(normal: Callable[[Floats], Floats], b: Floats, accuracy: float) -> Floats:
    """Solve normal(x) = b: the matrix itself would have the square of some thousand entries."""
    x, residual, direction = np.zeros_like(b), b, b
    square = first = float(b @ b)
    for _ in range(MOST_ITERATIONS):
        if square <= accuracy**2 * first:
            break
        image = normal(direction)
        length = square / float(direction @ image)
        x = x + length * direction
        residual = residual - length * image
        last, square = square, float(residual @ residual)
        direction = residual + (square / last) * direction
    return x


def what_is_left(
    values: Floats, weights: Floats, parties: Sequence[Floats], total: float, strength: float, free: Floats
) -> Floats:
    """Take off values, (m, p), what calibration corrects of their sums: only the rest still varies from draw to draw.

    These are the values less their ridge regression on the moments, each as predicted from the other rows. Where there
    are very many moments, the values themselves: they vary more. The other parameters are those of `calibrate`, before
    it.
    """
    if sum(u.shape[1] * (u.shape[1] + 3) // 2 for u in parties) > MOST_MOMENTS:
        return values
    A, w = scaled_moments(weights / total, parties, free)
    roots = np.sqrt(w)
    B = A * roots
    inverse = np.linalg.inv(B @ B.T + strength * np.eye(len(A)))
    back = inverse @ B
    leverage = np.minimum(np.einsum("ki,ki->i", back, B), MOST_LEVERAGE)
    rests = values - A.T @ (back @ (roots[:, np.newaxis] * values))
    return np.asarray(rests / (1.0 - leverage)[:, np.newaxis])


def scaled_moments(w: Floats, parties: Sequence[Floats], free: Floats) -> tuple[Floats, Floats]:
    """Give the moments of each row, (p, m), in units of their own mean square, and what of weights is chance, (m,)."""
    widths = [u.shape[1] for u in parties]
    A, end = np.empty((1 + sum(r * (r + 3) // 2 for r in widths), len(w))), 1
    A[0] = 1.0
    for u, r in zip(parties, widths, strict=True):
        own = np.matmul(turn(r).T, u.T, out=A[end : end + r])
        end += r
        for a in range(r):
            np.multiply(own[a], own[a:], out=A[end : end + r - a])
            end += r - a
    squares = np.square(A) @ np.column_stack([w * free, w])
    scale = np.sqrt(np.maximum(squares[:, 0], LEAST_FREE * squares[:, 1]))
    A /= np.where(scale > 0, scale, 1.0)[:, np.newaxis]
    return A, w * free
