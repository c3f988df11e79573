"""Scores as whole numbers of one small step: what can be committed to, and drawn by with the same result everywhere."""

from functools import partial

import msgspec

from colonnade.contracts import PartyCard, Roster, ScoreBounds, ScoreRule, Table
from colonnade.errors import InputError, UnsupportedError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.integer_draws import TOTAL_BITS, on_grid
from colonnade.kernels.per_row import PerRow
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.plain import PlainRule, plain_rule

# Coarser steps than 2^-48 are not used.
LEAST_EXPONENT = 48
# In finer ones a score of 1 would leave 62 bits.
MOST_EXPONENT = TOTAL_BITS - 1
# Every row may be rounded up by a step.
ROUNDED_UP_BY = 1e-6


class IntegerScores(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """The scores of another rule, rounded to multiples of 2^-exponent; none that was positive becomes zero.

    Parameters
    ----------
    rule : LeverageScores, SharpenedScores, ClassScores, ClusteringScores or FilledScores
        The other rule.
    exponent : int
        The step is 2^-exponent. Multiples of it that are scores are float64 exactly.
    """

    rule: PlainRule | FilledScores
    exponent: int

    def scores(self, table: Table) -> PerRow:
        """Compute the other rule's scores and round each to the step."""
        if not LEAST_EXPONENT <= self.exponent <= MOST_EXPONENT:
            raise InputError(
                f"scores in steps of 2^-{self.exponent} were asked for. "
                f"Ask for 2^-{LEAST_EXPONENT} to 2^-{MOST_EXPONENT}."
            )
        return self.rule.scores(table).changed(partial(_on_grid, self.exponent))

    def bounds(self, card: PartyCard, n_counted: int) -> ScoreBounds:
        """Allow the other rule's bounds what rounding may add."""
        return self.rule.bounds(card, n_counted).times(1 + ROUNDED_UP_BY)


def _on_grid(exponent: int, _: int, scores: Floats) -> Floats:
    return on_grid(scores, exponent)


def integer_rule(rule: ScoreRule, roster: Roster) -> IntegerScores:
    """Choose the finest step in which no party's total leaves 62 bits, from what all sides know: 2^-48 or finer."""
    largest = max(rule.bounds(card, roster.n_rows).total for card in roster.cards)
    exponent = TOTAL_BITS - int(largest).bit_length()
    if exponent < LEAST_EXPONENT:
        raise UnsupportedError(
            f"Scores of a party can add up to {largest:,.0f}: in steps of 2^-{LEAST_EXPONENT} that does not fit in 64 "
            'bits. Split its columns over several parties, or pass draws="stratified".'
        )
    return IntegerScores(rule if isinstance(rule, FilledScores) else plain_rule(rule), exponent)
