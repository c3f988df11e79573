"""An orthonormal basis of columns whose rows come block by block, and are never held: see `kernels.gram`.

Three passes find it, and each block of its directions takes that block of rows alone. The first finds means; the second
reduces rows to a triangle, of which comes a basis; the third reduces the rows of that, since a basis of columns that
nearly depend on each other is orthonormal only nearly.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import Block, RowBlocks, counted_values
from colonnade.kernels.linear import RANK_TOLERANCE, ROUNDING


@dataclass(frozen=True, eq=False)
class BlockBasis:
    """As `LocalBasis`, by weights relative to the largest; a row's directions are sqrt(w_i) (a_i - mean) turn second.

    The two have shape (c, c), and are multiplied one after the other: the turn is of large numbers where columns nearly
    depend on each other, and the second one sets right what rounding then leaves. Directions are zero where the factor
    is.
    """

    mean: Floats
    factor: Floats
    turn: Floats
    second: Floats
    largest: float


def block_basis(rows: RowBlocks) -> BlockBasis:
    """Take one party's columns of all rows that count apart, the label among them where it has it."""
    largest = 1.0 if rows.row_weights is None else rows.row_weights.max()
    weight, sums, squares = reduce(_added, rows.map(partial(_sums, largest)))
    start = sums / weight
    joined = reduce(_stacked, rows.map(partial(_triangle, start, largest)))
    # The first line is the mean of what is left: the first mean of many rows is off by more than its last digit.
    mean, triangle = start + joined[0, 1:] / joined[0, 0], joined[1:, 1:]
    norms = np.linalg.norm(triangle, axis=0)
    # A constant column leaves its rounding behind, which must not be scaled up to a direction of its own.
    norms[norms <= ROUNDING * np.sqrt(squares)] = 0.0
    scales = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    _, S, Vt = np.linalg.svd(triangle * scales, full_matrices=False)
    rank = int(np.count_nonzero(RANK_TOLERANCE * S.max(initial=0.0) < S))
    turn, nothing = _padded(scales[:, None] * Vt[:rank].T / S[:rank]), np.zeros((len(mean), len(mean)))
    nearly = BlockBasis(mean, nothing, turn, np.eye(len(mean)), largest)
    again = reduce(_stacked, rows.map(partial(_triangle_of_directions, nearly, rank)))
    factor, second = nothing.copy(), nothing.copy()
    factor[:rank] = again @ (S[:rank, None] * Vt[:rank] * norms)
    second[:rank, :rank] = np.linalg.inv(again)
    return BlockBasis(mean, factor, turn, second, largest)


def directions(basis: BlockBasis, block: Block) -> Floats:
    """Give the directions of a block's rows that count, shape (b, c)."""
    return np.asarray(_centred(basis.mean, basis.largest, block) @ basis.turn @ basis.second)


def all_directions(basis: BlockBasis, rows: RowBlocks, numbers: range) -> Floats:
    """Give those of the blocks with these numbers."""
    blocks: Iterator[Floats] = rows.map(partial(directions, basis), numbers)
    return np.concatenate([*blocks])


def _padded(turn: Floats) -> Floats:
    """Put columns of zeros after those of a turn, to make it a square."""
    return np.pad(turn, ((0, 0), (0, len(turn) - turn.shape[1])))


def _roots(largest: float, block: Block) -> Floats | float:
    """Give the square roots of the weights of a block's rows that count."""
    return 1.0 if block.weights is None else np.sqrt(block.weights[block.weights > 0] / largest)[:, None]


def _centred(mean: Floats, largest: float, block: Block) -> Floats:
    return np.asarray(_roots(largest, block) * (counted_values(block) - mean))


_Sums = tuple[float, Floats, Floats]


def _sums(largest: float, block: Block) -> _Sums:
    """Add up weights, columns and their squares."""
    values, roots = counted_values(block), _roots(largest, block)
    scaled = roots * values
    weight = float(len(values)) if block.weights is None else float(np.square(roots).sum())
    return weight, np.asarray((roots * scaled).sum(axis=0)), np.square(scaled).sum(axis=0)


def _added(one: _Sums, other: _Sums) -> _Sums:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _triangle(start: Floats, largest: float, block: Block) -> Floats:
    """Reduce a block to the triangle of a column of ones and its columns less where they start."""
    ones = np.broadcast_to(_roots(largest, block), (len(counted_values(block)), 1))
    return np.asarray(np.linalg.qr(np.hstack([ones, _centred(start, largest, block)]), mode="r"))


def _triangle_of_directions(basis: BlockBasis, rank: int, block: Block) -> Floats:
    return np.asarray(np.linalg.qr(directions(basis, block)[:, :rank], mode="r"))


def _stacked(one: Floats, other: Floats) -> Floats:
    return np.asarray(np.linalg.qr(np.vstack([one, other]), mode="r"))
