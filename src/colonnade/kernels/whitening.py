"""A party's columns in a basis of their own: uncorrelated, mean 0, variance 1. Safe for any rank.

In this basis every direction of the columns is equally fine, so that one step rounds all of them alike; and who knows
the means and the mixing matrix that lead back knows the columns' exact first and second moments.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Blocks, Floats
from colonnade.kernels.leverage import basis, transposed_pieces
from colonnade.kernels.linear import ROUNDING

CHUNK_NUMBERS = 1 << 15


@dataclass(frozen=True, eq=False)
class Whitening:
    """How columns x become u = (x - mean) basis, and back: x = mean + u mixing.

    The weighted mean has shape (d,), and the basis (d, r), where r is the rank of the centred columns. `mixing`, shape
    (r, d), is zero below the diagonal, which is non-negative; mixing'mixing is the columns' covariance.
    """

    mean: Floats
    basis: Floats
    mixing: Floats

    def of(self, values: Floats) -> Floats:
        """Whiten rows (m, d), giving (m, r), column-major: columns are what is coded."""
        whitened = np.empty((self.basis.shape[1], len(values)))
        for some in _chunks(*values.shape):
            np.matmul(self.basis.T, (values[some] - self.mean).T, out=whitened[:, some])
        return whitened.T


def whiten(blocks: Blocks, weights: Floats | None = None) -> Whitening:
    """Find the whitened basis of centred columns: sum_i w_i u_i = 0 and sum_i w_i u_i u_i' = (sum_i w_i) I.

    The table is read up to six times, in blocks of shape (b, d). The weights are not all 0; 1 each if left out.
    """
    mean, total, magnitude = _mean(blocks, weights)

    def centred() -> Iterator[Floats]:
        for block in blocks():
            rest = block - mean
            # A constant column leaves its rounding behind, which is no direction of its own.
            rest[:, np.abs(rest).max(axis=0, initial=0.0) <= ROUNDING * magnitude] = 0.0
            yield rest

    W = basis(centred, weights=weights) * np.sqrt(total)
    # Nor is a direction that rounding alone, of values far larger than their spread, could have made.
    W = W[:, np.linalg.norm(W * (ROUNDING * magnitude)[:, np.newaxis], axis=0) < 1.0]
    # Z = U M for U = Z W, and so M = U'Z / n: the directions that Z lacks are in neither.
    M = np.zeros((W.shape[1], len(mean)))
    for piece in transposed_pieces(centred(), False, weights):
        M += (W.T @ piece) @ piece.T
    # Nor has a constant column a part in any: whatever its rounding is, large or small.
    W = np.where(np.asarray(M.any(axis=0))[:, np.newaxis], W, 0.0)
    Q, mixing = np.linalg.qr(M / total)
    signs = np.where(np.diag(mixing) < 0, -1.0, 1.0)
    return Whitening(mean, W @ (Q * signs), np.triu(mixing * signs[:, np.newaxis]))


def _mean(blocks: Blocks, weights: Floats | None) -> tuple[Floats, float, Floats]:
    """Weighted means, the weight of all rows, and the largest magnitude of each column."""
    sums, total, magnitude, first = np.zeros(0), 0.0, np.zeros(0), 0
    for block in blocks():
        w = np.ones(len(block)) if weights is None else weights[first : first + len(block)]
        sums = w @ block + (sums if first else 0.0)
        largest = np.abs(block).max(axis=0, initial=0.0)
        magnitude = np.maximum(magnitude, largest) if first else largest
        total, first = total + float(w.sum()), first + len(block)
    return sums / total, total, magnitude


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


def pack_mixing(mixing: Floats) -> Floats:
    """List the entries on and above the diagonal of a mixing matrix (r, d), row by row."""
    return mixing[np.triu_indices(len(mixing), m=mixing.shape[1])]


def unpack_mixing(entries: Floats, n_columns: int) -> Floats:
    """Rebuild a mixing matrix of d columns from what `pack_mixing` lists, finite; `ValueError` where there is none.

    None of its r rows is zero, and no entry on the diagonal is negative.
    """
    # r rows have d + (d - 1) + ... + (d - r + 1) entries.
    rank = next((r for r in range(n_columns + 1) if r * n_columns - r * (r - 1) // 2 == len(entries)), None)
    if rank is None:
        raise ValueError(f"{len(entries)} entries are no mixing matrix of {n_columns} columns")
    mixing = np.zeros((rank, n_columns))
    mixing[np.triu_indices(rank, m=n_columns)] = entries
    if (np.diag(mixing) < 0).any() or not mixing.any(axis=1).all():
        raise ValueError("a mixing matrix that is not positive")
    return mixing
