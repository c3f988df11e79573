"""A party's side of Gram mode by shares: encrypts the seed of its share, tells moments, share and masked blocks."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.gram import LocalBasis, local_basis
from colonnade.kernels.masks import Words
from colonnade.kernels.shares import LIMBS, MAX_ROWS, limb_products, pack_words, to_limbs
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, sendable_floats
from colonnade.privacy.one_solving import require_same_question, seen_rows
from colonnade.privacy.pair_keys import (
    OPENED,
    PAIRED,
    SHARED,
    PhaseKeys,
    identity_of,
    phase_keys,
    view_digest,
    with_keys,
)
from colonnade.privacy.pairwise import Secret, share_words
from colonnade.privacy.statements import sent_statement
from colonnade.protocol import checks
from colonnade.protocol.session import Handler, PartyData, PartyState
from colonnade.signing import digest
from colonnade.solvers.gram.party import check_question
from colonnade.solvers.gram.question import GramQuestion
from colonnade.solvers.gram.shares.messages import (
    PURPOSE,
    AskGramShares,
    AskSealedSeeds,
    AskStepShares,
    GramShares,
    SealedSeeds,
    seeds_transcript,
    sent_digest,
)
from colonnade.solvers.gram.steps.kept import StepsKept, check_steps


def _answer_seeds(state: PartyState, request: AskSealedSeeds, data: PartyData) -> tuple[PartyState, Message]:
    kept = with_keys(state, request.keys, data)
    state = replace(state, secret=kept)
    if kept.secret is None:
        return state, SealedSeeds(())
    transcript, keys = _of_seeds(state, kept, data), kept.keys
    seed = kept.secret.own_seed(transcript)
    others = [place for place, key in enumerate(keys) if key != kept.secret.key]
    return state, SealedSeeds(tuple(kept.secret.encrypt_for(seed, other, keys, transcript) for other in others))


def _of_seeds(state: PartyState, kept: PhaseKeys, data: PartyData) -> bytes:
    return seeds_transcript(identity_of(data).parties, kept.signed, view_digest(state, data))


def _answer_shares(
    state: PartyState, request: AskGramShares | AskStepShares, data: PartyData
) -> tuple[PartyState, Message]:
    identity, kept = identity_of(data), phase_keys(state)
    question, state = _question(state, request, data)
    state = require_same_question(state, request, digest(seen_rows(state, data), question.fingerprint()))
    transcript = question.transcript(identity.parties, kept.signed, view_digest(state, data), PURPOSE)
    after = replace(state, secret=PhaseKeys(None, kept.signed, transcript))
    if kept.secret is None:
        nothing = sendable_floats(np.empty((0, 0)))
        return after, GramShares(nothing, nothing, None, b"", transcript, b"")
    bases = _bases(question, data)
    seeds = _seeds(request, kept, kept.secret, identity.parties, _of_seeds(state, kept, data))
    masks = _masks(seeds, question, transcript)
    share, blocks = _shared(_directions(bases, question), masks, question, kept, kept.secret, transcript)
    means = sendable_floats(np.stack([basis.mean for basis in bases]))
    factors = sendable_floats(np.vstack([basis.factor for basis in bases]))
    if question.steps:
        kept_for_steps = StepsKept(question, kept.secret, kept.keys, transcript, tuple(seeds), bases[0].directions)
        after = replace(after, secret=PhaseKeys(None, kept.signed, transcript, kept_for_steps))
    sent = sent_digest(means, factors, share, blocks)
    signature = identity.sign(sent_statement(identity.name, transcript, sent))
    return after, GramShares(means, factors, share, blocks, transcript, signature)


def _question(
    state: PartyState, request: AskGramShares | AskStepShares, data: PartyData
) -> tuple[GramQuestion, PartyState]:
    question = request.question(state.selected())
    n_others = len(identity_of(data).parties) - 1
    if len(request.boxes) != n_others:
        raise checks.wrong(SERVER, request, f"seeds of other than {n_others} parties")
    state = check_question(state, question, request, data)
    if isinstance(request, AskStepShares):
        state = check_steps(state, question, request, data)
    # Others' numbers of columns are the server's word, and masks and blocks of all of them are made at once.
    ours = request.n_columns[identity_of(data).parties.index(identity_of(data).name)]
    largest = max(len(question.rows), len(question.groups()) * ours) * LIMBS * sum(request.n_columns)
    if len(question.rows) > MAX_ROWS or largest > MAX_NUMBERS:
        raise InputError(f"{len(question.rows):,} rows do not fit one message. Use a coreset or a smaller size.")
    return question, state


def _bases(question: GramQuestion, data: PartyData) -> list[LocalBasis]:
    columns, weights = data.table.take(question.rows), question.row_weights()
    return [local_basis(columns[group], weights[group]) for group in question.groups()]


def _directions(bases: list[LocalBasis], question: GramQuestion) -> Words:
    """Put the folds' orthonormal columns in the rows' places; shape (m, 2 c), in limbs."""
    directions = np.zeros((len(question.rows), len(bases[0].mean)))
    for group, basis in zip(question.groups(), bases, strict=True):
        directions[group] = basis.directions
    return to_limbs(directions)


def _seeds(
    request: AskGramShares | AskStepShares, kept: PhaseKeys, secret: Secret, parties: Sequence[str], transcript: bytes
) -> list[bytes]:
    """Read every party's seed, ours among them."""
    ours, boxes = kept.keys.index(secret.key), iter(request.boxes)
    return [
        secret.own_seed(transcript)
        if place == ours
        else secret.decrypt_from(party, next(boxes), place, kept.keys, transcript)
        for place, party in enumerate(parties)
    ]


def _masks(seeds: list[bytes], question: GramQuestion, transcript: bytes) -> list[Words]:
    """Stretch every party's seed to its masked matrix E_l, shape (m, 2 c_l)."""
    masks = []
    for seed, n_columns in zip(seeds, question.n_columns, strict=True):
        shape = (len(question.rows), LIMBS * n_columns)
        masks.append(share_words(seed, transcript, shape[0] * shape[1]).reshape(shape))
    return masks


def _shared(
    directions: Words, masks: list[Words], question: GramQuestion, kept: PhaseKeys, secret: Secret, transcript: bytes
) -> tuple[bytes, bytes]:
    """Compute U_j, and for each other party our term of the product of our columns and theirs, under a mask."""
    ours, groups = kept.keys.index(secret.key), question.groups()
    share = directions - masks[ours]
    blocks = []
    for other, mask in enumerate(masks):
        if other == ours:
            continue
        is_first = ours < other
        pair = (directions, mask) if is_first else (mask, share)
        block = np.stack([limb_products(pair[0][group], pair[1][group]) for group in groups])
        hidden = secret.stream(other, kept.keys, transcript, b"block", block.size).reshape(block.shape)
        blocks.append(pack_words(block + hidden if is_first else block - hidden))
    return pack_words(share), b"".join(blocks)


HANDLERS = (
    Handler(AskSealedSeeds, _answer_seeds, after=frozenset({PAIRED}), then=OPENED, solver="gram"),
    Handler(AskGramShares, _answer_shares, after=frozenset({OPENED}), then=SHARED, solver="gram"),
    Handler(AskStepShares, _answer_shares, after=frozenset({OPENED}), then=SHARED, solver="gram"),
)
