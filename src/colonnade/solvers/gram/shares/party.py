"""A party's side of Gram mode by shares: one deals a seed, each tells moments, its share and masked blocks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.gram import LocalBasis, local_basis
from colonnade.kernels.masks import Words
from colonnade.kernels.shares import LIMBS, limb_products, pack_words, to_limbs
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, sendable_floats
from colonnade.privacy.one_solving import require_same_question, seen_rows
from colonnade.privacy.pair_keys import (
    OPENED,
    PAIRED,
    SHARED,
    PhaseKeys,
    identity_of,
    view_digest,
    with_keys,
)
from colonnade.privacy.pairwise import Secret, share_words
from colonnade.privacy.primitives import ManyWords
from colonnade.privacy.statements import sent_statement
from colonnade.protocol import checks
from colonnade.protocol.session import Handler, PartyData, PartyState
from colonnade.signing import digest
from colonnade.solvers.gram.party import check_question
from colonnade.solvers.gram.question import GramQuestion
from colonnade.solvers.gram.shares.messages import (
    DEALER,
    PURPOSE,
    STAR,
    AskGramShares,
    AskSealedSeeds,
    AskStepShares,
    GramShares,
    SealedSeeds,
    circle_for,
    matrix_words,
    seeds_transcript,
    sent_digest,
)
from colonnade.solvers.gram.steps.kept import StepsKept, check_steps

# Words that are made and multiplied together: a megabyte of them stays near the processor.
BLOCK_WORDS = 1 << 17


def _answer_seeds(state: PartyState, request: AskSealedSeeds, data: PartyData) -> tuple[PartyState, Message]:
    identity = identity_of(data)
    if identity.name != identity.parties[DEALER]:
        raise checks.wrong(SERVER, request, f"a question for {identity.parties[DEALER]!r}, which deals the seed")
    kept = with_keys(state, request.keys, data, STAR)
    if kept.secret is None:
        return state, SealedSeeds(())
    transcript = _of_seeds(state, kept, data)
    seed, others = kept.secret.own_seed(transcript), range(1, len(kept.keys))
    return state, SealedSeeds(tuple(kept.secret.encrypt_for(seed, other, kept.keys, transcript) for other in others))


def _of_seeds(state: PartyState, kept: PhaseKeys, data: PartyData) -> bytes:
    return seeds_transcript(identity_of(data).parties, kept.relayed, view_digest(state, data))


def _answer_shares(
    state: PartyState, request: AskGramShares | AskStepShares, data: PartyData
) -> tuple[PartyState, Message]:
    identity = identity_of(data)
    question, state = _question(state, request, data)
    kept = with_keys(state, request.keys, data, circle_for(question, identity.parties))
    state = require_same_question(state, request, digest(seen_rows(state, data), question.fingerprint()))
    transcript = question.transcript(identity.parties, kept.relayed, view_digest(state, data), PURPOSE)
    if kept.secret is None:
        nothing = sendable_floats(np.empty((0, 0)))
        return replace(state, secret=kept.used(transcript)), GramShares(nothing, nothing, None, b"", transcript, b"")
    bases = _bases(question, data)
    seed = open_seed(state, kept, kept.secret, request.box, data)
    place = identity.parties.index(identity.name)
    share, blocks = shared(_directions(bases, question), share_words(seed, transcript), question, place)
    means = sendable_floats(np.stack([basis.mean for basis in bases]))
    factors = sendable_floats(np.vstack([basis.factor for basis in bases]))
    for_steps = None
    if question.steps:
        for_steps = StepsKept(question, kept.secret, kept.keys, kept.circle, transcript, seed, bases[0].directions)
    sent = sent_digest(means, factors, share, blocks)
    signature = identity.sign(sent_statement(identity.name, transcript, sent))
    after = replace(state, secret=kept.used(transcript, for_steps))
    return after, GramShares(means, factors, share, blocks, transcript, signature)


def _question(
    state: PartyState, request: AskGramShares | AskStepShares, data: PartyData
) -> tuple[GramQuestion, PartyState]:
    if len(state.selection()) * LIMBS > MAX_NUMBERS:  # before they are listed
        raise _too_many(len(state.selection()), request.n_columns)
    question = request.question(state.selected())
    state = check_question(state, question, request, data)
    if isinstance(request, AskStepShares):
        state = check_steps(state, question, request, data)
    # Others' numbers of columns are the server's word, and blocks of all of them are made at once.
    ours = request.n_columns[identity_of(data).parties.index(identity_of(data).name)]
    largest = max(len(question.rows), len(question.groups()) * ours) * LIMBS * sum(request.n_columns)
    if largest > MAX_NUMBERS:
        raise _too_many(len(question.rows), request.n_columns)
    return question, state


def _too_many(n_rows: int, n_columns: Sequence[int]) -> InputError:
    return InputError(
        f"{n_rows:,} rows of {sum(n_columns):,} columns of all parties do not fit one message, which has "
        f"{MAX_NUMBERS:,} numbers. Use a coreset or a smaller size."
    )


def _bases(question: GramQuestion, data: PartyData) -> list[LocalBasis]:
    columns, weights = data.table.take(question.rows), question.row_weights()
    return [local_basis(columns[group], weights[group]) for group in question.groups()]


def _directions(bases: list[LocalBasis], question: GramQuestion) -> Words:
    """Put the folds' orthonormal columns in the rows' places; shape (c, 2, m), in limbs."""
    directions = np.zeros((len(question.rows), len(bases[0].mean)))
    for group, basis in zip(question.groups(), bases, strict=True):
        directions[group] = basis.directions
    return to_limbs(directions, question.low_bits)


def open_seed(state: PartyState, kept: PhaseKeys, secret: Secret, box: bytes, data: PartyData) -> bytes:
    """Read the seed that all parties share; the one that deals it has it from its key."""
    transcript = _of_seeds(state, kept, data)
    if kept.keys[DEALER] == secret.key:
        return secret.own_seed(transcript)
    return secret.decrypt_from(identity_of(data).parties[DEALER], box, DEALER, kept.keys, transcript)


def shared(directions: Words, words: ManyWords, question: GramQuestion, place: int) -> tuple[bytes, bytes]:
    """Compute U_j, and our terms of the products of our columns with those of earlier and later names, under masks."""
    own = question.columns_of(place)
    share = directions - matrix_words(words, question, own)
    before, after = range(own.start), range(own.stop, sum(question.n_columns))
    folds = question.fold_rows()
    earlier = np.empty((len(folds), LIMBS, len(before), len(own)), np.uint64)
    later = np.empty((len(folds), LIMBS, len(own), len(after)), np.uint64)
    for columns, mask in _masks(words, question, before, own, after):
        for fold, group in enumerate(folds):
            if columns.stop <= own.start:
                earlier[fold, :, _slice(columns)] = limb_products(mask[..., group], share[..., group])
            elif columns.start >= own.stop:
                there = _slice(columns, own.stop)
                later[fold, :, :, there] = limb_products(directions[..., group], mask[..., group])
    blocks = earlier - words.grid(len(folds), before, own), later + words.grid(len(folds), own, after)
    return pack_words(share), b"".join(map(pack_words, blocks))


def _masks(words: ManyWords, question: GramQuestion, *columns: range) -> Iterator[tuple[range, Words]]:
    """Stretch the seed to the masked matrix E, some columns of one of these at a time; shape (k, 2, m)."""
    size = len(question.rows)
    step = max(1, BLOCK_WORDS // (LIMBS * size))
    parts = [part[start : start + step] for part in columns for start in range(0, len(part), step)]
    for part, piece in zip(parts, words.pieces([len(part) * size for part in parts]), strict=True):
        yield part, piece.reshape(len(part), LIMBS, size)


def _slice(columns: range, first: int = 0) -> slice:
    return slice(columns.start - first, columns.stop - first)


HANDLERS = (
    Handler(AskSealedSeeds, _answer_seeds, after=frozenset({PAIRED}), then=OPENED, solver="gram"),
    Handler(AskGramShares, _answer_shares, after=frozenset({PAIRED, OPENED}), then=SHARED, solver="gram"),
    Handler(AskStepShares, _answer_shares, after=frozenset({PAIRED, OPENED}), then=SHARED, solver="gram"),
)
