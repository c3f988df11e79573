"""Sharpened regression scores: more draws of rows that a model does not fit.

What a row adds to the variance of a least-squares fit is its squared residual times its leverage, so the best chances
go as |residual| sqrt(leverage). No party knows either. The label's party has residuals on its own features, and its own
leverages, which do in their place; beside them leverages in all parties' features stay, so that no direction is missed.
"""

from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import Block, RowBlocks
from colonnade.kernels.leverage import basis, column_norms, coordinates, share_in
from colonnade.kernels.per_row import PerRow, numbers_from
from colonnade.kernels.row_blocks import FirstColumns, weight_of

# A residual this small beside the label is rounding: the basis is good to 1e-9.
NO_RESIDUAL = 1e-8


def sharpened_scores(rows: RowBlocks, n_features: int, residuals: float | None, *, constant: bool = False) -> PerRow:
    """Score each row by w_i h_i / W, and where there is a label by c w_i |r_i| sqrt(h_i) / W more.

    w_i h_i / W is the leverage in the features; where the constant is among these, h_i is 1 or more, and else 1 is
    added to it. r_i is the label's residual on them, in units of its root mean square; it counts as 0 where it is
    rounding.

    Parameters
    ----------
    rows
        Features and, if there is one, the label, (b, d) or (b, d + 1) a block. Read as often as `leverage` reads them,
        and twice more where there is a label. Not all weights are zero.
    n_features
        d.
    residuals
        c, or None where there is no label.
    constant
        As for `leverage`.
    """
    W = basis(FirstColumns(rows, n_features), constant=constant)
    own = _Own(W, n_features, constant, weight_of(rows))
    if residuals is None:
        return numbers_from(rows, own.scores)
    coef = reduce(np.add, rows.map(own.products))
    left, square = np.sum(list(rows.map(partial(own.squares, coef))), axis=0)
    if left <= NO_RESIDUAL**2 * square:
        return numbers_from(rows, own.scores)
    return numbers_from(rows, partial(own.sharpened, coef, residuals / float(np.sqrt(left))))


@dataclass(frozen=True, eq=False)
class _Own:
    """A party's features as a basis W has them; all rows count so much. The label, if there is one, is next to them."""

    W: Floats
    n_features: int
    constant: bool
    total: float

    def scores(self, block: Block) -> Floats:
        """Compute the leverages of a block's rows, 1 / W of each one's weight added where the constant is not there."""
        return self._scored(block, column_norms(self._coordinates(block)))

    def products(self, block: Block) -> Floats:
        """Multiply the label with the basis."""
        U, label = self._labelled(block)
        return np.asarray(U @ label)

    def squares(self, coef: Floats, block: Block) -> tuple[float, float]:
        """Add up the squares of the label's residuals, and of the label."""
        U, label = self._labelled(block)
        rest = label - coef @ U
        return float(rest @ rest), float(label @ label)

    def sharpened(self, coef: Floats, factor: float, block: Block) -> Floats:
        """Add the residuals, times the factor and the root of the score."""
        U, label = self._labelled(block)
        scores = self._scored(block, column_norms(U))
        return np.asarray(scores + factor * np.abs(label - coef @ U) * np.sqrt(scores))

    def _scored(self, block: Block, norms: Floats) -> Floats:
        return norms if self.constant else norms + share_in(block, self.total)

    def _coordinates(self, block: Block) -> Floats:
        features = Block(block.number, block.values[:, : self.n_features], block.weights)
        return coordinates(features, self.W, self.constant)

    def _labelled(self, block: Block) -> tuple[Floats, Floats]:
        """Give coordinates, and the label, both times the root of the weight."""
        label = block.values[:, self.n_features]
        return self._coordinates(block), label if block.weights is None else label * np.sqrt(block.weights)
