"""A party's side of Gram mode: seals the seed of its share, then tells moments, a share, and masked blocks."""

from dataclasses import replace

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.gram import LocalBasis, local_basis
from colonnade.kernels.masks import Words
from colonnade.kernels.shares import LIMBS, MAX_ROWS, limb_products, pack_words, to_limbs
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, sendable_floats
from colonnade.privacy.one_solving import asked_once, seen_rows
from colonnade.privacy.pair_keys import OPENED, PAIRED, SHARED, Paired, frame_of, identity_of, paired, with_keys
from colonnade.privacy.pairwise import Secret, seal_statement, share_words
from colonnade.privacy.primitives import digest
from colonnade.protocol import checks
from colonnade.protocol.session import Handler, PartyData, PartyState
from colonnade.solvers.gram_by_shares import (
    PURPOSE,
    AskedGram,
    AskGramShares,
    AskSealedSeeds,
    GramShares,
    SealedSeeds,
    seeds_transcript,
    sent_digest,
)

MAX_FOLDS = 100
# Mean and variance of one column of two rows are its two values.
LEAST_ROWS = 5


def _answer_seeds(state: PartyState, request: AskSealedSeeds, data: PartyData) -> tuple[PartyState, Message]:
    kept = with_keys(state, request.keys, data)
    state = replace(state, secret=kept)
    if kept.secret is None:
        return state, SealedSeeds(())
    transcript, keys = _of_seeds(state, kept, data), kept.keys
    seed = kept.secret.own_seed(transcript)
    others = [place for place, key in enumerate(keys) if key != kept.secret.key]
    return state, SealedSeeds(tuple(kept.secret.seal(seed, other, keys, transcript) for other in others))


def _of_seeds(state: PartyState, kept: Paired, data: PartyData) -> bytes:
    return seeds_transcript(identity_of(data).parties, kept.signed, frame_of(state, data))


def _answer_shares(state: PartyState, request: AskGramShares, data: PartyData) -> tuple[PartyState, Message]:
    identity, kept = identity_of(data), paired(state)
    asked = _asked(state, request, data)
    state = asked_once(state, request, digest(seen_rows(state, data), asked.fingerprint()))
    transcript = asked.transcript(identity.parties, kept.signed, frame_of(state, data), PURPOSE)
    after = replace(state, secret=Paired(None, kept.signed, transcript))
    if kept.secret is None:
        nothing = sendable_floats(np.empty((0, 0)))
        return after, GramShares(nothing, nothing, None, b"", transcript, b"")
    bases = _bases(asked, data)
    masks = _masks(request, asked, kept, kept.secret, _of_seeds(state, kept, data), transcript)
    share, blocks = _shared(_directions(bases, asked), masks, asked, kept, kept.secret, transcript)
    means = sendable_floats(np.stack([basis.mean for basis in bases]))
    factors = sendable_floats(np.vstack([basis.factor for basis in bases]))
    sent = sent_digest(means, factors, share, blocks)
    signature = identity.sign(seal_statement(identity.name, transcript, sent))
    return after, GramShares(means, factors, share, blocks, transcript, signature)


def _asked(state: PartyState, request: AskGramShares, data: PartyData) -> AskedGram:
    asked = AskedGram(state.selected(), request.weights, request.folds, request.n_columns)
    n_others = len(identity_of(data).parties) - 1
    if len(request.boxes) != n_others:
        raise checks.wrong(SERVER, request, f"seeds of other than {n_others} parties")
    check_asked(asked, request, data)
    # Others' numbers of columns are the server's word, and masks and blocks of all of them are made at once.
    ours = request.n_columns[identity_of(data).parties.index(identity_of(data).name)]
    largest = max(len(asked.rows), len(asked.groups()) * ours) * LIMBS * sum(request.n_columns)
    if len(asked.rows) > MAX_ROWS or largest > MAX_NUMBERS:
        raise InputError(f"{len(asked.rows):,} rows do not fit one message. Use a coreset or a smaller size.")
    return asked


def check_asked(asked: AskedGram, request: Message, data: PartyData) -> None:
    """Check what the server asks, and that it is about enough rows for none of them to show."""
    rows, identity = asked.rows, identity_of(data)
    ours = len(data.table.feature_names) + (data.table.label_name is not None)
    place = identity.parties.index(identity.name)
    if len(asked.n_columns) != len(identity.parties) or asked.n_columns[place] != ours or min(asked.n_columns) < 0:
        raise checks.wrong(SERVER, request, f"numbers of columns that are not the parties': {asked.n_columns}")
    if asked.weights is not None:
        checks.shape(SERVER, request, asked.weights, rows.shape)
        checks.non_negative(SERVER, request, asked.weights)
    if asked.folds is not None:
        checks.shape(SERVER, request, asked.folds, rows.shape)
        if len(rows) == 0 or asked.folds.min() < -1 or not 0 <= asked.folds.max() < MAX_FOLDS:
            raise checks.wrong(SERVER, request, f"folds that are not numbered from 0 to {MAX_FOLDS - 1} at most")
    for fold, group in enumerate(asked.groups()):
        effective = _effective_rows(rows[group], asked.row_weights()[group])
        if effective <= ours or effective < LEAST_ROWS:
            raise InputError(
                f"its {ours} columns of {effective:.3g} rows (effectively, in fold {fold}) would nearly show the rows: "
                f"a Gram matrix hides them only where rows are more than columns, and {LEAST_ROWS} at least. Use a "
                "larger size."
            )


def _effective_rows(rows: Rows, weights: Floats) -> float:
    """Count distinct rows, those of little weight less: (sum of weights)^2 / sum of their squares."""
    total = np.bincount(np.unique(rows, return_inverse=True)[1], weights=weights) if len(rows) else np.zeros(1)
    return float(total.sum() ** 2 / max(float(total @ total), 1e-300))


def _bases(asked: AskedGram, data: PartyData) -> list[LocalBasis]:
    columns, weights = data.table.take(asked.rows), asked.row_weights()
    return [local_basis(columns[group], weights[group]) for group in asked.groups()]


def _directions(bases: list[LocalBasis], asked: AskedGram) -> Words:
    """Put the folds' orthonormal columns in the rows' places; shape (m, 2 c), in limbs."""
    directions = np.zeros((len(asked.rows), len(bases[0].mean)))
    for group, basis in zip(asked.groups(), bases, strict=True):
        directions[group] = basis.directions
    return to_limbs(directions)


def _masks(
    request: AskGramShares, asked: AskedGram, kept: Paired, secret: Secret, of_seeds: bytes, transcript: bytes
) -> list[Words]:
    """Stretch every party's seed, ours among them, to its masked matrix E_l, shape (m, 2 c_l)."""
    ours, boxes = kept.keys.index(secret.key), iter(request.boxes)
    masks = []
    for place, n_columns in enumerate(asked.n_columns):
        is_ours = place == ours
        seed = secret.own_seed(of_seeds) if is_ours else secret.unseal(next(boxes), place, kept.keys, of_seeds)
        shape = (len(asked.rows), LIMBS * n_columns)
        masks.append(share_words(seed, transcript, shape[0] * shape[1]).reshape(shape))
    return masks


def _shared(
    directions: Words, masks: list[Words], asked: AskedGram, kept: Paired, secret: Secret, transcript: bytes
) -> tuple[bytes, bytes]:
    """Compute U_j, and for each other party our term of the product of our columns and theirs, under a mask."""
    ours, groups = kept.keys.index(secret.key), asked.groups()
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
)
