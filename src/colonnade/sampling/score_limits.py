"""What the scores of drawn rows can be: between a row's part of the weight and the rule's bound, and within the total.

A party whose scores leave these limits has no table at all that they are of.
"""

import math
from dataclasses import dataclass

import numpy as np

from colonnade.contracts import ScoreRule
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.per_row import PerRow
from colonnade.kernels.possible import first_copies
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.sampling.rules.rounded import RoundedScores


@dataclass(frozen=True, eq=False)
class ScoreLimits:
    """Limits of the scores of drawn rows.

    Parameters
    ----------
    rows : ndarray of int64, shape (m,)
        Ascending.
    least : ndarray of float64, shape (m,)
        No party's score of these rows is smaller.
    least_unseen : float
        Nor do its scores of all other rows add up to less.
    n_counted, n_unseen : int
        How many rows have weight, and how many of these are not among the drawn ones.
    """

    rows: Rows
    least: Floats
    least_unseen: float
    n_counted: int
    n_unseen: int

    def broken_by(self, scores: Floats, most: float, n_parties: int, total: float, slack: float) -> str | None:
        """Say in which way the scores of some parties, summed, break the limits, if they do.

        None of their scores, shape (m,), is larger than `most`; all rows have this total.
        """
        least = self.least * n_parties
        outside = (scores < least * (1 - slack)) | (scores > most * (1 + slack))
        for at in np.flatnonzero(outside)[:1].tolist():
            return f"a score of {scores[at]:.6g} of row {self.rows[at]}, outside {least[at]:.6g} to {most:g}"
        again = self.rows[1:] == self.rows[:-1]
        if (np.abs(scores[1:] - scores[:-1])[again] > slack * scores[1:][again]).any():
            return "two scores of one row"
        seen = float(scores[~np.append(False, again)].sum())
        low, high = seen + self.least_unseen * n_parties, seen + self.n_unseen * most
        if not low * (1 - slack) <= total <= high * (1 + slack):
            return f"scores of {len(scores) - again.sum()} rows that add up to {seen:.6g}, where all have {total:.6g}"
        return None


def score_limits(rule: ScoreRule, row_weights: PerRow | None, n_rows: int, rows: Rows) -> ScoreLimits:
    """Find the limits from what all sides know: how rows are scored, and what they weigh, shape (n_rows,)."""
    # A rule that rounds scores may round them down.
    rounded_by = math.exp(rule.log_step / 2) if isinstance(rule, RoundedScores) else 1.0
    parts = np.full(len(rows), 1 / n_rows) if row_weights is None else row_weights[rows] / row_weights.sum()
    n_counted = n_rows if row_weights is None else row_weights.n_positive
    first = first_copies(rows)
    unseen = max(1.0 - float(parts[first].sum()), 0.0)
    n_unseen = max(n_counted - len(first), 0)
    # As a rule of whole steps rounds them to the nearest one.
    step = 2.0**-rule.exponent if isinstance(rule, IntegerScores) else 0.0
    least = np.maximum(parts / rounded_by - step / 2, 0.0)
    return ScoreLimits(rows, least, max(unseen / rounded_by - n_unseen * step / 2, 0.0), n_counted, n_unseen)
