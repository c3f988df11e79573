"""Sharpened regression scores: more draws of rows that a model does not fit.

What a row adds to the variance of a least-squares fit is its squared residual times its leverage, so the best chances
go as |residual| sqrt(leverage). No party knows either. The label's party has residuals on its own features, and its own
leverages, which do in their place; beside them leverages in all parties' features stay, so that no direction is missed.
"""

from collections.abc import Iterator
from functools import reduce

import numpy as np

from colonnade.kernels.arrays import Blocks, Floats
from colonnade.kernels.leverage import basis, column_norms, transposed_pieces

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
    """Score each row by w_i h_i / W, and where there is a label by c w_i |r_i| sqrt(h_i) / W more.

    w_i h_i / W is the leverage in the features; where the constant is among these, h_i is 1 or more, and else 1 is
    added to it. r_i is the label's residual on them, in units of its root mean square; it counts as 0 where it is
    rounding.

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
    share = 1.0 / len(leverage) if weights is None else weights / weights.sum()
    scores = leverage if constant else leverage + share
    return scores if residuals is None or left is None else scores + residuals * left * np.sqrt(scores)


def _leverage_and_residuals(pieces: Blocks, W: Floats, label: int) -> tuple[Floats, Floats | None]:
    """Find also the label's absolute residuals, of norm 1, or None if it has none; the label is this row of a piece."""
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
