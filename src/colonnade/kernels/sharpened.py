"""Sharpened regression scores: fewer draws of rows that a model fits anyway, more of those it does not.

What a row adds to the variance of a least-squares fit is its squared residual times its leverage, so the best chances
go as |residual| sqrt(leverage). No party knows either: the label's party has residuals on its own features only, and
each party leverages in its own columns. These scores make the best of both.
"""

from collections.abc import Iterator
from functools import reduce

import numpy as np

from colonnade.kernels.arrays import Blocks, Floats
from colonnade.kernels.leverage import basis, column_norms, transposed_pieces

# Between 1, which is right for rows of the highest leverage, whatever their residuals, and 1/2, which is for most rows.
POWER = 0.75
# A residual this small beside the label is rounding: the basis is good to 1e-9.
NO_RESIDUAL = 1e-8


def sharpened_scores(
    blocks: Blocks,
    n_features: int,
    residuals: float | None,
    *,
    constant: bool = False,
    weights: Floats | None = None,
) -> Floats:
    """Score each row by w_i h_i^(3/4) / W, and where there is a label by c w_i |r_i| sqrt(h_i) / W more.

    h_i is W times the leverage in the features of one of the w_i copies of row i; where the constant is among these it
    is 1 or more, and else 1 is added. r_i is the label's residual on them, in units of its root mean square; it counts
    as 0 where it is rounding.

    Parameters
    ----------
    blocks
        Features and, if there is one, the label, as consecutive blocks of rows, each (b, d) or (b, d + 1). Read as
        often as `leverage` reads them, and once more where there is a label.
    n_features
        d.
    residuals
        c, or None where there is no label.
    constant, weights
        As for `leverage`; not all weights are zero.
    """

    def features() -> Iterator[Floats]:
        return (block[:, :n_features] for block in blocks())

    def pieces() -> Iterator[Floats]:
        return transposed_pieces(blocks(), constant, weights)

    W = basis(features, constant=constant, weights=weights)
    if residuals is None:
        leverage, left = np.concatenate([column_norms(W.T @ piece) for piece in pieces()]), None
    else:
        leverage, left = _leverage_and_residuals(pieces, W, n_features)
    share = np.full(len(leverage), 1 / len(leverage)) if weights is None else weights / weights.sum()
    parts = leverage if constant else leverage + share  # share times h
    scores: Floats = share ** (1 - POWER) * parts**POWER
    return scores if residuals is None or left is None else scores + residuals * left * np.sqrt(parts)


def _leverage_and_residuals(pieces: Blocks, W: Floats, label: int) -> tuple[Floats, Floats | None]:
    """Find also the absolute residuals of the label, which is this row of the pieces, of norm 1; None if it has none."""
    W = np.insert(W, label, 0.0, axis=0)
    coef = reduce(np.add, (W.T @ piece @ piece[label] for piece in pieces()))
    norms, residuals, square = [], [], 0.0
    for piece in pieces():
        U = W.T @ piece
        norms.append(column_norms(U))
        residuals.append(np.abs(piece[label] - coef @ U))
        square += float(piece[label] @ piece[label])
    left = np.concatenate(residuals)
    norm = float(np.linalg.norm(left))
    return np.concatenate(norms), left / norm if norm > NO_RESIDUAL * np.sqrt(square) else None
