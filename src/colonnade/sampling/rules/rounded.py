"""Scores rounded in logarithm to about 11 bits, by less than a thousandth, or to 5 bits, and everywhere alike.

A party rounds the scores of all its rows before anything else, and draws, totals and sends the rounded ones. So nothing
is lost between what rows are drawn by and what they are weighted by, and costs stay right on average, however coarsely
scores are rounded: rows are then drawn by somewhat other chances, that is all.
"""

import math
from functools import partial

import msgspec

from colonnade.contracts import PartyCard, ScoreBounds, ScoreRule, Table
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.per_row import PerRow
from colonnade.kernels.score_codes import LARGEST_LOG_STEP, LOG_STEP, round_scores
from colonnade.sampling.rules.plain import PlainRule, plain_rule


class RoundedScores(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """The scores of another rule, rounded.

    Parameters
    ----------
    rule : LeverageScores, SharpenedScores, ClassScores or ClusteringScores
        The other rule.
    log_step : float
        Scores are rounded to powers of exp(log_step).
    """

    rule: PlainRule
    log_step: float

    def scores(self, table: Table) -> PerRow:
        """Compute the other rule's scores and round each by a factor of exp(log_step / 2) at most."""
        if not LOG_STEP <= self.log_step <= LARGEST_LOG_STEP:
            raise InputError(f"Scores cannot be rounded by {self.log_step}. Use {LOG_STEP:g} to {LARGEST_LOG_STEP:g}.")
        return self.rule.scores(table).changed(partial(_rounded, self.log_step))

    def bounds(self, card: PartyCard, n_counted: int) -> ScoreBounds:
        """Allow the other rule's bounds what rounding may add."""
        return self.rule.bounds(card, n_counted).times(math.exp(self.log_step / 2))


def _rounded(log_step: float, _: int, scores: Floats) -> Floats:
    return round_scores(scores, log_step)


def rounded_rule(rule: ScoreRule, round_scores: bool | float) -> RoundedScores:
    """Round the scores of a rule, by less than a thousandth or as coarsely as asked."""
    return RoundedScores(plain_rule(rule), LOG_STEP if round_scores is True else float(round_scores))


def log_step_of(rule: ScoreRule | None) -> float:
    """Give the step, in logarithm, to whose multiples a rule rounds scores."""
    return rule.log_step if isinstance(rule, RoundedScores) else LOG_STEP
