"""Rounds 1 and 2 of Algorithm 1: totals, quotas, and the rows that each party draws. Messages, script, handlers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Drawn, Inbox, Outbox, Roster, ScoreRule, Script
from colonnade.errors import RemoteProtocolError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.draws import draw_by_scores, draw_evenly, most_copies
from colonnade.messages import Message, Reveals, sendable_rows
from colonnade.protocol import checks
from colonnade.protocol.session import Handler, PartyData, PartyState
from colonnade.sampling.filled import FilledScores
from colonnade.sampling.rules import AnyRule, travelling
from colonnade.sampling.shared import MAX_SIZE
from colonnade.sampling.summing import DRAWN

SCORED = "scored"
# Totals are sums of n rounded numbers.
ROUNDING = 1e-6
SHARE_STEPS = 2.0**40


class Total(Message, frozen=True):
    """G^(j), the sum of the party's scores (line 2)."""

    phase: ClassVar[str] = "sampling"

    total: Annotated[float, Reveals.TOTALS]


class AskTotal(Message, frozen=True):
    """Opens the phase: score your rows by this rule."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Total

    rule: Annotated[AnyRule, Reveals.NOTHING]


class DrawnRows(Message, frozen=True):
    """S^(j), the rows the party drew (line 5)."""

    phase: ClassVar[str] = "sampling"

    rows: Annotated[Rows, Reveals.ROW_IDS]


class DrawRows(Message, frozen=True):
    """a_j, how many rows this party draws (line 4), from which seed, and whether one in each stratum of its scores."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = DrawnRows

    count: Annotated[int, Reveals.TOTALS]
    seed: Annotated[int, Reveals.NOTHING]
    stratified: Annotated[bool, Reveals.NOTHING]


class OpenDraw(Message, frozen=True):
    """Opens the phase where the total is known: score by this rule, which fills scores up to it, and draw a_j rows."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = DrawnRows

    rule: Annotated[AnyRule, Reveals.NOTHING]
    count: Annotated[int, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]
    stratified: Annotated[bool, Reveals.NOTHING]

    def units(self) -> int:
        """Count a_j, as the paper does, although it tells nothing here."""
        return 1


def draw_by_totals(
    roster: Roster,
    rule: ScoreRule,
    rng: np.random.Generator,
    row_weights: Floats | None,
    *,
    size: int,
    even_share: float,
    stratified: bool,
) -> Script[tuple[Drawn, Floats]]:
    """Let parties draw rows by their scores, as many each as its part of the total makes.

    Parameters
    ----------
    roster : Roster
        The parties.
    rule : ScoreRule
        How each scores its rows. Totals of `FilledScores` are known, and not asked for.
    rng : numpy.random.Generator
        Draws the quotas, each party's seed, and the rows that are drawn evenly.
    row_weights : ndarray of float64, shape (n_rows,), or None
        What each row counts.
    size : int
        m.
    even_share : float
        s, the share of rows that the server draws evenly.
    stratified : bool
        Whether a party draws one row in each stratum of its scores.

    Returns
    -------
    drawn : Drawn
        S.
    totals : ndarray of float64, shape (T,)
        G^(j), in the order of the parties.
    """
    known = isinstance(rule, FilledScores)
    asked: Outbox = {} if known else {party: AskTotal(travelling(rule)) for party in roster.names}
    told = {} if known else (yield asked)
    most = bounds_of_totals(roster, rule, row_weights)
    totals = np.array(list(most.values())) if known else _read_totals(checks.replies(told, Total), most)

    # The server draws the even rows itself: they need no party, and go out with the others in round 3.
    n_even = int(rng.binomial(size, even_share))
    quotas = rng.multinomial(size - n_even, shares_of(totals))
    seeds = rng.integers(2**63, size=len(quotas))
    orders: Outbox = {
        party: OpenDraw(rule, int(quota), int(seed), stratified)
        if isinstance(rule, FilledScores)
        else DrawRows(int(quota), int(seed), stratified)
        for party, quota, seed in zip(roster.names, quotas, seeds, strict=True)
    }
    answers = yield orders
    by_party = read_rows(checks.replies(answers, DrawnRows), quotas, roster.n_rows)
    even = draw_evenly(roster.n_rows, n_even, rng, row_weights)
    rows = sendable_rows(np.sort(np.concatenate([*by_party.values(), even])))
    return Drawn(rows, by_party, exchanged(roster, asked, told, orders, answers)), totals


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


def bounds_of_totals(roster: Roster, rule: ScoreRule, row_weights: Floats | None) -> dict[str, float]:
    """Bound each party's total by what all sides know."""
    n_counted = roster.n_rows if row_weights is None else int(np.count_nonzero(row_weights))
    return {card.name: rule.bounds(card, n_counted).total for card in roster.cards}


def _read_totals(replies: Mapping[str, Total], most: Mapping[str, float]) -> Floats:
    for party, reply in replies.items():
        check_total(party, reply, reply.total, most[party])
    return np.array([reply.total for reply in replies.values()])


def check_total(party: str, reply: Message, total: float, most: float) -> None:
    """Require a total that data can have: a larger one would bend the draw, and is an error instead."""
    checks.positive(party, reply, total)
    if total > most * (1 + ROUNDING):
        raise checks.wrong(party, reply, f"the total {total:g}, where scores of its columns add up to {most:g} at most")


def check_copies(roster: Roster, drawn: Drawn, totals: Floats, scores: Floats, *, stratified: bool) -> None:
    """Require that no party drew a row more often than its scores allow.

    Parameters
    ----------
    roster : Roster
        The parties.
    drawn : Drawn
        S, and the part of it that each party drew.
    totals : ndarray of float64, shape (T,)
        G^(j).
    scores : ndarray of float64, shape (m,)
        g of the rows in S, summed over parties: no party's own is larger.
    stratified : bool
        How rows were drawn.
    """
    for party, total in zip(roster.names, totals.tolist(), strict=True):
        rows = drawn.by_party[party]
        ids, copies = np.unique(rows, return_counts=True)
        share = scores[np.searchsorted(drawn.rows, ids)] / total * (1 + ROUNDING)
        most = most_copies(share, len(rows), stratified=stratified)
        for at in np.flatnonzero(copies > most)[:1].tolist():
            raise RemoteProtocolError(
                f"{party!r} drew row {ids[at]} {copies[at]} times among {len(rows)}; by its score it can be "
                f"{most[at]:.0f} times at most. The run was stopped; nothing of it was used.",
                party=party,
                kind=DrawnRows.__name__,
            )


def read_rows(replies: Mapping[str, DrawnRows], quotas: Rows, n_rows: int) -> dict[str, Rows]:
    """Require as many rows of each party as it was to draw, all of which exist."""
    for (party, reply), quota in zip(replies.items(), quotas, strict=True):
        checks.shape(party, reply, reply.rows, (int(quota),))
        checks.row_ids(party, reply, reply.rows, n_rows)
    return {party: reply.rows for party, reply in replies.items()}


def _answer_total(state: PartyState, request: AskTotal, data: PartyData) -> tuple[PartyState, Message]:
    reply = Total(float(data.scores(request.rule).sum()))
    return replace(state, rule=request.rule, rows=None, exchanged=(request, reply)), reply


def _answer_draw(state: PartyState, request: DrawRows | OpenDraw, data: PartyData) -> tuple[PartyState, Message]:
    checks.count(request, request.count, MAX_SIZE)
    checks.seed(request, request.seed)
    if isinstance(request, OpenDraw):
        state = replace(state, rule=request.rule, exchanged=())
    rng = np.random.default_rng(request.seed)
    drawn = draw_by_scores(data.scores(state.rule), request.count, rng, stratified=request.stratified)
    reply = DrawnRows(sendable_rows(drawn))
    return replace(state, rows=reply.rows, exchanged=(*state.exchanged, request, reply)), reply


HANDLERS = (
    Handler(AskTotal, _answer_total, after=None, then=SCORED),
    Handler(DrawRows, _answer_draw, after=frozenset({SCORED}), then=DRAWN),
    Handler(OpenDraw, _answer_draw, after=None, then=DRAWN),
)
