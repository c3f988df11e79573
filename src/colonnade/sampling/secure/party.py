"""A party's side of a secure sum of scores: makes a key, masks its scores, compares what it saw with the others."""

from collections.abc import Set
from dataclasses import dataclass, replace

import numpy as np

from colonnade.contracts import PartyCard
from colonnade.errors import LocalProtocolError, PolicyRefusedError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.draws import log_of
from colonnade.kernels.masks import MAX_EXPONENT, WORD_BYTES, Ring, pack
from colonnade.kernels.per_row import PerRow
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals
from colonnade.privacy.pair_keys import circle_of, identity_of, view_digest
from colonnade.privacy.pairwise import Secret, check_circle, check_signatures, split_keys
from colonnade.privacy.primitives import KEY_BYTES, check_available
from colonnade.privacy.statements import agreement_of, key_statement, sent_statement
from colonnade.protocol import checks
from colonnade.protocol.identity import Identity
from colonnade.protocol.memory import SummedScoresNote
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.sampling.distinct.party import all_distinct, factor_of
from colonnade.sampling.plain.party import DRAWN, all_rows, inner_rule, way_of_scoring
from colonnade.sampling.rules.sharpened import SharpenedScores
from colonnade.sampling.secure.messages import (
    MARGIN,
    MOST_LOG,
    SCORES,
    Agreement,
    AskAgreement,
    AskMaskedLogs,
    AskMaskedScores,
    AskPublicKey,
    MaskedScores,
    PublicKey,
    digest_of,
    logs_at,
    transcript_of_scores,
)
from colonnade.signing import SignedRows, VouchedRows, digest

KEYED, MASKED = "keyed", "masked"
# Of totals, and of parts of them.
ROUNDING = 1e-6


@dataclass(frozen=True)
class SumSecret:
    """What a party keeps of a secure sum: the rows it drew, its key until it is used, and then what it saw."""

    own: Rows
    secret: Secret | None = None
    transcript: bytes = b""


def _answer_key(state: PartyState, _: AskPublicKey, data: PartyData) -> tuple[PartyState, Message]:
    identity = _identity(data)
    check_available()
    secret = Secret(identity.fresh(KEY_BYTES), identity.pair)
    exchanged, view = digest_of(state.exchanged), view_digest(state, data)
    signature = identity.sign(key_statement(identity.name, secret.key, exchanged, view))
    # Where keys were lost and made anew, all rows are known already.
    own = state.secret.own if isinstance(state.secret, SumSecret) else state.selected()
    return replace(state, secret=SumSecret(own, secret)), PublicKey(secret.key, exchanged, view, signature)


def _answer_masked(state: PartyState, request: AskMaskedScores, data: PartyData) -> tuple[PartyState, Message]:
    kept, ring = _check_asked(state, request, data), _ring(request, _largest_score(state, data), data)
    rows, state = all_rows(replace(state, rows=kept.own), request, data)
    state = _check_summed(state, 0, ring, data)
    return _masked(state, request, data, Summed(SCORES, kept, ring, rows, data.scores(state.rule)[rows]))


def _answer_logs(state: PartyState, request: AskMaskedLogs, data: PartyData) -> tuple[PartyState, Message]:
    kept, ring = _check_asked(state, request, data), _ring(request, MOST_LOG * MARGIN, data)
    rows, state = all_distinct(replace(state, rows=kept.own), request, request.n_draws, data)
    scores = data.scores(state.rule)
    _check_quotas(request, len(kept.own), scores, data)
    state = _check_summed(state, len(kept.own), ring, data)
    logs = log_of(np.minimum(1.0, factor_of(state, request) * scores[rows]))
    purpose = logs_at(request.rate)
    return _masked(state, request, data, Summed(purpose, kept, ring, rows, np.where(logs > MOST_LOG, np.inf, logs)))


def _check_quotas(request: AskMaskedLogs, n_own: int, scores: PerRow, data: PartyData) -> None:
    """Require that this party drew at the rate that all were told, and that the others drew, too.

    Who draws few rows, or none, adds next to nothing to a sum: it would be the logarithms of the rest. That others
    drew may be said by one of many parties; so each sees to it for itself that all draw, or, at a rate of 0, none.
    """
    due = min(request.rate * float(scores.sum()), float(np.count_nonzero(scores)))
    if not abs(n_own - due) <= (1 + ROUNDING * due if request.rate else 0):
        raise checks.wrong(SERVER, request, f"a draw of {n_own} rows, where {due:g} are due to this party's scores")
    if request.rate and not n_own:
        raise checks.wrong(SERVER, request, "no rows of this party, whose part of each sum would be nothing")
    for party in _idle(request.others, data) if n_own else ():
        raise checks.wrong(SERVER, request, f"no rows of {party!r}, whose part of each sum would be nothing")


def _idle(told: tuple[SignedRows, ...] | VouchedRows, data: PartyData) -> list[str]:
    """Name those that drew nothing."""
    if isinstance(told, tuple):
        return [each.party for each in told if not len(each.rows)]
    drew = set((told.rows // data.table.n_rows).tolist())
    return [party for place, party in enumerate(_identity(data).parties) if place not in drew]


@dataclass(frozen=True)
class Summed:
    """What a party adds: numbers of rows, shape (m,), in a ring, for a purpose; and what it kept until now."""

    purpose: str
    kept: SumSecret
    ring: Ring
    rows: Rows
    numbers: Floats


def _masked(
    state: PartyState, request: AskMaskedScores | AskMaskedLogs, data: PartyData, summed: Summed
) -> tuple[PartyState, Message]:
    identity, view, ring, secret = _identity(data), view_digest(state, data), summed.ring, summed.kept.secret
    relayed, circle = split_keys(request.keys.keys), circle_of(identity)
    transcript = transcript_of_scores(summed.purpose, identity.parties, summed.rows, ring, request.keys.keys, view)
    ours = relayed[identity.parties.index(identity.name)]
    state = replace(state, secret=SumSecret(summed.kept.own, None, transcript))
    if secret is None or secret.key != ours:
        # It signed that key and has it no longer: a restart came between, and with the key went the masks.
        return state, MaskedScores(None, ring.width, transcript, b"")
    packed = pack(secret.masked(summed.numbers, ring, relayed, circle, transcript), ring.width)
    signature = identity.sign(sent_statement(identity.name, transcript, digest(packed)))
    return state, MaskedScores(packed, ring.width, transcript, signature)


def _check_asked(state: PartyState, request: AskMaskedScores | AskMaskedLogs, data: PartyData) -> SumSecret:
    identity = _identity(data)
    check_circle(identity, circle_of(identity), request.keys, view_digest(state, data))
    return _sum_secret(state)


def _check_summed(state: PartyState, draws: int, ring: Ring, data: PartyData) -> PartyState:
    """Require one way to sum these scores, for all time, where they, or the columns, are never shown.

    Sums of logarithms for another number of draws are other functions of the same scores, as sums of the scores are,
    or of sharpened ones: as many as there are parties, or two and what the others know of theirs, tell each party's
    own. So do sums of what is rounded to other steps: each tells a bit of how single parties' were rounded.
    """
    if not {Reveals.SCORES, Reveals.FEATURES} & set(data.policy.never) or state.rule is None:
        return state
    rule = inner_rule(state.rule)
    scored, sharpened = (rule.unsharpened(), rule.residuals) if isinstance(rule, SharpenedScores) else (rule, None)
    note = SummedScoresNote(way_of_scoring(state, scored, data), draws, ring.exponent, sharpened)
    notes = (each for each in data.memory.notes() if isinstance(each, SummedScoresNote))
    earlier = {each for each in notes if each.digest == note.digest} - {note}
    if earlier:
        how, advice = _told_earlier(earlier, note)
        raise PolicyRefusedError(
            f"its owner's policy lets scores of the same rows be summed in one way, for all time: they were, {how}. "
            f"Sums in two ways would tell a party's own. Use {advice}; or draw rows evenly.",
            party=data.name,
        )
    return replace(state, notes=(*state.notes, note))


def _told_earlier(earlier: Set[SummedScoresNote], note: SummedScoresNote) -> tuple[str, str]:
    """Say how scores were summed, and what to ask for instead."""
    others = [each.sharpened for each in earlier if each.sharpened != note.sharpened]
    if others and others[0] is None:
        return "not sharpened", "sharpened=False, as before"
    if others:
        return "sharpened", "sharpened=True, with the same parties and columns as before"
    if all(each.draws == note.draws for each in earlier):
        return "rounded to other steps", "the earlier options"
    if max(each.draws for each in earlier) > 0:
        return "for distinct draws of another size", 'the earlier size, with draws="distinct"'
    return "as they are", 'draws="stratified", as before'


def _answer_agreement(state: PartyState, request: AskAgreement, data: PartyData) -> tuple[PartyState, Message]:
    identity, transcript = _identity(data), _sum_secret(state).transcript
    check_signatures(identity, circle_of(identity), transcript, request.signed)
    return replace(state, secret=None), Agreement(agreement_of(transcript, request.signed))


def _identity(data: PartyData) -> Identity:
    return identity_of(data, otherwise='ask for scores="plain"')


def _sum_secret(state: PartyState) -> SumSecret:
    if not isinstance(state.secret, SumSecret):
        raise LocalProtocolError("No secure sum was opened: ask for keys first.")
    return state.secret


def _largest_score(state: PartyState, data: PartyData) -> float:
    table = data.table
    card = PartyCard(_identity(data).name, table.n_rows, table.feature_names, table.label_name)
    return 0.0 if state.rule is None else state.rule.bounds(card, table.n_rows).score


def _ring(request: AskMaskedScores | AskMaskedLogs, largest: float, data: PartyData) -> Ring:
    """Require a ring in which no sum wraps round, whatever the data: a refusal must tell nothing of it."""
    sane = 1 <= request.width <= WORD_BYTES and 0 <= request.exponent <= MAX_EXPONENT
    ring = Ring(request.width, request.exponent)
    if not sane or ring.largest < largest * len(_identity(data).parties):
        raise checks.wrong(SERVER, request, f"a ring of {request.width} bytes and a step of 2^-{request.exponent}")
    return ring


HANDLERS = (
    Handler(AskPublicKey, _answer_key, after=frozenset({DRAWN, KEYED, MASKED}), then=KEYED),
    Handler(AskMaskedScores, _answer_masked, after=frozenset({KEYED}), then=MASKED),
    Handler(AskMaskedLogs, _answer_logs, after=frozenset({KEYED}), then=MASKED),
    Handler(AskAgreement, _answer_agreement, after=frozenset({MASKED}), then=SELECTED),
)
