"""What the scores of drawn rows can be: between a row's part of the weight and the rule's bound, and within the total.

A party whose scores leave these limits has no table at all that they are of.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.contracts import PartyCard, ScoreRule
from colonnade.kernels.arrays import Floats, Rows
from colonnade.sampling.rules.rounded import RoundedScores


@dataclass(frozen=True, eq=False)
class ScoreLimits:
    """Limits of the scores of drawn rows, ascending, shape (m,), summed over one party or several.

    Parameters
    ----------
    least : ndarray of float64, shape (m,)
        No score of these rows is smaller.
    most : float
        None is larger.
    least_unseen, most_unseen : float
        What the scores of all other rows add up to, at least and at most.
    """

    rows: Rows
    least: Floats
    most: float
    least_unseen: float
    most_unseen: float

    def broken_by(self, scores: Floats, total: float | None, slack: float) -> str | None:
        """Say in which way scores, shape (m,), break the limits, if they do; all rows have this total, if known."""
        outside = (scores < self.least * (1 - slack)) | (scores > self.most * (1 + slack))
        for at in np.flatnonzero(outside)[:1].tolist():
            return f"a score of {scores[at]:.6g} of row {self.rows[at]}, outside {self.least[at]:.6g} to {self.most:g}"
        again = self.rows[1:] == self.rows[:-1]
        if (np.abs(scores[1:] - scores[:-1])[again] > slack * scores[1:][again]).any():
            return "two scores of one row"
        if total is None:
            return None
        seen = float(scores[~np.append(False, again)].sum())
        if not seen + self.least_unseen <= total * (1 + slack) or not seen + self.most_unseen >= total * (1 - slack):
            return (
                f"scores of {len(self.rows) - again.sum()} rows that add up to {seen:.6g}, where all have {total:.6g}"
            )
        return None


def score_limits(
    rule: ScoreRule, cards: Sequence[PartyCard], row_weights: Floats | None, n_rows: int, rows: Rows
) -> ScoreLimits:
    """Find the limits of these parties' scores, summed, from what all sides know."""
    rounded_by = rounding_factor(rule)
    parts = np.full(len(rows), 1 / n_rows) if row_weights is None else row_weights[rows] / row_weights.sum()
    n_counted = n_rows if row_weights is None else int(np.count_nonzero(row_weights))
    most = sum(rule.bounds(card, n_counted).score for card in cards)
    first = np.unique(rows, return_index=True)[1]
    unseen = max(1.0 - float(parts[first].sum()), 0.0) * len(cards) / rounded_by
    return ScoreLimits(rows, parts * (len(cards) / rounded_by), most, unseen, most * max(n_counted - len(first), 0))


def rounding_factor(rule: ScoreRule) -> float:
    """Say by which factor a rule may round scores down: 1 where it does not."""
    return math.exp(rule.log_step / 2) if isinstance(rule, RoundedScores) else 1.0
