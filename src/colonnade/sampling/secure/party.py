"""A party's side of a secure sum of scores: makes a key, masks its scores, compares what it saw with the others."""

from dataclasses import dataclass, replace

from colonnade.contracts import PartyCard
from colonnade.errors import LocalProtocolError
from colonnade.kernels.arrays import Rows
from colonnade.kernels.masks import MAX_EXPONENT, WORD_BYTES, Ring, pack
from colonnade.ledger import SERVER
from colonnade.messages import Message
from colonnade.privacy.pair_keys import identity_of, view_digest
from colonnade.privacy.pairwise import Secret, check_keys, check_signatures
from colonnade.privacy.primitives import KEY_BYTES, check_available
from colonnade.privacy.statements import agreement_of, key_statement, sent_statement
from colonnade.protocol import checks
from colonnade.protocol.identity import Identity
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.sampling.plain.party import DRAWN, all_rows
from colonnade.sampling.secure.messages import (
    Agreement,
    AskAgreement,
    AskMaskedScores,
    AskPublicKey,
    MaskedScores,
    PublicKey,
    digest_of,
    transcript_of_scores,
)
from colonnade.signing import digest

KEYED, MASKED = "keyed", "masked"


@dataclass(frozen=True)
class SumSecret:
    """What a party keeps of a secure sum: the rows it drew, its key until it is used, and then what it saw."""

    own: Rows
    secret: Secret | None = None
    transcript: bytes = b""


def _answer_key(state: PartyState, _: AskPublicKey, data: PartyData) -> tuple[PartyState, Message]:
    identity = _identity(data)
    check_available()
    secret = Secret(identity.fresh(KEY_BYTES))
    exchanged, view = digest_of(state.exchanged), view_digest(state, data)
    signature = identity.sign(key_statement(identity.name, secret.key, exchanged, view))
    # Where keys were lost and made anew, all rows are known already.
    own = state.secret.own if isinstance(state.secret, SumSecret) else state.selected()
    return replace(state, secret=SumSecret(own, secret)), PublicKey(secret.key, exchanged, view, signature)


def _answer_masked(state: PartyState, request: AskMaskedScores, data: PartyData) -> tuple[PartyState, Message]:
    identity, view = _identity(data), view_digest(state, data)
    check_keys(identity, request.keys, view)
    ring, kept = _ring(state, request, data), _sum_secret(state)
    rows, state = all_rows(replace(state, rows=kept.own), request, data)
    transcript = transcript_of_scores(identity.parties, rows, ring, request.keys, view)
    secret = kept.secret
    ours = request.keys[identity.parties.index(identity.name)]
    state = replace(state, secret=SumSecret(kept.own, None, transcript))
    if secret is None or secret.key != ours.key:
        # It signed that key and has it no longer: a restart came between, and with the key went the masks.
        return state, MaskedScores(None, ring.width, transcript, b"")
    scores = data.scores(state.rule)[rows]
    packed = pack(secret.masked(scores, ring, [entry.key for entry in request.keys], transcript), ring.width)
    signature = identity.sign(sent_statement(identity.name, transcript, digest(packed)))
    return state, MaskedScores(packed, ring.width, transcript, signature)


def _answer_agreement(state: PartyState, request: AskAgreement, data: PartyData) -> tuple[PartyState, Message]:
    transcript = _sum_secret(state).transcript
    check_signatures(_identity(data), transcript, request.signed)
    return replace(state, secret=None), Agreement(agreement_of(transcript, request.signed))


def _identity(data: PartyData) -> Identity:
    return identity_of(data, otherwise='ask for scores="plain"')


def _sum_secret(state: PartyState) -> SumSecret:
    if not isinstance(state.secret, SumSecret):
        raise LocalProtocolError("No secure sum was opened: ask for keys first.")
    return state.secret


def _ring(state: PartyState, request: AskMaskedScores, data: PartyData) -> Ring:
    """Require a ring in which no sum of scores wraps round, whatever the data: a refusal must tell nothing of it."""
    table = data.table
    card = PartyCard(_identity(data).name, table.n_rows, table.feature_names, table.label_name)
    largest = 0.0 if state.rule is None else state.rule.bounds(card, table.n_rows).score
    sane = 1 <= request.width <= WORD_BYTES and 0 <= request.exponent <= MAX_EXPONENT
    ring = Ring(request.width, request.exponent)
    if not sane or ring.largest < largest * len(request.keys):
        raise checks.wrong(SERVER, request, f"a ring of {request.width} bytes and a step of 2^-{request.exponent}")
    return ring


HANDLERS = (
    Handler(AskPublicKey, _answer_key, after=frozenset({DRAWN, KEYED, MASKED}), then=KEYED),
    Handler(AskMaskedScores, _answer_masked, after=frozenset({KEYED}), then=MASKED),
    Handler(AskAgreement, _answer_agreement, after=frozenset({MASKED}), then=SELECTED),
)
