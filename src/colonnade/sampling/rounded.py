"""Scores rounded in logarithm to about 11 bits, by less than a thousandth, or to 5 bits, and everywhere alike.

A party rounds the scores of all its rows before anything else, and draws, totals and sends the rounded ones. So nothing
is lost between what rows are drawn by and what they are weighted by, and costs stay right on average, however coarsely
scores are rounded: rows are then drawn by somewhat other chances, that is all.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from colonnade.contracts import Drawn, PartyCard, Roster, ScoreBounds, ScoreRule, Script, Table
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.score_codes import LARGEST_LOG_STEP, LOG_STEP, decode_scores, encode_scores, round_scores
from colonnade.messages import Message, Reveals
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.sampling.plain_rules import PlainRule, plain_rule
from colonnade.sampling.summing import DRAWN, add_scores, all_rows, others

# A score is off by less than this, relative.
ROUNDED_BY = math.expm1(LOG_STEP / 2)


class RoundedScores(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """The scores of another rule, rounded.

    Parameters
    ----------
    rule : LeverageScores or ClusteringScores
        The other rule.
    """

    rule: PlainRule

    def scores(self, table: Table) -> Floats:
        """Compute the other rule's scores and round each by less than a thousandth of itself."""
        return round_scores(self.rule.scores(table))

    def bounds(self, card: PartyCard, n_counted: int) -> ScoreBounds:
        """Allow the other rule's bounds what rounding may add.

        Parameters
        ----------
        card : PartyCard
            The party's columns.
        n_counted : int
            So many rows count.

        Returns
        -------
        ScoreBounds
            The other rule's, larger by the rounding.
        """
        return self.rule.bounds(card, n_counted).times(1 + ROUNDED_BY)


class CoarseScores(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """The scores of another rule, rounded coarsely.

    Parameters
    ----------
    rule : LeverageScores or ClusteringScores
        The other rule.
    log_step : float
        Scores are rounded to powers of exp(log_step).
    """

    rule: PlainRule
    log_step: float

    def scores(self, table: Table) -> Floats:
        """Compute the other rule's scores and round each by a factor of exp(log_step / 2) at most."""
        if not LOG_STEP <= self.log_step <= LARGEST_LOG_STEP:
            raise InputError(f"Scores cannot be rounded by {self.log_step}. Use {LOG_STEP:g} to {LARGEST_LOG_STEP:g}.")
        return round_scores(self.rule.scores(table), self.log_step)

    def bounds(self, card: PartyCard, n_counted: int) -> ScoreBounds:
        """Allow the other rule's bounds what rounding may add; the parameters are those of `RoundedScores`."""
        return self.rule.bounds(card, n_counted).times(math.exp(self.log_step / 2))


def rounded_rule(rule: ScoreRule, round_scores: bool | float) -> RoundedScores | CoarseScores:
    """Round the scores of a rule, by less than a thousandth or as coarsely as asked."""
    if round_scores is True:
        return RoundedScores(plain_rule(rule))
    return CoarseScores(plain_rule(rule), float(round_scores))


def _log_step(rule: ScoreRule | None) -> float:
    return rule.log_step if isinstance(rule, CoarseScores) else LOG_STEP


class ScoreCodes(Message, frozen=True):
    """The party's rounded scores of the rows in S (line 7), coded."""

    phase: ClassVar[str] = "summing"

    size: Annotated[int, Reveals.NOTHING]
    codes: Annotated[bytes, Reveals.SCORES]

    def units(self) -> int:
        """Count a number a row, as in the paper."""
        return self.size


class AskScoreCodes(Message, frozen=True):
    """S (line 6) without the rows that this party drew, as in `AskScores`; the scores are to come rounded."""

    phase: ClassVar[str] = "summing"
    reply: ClassVar[type[Message]] = ScoreCodes

    others: Annotated[Rows, Reveals.ROW_IDS]
    n_own: Annotated[int, Reveals.NOTHING]

    def units(self) -> int:
        """Count all of S: what the paper's server sends."""
        return len(self.others) + self.n_own


@dataclass(frozen=True)
class SumRounded:
    """Sum the rounded scores of the drawn rows over the parties.

    Parameters
    ----------
    rule : RoundedScores or CoarseScores
        By which the parties were asked to score.
    """

    rule: RoundedScores | CoarseScores

    def __call__(self, roster: Roster, drawn: Drawn) -> Script[Floats]:
        """Ask for codes; give g_i for each i in S, positive, shape (m,)."""
        rows, own, log_step = drawn.rows, drawn.by_party, _log_step(self.rule)
        inbox = yield {party: AskScoreCodes(others(rows, own[party]), len(own[party])) for party in roster.names}
        replies = checks.replies(inbox, ScoreCodes)
        scores = {party: _decoded(party, reply, len(rows), log_step) for party, reply in replies.items()}
        return add_scores(replies, scores)


def _decoded(party: str, reply: ScoreCodes, size: int, log_step: float) -> Floats:
    if reply.size != size:
        raise checks.wrong(party, reply, f"scores of {reply.size} rows where {size} were asked for")
    try:
        scores = decode_scores(reply.codes, size, log_step)
    except ValueError as error:
        raise checks.wrong(party, reply, str(error)) from error
    checks.non_negative(party, reply, scores)
    return scores


def _answer(state: PartyState, request: AskScoreCodes, data: PartyData) -> tuple[PartyState, Message]:
    rows = all_rows(state, request, request.others, request.n_own, data.table.n_rows)
    # Rounding what is rounded changes nothing: this holds whatever rule the server asked for.
    log_step = _log_step(state.rule)
    scores = round_scores(data.scores(state.rule)[rows], log_step)
    return replace(state, rows=rows), ScoreCodes(len(rows), encode_scores(np.asarray(scores), log_step))


HANDLERS = (Handler(AskScoreCodes, _answer, after=frozenset({DRAWN}), then=SELECTED),)
