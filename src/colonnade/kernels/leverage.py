"""Regression scores (Algorithm 2): the leverage of every row of one party, from the Gram matrix.

Leverage is the squared norm of a row of an orthonormal basis U of the column space of X. No U is ever stored:
we look for a small matrix W such that U = X W, so that the rows are only streamed past, once for the Gram
matrix and once for the norms. Where the columns are nearly dependent, rounding in the Gram matrix would show,
and the basis is corrected in one more pass over the rows (shifted Cholesky QR, with eigenvectors for factor).
"""

from functools import partial, reduce

import numpy as np
import scipy

from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import Block, RowBlocks
from colonnade.kernels.per_row import PerRow, numbers_from
from colonnade.kernels.row_blocks import weight_of

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
# So many columns are faster multiplied one by one than by a product of matrices, which copies them first.
_FEW_COLUMNS = 10
# Rows of a piece of a product. NumPy lets other threads go on only while it computes more than 500 numbers, of all
# pieces together: without pieces, two threads multiply blocks of up to 22 columns in the time of one.
_PIECE_ROWS = 2048


def regression_scores(rows: RowBlocks, *, constant: bool = False) -> PerRow:
    """Score each row: its leverage plus its share of the total weight (Algorithm 2, line 3).

    g_i^(j) = ||u_i^(j)||^2 + 1/n, with total rank(X^(j)) + 1. A row of weight k scores k times what one of its k copies
    would. The parameters are those of `leverage`; there is at least one row, and not all weights are zero.
    """
    W, total = basis(rows, constant=constant), weight_of(rows)
    return numbers_from(rows, partial(_leverage_and_share, W, constant, total))


def leverage(rows: RowBlocks, *, constant: bool = False) -> PerRow:
    """Squared row norms of an orthonormal basis of the columns (Algorithm 2, line 2).

    ||u_i||^2 is in [0, 1] and they sum to the rank of X, up to rounding. The rank is counted with columns scaled to
    unit norm, and singular values below about 1e-11 of the largest as zero. Where rows have weights, it is the leverage
    of sqrt(w_i) x_i.

    Parameters
    ----------
    rows
        X, finite and at most 1e100 in absolute value; read once, or twice where columns are nearly dependent, and
        again where leverages are asked for.
    constant
        Whether a column of ones belongs to X. It is never stored at length n.
    """
    return numbers_from(rows, partial(leverage_in, basis(rows, constant=constant), constant))


def basis(rows: RowBlocks, *, constant: bool = False) -> Floats:
    """Find W, shape (d + constant, rank), that turns rows into coordinates of an orthonormal basis of the columns.

    u_i = sqrt(w_i) [x_i, 1] W are the rows of a U with orthonormal columns that spans the columns of X. U need not be
    the factor of a particular decomposition: leverage is the same for all. The parameters are those of `leverage`.
    """
    gram = reduce(np.add, rows.map(partial(_gram, constant)))
    squares = np.diag(gram)
    scale = np.sqrt(np.where(squares > _UNDERFLOW, squares, 1.0))[:, np.newaxis]
    eigenvalues, V = eigen(gram / scale / scale.T)
    if np.all(eigenvalues > _GOOD_ENOUGH * eigenvalues[-1:]):
        return V / np.sqrt(eigenvalues) / scale

    # A direction whose eigenvalue is all rounding may still be there in the data. The shift keeps it, at a
    # tame length, until the second Gram matrix shows it accurately.
    shift = _EPS * len(eigenvalues)
    W = V / np.sqrt(np.maximum(eigenvalues, 0.0) + shift) / scale
    eigenvalues, V = eigen(reduce(np.add, rows.map(partial(_gram_of_coordinates, W, constant))))
    present = eigenvalues > _PRESENT
    return W @ (V[:, present] / np.sqrt(eigenvalues[present]))


def coordinates(block: Block, W: Floats, constant: bool) -> Floats:
    """Give u_i = sqrt(w_i) [x_i, 1] W of a block's rows, transposed: shape (rank, b)."""
    d = block.values.shape[1]
    U: Floats = W[:d].T @ block.values.T
    if constant:
        U += W[d][:, np.newaxis]
    if block.weights is not None:
        U *= np.sqrt(block.weights)
    return U


def leverage_in(W: Floats, constant: bool, block: Block) -> Floats:
    """Compute the leverages of a block's rows by a basis W of all."""
    return column_norms(coordinates(block, W, constant))


def share_in(block: Block, total: float) -> Floats | float:
    """Give each row's share of the total weight."""
    return 1.0 / total if block.weights is None else block.weights / total


def _leverage_and_share(W: Floats, constant: bool, total: float, block: Block) -> Floats:
    scores = leverage_in(W, constant, block)
    scores += share_in(block, total)
    return scores


def _gram(constant: bool, block: Block) -> Floats:
    """X^T X of a block, shape (d + constant, d + constant)."""
    P, d = block.values.T, block.values.shape[1]
    roots = None if block.weights is None else np.sqrt(block.weights)
    if roots is not None:
        P = P * roots
    gram = np.empty((d + constant, d + constant))
    _fill_products(P, gram[:d, :d])
    if constant:
        gram[d, :d] = gram[:d, d] = P.sum(axis=1) if roots is None else P @ roots
        gram[d, d] = len(block.values) if roots is None else roots @ roots
    return gram


def _fill_products(P: Floats, products: Floats) -> None:
    """Write P P^T."""
    if len(P) > _FEW_COLUMNS:
        products[:] = inner_products(P, P)
        return
    for j, row in enumerate(P):
        products[j, j:] = products[j:, j] = P[j:] @ row


def inner_products(P: Floats, Q: Floats) -> Floats:
    """Compute P Q^T of columns of a block's rows, (r, b) and (d, b), in pieces that threads compute side by side."""
    n_pieces = P.shape[1] // _PIECE_ROWS
    whole = n_pieces * _PIECE_ROWS
    left, right = (each[:, :whole].reshape(len(each), n_pieces, _PIECE_ROWS) for each in (P, Q))
    of_pieces = np.matmul(left.transpose(1, 0, 2), right.transpose(1, 2, 0))
    return np.asarray(of_pieces.sum(axis=0) + P[:, whole:] @ Q[:, whole:].T)


def _gram_of_coordinates(W: Floats, constant: bool, block: Block) -> Floats:
    U = coordinates(block, W, constant)
    return inner_products(U, U)


def eigen(S: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix S (d, d)."""
    if S.size == 0:
        return np.empty(0), S
    # Not NumPy's: the BLAS it comes with starts threads for even 30 columns, 200 times slower on a busy machine.
    eigenvalues, V, failed = scipy.linalg.lapack.dsyevd(S, lower=1)
    if failed:
        raise np.linalg.LinAlgError(f"eigenvalues of {len(S)} columns were not found ({failed})")
    return eigenvalues, V


def column_norms(piece: Floats) -> Floats:
    """Squared norms of the columns of a piece (d, b), shape (b,)."""
    norms: Floats = np.einsum("ji,ji->i", piece, piece)
    return norms
