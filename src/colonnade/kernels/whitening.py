"""A party's columns in a basis of their own: uncorrelated, mean 0, variance 1. Safe for any rank.

In this basis every direction of the columns is equally fine, so that one step rounds all of them alike; and who knows
the means and the mixing matrix that lead back knows the columns' exact first and second moments. Some columns may come
first: as many whitened ones are then made of these alone, and known where they are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TypeVar

import numpy as np
import scipy

from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.kernels.blocks import Block, RowBlocks, Work
from colonnade.kernels.leverage import basis, inner_products
from colonnade.kernels.linear import ROUNDING
from colonnade.kernels.per_row import PerRow

R = TypeVar("R")

CHUNK_NUMBERS = 1 << 15
# A column that has less of its own, of its deviation, than others before it have not is none that comes first.
INDEPENDENT = 1e-5


@dataclass(frozen=True, eq=False)
class Whitening:
    """How columns x become u = (x - mean) basis, and back: x = mean + u mixing.

    The weighted mean has shape (d,), and the basis (d, r), where r is the rank of the centred columns. `mixing`, shape
    (r, d), is zero below the diagonal, which is non-negative, once its columns are in the order of `column_order`;
    mixing'mixing is the columns' covariance. `first` are the places of the columns that come first.
    """

    mean: Floats
    basis: Floats
    mixing: Floats
    first: Rows

    def of(self, values: Floats) -> Floats:
        """Whiten rows (m, d), giving (m, r), column-major: columns are what is coded."""
        whitened = np.empty((self.basis.shape[1], len(values)))
        for some in _chunks(*values.shape):
            np.matmul(self.basis.T, (values[some] - self.mean).T, out=whitened[:, some])
        return whitened.T


def whiten(rows: RowBlocks, first: Rows | None = None) -> Whitening:
    """Find the whitened basis of centred columns: sum_i w_i u_i = 0 and sum_i w_i u_i u_i' = (sum_i w_i) I.

    The table is read up to four times, in blocks of shape (b, d). The weights are not all 0. Of the columns in places
    `first`, all that do not depend on those named before come first, in the order of their places.
    """
    sums, total, magnitude = reduce(_joined, rows.map(_sums))
    mean = sums / total
    centred = _Centred(rows, mean, magnitude)
    W = basis(centred) * np.sqrt(total)
    # Nor is a direction that rounding alone, of values far larger than their spread, could have made.
    W = W[:, np.linalg.norm(W * (ROUNDING * magnitude)[:, np.newaxis], axis=0) < 1.0]
    # Z = U M for U = Z W, and so M = U'Z / n: the directions that Z lacks are in neither.
    M = reduce(np.add, centred.map(partial(_mixed, W)))
    # Nor has a constant column a part in any: whatever its rounding is, large or small.
    W = np.where(np.asarray(M.any(axis=0))[:, np.newaxis], W, 0.0)
    M /= total
    ahead = np.empty(0, np.int64) if first is None else _independent(M, first)
    order = column_order(ahead, len(mean))
    Q, R = np.linalg.qr(M[:, order])
    signs = np.where(np.diag(R) < 0, -1.0, 1.0)
    mixing = np.empty_like(M)
    mixing[:, order] = np.triu(R * signs[:, np.newaxis])
    return Whitening(mean, W @ (Q * signs), mixing, ahead)


def column_order(first: Rows, n_columns: int) -> Rows:
    """List the places of all columns: those that come first, and the others as they are."""
    others = np.ones(n_columns, np.bool_)
    others[first] = False
    return np.concatenate([first, np.flatnonzero(others)])


def _independent(columns: Floats, candidates: Rows) -> Rows:
    """Take of some columns, (r, d), one after the other, those that the ones before do not make up."""
    kept, Q = [], np.zeros((len(columns), 0))
    for place in candidates.tolist():
        column = columns[:, place]
        rest = column - Q @ (Q.T @ column)
        rest -= Q @ (Q.T @ rest)
        length = float(np.linalg.norm(rest))
        if length > INDEPENDENT * float(np.linalg.norm(column)):
            kept.append(place)
            Q = np.column_stack([Q, rest / length])
    return np.array(sorted(kept), np.int64)


_Sums = tuple[Floats, float, Floats]


def _sums(block: Block) -> _Sums:
    """Weighted sums, the weight of all rows, and the largest magnitude of each column."""
    weights = np.ones(len(block.values)) if block.weights is None else block.weights
    return weights @ block.values, float(weights.sum()), np.abs(block.values).max(axis=0, initial=0.0)


def _joined(one: _Sums, other: _Sums) -> _Sums:
    return one[0] + other[0], one[1] + other[1], np.maximum(one[2], other[2])


@dataclass(frozen=True, eq=False)
class _Centred:
    """Rows less their mean, and columns that are constant but for rounding as zeros."""

    rows: RowBlocks
    mean: Floats
    magnitude: Floats

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def row_weights(self) -> PerRow | None:
        return self.rows.row_weights

    def map(self, work: Work[R], numbers: Sequence[int] | None = None) -> Iterator[R]:
        return self.rows.map(partial(_of_centred, work, self.mean, self.magnitude), numbers)


def _of_centred(work: Work[R], mean: Floats, magnitude: Floats, block: Block) -> R:
    rest = block.values - mean
    # A constant column leaves its rounding behind, which is no direction of its own.
    rest[:, np.abs(rest).max(axis=0, initial=0.0) <= ROUNDING * magnitude] = 0.0
    return work(Block(block.number, rest, block.weights))


def _mixed(W: Floats, block: Block) -> Floats:
    """Compute U'Z of a block, with U = Z W: shape (r, d)."""
    Z = block.values if block.weights is None else block.values * np.sqrt(block.weights)[:, np.newaxis]
    return inner_products(W.T @ Z.T, Z.T)


def mix(whitened: Floats, mean: Floats, mixing: Floats) -> Floats:
    """Lead whitened rows (m, r) back to columns: mean + whitened mixing, shape (m, d)."""
    values = np.empty((len(whitened), len(mean)))
    for some in _chunks(*values.shape):
        np.matmul(whitened[some], mixing, out=values[some])
        values[some] += mean
    return values


def _chunks(n_rows: int, n_columns: int) -> list[slice]:
    """Cut rows into runs that stay in cache: fresh memory is slower than arithmetic."""
    length = max(CHUNK_NUMBERS // max(n_columns, 1), 1)
    return [slice(start, start + length) for start in range(0, n_rows, length)]


def whiten_first(values: Floats, mean: Floats, mixing: Floats, first: Rows) -> Floats:
    """Whiten rows, (m, e), of the columns in places `first` alone, giving the first e whitened columns."""
    own = mixing[: len(first), first]
    return np.asarray(scipy.linalg.solve_triangular(own, (values - mean[first]).T, trans="T", check_finite=False).T)


def pack_mixing(mixing: Floats, first: Rows) -> Floats:
    """List the entries on and above the diagonal of a mixing matrix (r, d), row by row, those in `first` before all."""
    return mixing[:, column_order(first, mixing.shape[1])][_on_and_above(*mixing.shape)]


def _on_and_above(rank: int, n_columns: int) -> Flags:
    """Mark the diagonal of a matrix (r, d) and all above it."""
    return np.asarray(np.arange(rank)[:, np.newaxis] <= np.arange(n_columns))


def unpack_mixing(entries: Floats, n_columns: int, first: Rows) -> Floats:
    """Rebuild a mixing matrix of d columns from what `pack_mixing` lists, finite; `ValueError` where there is none.

    None of its r rows is zero, and no entry on the diagonal is negative, nor zero where a column comes first.
    """
    # r rows have d + (d - 1) + ... + (d - r + 1) entries.
    rank = next((r for r in range(n_columns + 1) if r * n_columns - r * (r - 1) // 2 == len(entries)), None)
    if rank is None:
        raise ValueError(f"{len(entries)} entries are no mixing matrix of {n_columns} columns")
    ordered = np.zeros((rank, n_columns))
    ordered[_on_and_above(rank, n_columns)] = entries
    diagonal = np.diag(ordered)
    if (diagonal < 0).any() or not ordered.any(axis=1).all():
        raise ValueError("a mixing matrix that is not positive")
    if len(first) > rank or not (diagonal[: len(first)] > 0).all():
        raise ValueError("a mixing matrix whose first columns depend on each other")
    mixing = np.empty_like(ordered)
    mixing[:, column_order(first, n_columns)] = ordered
    return mixing
