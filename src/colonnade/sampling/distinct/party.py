"""A party's side of distinct draws, once it has drawn: joins all draws, and tells what its chances follow from."""

from colonnade.kernels.arrays import Rows
from colonnade.kernels.draws import draw_evenly_distinct
from colonnade.kernels.possible import each_once
from colonnade.ledger import SERVER
from colonnade.messages import Message, sendable_floats, sendable_rows
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.protocol.weighing import with_coreset
from colonnade.sampling.distinct.messages import AskDistinctCodes, AskDistinctScores, DistinctCodes, DistinctScores
from colonnade.sampling.plain.messages import AskScores
from colonnade.sampling.plain.party import DRAWN, check_even, codes_of, joined
from colonnade.sampling.seeds import even_quota, even_rng
from colonnade.sampling.size import MAX_SIZE


def _answer_scores(state: PartyState, request: AskDistinctScores, data: PartyData) -> tuple[PartyState, Message]:
    rows, state = all_distinct(state, request, request.n_draws, data)
    return state, DistinctScores(sendable_floats(data.scores(state.rule)[rows]), factor_of(state, request))


def _answer_codes(state: PartyState, request: AskDistinctCodes, data: PartyData) -> tuple[PartyState, Message]:
    rows, state = all_distinct(state, request, request.n_draws, data)
    return state, DistinctCodes(len(rows), codes_of(state, rows, data), factor_of(state, request))


def factor_of(state: PartyState, request: Message) -> float:
    """Give c_j of the party's own draw."""
    if state.draw_factor is None:
        raise checks.wrong(SERVER, request, "a question about distinct rows, where none were drawn")
    return state.draw_factor


def all_distinct(state: PartyState, request: AskScores, n_draws: int, data: PartyData) -> tuple[Rows, PartyState]:
    """Join the rows that the party drew with those that the others signed, and those drawn evenly; each once, (m,)."""
    factor_of(state, request)
    check_even(request)
    checks.count(request, n_draws, MAX_SIZE)
    n_even = even_quota(n_draws, request.even_share)
    rng = even_rng(request.even_seed)
    even_factor, even = draw_evenly_distinct(data.table.n_rows, n_even, rng, data.table.row_weights)
    drawn = joined(state, request, data, lambda *_: even)
    rows = sendable_rows(each_once(drawn))
    if len(rows) != request.size:
        raise checks.wrong(SERVER, request, f"{request.size} rows, where {len(rows)} were drawn")
    return rows, with_coreset(state.but(rows=rows, weighing="distinct", even_factor=even_factor), data)


HANDLERS = (
    Handler(AskDistinctScores, _answer_scores, after=frozenset({DRAWN}), then=SELECTED),
    Handler(AskDistinctCodes, _answer_codes, after=frozenset({DRAWN}), then=SELECTED),
)
