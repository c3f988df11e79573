"""Scores for least squares on whose coresets it varies less than on those of Algorithm 2: by leverage and residuals.

They follow what a row does to the fit, and not to the cost of every model, as the theorem's do.
"""

import math

import msgspec

from colonnade.contracts import PartyCard, Roster, ScoreBounds, ScoreRule, Table
from colonnade.errors import InputError, UnsupportedError
from colonnade.kernels.per_row import PerRow
from colonnade.kernels.sharpened import sharpened_scores
from colonnade.sampling.rules.leverage import LeverageScores

# Of all draws, the share that residuals are to make. The optimum is flat; by half of all draws, no direction of the
# features needs more than twice the rows.
RESIDUAL_SHARE = 0.5
# Of the bound of |r| sqrt(h), its mean where residuals are normal, and do not hang on h.
USUAL = 0.8
# More would draw by nothing else.
MOST_RESIDUALS = 1e6


class SharpenedScores(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """Scores for regression: leverage in the features; at the label's party, also the residual on its own.

    Parameters
    ----------
    fit_intercept : bool
        Whether the model has an intercept: every party then counts a column of ones among its own.
    residuals : float
        How much residuals count.
    """

    fit_intercept: bool
    residuals: float

    def scores(self, table: Table) -> PerRow:
        """Compute g^(j), positive; no row scores less than its part of the weight."""
        if not 0 <= self.residuals <= MOST_RESIDUALS:
            raise InputError(f"Residuals cannot count {self.residuals}. Use a number from 0 to {MOST_RESIDUALS:g}.")
        n_features, residuals = len(table.feature_names), None if table.label_name is None else self.residuals
        return sharpened_scores(table, n_features, residuals, constant=self.fit_intercept)

    def bounds(self, card: PartyCard, n_counted: int) -> ScoreBounds:
        """Bound totals by the rank + 1, which leverages have, and by its root times the factor, which residuals have.

        A row has 2 of the one at most, as by `LeverageScores`, and all of a residual.
        """
        ranks = min(card.n_features, n_counted) + 1.0
        if card.label_name is None:
            return ScoreBounds(2.0, ranks, whole=True)
        total = ranks + self.residuals * math.sqrt(ranks)
        return ScoreBounds(min(2.0 + self.residuals * math.sqrt(2.0), total), total)

    def unsharpened(self) -> LeverageScores:
        """Give the rule that this one sharpens."""
        return LeverageScores(self.fit_intercept)


def sharpened_rule(rule: ScoreRule, roster: Roster) -> SharpenedScores:
    """Sharpen scores for regression, from what all sides know: residuals are to make a share of all draws."""
    if not isinstance(rule, LeverageScores):
        raise UnsupportedError(
            f"sharpened=True is for regressions, which have residuals; not for {rule}. Leave it out."
        )
    leverages = sum(card.n_features + 1 for card in roster.cards)
    at_label = max((card.n_features for card in roster.cards if card.label_name is not None), default=0)
    factor = RESIDUAL_SHARE / (1 - RESIDUAL_SHARE) * leverages / (USUAL * math.sqrt(at_label + 1))
    # The last bit of a root may differ between machines, and the rule is compared.
    return SharpenedScores(rule.fit_intercept, round(factor, 2))
