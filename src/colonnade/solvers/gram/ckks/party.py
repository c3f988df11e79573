"""A party's side of Gram mode by homomorphic encryption: encrypts its rows, multiplies others', decrypts the sums."""

from dataclasses import dataclass, replace

import numpy as np

from colonnade.errors import InputError, LocalProtocolError, RemoteProtocolError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.gram import LocalBasis, local_basis
from colonnade.kernels.polynomials import DEGREE, Residues
from colonnade.ledger import SERVER
from colonnade.messages import MAX_MESSAGE_BYTES, Message, sendable_floats
from colonnade.privacy.circles import ALL
from colonnade.privacy.ckks import (
    ciphertext_bytes,
    decrypt_products,
    encrypt_matrix,
    is_ciphertext,
    masked_products,
    n_ciphertexts,
    new_key,
)
from colonnade.privacy.one_solving import require_same_question, seen_rows
from colonnade.privacy.pair_keys import (
    MULTIPLIED,
    OPENED,
    PAIRED,
    SHARED,
    PhaseKeys,
    identity_of,
    phase_keys,
    view_digest,
    with_keys,
)
from colonnade.privacy.primitives import KEY_BYTES
from colonnade.privacy.statements import sent_statement
from colonnade.protocol import checks
from colonnade.protocol.identity import Identity
from colonnade.protocol.session import Handler, PartyData, PartyState
from colonnade.signing import digest
from colonnade.solvers.gram.ckks.messages import (
    PURPOSE,
    AskDecryptedProducts,
    AskEncryptedProducts,
    AskEncryptedRows,
    Ciphertexts,
    DecryptedProducts,
    EncryptedProducts,
    EncryptedRows,
    sent_digest,
)
from colonnade.solvers.gram.party import check_question
from colonnade.solvers.gram.question import GramQuestion


@dataclass(frozen=True, eq=False)
class CkksState:
    """What a party keeps between rounds: its secret key, its rows in their basis, and what it told."""

    key: Residues
    basis: LocalBasis
    n_columns: tuple[int, ...]
    masks: Floats

    def __repr__(self) -> str:
        return "CkksState(not shown)"


def _answer_rows(state: PartyState, request: AskEncryptedRows, data: PartyData) -> tuple[PartyState, Message]:
    _check_sizes(len(state.selection()), request.n_columns)
    identity, kept = identity_of(data), with_keys(state, request.keys, data, ALL)
    question = GramQuestion(state.selected(), request.weights, None, request.n_columns)
    state = check_question(state, question, request, data)
    state = require_same_question(state, request, digest(seen_rows(state, data), question.fingerprint()))
    transcript = question.transcript(identity.parties, kept.relayed, view_digest(state, data), PURPOSE)
    if kept.secret is None:
        nothing = sendable_floats([])
        lost = EncryptedRows(nothing, sendable_floats(np.empty((0, 0))), (), b"")
        return replace(state, secret=kept.used(transcript)), lost
    basis, key = local_basis(data.table.take(question.rows), question.row_weights()), new_key(identity.fresh(KEY_BYTES))
    ciphertexts: Ciphertexts = ()
    if identity.name != identity.parties[-1]:
        public = _public(identity.name, transcript)
        ciphertexts = encrypt_matrix(key, public, basis.directions, identity.fresh(KEY_BYTES))
    ckks = CkksState(key, basis, request.n_columns, sendable_floats([]))
    signature = identity.sign(_statement(identity.name, transcript, b"rows", ciphertexts))
    state = replace(state, secret=replace(kept, transcript=transcript, kept=ckks))
    return state, EncryptedRows(sendable_floats(basis.mean), sendable_floats(basis.factor), ciphertexts, signature)


def _check_sizes(n_rows: int, n_columns: tuple[int, ...]) -> None:
    widest = max((*n_columns, 0))  # as the server says, which is checked later
    most = max(n_ciphertexts(n_rows, min(widest, DEGREE)), widest)
    if widest > DEGREE or most * ciphertext_bytes(widest) * len(n_columns) > MAX_MESSAGE_BYTES:
        raise InputError(
            f"{n_rows:,} rows of {widest} columns do not fit one encrypted message. Use a smaller size, or "
            'products="shares".'
        )


def _public(party: str, transcript: bytes) -> bytes:
    """Derive what a party's key is made with from what all saw before: it cannot choose it."""
    return digest(b"ckks", party.encode(), transcript)


def _statement(party: str, transcript: bytes, what: bytes, ciphertexts: Ciphertexts) -> bytes:
    return sent_statement(party, transcript, digest(what, *ciphertexts))


def _check_signed(
    identity: Identity, party: str, transcript: bytes, what: bytes, ciphertexts: Ciphertexts, signature: bytes
) -> None:
    """Require ciphertexts of a pinned party, before anything of them is read."""
    if not identity.is_signed(party, _statement(party, transcript, what, ciphertexts), signature):
        raise RemoteProtocolError(
            f"The server relayed ciphertexts for {party!r} that {party!r} did not sign. Nothing of them was read.",
            party=SERVER,
        )


def _answer_products(state: PartyState, request: AskEncryptedProducts, data: PartyData) -> tuple[PartyState, Message]:
    identity, kept = identity_of(data), phase_keys(state)
    if kept.secret is None:
        return state, EncryptedProducts((), sendable_floats([]), (), has_key=False)
    ckks = _ckks_state(kept)
    place = identity.parties.index(identity.name)
    if len(request.rows) != place or len(request.signatures) != place:
        raise checks.wrong(SERVER, request, f"rows of {len(request.rows)} parties where {place} are due")
    products, told, signatures = [], [np.empty(0)], []
    for other, ciphertexts, signature in zip(identity.parties[:place], request.rows, request.signatures, strict=True):
        _check_signed(identity, other, kept.transcript, b"rows", ciphertexts, signature)
        n_columns = ckks.n_columns[identity.parties.index(other)]
        directions = ckks.basis.directions
        _check_ciphertexts(other, ciphertexts, n_ciphertexts(len(directions), n_columns))
        public = _public(other, kept.transcript)
        product, masks = masked_products(ciphertexts, public, n_columns, directions, identity.fresh(KEY_BYTES))
        products.append(product)
        told.append(sendable_floats(masks).reshape(-1))
        signatures.append(identity.sign(_statement(identity.name, kept.transcript, other.encode(), product)))
    all_masks = sendable_floats(np.concatenate(told))
    state = replace(state, secret=replace(kept, kept=replace(ckks, masks=all_masks)))
    return state, EncryptedProducts(tuple(products), all_masks, tuple(signatures), has_key=True)


def _check_ciphertexts(party: str, ciphertexts: Ciphertexts, due: int, n_words: int = 0) -> None:
    """Require as many ciphertexts as are due, each of the one form there is, before anything is computed with them."""
    if len(ciphertexts) != due or not all(is_ciphertext(each, n_words) for each in ciphertexts):
        raise RemoteProtocolError(
            f"{party!r} signed something else than the {due} ciphertexts that are due. Nothing was computed with it. "
            "Check that all run the same version.",
            party=party,
        )


def _answer_decrypted(state: PartyState, request: AskDecryptedProducts, data: PartyData) -> tuple[PartyState, Message]:
    identity, kept = identity_of(data), phase_keys(state)
    after = replace(state, secret=kept.used(kept.transcript))
    if kept.secret is None:
        return after, DecryptedProducts(sendable_floats([]), kept.transcript, b"")
    ckks, place = _ckks_state(kept), identity.parties.index(identity.name)
    later = identity.parties[place + 1 :]
    if len(request.products) != len(later) or len(request.signatures) != len(later):
        raise checks.wrong(SERVER, request, f"products of {len(request.products)} parties where {len(later)} are due")
    sums = [np.empty(0)]
    for other, ciphertexts, signature in zip(later, request.products, request.signatures, strict=True):
        _check_signed(identity, other, kept.transcript, identity.name.encode(), ciphertexts, signature)
        ours, theirs = ckks.n_columns[place], ckks.n_columns[identity.parties.index(other)]
        _check_ciphertexts(other, ciphertexts, theirs if ours else 0, ours)
        sums.append(sendable_floats(decrypt_products(ckks.key, ciphertexts, ours)).reshape(-1))
    told = sendable_floats(np.concatenate(sums))
    sent = sent_digest(ckks.basis.mean, ckks.basis.factor, ckks.masks, told)
    signature = identity.sign(sent_statement(identity.name, kept.transcript, sent))
    return after, DecryptedProducts(told, kept.transcript, signature)


def _ckks_state(kept: PhaseKeys) -> CkksState:
    if not isinstance(kept.kept, CkksState):
        raise LocalProtocolError("No rows were encrypted: ask for them first.")
    return kept.kept


HANDLERS = (
    Handler(AskEncryptedRows, _answer_rows, after=frozenset({PAIRED}), then=OPENED, solver="gram"),
    Handler(AskEncryptedProducts, _answer_products, after=frozenset({OPENED}), then=MULTIPLIED, solver="gram"),
    Handler(AskDecryptedProducts, _answer_decrypted, after=frozenset({MULTIPLIED}), then=SHARED, solver="gram"),
)
