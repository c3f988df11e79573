"""Scores for logistic regression: leverage in the features, and for rows of each class alike a part beside it.

What a row adds to the variance of the fit is its squared residual, 1 less the chance that its class has, times its
leverage: the best chances go as residual sqrt(leverage), and no party knows either. Sharpened, the label's party counts
with its own: residuals of a model of its own columns, which some rows are enough for, and its own leverages.
"""

from collections.abc import Callable, Iterator

import numpy as np

from colonnade.kernels.arrays import Blocks, Floats, Rows
from colonnade.kernels.classes import class_codes, class_shares, distinct_values
from colonnade.kernels.leverage import basis, column_norms, transposed_pieces
from colonnade.kernels.logistic import solve_logistic
from colonnade.kernels.logits import probabilities

# So many rows tell the party's own model. They are the same each time: scores hang on nothing that a run could change.
LOCAL_ROWS, LOCAL_SEED = 20_000, 20_250_713
# A row, in columns of variance 1: it is there to converge, whatever the rows are.
LOCAL_RIDGE = 1e-3


def class_scores(
    blocks: Blocks,
    n_features: int,
    part: float,
    sharpened: float = 0.0,
    *,
    constant: bool = False,
    weights: Floats | None = None,
) -> Floats | None:
    """Score each row by its leverage, and by w_i / (K W_class) times the class part; None where there are no classes.

    Leverage is in [X, 1] where the constant is among the columns; else w_i / W is added to it. A row of weight k scores
    k times what one of its k copies would.

    Parameters
    ----------
    blocks
        Features and, if the part is not zero, the label, as consecutive blocks of rows.
    n_features
        d, of these columns.
    part, sharpened
        What all rows have together beside leverage: by class, and by residuals too.
    constant, weights
        As for `leverage`; not all weights are zero.
    """

    def features() -> Iterator[Floats]:
        return (block[:, :n_features] for block in blocks())

    def units() -> Iterator[Floats]:
        """Yield rows of an orthonormal basis, (r, b) each: the columns in which every direction is equally long."""
        return (W.T @ piece for piece in transposed_pieces(features(), constant, weights))

    W = basis(features, constant=constant, weights=weights)
    scores = np.concatenate([column_norms(piece) for piece in units()])
    share = np.full(len(scores), 1.0 / len(scores)) if weights is None else weights / weights.sum()
    if not constant:
        scores = scores + share
    if not part:
        return scores
    if (classes := distinct_values(blocks, n_features)) is None:
        return None
    codes = np.concatenate([class_codes(block[:, n_features], classes) for block in blocks()])
    scores_by_class = scores + part * class_shares(codes, weights, len(classes))
    if not sharpened:
        return np.asarray(scores_by_class)
    pull = np.sqrt(share * scores) * _residuals(units, codes, share, len(classes))
    return np.asarray(scores_by_class + sharpened * pull / pull.sum())


def _residuals(units: Callable[[], Iterator[Floats]], codes: Rows, share: Floats, n_classes: int) -> Floats:
    """Give 1 less the chance of each row's class, by a model of the party's columns, learned on some rows; shape (n,).

    Rows u_i of an orthonormal basis, and w_i / W; in u_i / sqrt(w_i / W) every column has mean square 1.
    """
    roots = np.sqrt(np.where(share > 0, share, 1.0))
    some = np.flatnonzero(share)
    if len(some) > LOCAL_ROWS:
        some = np.sort(np.random.default_rng(LOCAL_SEED).permutation(some)[:LOCAL_ROWS])
    present, own = np.unique(codes[some], return_inverse=True)
    if len(present) < 2:
        return np.ones(len(codes))
    X = _taken(units, some) / roots[some, np.newaxis]
    w = share[some] / share[some].sum()
    coef, _ = solve_logistic(X, own, w, len(present), LOCAL_RIDGE, 0.0, fit_intercept=False)
    products = np.concatenate([(coef @ piece).T for piece in units()]) / roots[:, np.newaxis]
    # Of a class that none of these rows has, there is no chance.
    chances = np.zeros((len(codes), n_classes))
    logits = np.column_stack([np.zeros(len(codes)), products]) if len(present) == 2 else products
    chances[:, present] = probabilities(logits)
    return np.asarray(1.0 - chances[np.arange(len(codes)), codes])


def _taken(units: Callable[[], Iterator[Floats]], rows: Rows) -> Floats:
    """Take rows, ascending, of pieces that come one after another."""
    taken, first = [], 0
    for piece in units():
        last = first + piece.shape[1]
        here = rows[np.searchsorted(rows, first) : np.searchsorted(rows, last)] - first
        taken.append(piece[:, here].T)
        first = last
    return np.concatenate(taken)
