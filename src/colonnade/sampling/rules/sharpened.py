"""Scores for least squares that make its coreset vary less than those of Algorithm 2: leverage flattened, and residuals.

They follow what a row does to the fit, not to the cost of every model: there is no theorem about them.
"""

import math

import msgspec

from colonnade.contracts import PartyCard, Roster, ScoreBounds, ScoreRule, Table
from colonnade.errors import InputError, UnsupportedError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.sharpened import POWER, sharpened_scores
from colonnade.sampling.rules.leverage import LeverageScores

# Of all draws, the share that residuals are to make. Its optimum is flat.
RESIDUAL_SHARE = 0.4
# What |r| sqrt(h) is on average, of its bound: that of a normal residual, which does not hang on h.
USUAL = 0.8
# More would draw by nothing else.
MOST_RESIDUALS = 1e6


class SharpenedScores(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """Scores for regression: the power 3/4 of leverage; at the label's party, residuals on its own features too.

    Parameters
    ----------
    fit_intercept : bool
        Whether the model has an intercept: every party then counts a column of ones among its own.
    residuals : float
        How much residuals count.
    """

    fit_intercept: bool
    residuals: float

    def scores(self, table: Table) -> Floats:
        """Compute g^(j), positive; no row scores less than its part of the weight."""
        if not 0 <= self.residuals <= MOST_RESIDUALS:
            raise InputError(f"Residuals cannot count {self.residuals}. Use a number from 0 to {MOST_RESIDUALS:g}.")
        n_features, residuals = len(table.feature_names), None if table.label_name is None else self.residuals
        return sharpened_scores(
            table.blocks, n_features, residuals, constant=self.fit_intercept, weights=table.row_weights
        )

    def bounds(self, card: PartyCard, n_counted: int) -> ScoreBounds:
        """Bound the totals by the means of leverage and squared residuals, which are rank + 1 and 1.

        One row has no more than all of each, and of leverage no more than 2.
        """
        mean = min(card.n_features, n_counted) + 1.0
        residuals = 0.0 if card.label_name is None else self.residuals
        total = mean**POWER + residuals * math.sqrt(mean)
        return ScoreBounds(min(2.0**POWER + residuals * math.sqrt(2.0), total), total)

    def unsharpened(self) -> LeverageScores:
        """Give the rule that this one sharpens."""
        return LeverageScores(self.fit_intercept)


def sharpened_rule(rule: ScoreRule, roster: Roster) -> SharpenedScores:
    """Sharpen scores for regression, from what all sides know: residuals are to make a share of all draws."""
    if not isinstance(rule, LeverageScores):
        raise UnsupportedError(
            f"sharpened=True is for regressions, which have residuals; not for {rule}. Leave it out."
        )
    leverages = sum((card.n_features + 1) ** POWER for card in roster.cards)
    at_label = max((card.n_features for card in roster.cards if card.label_name is not None), default=0)
    factor = RESIDUAL_SHARE / (1 - RESIDUAL_SHARE) * leverages / (USUAL * math.sqrt(at_label + 1))
    # The last bit of a power may differ between machines, and the rule is compared.
    return SharpenedScores(rule.fit_intercept, round(factor, 2))
