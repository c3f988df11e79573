"""Regression scores (Algorithm 2): the leverage of every row of one party, from the Gram matrix.

Leverage is the squared norm of a row of an orthonormal basis U of the column space of X. No U is ever stored:
we look for a small matrix W such that U = X W, so that the rows are only streamed past, once for the Gram
matrix and once for the norms. Where the columns are nearly dependent, rounding in the Gram matrix would show,
and the basis is corrected in one more pass over the rows (shifted Cholesky QR, with eigenvectors for factor).
"""

from collections.abc import Iterable, Iterator
from functools import reduce

import numpy as np
import scipy.linalg

from colonnade.kernels.arrays import Blocks, Floats

_EPS = float(np.finfo(np.float64).eps)
# The relative error of each leverage is about eps times the condition number of the scaled Gram matrix: with
# eigenvalues no further apart than this, one pass is good to 1e-9.
_GOOD_ENOUGH = 1e-7
# After the correction an eigenvalue is near 1 for a direction the data has, and at rounding squared over
# eps, below 1e-12, for one it has not. This cut is the relative singular value of about 1e-11.
_PRESENT = 1e-8
# Squares below this have lost digits to underflow: a column with no larger sum of squares (all |x| below
# 1e-146 or so) counts as zero.
_UNDERFLOW = float(np.finfo(np.float64).tiny) / _EPS
# Products this small stay in cache, and BLAS computes them on the calling thread: on a busy machine its
# threads would wait for each other longer than they work.
_MULTIPLICATIONS = 1_000_000
_NUMBERS = 32_768


def regression_scores(blocks: Blocks, *, constant: bool = False, weights: Floats | None = None) -> Floats:
    """Score each row: its leverage plus its share of the total weight (Algorithm 2, line 3).

    g_i^(j) = ||u_i^(j)||^2 + 1/n, with total rank(X^(j)) + 1. A row of weight k scores k times what one of its k copies
    would. The parameters are those of `leverage`; there is at least one row, and not all weights are zero.
    """
    row_leverage = leverage(blocks, constant=constant, weights=weights)
    share = 1.0 / row_leverage.size if weights is None else weights / weights.sum()
    return row_leverage + share


def leverage(blocks: Blocks, *, constant: bool = False, weights: Floats | None = None) -> Floats:
    """Squared row norms of an orthonormal basis of the columns (Algorithm 2, line 2).

    ||u_i||^2 is in [0, 1] and they sum to the rank of X, up to rounding. The rank is counted with columns scaled to
    unit norm, and singular values below about 1e-11 of the largest as zero.

    Parameters
    ----------
    blocks
        X, as consecutive blocks of rows, each (b, d), finite and at most 1e100 in absolute value; read two times, or
        three where columns are nearly dependent. Fastest column-major; any block size will do.
    constant
        Whether a column of ones belongs to X. It is never stored at length n.
    weights
        Shape (n,), non-negative: the leverage of sqrt(w_i) x_i.
    """
    W = basis(blocks, constant=constant, weights=weights)
    return np.concatenate([column_norms(W.T @ piece) for piece in transposed_pieces(blocks(), constant, weights)])


def basis(blocks: Blocks, *, constant: bool = False, weights: Floats | None = None) -> Floats:
    """Find W, shape (d + constant, rank), that turns rows into coordinates of an orthonormal basis of the columns.

    u_i = sqrt(w_i) [x_i, 1] W are the rows of a U with orthonormal columns that spans the columns of X. U need not be
    the factor of a particular decomposition: leverage is the same for all. The parameters are those of `leverage`.
    """

    def pieces() -> Iterator[Floats]:
        return transposed_pieces(blocks(), constant, weights)

    gram = _gram(pieces())
    squares = np.diag(gram)
    scale = np.sqrt(np.where(squares > _UNDERFLOW, squares, 1.0))[:, np.newaxis]
    eigenvalues, V = eigen(gram / scale / scale.T)
    if np.all(eigenvalues > _GOOD_ENOUGH * eigenvalues[-1:]):
        return V / np.sqrt(eigenvalues) / scale

    # A direction whose eigenvalue is all rounding may still be there in the data. The shift keeps it, at a
    # tame length, until the second Gram matrix shows it accurately.
    shift = _EPS * len(eigenvalues)
    W = V / np.sqrt(np.maximum(eigenvalues, 0.0) + shift) / scale
    eigenvalues, V = eigen(_gram(W.T @ piece for piece in pieces()))
    present = eigenvalues > _PRESENT
    return W @ (V[:, present] / np.sqrt(eigenvalues[present]))


def transposed_pieces(blocks: Iterable[Floats], constant: bool, weights: Floats | None) -> Iterator[Floats]:
    """Cut blocks into cache-sized pieces, transposed to (columns, rows), weights and constant applied.

    A piece is valid until the next one is taken: those that cannot be views share one buffer.
    """
    roots = None if weights is None else np.sqrt(weights)
    first = 0
    for block in blocks:
        n_rows, d = block.shape
        length = _piece_length(d + constant)
        buffer = np.empty((d + constant, length))
        for start in range(0, n_rows, length):
            columns = block[start : start + length].T
            if not constant and roots is None:
                yield columns
                continue
            piece = buffer[:, : columns.shape[1]]
            root = 1.0 if roots is None else roots[first + start : first + start + columns.shape[1]]
            np.multiply(columns, root, out=piece[:d])
            piece[d:] = root
            yield piece
        first += n_rows


def _piece_length(d: int) -> int:
    """Count the rows of d numbers whose products with a d by d matrix stay small; 64 at least."""
    d = max(d, 1)
    return max(64, min(_MULTIPLICATIONS // d**2, _NUMBERS // d))


def _gram(pieces: Iterable[Floats]) -> Floats:
    """X^T X, shape (d, d), of transposed pieces (d, b)."""
    return reduce(np.add, (piece @ piece.T for piece in pieces))


def eigen(S: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix S (d, d)."""
    if S.size == 0:
        return np.empty(0), S
    # Not NumPy's: the BLAS it comes with starts threads for even 30 columns, 200 times slower on a busy machine.
    eigenvalues, V = scipy.linalg.eigh(S, driver="evd", check_finite=False)
    return eigenvalues, V


def column_norms(piece: Floats) -> Floats:
    """Squared norms of the columns of a piece (d, b), shape (b,)."""
    norms: Floats = np.einsum("ji,ji->i", piece, piece)
    return norms
