"""A party's side of Algorithm 1: scores its rows, tells their total, draws, and tells the scores of the drawn rows."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from colonnade.contracts import ScoreRule, Table
from colonnade.errors import PolicyRefusedError
from colonnade.kernels import integer_draws
from colonnade.kernels.arrays import Rows
from colonnade.kernels.draws import draw_by_scores, draw_distinct
from colonnade.kernels.per_row import PerRow, numbers_in
from colonnade.kernels.score_codes import encode_scores, round_scores
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals, sendable_floats, sendable_rows
from colonnade.privacy.circles import NEIGHBOURS
from colonnade.privacy.pair_keys import view_digest
from colonnade.privacy.statements import digest_of_view
from colonnade.protocol import checks
from colonnade.protocol.identity import Identity
from colonnade.protocol.memory import ScoredNote
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.protocol.weighing import with_coreset
from colonnade.sampling.committed.joint_seed import even_count_of, even_key, joint_draw_statement
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
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.sampling.rules.rounded import RoundedScores, log_step_of
from colonnade.sampling.rules.sharpened import SharpenedScores
from colonnade.sampling.seeds import count_even, even_rows
from colonnade.sampling.size import MAX_SIZE
from colonnade.signing import (
    SignedRows,
    VouchedRows,
    all_drawn,
    digest,
    draw_statement,
    draw_statements,
    rows_digest,
    vouched_statement,
)

# The party has told its total; it has drawn its share of the rows.
SCORED, DRAWN = "scored", "drawn"


def check_scored(state: PartyState, rule: ScoreRule, data: PartyData) -> PartyState:
    """Require few different ways to score rows, for all time, where features are never shown: splits, rules and units.

    A total is a rank, and less where all rows of a category are held out: each split tells a bit about which these are.
    So few bits leave `least_rows` suspects. A row's score is a quadratic form of its values, another one each time, and
    sums tell which: so there are half as many as a row has products of values. A sharpened score is one more number of
    a row; at the label's party the total of these has more than a bit of what split there was, and is not told.
    """
    if (least := data.policy.least_rows) == 1 or Reveals.FEATURES not in data.policy.never:
        return state
    if data.table.label_name is not None and isinstance(inner_rule(rule), SharpenedScores) and not _is_total_set(rule):
        raise PolicyRefusedError(
            "its owner's policy tells no total of sharpened scores beside a label, which is no whole number: over some "
            'splits it would tell of single rows. Pass totals="set", or leave out sharpened=True.',
            party=data.name,
        )
    table, n_rows = data.table, data.table.n_rows
    note = ScoredNote(way_of_scoring(state, rule, data))
    n_columns = len(table.feature_names) + (table.label_name is not None)
    products = n_columns * (n_columns + 1) // 2
    most = max(1, min(int(math.log2(max(n_rows / least, 1))), products // 2))
    if len({note, *(each for each in data.memory.notes() if isinstance(each, ScoredNote))}) > most:
        raise PolicyRefusedError(
            f"its owner's policy scores {n_rows:,} rows for {most} different splits, for all time, by other rules and "
            "in other units counted as such: by more, what follows from scores would tell single rows. Use an earlier "
            "split, or draw rows evenly.",
            party=data.name,
        )
    return state.but(notes=(*state.notes, note))


def _is_total_set(rule: ScoreRule) -> bool:
    return isinstance(rule.rule if isinstance(rule, IntegerScores) else rule, FilledScores)


def way_of_scoring(state: PartyState, rule: ScoreRule, data: PartyData) -> bytes:
    """Name by a digest which rows count, how much, in which units, and the rule."""
    scaling = "own" if state.view is None else state.view.scaling
    counted, which = _by_number(data.table)
    return digest(digest_of_view(counted, scaling), str(inner_rule(rule)).encode(), *which, *_prepared(data))


def _by_number(table: Table) -> tuple[PerRow | None, list[bytes]]:
    """Give what rows count, and which an alignment left, in whatever order: others are another way to score."""
    numbers, weights = table.row_numbers, table.row_weights
    if numbers is None:
        return weights, []
    order = np.argsort(numbers)
    return None if weights is None else numbers_in(weights[order]), [rows_digest(numbers[order])]


def _prepared(data: PartyData) -> list[bytes]:
    """Name how columns were prepared: in other columns rows are scored otherwise."""
    return [data.preparation.encode()] if data.preparation else []


def inner_rule(rule: ScoreRule) -> ScoreRule:
    """Give the rule whose scores are rounded, or filled up: that tells nothing more of a row."""
    return inner_rule(rule.rule) if isinstance(rule, RoundedScores | FilledScores | IntegerScores) else rule


def _answer_total(state: PartyState, request: AskTotal, data: PartyData) -> tuple[PartyState, Message]:
    state = check_scored(state, request.rule, data)
    reply = Total(data.scores(request.rule).sum())
    return state.but(rule=request.rule, rows=None, exchanged=(request, reply)), reply


def _answer_open_draw(state: PartyState, request: OpenDraw, data: PartyData) -> tuple[PartyState, Message]:
    if (rule := request.rule or state.rule) is None:
        raise checks.wrong(SERVER, request, "no rule, where rows were not scored before")
    state = check_scored(state, rule, data)
    return _answer_draw(state.but(rule=rule, exchanged=()), request, data)


def _answer_draw(state: PartyState, request: DrawRows | OpenDraw, data: PartyData) -> tuple[PartyState, Message]:
    checks.count(request, request.count, MAX_SIZE)
    checks.seed(request, request.seed)
    scores, rng = data.scores(state.rule), np.random.default_rng(request.seed)
    factor = None
    if request.draws is Draws.DISTINCT:
        factor, drawn = draw_distinct(scores, request.count, rng)
    else:
        drawn = draw_by_scores(scores, request.count, rng, stratified=request.draws is Draws.STRATIFIED)
    reply = signed_draw(state, drawn, data)
    said = (*state.exchanged, request, reply)
    return state.but(rows=reply.rows, joint_key=None, draw_factor=factor, exchanged=said), reply


def signed_draw(state: PartyState, rows: Rows, data: PartyData) -> DrawnRows:
    """Sign the rows that the party drew in this run."""
    identity, drawn = data.known(), sendable_rows(rows)
    return DrawnRows(drawn, identity.sign(draw_statement(identity.name, state.sheet, view_digest(state, data), drawn)))


def _answer_scores(state: PartyState, request: AskScores, data: PartyData) -> tuple[PartyState, Message]:
    rows, state = all_rows(state, request, data)
    return state, Scores(sendable_floats(data.scores(state.rule)[rows]))


def _answer_score_codes(state: PartyState, request: AskScoreCodes, data: PartyData) -> tuple[PartyState, Message]:
    rows, state = all_rows(state, request, data)
    return state, ScoreCodes(len(rows), codes_of(state, rows, data))


def codes_of(state: PartyState, rows: Rows, data: PartyData) -> bytes:
    """Code the scores of rows, rounded."""
    # Rounding what is rounded changes nothing: this holds whatever rule the server asked for.
    log_step = log_step_of(state.rule)
    scores = round_scores(data.scores(state.rule)[rows], log_step)
    return encode_scores(np.asarray(scores), log_step)


def all_rows(state: PartyState, request: AskScores, data: PartyData) -> tuple[Rows, PartyState]:
    """Join the rows that the party drew with those that the others signed, and those drawn evenly; ascending, (m,)."""
    rows = sendable_rows(np.sort(joined(state, request, data, _even_rows), kind="stable"))
    if len(rows) != request.size:
        raise checks.wrong(SERVER, request, f"{request.size} rows, where {len(rows)} were drawn")
    drawn = state.but(rows=rows, weighing="scores", even_share=request.even_share)
    return rows, with_coreset(drawn, data)


def joined(state: PartyState, request: AskScores, data: PartyData, draw_even: Callable[..., Rows]) -> Rows:
    """Put what the others drew, the party's own draw, and the even rows one after another.

    No row comes from the server: it could choose rows to learn about.
    """
    even, told = draw_even(state, request, data), request.others
    if isinstance(told, VouchedRows):
        return np.concatenate([_vouched_rows(state, request, told, data), even])
    return np.concatenate([_signed_rows(state, request, told, data, even), state.selected(), even])


def _signed_rows(
    state: PartyState, request: Message, told: Sequence[SignedRows], data: PartyData, even: Rows | None = None
) -> Rows:
    """Require that each of the others signed what it drew; committed draws are signed with the even rows."""
    identity, joint_key = data.known(), state.joint_key
    others = [name for name in identity.parties if name != identity.name]
    if [each.party for each in told] != others:
        raise checks.wrong(SERVER, request, f"draws of other parties than {', '.join(others)}")
    rows = checks.row_id_lists(SERVER, request, [each.rows for each in told], data.table.n_rows)
    if joint_key is None or even is None:
        statements = draw_statements(state.sheet, view_digest(state, data), told)
    else:
        statements = [joint_draw_statement(each.party, state.sheet, joint_key, each.rows, even) for each in told]
    for each, statement in zip(told, statements, strict=True):
        if not identity.is_signed(each.party, statement, each.signature):
            raise checks.wrong(SERVER, request, f"rows that {each.party!r} did not sign to have drawn in this job")
    return rows


def _answer_vouched(state: PartyState, request: AskVouched, data: PartyData) -> tuple[PartyState, Message]:
    """Vouch for what the others signed, and for the party's own draw."""
    _signed_rows(state, request, request.others, data)
    identity = data.known()
    drawn = {each.party: each.rows for each in request.others} | {identity.name: state.selected()}
    rows = all_drawn([drawn[party] for party in identity.parties], data.table.n_rows)
    return state, Vouched(identity.sign(_vouched_statement(state, identity, rows, data)))


def _vouched_rows(state: PartyState, request: Message, told: VouchedRows, data: PartyData) -> Rows:
    """Require that the first party by name vouches for these rows, and that this party's own are as it drew them.

    The server alone gets no such word for other rows than were drawn. With that party's help it does; but then, with
    any party's: that one could say that it drew them. Who of the others drew which is that party's word alone.
    """
    identity, n_rows = data.known(), data.table.n_rows
    parties = identity.parties
    if NEIGHBOURS.has_all(len(parties)) or state.joint_key is not None:
        raise checks.wrong(SERVER, request, "a party's word for others' draws, where each of them has signed its own")
    checks.row_ids(SERVER, request, told.rows, len(parties) * n_rows)
    first = parties.index(identity.name) * n_rows
    start, stop = np.searchsorted(told.rows, [first, first + n_rows])
    if not np.array_equal(told.rows[start:stop] - first, state.selected()):
        raise checks.wrong(SERVER, request, "other rows of this party than it drew")
    if not identity.is_signed(parties[0], _vouched_statement(state, identity, told.rows, data), told.signature):
        raise checks.wrong(SERVER, request, f"draws that {parties[0]!r} did not vouch for in this job")
    return told.rows % n_rows


def _vouched_statement(state: PartyState, identity: Identity, rows: Rows, data: PartyData) -> bytes:
    return vouched_statement(identity.parties, state.sheet, view_digest(state, data), rows)


def check_even(request: AskScores) -> None:
    """Require a share and a seed that even rows can be drawn with."""
    checks.count(request, request.size, MAX_SIZE)
    checks.seed(request, request.even_seed)
    if not 0 <= request.even_share <= 1:
        raise checks.wrong(SERVER, request, f"a share of {request.even_share} drawn evenly")


def _even_rows(state: PartyState, request: AskScores, data: PartyData) -> Rows:
    """Draw the even rows as every side does; a committed draw has them from its joint seed."""
    check_even(request)
    n_rows, weights = data.table.n_rows, data.table.row_weights
    if state.joint_key is not None:
        n_even = even_count_of(state.joint_key, request.size, request.even_share)
        return integer_draws.even_rows(n_rows, n_even, even_key(state.joint_key), weights)
    n_even = count_even(request.even_seed, request.size, request.even_share)
    return even_rows(n_rows, n_even, request.even_seed, weights)


HANDLERS = (
    Handler(AskTotal, _answer_total, after=None, then=SCORED),
    Handler(DrawRows, _answer_draw, after=frozenset({SCORED}), then=DRAWN),
    Handler(OpenDraw, _answer_open_draw, after=None, then=DRAWN),
    Handler(AskVouched, _answer_vouched, after=frozenset({DRAWN}), then=DRAWN),
    Handler(AskScores, _answer_scores, after=frozenset({DRAWN}), then=SELECTED),
    Handler(AskScoreCodes, _answer_score_codes, after=frozenset({DRAWN}), then=SELECTED),
)
