"""Algorithm 1 at the server: `Algorithm1` reads as in the paper, from the totals to the weights.

Rows that parties have drawn are then scored by all of them (round 3): in the clear here, or as another mechanism does.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from colonnade.contracts import Agreed, Draw, Inbox, Outbox, Roster, ScoreBounds, ScoreRule, Script, SumMechanism
from colonnade.coreset import Coreset
from colonnade.errors import RemoteProtocolError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.draws import most_copies
from colonnade.kernels.per_row import PerRow
from colonnade.kernels.possible import first_copies
from colonnade.kernels.score_codes import decode_scores
from colonnade.messages import MIN_MAGNITUDE, Message, sendable_rows
from colonnade.privacy.circles import NEIGHBOURS
from colonnade.protocol import checks
from colonnade.routes import END, Ask, AtMost, Hashing, Route, either, then
from colonnade.sampling.plain.messages import (
    AskScoreCodes,
    AskScores,
    AskTotal,
    AskVouched,
    DrawnRows,
    DrawRows,
    Draws,
    OpenDraw,
    ScoreCodes,
    Scores,
    Total,
    Vouched,
)
from colonnade.sampling.rules import AnyRule, travelling
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.rounded import RoundedScores
from colonnade.sampling.score_limits import score_limits
from colonnade.sampling.seeds import Seeds, count_even, even_rows
from colonnade.sampling.weights import Design
from colonnade.signing import SignedRows, VouchedRows, all_drawn, seed_digest

# Totals are sums of n rounded numbers.
ROUNDING = 1e-6
# Leverages add up to a rank, up to rounding, which is worst where columns nearly depend on each other.
NOT_WHOLE = 1e-4
SHARE_STEPS = 2.0**40


@dataclass(frozen=True)
class Quotas:
    """How many rows the server draws evenly, how many each party draws by its scores, and from which seeds."""

    n_even: int
    counts: tuple[int, ...]
    seeds: Seeds


@dataclass(frozen=True, eq=False)
class Algorithm1:
    """Importance sampling over parties, in some way of drawing. The random generator draws seeds, and quotas."""

    design: Design
    rng: np.random.Generator
    way: "Way"

    def with_told_totals(self, rule: ScoreRule) -> Script[Coreset]:
        """Play the algorithm as it is: parties tell their totals."""
        parties = self.design.roster.names
        seeds = Seeds.of(self.rng, len(parties))
        # Lines 1 and 2: every party scores its rows, and tells the sum of its scores.
        asked: Outbox = {party: AskTotal(travelling(rule)) for party in parties}
        told = yield asked
        totals = _read_totals(checks.replies(told, Total), self.design, rule)
        # Lines 3 and 4: it learns how many rows to draw.
        quotas = self.way.quotas(self.design, totals, seeds, self.rng)
        orders: Outbox = {
            party: DrawRows(count, seed, self.way.draws)
            for party, count, seed in zip(parties, quotas.counts, quotas.seeds.own, strict=True)
        }
        return (yield from self._draw_sum_and_weigh(totals, quotas, orders, (asked, told)))

    def with_set_totals(self, rule: FilledScores) -> Script[Coreset]:
        """Play it with totals that are set: parties fill their scores up to them."""
        return self.with_known_totals(np.array(list(bounds_of_totals(self.design, rule).values())), rule)

    def with_known_totals(self, totals: Floats, rule: AnyRule | None) -> Script[Coreset]:
        """Play it with totals that are known beforehand: line 2 is saved; and line 1, where there is no rule."""
        # Lines 1, 3 and 4: every party learns how many rows to draw, and scores its rows.
        quotas = self.way.quotas(self.design, totals, Seeds.of(self.rng, len(totals)), self.rng)
        orders: Outbox = {
            party: OpenDraw(rule, count, seed, self.way.draws)
            for party, count, seed in zip(self.design.roster.names, quotas.counts, quotas.seeds.own, strict=True)
        }
        return (yield from self._draw_sum_and_weigh(totals, quotas, orders, ()))

    def _draw_sum_and_weigh(
        self, totals: Floats, quotas: Quotas, orders: Outbox, before: Sequence[Outbox | Inbox]
    ) -> Script[Coreset]:
        roster = self.design.roster
        # Line 5: every party draws its rows.
        answers = yield orders
        drawn = read_rows(checks.replies(answers, DrawnRows), quotas.counts, roster.n_rows, self.design.row_weights)
        # Line 6: the server puts them together, with the even rows, which every side draws by itself.
        rows = self.way.join(self.design, quotas, drawn)
        told = dict(zip(roster.names, totals.tolist(), strict=True))
        said = exchanged(roster, *before, orders, answers)
        evenly = (self.design.even_share, quotas.seeds.shared, quotas.n_even)
        draw = Draw(rows, drawn, said, told, *evenly, n_draws=self.design.size)
        if is_vouched(roster.names):
            draw = yield from vouched(draw, roster.n_rows)
        # Lines 7 and 8: every party scores all of them, and they are weighed.
        return (yield from self.way.weigh(self.design, draw))


def is_vouched(parties: Collection[str]) -> bool:
    """Tell whether there are so many that one vouches for what all drew."""
    return not NEIGHBOURS.has_all(len(parties))


def vouched(draw: Draw, n_rows: int) -> Script[Draw]:
    """Let one of many parties check what all have signed to have drawn: each of the others then checks that one's word.

    Else each would check a signature of every other.
    """
    first, drawn = min(draw.drawn), [each.rows for _, each in sorted(draw.drawn.items())]
    inbox = yield {first: AskVouched(draw.of_others(first))}
    word = checks.replies(inbox, Vouched)[first]
    checks.signature(first, word, word.signature)
    return replace(draw, vouched=VouchedRows(sendable_rows(all_drawn(drawn, n_rows)), word.signature))


def vouching_route(agreed: Agreed) -> Route:
    """Expect that question, of many parties at the first by name."""
    names = agreed.roster.names
    return Ask(AskVouched) if is_vouched(names) and agreed.party == min(names) else END


class Way(Protocol):
    """In which way rows are drawn, and so how many by whom, and what they weigh."""

    @property
    def draws(self) -> Draws:
        """Its name."""

    def quotas(self, design: Design, totals: Floats, seeds: Seeds, rng: np.random.Generator) -> Quotas:
        """Say how many rows are drawn evenly, and how many by each party."""

    def join(self, design: Design, quotas: Quotas, drawn: Mapping[str, SignedRows]) -> Rows:
        """Put together S of what each party drew, and of the even rows."""

    def weigh(self, design: Design, draw: Draw) -> Script[Coreset]:
        """Ask the parties for what the weights follow from."""


@dataclass(frozen=True, eq=False)
class WithReplacement:
    """Algorithm 1's way: a row is in S as often as it was drawn. Line 7 is played in the clear or otherwise."""

    draws: Draws
    sum_scores: SumMechanism

    def quotas(self, design: Design, totals: Floats, seeds: Seeds, rng: np.random.Generator) -> Quotas:
        """Draw them: each draw is one party's by its total, or even."""
        n_even = count_even(seeds.shared, design.size, design.even_share)
        counts = rng.multinomial(design.size - n_even, shares_of(totals))
        return Quotas(n_even, tuple(counts.tolist()), seeds)

    def join(self, design: Design, quotas: Quotas, drawn: Mapping[str, SignedRows]) -> Rows:
        """Draw the even rows, and sort all."""
        even = even_rows(design.roster.n_rows, quotas.n_even, quotas.seeds.shared, design.row_weights)
        return sendable_rows(np.sort(np.concatenate([*(each.rows for each in drawn.values()), even])))

    def weigh(self, design: Design, draw: Draw) -> Script[Coreset]:
        """Sum scores (line 7); weigh by 1 over them (line 8)."""
        scores = yield from self.sum_scores(design.roster, draw)
        is_stratified = self.draws is Draws.STRATIFIED
        _check_copies(draw, scores, stratified=is_stratified)
        total = float(np.sum([*draw.totals.values()]))
        return design.weigh(draw.rows, scores, total, stratified=is_stratified)


@dataclass(frozen=True, eq=False)
class Scored:
    """The totals, (parties,), of rows that were scored before, and whether they were in this run."""

    totals: Floats
    here: bool


def draw_route(rule: ScoreRule, most: int, party: str, own_seed: bytes, draws: Draws, *, scored: bool) -> Route:
    """Say what a party is asked in lines 1 to 5: it draws at most so many rows, from a seed with this digest.

    Rows that were scored before in this run are not scored again.
    """
    seed = Hashing(own_seed, partial(seed_digest, party))
    drawing = {"count": AtMost(most), "seed": seed, "draws": draws}
    known = Ask(OpenDraw, rule=None if scored else rule, **drawing)
    if scored or isinstance(rule, FilledScores):
        return known
    told = then(Ask(AskTotal, rule=rule), Ask(DrawRows, **drawing))
    # As plans draw rows: a run of its own that carries one out has the totals of its pilot.
    return either(told, known) if draws is Draws.DISTINCT and isinstance(rule, RoundedScores) else told


def shares_of(totals: Floats) -> Floats:
    """Give each party's part of the total, to 40 bits.

    Totals are nearly whole numbers, and the binomial draws behind a multinomial one change sides at a half: the last
    bit of a sum, which differs between machines, would decide all that follows.
    """
    steps = np.rint(totals / totals.sum() * SHARE_STEPS)
    return np.asarray(steps / steps.sum(), dtype=np.float64)


def exchanged(roster: Roster, *boxes: Outbox | Inbox) -> dict[str, list[Message]]:
    """List what each party was asked and answered, in order."""
    return {party: [box[party] for box in boxes if party in box] for party in roster.names}


def bounds_of_totals(design: Design, rule: ScoreRule) -> dict[str, float]:
    """Bound each party's total by what all sides know."""
    return {party: bounds.total for party, bounds in _bounds(design.roster, design.row_weights, rule).items()}


def n_counted(roster: Roster, row_weights: PerRow | None) -> int:
    """Count the rows that have weight."""
    return roster.n_rows if row_weights is None else row_weights.n_positive


def _bounds(roster: Roster, row_weights: PerRow | None, rule: ScoreRule) -> dict[str, ScoreBounds]:
    counted = n_counted(roster, row_weights)
    return {card.name: rule.bounds(card, counted) for card in roster.cards}


def _read_totals(replies: Mapping[str, Total], design: Design, rule: ScoreRule) -> Floats:
    bounds = _bounds(design.roster, design.row_weights, rule)
    for party, reply in replies.items():
        check_total(party, reply, reply.total, bounds[party].total)
        # Rows' parts of the weight alone add up to 1.
        if bounds[party].whole and abs(reply.total - max(round(reply.total), 1)) > NOT_WHOLE:
            raise checks.wrong(party, reply, f"the total {reply.total:g}, where scores add up to a whole number")
    return np.array([reply.total for reply in replies.values()])


def check_total(party: str, reply: Message, total: float, most: float) -> None:
    """Require a total that data can have: a larger one would bend the draw, and is an error instead."""
    checks.positive(party, reply, total)
    if total > most * (1 + ROUNDING):
        raise checks.wrong(party, reply, f"the total {total:g}, where scores of its columns add up to {most:g} at most")


def read_rows(
    replies: Mapping[str, DrawnRows], counts: Sequence[int], n_rows: int, row_weights: PerRow | None = None
) -> dict[str, SignedRows]:
    """Require as many rows of each party as it was to draw, all of which exist, and have weight; and signed."""
    for (party, reply), count in zip(replies.items(), counts, strict=True):
        checks.shape(party, reply, reply.rows, (count,))
        checks.row_ids(party, reply, reply.rows, n_rows)
        checks.signature(party, reply, reply.signature)
        if row_weights is not None and not row_weights[reply.rows].all():
            raise checks.wrong(party, reply, "a row that is held out, or weighs nothing: such rows score nothing")
    return {party: SignedRows(party, reply.rows, reply.signature) for party, reply in replies.items()}


def _check_copies(draw: Draw, scores: Floats, *, stratified: bool) -> None:
    """Require that no party drew a row more often than its scores allow; none is larger than the sum over parties."""
    for party, total in draw.totals.items():
        rows = draw.by(party)
        # So many copies any score allows; few rows have more.
        allowed = int(most_copies(np.zeros(1), len(rows), stratified=stratified)[0])
        if not (rows[allowed:] == rows[:-allowed]).any():
            continue
        firsts = first_copies(rows)
        ids, copies = rows[firsts], np.diff(firsts, append=len(rows))
        share = scores[np.searchsorted(draw.rows, ids)] / total * (1 + ROUNDING)
        most = most_copies(share, len(rows), stratified=stratified)
        for at in np.flatnonzero(copies > most)[:1].tolist():
            raise RemoteProtocolError(
                f"{party!r} drew row {ids[at]} {copies[at]} times among {len(rows)}; its score allows at "
                f"most {most[at]:.0f}. The run was stopped; nothing of it was used.",
                party=party,
                kind=DrawnRows.__name__,
            )


def ask_scores(roster: Roster, draw: Draw) -> Script[Mapping[str, Scores]]:
    """Ask each party for its scores of the drawn rows, and check them one by one."""
    rows = draw.rows
    inbox = yield relayed(AskScores, roster, draw)
    replies = checks.replies(inbox, Scores)
    for party, reply in replies.items():
        checks.shape(party, reply, reply.scores, (len(rows),))
        checks.non_negative(party, reply, reply.scores)
    return replies


def relayed(kind: type[AskScores], roster: Roster, draw: Draw) -> Outbox:
    """Ask every party about S: it is told what the others drew."""
    size, evenly = len(draw.rows), (draw.even_share, draw.even_seed)
    return {party: kind(size, draw.told_to(party), *evenly) for party in roster.names}


@dataclass(frozen=True, eq=False)
class SumInTheClear:
    """Sum scores that parties tell, by this rule, where rows weigh so much (shape (n_rows,); 1 if None)."""

    rule: ScoreRule
    row_weights: PerRow | None

    def __call__(self, roster: Roster, draw: Draw) -> Script[Floats]:
        """Ask for scores; give g_i for each i in S, positive, shape (m,)."""
        replies = yield from ask_scores(roster, draw)
        scores = {party: reply.scores for party, reply in replies.items()}
        return sum_within_limits(self.rule, self.row_weights, roster, draw, replies, scores)


@dataclass(frozen=True, eq=False)
class SumRounded:
    """As `SumInTheClear`, of scores that parties rounded."""

    rule: RoundedScores
    row_weights: PerRow | None

    def __call__(self, roster: Roster, draw: Draw) -> Script[Floats]:
        """Ask for codes; give g_i for each i in S, positive, shape (m,)."""
        rows, log_step = draw.rows, self.rule.log_step
        inbox = yield relayed(AskScoreCodes, roster, draw)
        replies = checks.replies(inbox, ScoreCodes)
        scores = {party: decoded(party, reply, len(rows), log_step) for party, reply in replies.items()}
        return sum_within_limits(self.rule, self.row_weights, roster, draw, replies, scores)


def decoded(party: str, reply: ScoreCodes, size: int, log_step: float) -> Floats:
    """Read the scores of so many rows that a party rounded."""
    if reply.size != size:
        raise checks.wrong(party, reply, f"scores of {reply.size} rows where {size} were asked for")
    try:
        scores = decode_scores(reply.codes, size, log_step)
    except ValueError as error:
        raise checks.wrong(party, reply, str(error)) from error
    checks.non_negative(party, reply, scores)
    return scores


def sum_within_limits(
    rule: ScoreRule,
    row_weights: PerRow | None,
    roster: Roster,
    draw: Draw,
    replies: Mapping[str, Message],
    scores: Mapping[str, Floats],
) -> Floats:
    """Require scores that some columns of each party have, beside the total that it told, and add them up."""
    check_limits(rule, row_weights, roster, draw, replies, scores)
    return add_scores(replies, scores)


def check_limits(
    rule: ScoreRule,
    row_weights: PerRow | None,
    roster: Roster,
    draw: Draw,
    replies: Mapping[str, Message],
    scores: Mapping[str, Floats],
) -> None:
    """Require scores that some columns of each party have, beside the total that it told."""
    bounds = _bounds(roster, row_weights, rule)
    limits = score_limits(rule, row_weights, roster.n_rows, draw.rows)
    for party, told in scores.items():
        what = limits.broken_by(told, bounds[party].score, 1, draw.totals[party], ROUNDING)
        if what is not None:
            raise checks.wrong(party, replies[party], what)


def add_scores(replies: Mapping[str, Message], scores: Mapping[str, Floats]) -> Floats:
    """Add up the parties' scores, shape (m,) each; a row that was drawn has a positive sum."""
    total = np.sum(list(scores.values()), axis=0)
    if (total < MIN_MAGNITUDE).any():
        party, reply = next(iter(replies.items()))
        raise checks.wrong(party, reply, "a score of zero, as every other party, for a row that was drawn")
    return np.asarray(total, dtype=np.float64)
