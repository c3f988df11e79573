"""A party's side of Algorithm 1: scores its rows, tells their total, draws, and tells the scores of the drawn rows."""

from dataclasses import replace

import numpy as np

from colonnade.kernels.arrays import Rows
from colonnade.kernels.draws import draw_by_scores
from colonnade.kernels.score_codes import encode_scores, round_scores
from colonnade.ledger import SERVER
from colonnade.messages import Message, sendable_floats, sendable_rows
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.sampling.plain.messages import (
    AskScoreCodes,
    AskScores,
    AskTotal,
    DrawnRows,
    DrawRows,
    OpenDraw,
    ScoreCodes,
    Scores,
    Total,
)
from colonnade.sampling.rules.rounded import log_step_of
from colonnade.sampling.size import MAX_SIZE

# The party has told its total; it has drawn its share of the rows.
SCORED, DRAWN = "scored", "drawn"


def _answer_total(state: PartyState, request: AskTotal, data: PartyData) -> tuple[PartyState, Message]:
    reply = Total(float(data.scores(request.rule).sum()))
    return replace(state, rule=request.rule, rows=None, exchanged=(request, reply)), reply


def _answer_open_draw(state: PartyState, request: OpenDraw, data: PartyData) -> tuple[PartyState, Message]:
    return _answer_draw(replace(state, rule=request.rule, exchanged=()), request, data)


def _answer_draw(state: PartyState, request: DrawRows | OpenDraw, data: PartyData) -> tuple[PartyState, Message]:
    checks.count(request, request.count, MAX_SIZE)
    checks.seed(request, request.seed)
    rng = np.random.default_rng(request.seed)
    drawn = draw_by_scores(data.scores(state.rule), request.count, rng, stratified=request.stratified)
    reply = DrawnRows(sendable_rows(drawn))
    return replace(state, rows=reply.rows, exchanged=(*state.exchanged, request, reply)), reply


def _answer_scores(state: PartyState, request: AskScores, data: PartyData) -> tuple[PartyState, Message]:
    rows = _all_rows(state, request, data.table.n_rows)
    return replace(state, rows=rows), Scores(sendable_floats(data.scores(state.rule)[rows]))


def _answer_score_codes(state: PartyState, request: AskScoreCodes, data: PartyData) -> tuple[PartyState, Message]:
    rows = _all_rows(state, request, data.table.n_rows)
    # Rounding what is rounded changes nothing: this holds whatever rule the server asked for.
    log_step = log_step_of(state.rule)
    scores = round_scores(data.scores(state.rule)[rows], log_step)
    return replace(state, rows=rows), ScoreCodes(len(rows), encode_scores(np.asarray(scores), log_step))


def _all_rows(state: PartyState, request: AskScores | AskScoreCodes, n_rows: int) -> Rows:
    """Join the rows that the party is told, shape (m - a,), with those that it drew; give S, ascending, shape (m,)."""
    checks.row_ids(SERVER, request, request.others, n_rows)
    own = state.selected()
    if request.n_own != len(own):
        raise checks.wrong(SERVER, request, f"{request.n_own} rows of the party's own, which drew {len(own)}")
    return sendable_rows(np.sort(np.concatenate([request.others, own]), kind="stable"))


HANDLERS = (
    Handler(AskTotal, _answer_total, after=None, then=SCORED),
    Handler(DrawRows, _answer_draw, after=frozenset({SCORED}), then=DRAWN),
    Handler(OpenDraw, _answer_open_draw, after=None, then=DRAWN),
    Handler(AskScores, _answer_scores, after=frozenset({DRAWN}), then=SELECTED),
    Handler(AskScoreCodes, _answer_score_codes, after=frozenset({DRAWN}), then=SELECTED),
)
