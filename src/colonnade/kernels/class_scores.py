"""Scores for logistic regression: leverage in the features, and for rows of each class alike a part beside it."""

from collections.abc import Iterator

import numpy as np

from colonnade.kernels.arrays import Blocks, Floats
from colonnade.kernels.classes import class_codes, class_shares, distinct_values
from colonnade.kernels.leverage import leverage


def class_scores(
    blocks: Blocks, n_features: int, part: float, *, constant: bool = False, weights: Floats | None = None
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
    part
        What all rows have together beside leverage.
    constant, weights
        As for `leverage`; not all weights are zero.
    """

    def features() -> Iterator[Floats]:
        return (block[:, :n_features] for block in blocks())

    scores = leverage(features, constant=constant, weights=weights)
    if not constant:
        scores = scores + (1.0 / len(scores) if weights is None else weights / weights.sum())
    if not part:
        return scores
    if (classes := distinct_values(blocks, n_features)) is None:
        return None
    codes = np.concatenate([class_codes(block[:, n_features], classes) for block in blocks()])
    return np.asarray(scores + part * class_shares(codes, weights, len(classes)))
