"""Scores for logistic regression: leverage in the features, and for rows of each class alike a part beside it.

What a row adds to the variance of the fit is its squared residual, 1 less the chance that its class has, times its
leverage: the best chances go as residual sqrt(leverage), and no party knows either. Sharpened, the label's party counts
with its own: residuals of a model of its own columns, which some rows are enough for, and its own leverages.
"""

from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import Block, RowBlocks
from colonnade.kernels.classes import class_codes, distinct_values
from colonnade.kernels.draws import draw_evenly_distinct
from colonnade.kernels.leverage import basis, column_norms, coordinates, leverage_in, share_in
from colonnade.kernels.logistic import solve_logistic
from colonnade.kernels.logits import probabilities
from colonnade.kernels.per_row import PerRow, numbers_from
from colonnade.kernels.row_blocks import FirstColumns, counted, taken, weight_of

# So many rows tell the party's own model. They are the same each time: scores hang on nothing that a run could change.
LOCAL_ROWS, LOCAL_SEED = 20_000, 20_250_713
# A row, in columns of variance 1: it is there to converge, whatever the rows are.
LOCAL_RIDGE = 1e-3


def class_scores(
    rows: RowBlocks, n_features: int, part: float, sharpened: float = 0.0, *, constant: bool = False
) -> PerRow | None:
    """Score each row by its leverage, and by w_i / (K W_class) times the class part; None where there are no classes.

    Leverage is in [X, 1] where the constant is among the columns; else w_i / W is added to it. A row of weight k scores
    k times what one of its k copies would.

    Parameters
    ----------
    rows
        Features and, if the part is not zero, the label. Not all weights are zero.
    n_features
        d, of these columns.
    part, sharpened
        What all rows have together beside leverage: by class, and by residuals too.
    constant
        As for `leverage`.
    """
    W = basis(FirstColumns(rows, n_features), constant=constant)
    own = _Own(W, n_features, constant, weight_of(rows))
    if not part:
        return numbers_from(rows, own.leverage)
    if (classes := distinct_values(rows, n_features)) is None:
        return None
    weights = reduce(np.add, rows.map(partial(_class_weights, n_features, classes)))
    of_classes = np.divide(part / np.count_nonzero(weights), weights, out=np.zeros(len(classes)), where=weights > 0)
    labelled = _Labelled(own, classes, of_classes)
    if not sharpened:
        return numbers_from(rows, labelled.scores)
    model = _learned(rows, labelled)
    pull = sum(rows.map(partial(_total_pull, labelled, model)))
    return numbers_from(rows, partial(_sharpened, labelled, model, sharpened / pull))


@dataclass(frozen=True, eq=False)
class _Own:
    """A party's features as a basis W has them: rows u_i of an orthonormal basis; all rows count so much."""

    W: Floats
    n_features: int
    constant: bool
    total: float

    def of(self, block: Block) -> Floats:
        """Give u_i, transposed: shape (r, b)."""
        return coordinates(self._features(block), self.W, self.constant)

    def leverage(self, block: Block) -> Floats:
        """Score a block's rows by leverage; w_i / W is added where the constant is not there."""
        return self._with_share(block, leverage_in(self.W, self.constant, self._features(block)))

    def leverage_of(self, block: Block, units: Floats) -> Floats:
        """Score rows whose u_i are known."""
        return self._with_share(block, column_norms(units))

    def _features(self, block: Block) -> Block:
        return Block(block.number, block.values[:, : self.n_features], block.weights)

    def _with_share(self, block: Block, norms: Floats) -> Floats:
        return norms if self.constant else norms + share_in(block, self.total)


@dataclass(frozen=True, eq=False)
class _Labelled:
    """The same with classes, and what a row of weight 1 of each class has beside its leverage."""

    own: _Own
    classes: Floats
    of_classes: Floats

    def codes(self, block: Block) -> Rows:
        """Give the place of each row's class."""
        return class_codes(block.values[:, self.own.n_features], self.classes)

    def scores(self, block: Block) -> Floats:
        """Score rows by leverage and class."""
        return self.with_classes(block, self.own.leverage(block))

    def with_classes(self, block: Block, leverage: Floats) -> Floats:
        """Add the part of classes."""
        part = self.of_classes[self.codes(block)]
        return leverage + (part if block.weights is None else part * block.weights)


@dataclass(frozen=True, eq=False)
class _Model:
    """A model of the party's own columns: the classes that it knows, and its coefficients in u_i / sqrt(w_i / W)."""

    present: Rows
    coef: Floats


def _class_weights(n_features: int, classes: Floats, block: Block) -> Floats:
    return np.bincount(class_codes(block.values[:, n_features], classes), block.weights, len(classes)).astype(
        np.float64
    )


def _learned(rows: RowBlocks, labelled: _Labelled) -> _Model:
    """Learn a model on some rows; in u_i / sqrt(w_i / W) every column has mean square 1."""
    some = _some_rows(rows)
    block = Block(0, *taken(rows, some))
    present, codes = np.unique(labelled.codes(block), return_inverse=True)
    if len(present) < 2:
        return _Model(present, np.empty((0, 0)))
    share = np.broadcast_to(share_in(block, labelled.own.total), len(some))
    X = (labelled.own.of(block) / np.sqrt(share)).T
    coef, _ = solve_logistic(X, codes, share / share.sum(), len(present), LOCAL_RIDGE, 0.0, fit_intercept=False)
    return _Model(present, coef)


def _some_rows(rows: RowBlocks) -> Rows:
    """Draw LOCAL_ROWS rows of those that count, or take all; they are the same each time."""
    rng = np.random.default_rng(LOCAL_SEED)
    return draw_evenly_distinct(rows.n_rows, LOCAL_ROWS, rng, None if rows.row_weights is None else counted(rows))[1]


def _pulls(labelled: _Labelled, model: _Model, block: Block) -> tuple[Floats, Floats]:
    """Give leverages, and sqrt(w_i / W leverage) times 1 less the chance of each row's class."""
    units = labelled.own.of(block)
    leverage = labelled.own.leverage_of(block, units)
    roots = np.sqrt(np.broadcast_to(share_in(block, labelled.own.total), len(leverage)))
    return leverage, roots * np.sqrt(leverage) * _residuals(
        labelled.codes(block), model, units, roots, labelled.classes
    )


def _residuals(codes: Rows, model: _Model, units: Floats, roots: Floats, classes: Floats) -> Floats:
    if len(model.present) < 2:
        return np.ones(len(codes))
    products = (model.coef @ units / np.where(roots > 0, roots, 1.0)).T
    # Of a class that none of the model's rows has, there is no chance.
    chances = np.zeros((len(codes), len(classes)))
    logits = np.column_stack([np.zeros(len(codes)), products]) if len(model.present) == 2 else products
    chances[:, model.present] = probabilities(logits)
    return np.asarray(1.0 - chances[np.arange(len(codes)), codes])


def _total_pull(labelled: _Labelled, model: _Model, block: Block) -> float:
    return float(_pulls(labelled, model, block)[1].sum())


def _sharpened(labelled: _Labelled, model: _Model, factor: float, block: Block) -> Floats:
    leverage, pull = _pulls(labelled, model, block)
    return np.asarray(labelled.with_classes(block, leverage) + factor * pull)
