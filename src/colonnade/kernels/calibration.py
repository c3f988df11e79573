"""Calibrated weights: a coreset's weights, bent a little so that its moments are those of all rows.

In whitened columns the moments of all rows are known: mean 0, second moments the identity, party by party. A draw
misses them by chance. The weights w_i (1 + q_i lambda.a_i), with a_i the row's 1, u and u u', hit them (the generalised
regression estimator of survey sampling). q_i is the part of a row's weight that is chance: a row that is drawn in any
case, and stands for itself, is right as it is. There are many moments, so lambda is held back by a ridge: it solves

    (D^-1 A'WQA D^-1 + strength I) D lambda = D^-1 (targets - A'w),

with D^2 the diagonal of A'WQA. Columns u are turned at random first: which moments the ridge holds back most must not
hang on a basis in which many of them are the same, as those of levels are. The strength is thus in units of one
moment's own mean square: at 1 a moment that is unrelated to the others is corrected by half, at 0.1 by ten elevenths.

What is solved is the same system seen by rows, of which there are mostly fewer than moments: with B = (WQ)^1/2 A D^-1,

    (B B' + strength I) z = B D^-1 (targets - A'w),   (WQ)^1/2 A lambda = z.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats

# In single precision products take half as long: enough on the way to an answer that is off by more.
Numbers = npt.NDArray[np.floating[Any]]

# Few rows cannot meet many moments without weights that vary more than they gain. Measured on KC House (120 moments). A
# strength that grows with moments a row was tried: better on columns made at random, 11 and 17 % worse on flights.
FEW_ROWS, STRENGTH_OF_FEW, STRENGTH = 300, 1.0, 0.1
# Beyond so many, those of residuals gain more.
MOST_MOMENTS_A_ROW = 0.25
# Of what is left of the equations. To solve them more exactly changes the excess by less than a part in 100.
ACCURACY, MOST_ITERATIONS = 0.005, 200
# A moment of rows that are right as they are is held back as if they were free by so much.
LEAST_FREE = 0.01
# Of a pass: so few that what is made of them stays in the cache.
CHUNK_ROWS = 2048
# Products of so many columns, or a multiple, take up to a third less time than of one less.
TILE = 4
# For `what_is_left`, which makes the matrix of all of them.
MOST_MOMENTS, MOST_LEVERAGE = 600, 0.9


def moments_of(parties: Sequence[Floats]) -> int:
    """Count the moments of parties' whitened columns."""
    widths: list[int] = [u.shape[1] for u in parties]
    return 1 + sum(r * (r + 3) // 2 for r in widths)


def are_too_many(n_moments: int, size: int) -> bool:
    """Tell whether weights of so many rows are better bent to the moments of residuals than to all."""
    return n_moments > MOST_MOMENTS_A_ROW * size


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
    w, turns = weights / total, [_turned(u.shape[1]) for u in parties]
    chance = w * free
    parts = [slice(start, start + CHUNK_ROWS) for start in range(0, len(w), CHUNK_ROWS)]
    chunks = [[_with_ones(u[part]) for u in parties] for part in parts]
    missed = [
        turn.T @ (np.diag(np.append(1.0, 1.0 + each)) - found) @ turn
        for each, found, turn in zip(noise, _known_moments(w, parts, chunks), turns, strict=True)
    ]
    singles = [
        [block.astype(np.float32) @ turn.astype(np.float32) for block, turn in zip(blocks, turns, strict=True)]
        for blocks in chunks
    ]
    squares = [[np.square(block) for block in blocks] for blocks in singles]
    variations = _known_moments(chance, parts, squares)
    if free.min(initial=1.0) < LEAST_FREE:
        for own, every in zip(variations, _known_moments(w, parts, squares), strict=True):
            np.maximum(own, LEAST_FREE * every, out=own)
    inverses = _inverses(variations)
    roots = np.sqrt(chance)

    def seen_by_rows(moments: Sequence[Floats]) -> Floats:
        forms = [(each * inverse).astype(np.float32) for each, inverse in zip(moments, inverses, strict=True)]
        return np.asarray(roots * np.concatenate([_apply(forms, blocks) for blocks in singles]))

    def normal(z: Floats) -> Floats:
        return seen_by_rows(_moments((roots * z).astype(np.float32), parts, singles)) + strength * z

    z = _conjugate_gradients(normal, seen_by_rows(missed), ACCURACY)
    bent = z * np.sqrt(free / np.where(w > 0, w, 1.0))
    calibrated = w * np.maximum(1.0 + bent, 0.0)
    return np.asarray(calibrated * (total / calibrated.sum()))


@lru_cache(maxsize=4)
def turn(width: int) -> Floats:
    """Draw a rotation, the same each time: it is kept, as parties' widths are those of the last fit as a rule."""
    rotation = np.asarray(np.linalg.qr(np.random.default_rng(width).normal(size=(width, width)))[0])
    rotation.flags.writeable = False
    return rotation


def _turned(width: int) -> Floats:
    """Give what turns (1, u), and adds columns of zeros up to a number that products are fastest with."""
    turned = np.zeros((1 + width, -(-(1 + width) // TILE) * TILE))
    turned[0, 0] = 1.0
    turned[1:, 1 : 1 + width] = turn(width)
    return turned


def _with_ones(u: Floats) -> Floats:
    """Give (1, u) of some rows, row by row: the moments of 1, u and u u' are those of its square."""
    block = np.ones((len(u), 1 + u.shape[1]))
    block[:, 1:] = u
    return block


def _inverses(variations: Sequence[Floats]) -> list[Floats]:
    """Invert the diagonal of A'WQA: what moments vary by, in squares. One that is there twice never counts again."""
    inverses = [1.0 / np.where(each > 0, each, 1.0) for each in variations]
    for number, inverse in enumerate(inverses):
        inverse[1:, 0] = 0.0
        if number:
            inverse[0, 0] = 0.0
    return inverses


def _known_moments(w: Floats, parts: Sequence[slice], chunks: Sequence[Sequence[Numbers]]) -> list[Floats]:
    """A'w, party by party, for w >= 0: as a product with itself, of which BLAS makes only one half."""
    roots = np.sqrt(w)[:, np.newaxis]
    each = zip(parts, chunks, strict=True)
    scaled = ([block * roots[part].astype(block.dtype) for block in blocks] for part, blocks in each)
    return _summed([block.T @ block for block in blocks] for blocks in scaled)


def _moments(w: Numbers, parts: Sequence[slice], chunks: Sequence[Sequence[Numbers]]) -> list[Floats]:
    """A'w, party by party, for any w."""
    each = zip(parts, chunks, strict=True)
    return _summed([(block * w[part, np.newaxis]).T @ block for block in blocks] for part, blocks in each)


def _summed(chunks: Iterable[Sequence[Numbers]]) -> list[Floats]:
    return [reduce(np.add, (np.asarray(each, np.float64) for each in party)) for party in zip(*chunks, strict=True)]


def _apply(forms: Sequence[Numbers], blocks: Sequence[Numbers]) -> Numbers:
    """Compute A x, one number a row."""
    return reduce(
        np.add, (np.einsum("ij,ij->i", block @ form, block) for form, block in zip(forms, blocks, strict=True))
    )


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
    if moments_of(parties) > 1 + MOST_MOMENTS:
        return values
    return left_by_moments(values, *scaled_moments(weights / total, parties, free), strength)


def left_by_moments(values: Floats, A: Floats, chance: Floats, strength: float) -> Floats:
    """Do the same by the moments of each row, (p, m), of which (m,) of the weight is chance."""
    roots = np.sqrt(chance)
    B = A * roots
    inverse = np.linalg.inv(B @ B.T + strength * np.eye(len(A)))
    back = inverse @ B
    leverage = np.minimum(np.einsum("ki,ki->i", back, B), MOST_LEVERAGE)
    rests = values - A.T @ (back @ (roots[:, np.newaxis] * values))
    return np.asarray(rests / (1.0 - leverage)[:, np.newaxis])


def scaled_moments(w: Floats, parties: Sequence[Floats], free: Floats) -> tuple[Floats, Floats]:
    """Give the moments of each row, (p, m), in units of their own mean square, and what of weights is chance, (m,)."""
    widths = [u.shape[1] for u in parties]
    A, end = np.empty((moments_of(parties), len(w))), 1
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
