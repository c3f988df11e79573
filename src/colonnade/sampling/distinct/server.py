"""Distinct draws at the server: quotas that are dealt, the union of what was drawn, and 1 over the chance of a row.

Chances of several draws are put together as sums of -log(1 - pi): the chance of their union is 1 - exp(-sum).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from colonnade.contracts import Draw, Outbox, Roster, ScoreRule, Script, SumMechanism
from colonnade.coreset import Coreset
from colonnade.errors import RemoteProtocolError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.draws import chances, draw_evenly_distinct, even_factor, log_of
from colonnade.kernels.per_row import PerRow
from colonnade.kernels.possible import each_once
from colonnade.messages import MAX_MAGNITUDE, Message, sendable_rows
from colonnade.protocol import checks
from colonnade.sampling.distinct.messages import AskDistinctCodes, AskDistinctScores, DistinctCodes, DistinctScores
from colonnade.sampling.plain.messages import DrawnRows, Draws
from colonnade.sampling.plain.server import ROUNDING, Quotas, check_limits, decoded, n_counted, shares_of
from colonnade.sampling.rules.rounded import RoundedScores
from colonnade.sampling.seeds import Seeds, even_quota, even_rng
from colonnade.sampling.weights import Design
from colonnade.signing import SignedRows


@dataclass(frozen=True, eq=False)
class Distinct:
    """The way in which each row is in S once; `sum_logs` gives the sum over parties of -log(1 - pi_ij)."""

    draws: ClassVar[Draws] = Draws.DISTINCT

    sum_logs: SumMechanism

    def quotas(self, design: Design, totals: Floats, seeds: Seeds, rng: np.random.Generator) -> Quotas:  # noqa: ARG002  # nothing is drawn
        """Deal them, so that they add up to the size: by totals, the largest remainders rounded up."""
        n_even, most = even_quota(design.size, design.even_share), n_counted(design.roster, design.row_weights)
        due = shares_of(totals) * (design.size - n_even)
        counts = np.floor(due).astype(np.int64)
        order = np.argsort(counts - due, kind="stable")
        counts[order[: design.size - n_even - int(counts.sum())]] += 1
        # No party has more rows than there are.
        return Quotas(n_even, tuple(np.minimum(counts, most).tolist()), seeds)

    def join(self, design: Design, quotas: Quotas, drawn: Mapping[str, SignedRows]) -> Rows:
        """Draw the even rows, and unite all."""
        for party, each in drawn.items():
            if np.any(each.rows[1:] == each.rows[:-1]):
                raise RemoteProtocolError(
                    f"{party!r} drew a row twice, where each is drawn once at most. The run was stopped; nothing of it "
                    "was used.",
                    party=party,
                    kind=DrawnRows.__name__,
                )
        rng = even_rng(quotas.seeds.shared)
        _, even = draw_evenly_distinct(design.roster.n_rows, quotas.n_even, rng, design.row_weights)
        return sendable_rows(each_once(np.concatenate([*(each.rows for each in drawn.values()), even])))

    def weigh(self, design: Design, draw: Draw) -> Script[Coreset]:
        """Weigh each row by what it counts, over the chance that it is in S."""
        logs = yield from self.sum_logs(design.roster, draw)
        factor = even_factor(design.roster.n_rows, draw.n_even, design.row_weights)
        even = log_of(chances(factor, design.counts(draw.rows)))
        return design.weigh_distinct(draw.rows, logs + even, sum(draw.totals.values()))


@dataclass(frozen=True, eq=False)
class LogsInTheClear:
    """Sum logarithms of what parties tell: scores by this rule, where rows weigh so much (1 if None), and factors."""

    rule: ScoreRule
    row_weights: PerRow | None

    def __call__(self, roster: Roster, draw: Draw) -> Script[Floats]:
        """Ask for scores and factors; give the sum for each i in S, positive, shape (m,)."""
        replies, scores = yield from self._told(roster, draw)
        check_limits(self.rule, self.row_weights, roster, draw, replies, scores)
        logs = np.zeros(len(draw.rows))
        for party, reply in replies.items():
            logs += log_of(_chances(party, reply, reply.factor, scores[party], draw))
        return logs

    def _told(
        self, roster: Roster, draw: Draw
    ) -> Script[tuple[Mapping[str, DistinctScores | DistinctCodes], Mapping[str, Floats]]]:
        size = len(draw.rows)
        if isinstance(self.rule, RoundedScores):
            inbox = yield asked(AskDistinctCodes, roster, draw)
            codes, step = checks.replies(inbox, DistinctCodes), self.rule.log_step
            return codes, {party: decoded(party, reply, size, step) for party, reply in codes.items()}
        inbox = yield asked(AskDistinctScores, roster, draw)
        told = checks.replies(inbox, DistinctScores)
        for party, reply in told.items():
            checks.shape(party, reply, reply.scores, (size,))
            checks.non_negative(party, reply, reply.scores)
        return told, {party: reply.scores for party, reply in told.items()}


def asked(kind: type[AskDistinctScores | AskDistinctCodes], roster: Roster, draw: Draw) -> Outbox:
    """Ask every party about S: it is told what the others drew."""
    size, evenly = len(draw.rows), (draw.even_share, draw.even_seed)
    return {party: kind(size, draw.told_to(party), *evenly, draw.n_draws) for party in roster.names}


def _chances(party: str, reply: Message, factor: float, scores: Floats, draw: Draw) -> Floats:
    """Give the party's chances of the rows in S, and require that a draw of as many rows as it drew can have them."""
    rows, total = draw.by(party), draw.totals[party]
    least = len(rows) / total
    # Larger than that where rows are certain: these take less than their part of the total.
    if not least * (1 - ROUNDING) <= factor <= MAX_MAGNITUDE:
        what = f"a factor of {factor:g}, where {len(rows)} rows of a total of {total:g} have {least:g} or more"
        raise checks.wrong(party, reply, what)
    chance: Floats = np.minimum(factor * scores, 1.0)
    if chance.sum() > len(rows) * (1 + ROUNDING):
        raise checks.wrong(party, reply, f"chances that add up to {chance.sum():g}, where it drew {len(rows)} rows")
    certain = draw.rows[factor * scores > 1 + ROUNDING]
    for row in certain[~np.isin(certain, rows)][:1].tolist():
        raise checks.wrong(party, reply, f"a score that makes row {row} certain, which it did not draw")
    return chance
