"""Scores filled up to a total that is known beforehand, so that no party has to tell its own.

The rule's bound is the total: for regression the number of columns + 1, for k-means 2 + 2 k. What a party's scores lack
of it (its rank is smaller, a cluster is empty) is spread evenly over its rows. Larger scores than needed cost nothing
but a few more draws of ordinary rows: the guarantee asks for scores that are large enough.
"""

from functools import partial

import msgspec
import numpy as np

from colonnade.contracts import PartyCard, ScoreBounds, Table
from colonnade.kernels.arrays import Floats
from colonnade.kernels.per_row import PerRow
from colonnade.sampling.rules.plain import PlainRule


class FilledScores(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """The scores of another rule, filled up to its bound.

    Parameters
    ----------
    rule : LeverageScores, SharpenedScores, ClassScores or ClusteringScores
        The other rule.
    """

    rule: PlainRule

    def scores(self, table: Table) -> PerRow:
        """Compute the other rule's scores and spread evenly what their sum lacks of the bound."""
        scores, weights = self.rule.scores(table), table.row_weights
        n_counted = table.n_rows if weights is None else weights.n_positive
        card = PartyCard("", table.n_rows, table.feature_names, table.label_name)
        total = self.bounds(card, n_counted).total
        lacking = max(total - scores.sum(), 0.0)
        for_weight = lacking / (table.n_rows if weights is None else weights.sum())
        return scores.changed(partial(_filled, weights, for_weight, total / (scores.sum() + lacking)))

    def bounds(self, card: PartyCard, n_counted: int) -> ScoreBounds:
        """Give the other rule's bound of the total: it is the total; a score exceeds it no more than they all do."""
        total = self.rule.bounds(card, n_counted).total
        return ScoreBounds(total, total)


def _filled(weights: PerRow | None, for_weight: float, factor: float, number: int, scores: Floats) -> Floats:
    evenly = for_weight if weights is None else for_weight * weights.block(number)
    return np.asarray((scores + evenly) * factor)
