"""The server's side of Gram mode by additive shares: keys, encrypted seeds, shares and masked blocks, a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats
from colonnade.kernels.gram import Summary
from colonnade.kernels.masks import Words
from colonnade.kernels.shares import (
    LIMBS,
    from_limbs,
    limb_products,
    packed_size,
    unpack_words,
)
from colonnade.privacy.pair_keys import LostKey, RelayedKeys, compare, exchange_keys, until_kept
from colonnade.privacy.primitives import KEY_BYTES, TAG_BYTES
from colonnade.privacy.statements import SignedDigest
from colonnade.protocol import checks
from colonnade.solvers.gram.moments import GramMoments, senseless, summary
from colonnade.solvers.gram.question import GramQuestion, question_of
from colonnade.solvers.gram.shares.messages import (
    PURPOSE,
    AskGramShares,
    AskSealedSeeds,
    AskStepShares,
    GramShares,
    SealedSeeds,
    sent_digest,
)

BOX_BYTES = KEY_BYTES + TAG_BYTES
# Rounding, in limbs and in the bases, adds about 2^-51 sqrt(c) to the spectrum of c orthonormal columns' products.
DEPENDENT = 64 * float(np.finfo(np.float64).eps)
SLACK = 1e-6


def gram_by_shares(roster: Roster, coreset: Coreset, fold_seed: int | None) -> Script[list[Summary]]:
    """Learn the moments of the coreset's columns, in each fold if there are any, and nothing of single rows.

    Folds are dealt by the seed. Gives one summary a fold: features as in the roster, the label last.
    """
    question = question_of(roster, coreset, fold_seed)
    replies = yield from until_kept(lambda: _attempt(roster, question))
    return summaries(roster, coreset, question, replies)


def summaries(
    roster: Roster, coreset: Coreset, question: GramQuestion, replies: Mapping[str, GramShares]
) -> list[Summary]:
    """Put together what parties shared: one summary a fold."""
    products = _products(replies, question)
    return [
        summary(
            roster,
            {party: GramMoments(reply.means[fold], _of_fold(reply.factors, fold)) for party, reply in replies.items()},
            {pair: blocks[fold] for pair, blocks in products.items()},
            coreset.weights[group],
            float(coreset.weights.max()),
            DEPENDENT,
        )
        for fold, group in enumerate(question.groups())
    ]


@dataclass(frozen=True, eq=False)
class Shared:
    """What parties shared, their keys, and what they signed."""

    replies: Mapping[str, GramShares]
    keys: RelayedKeys
    transcript: bytes
    signed: Mapping[str, SignedDigest]


def _attempt(roster: Roster, question: GramQuestion) -> Script[Mapping[str, GramShares] | LostKey]:
    shared = yield from share_columns(roster, question)
    if isinstance(shared, LostKey):
        return shared
    yield from compare(roster, shared.transcript, shared.signed)
    return shared.replies


def share_columns(roster: Roster, question: GramQuestion) -> Script[Shared | LostKey]:
    """Let parties share their columns, under fresh keys; what follows ends with a comparison."""
    keys = yield from exchange_keys(roster, question.rows)
    inbox = yield dict.fromkeys(roster.names, AskSealedSeeds(keys.signed))
    encrypted = checks.replies(inbox, SealedSeeds)
    for party, reply in encrypted.items():
        if not reply.boxes:
            return LostKey(party)
        if [len(box) for box in reply.boxes] != [BOX_BYTES] * (len(keys.parties) - 1):
            raise checks.wrong(party, reply, f"other than one encrypted seed of {BOX_BYTES} bytes for each other party")
    inbox = yield {party: _asked(question, _boxes_for(party, encrypted, keys)) for party in roster.names}
    replies = checks.replies(inbox, GramShares)
    for party, shared in replies.items():
        if shared.share is None:
            return LostKey(party)
    transcript = question.transcript(keys.parties, keys.signed, keys.view, PURPOSE)
    signed = {party: _read_signed(party, replies[party], question, keys.parties, transcript) for party in keys.parties}
    return Shared(replies, keys, transcript, signed)


def _asked(question: GramQuestion, boxes: tuple[bytes, ...]) -> AskGramShares | AskStepShares:
    if question.steps:
        return AskStepShares(question.weights, question.n_columns, question.steps, question.to, boxes)
    return AskGramShares(question.weights, question.fold_seed, question.n_columns, boxes)


def _boxes_for(party: str, encrypted: Mapping[str, SealedSeeds], keys: RelayedKeys) -> tuple[bytes, ...]:
    """Collect what the others encrypted to a party, in the order of their names."""
    return tuple(
        encrypted[other].boxes[[each for each in keys.parties if each != other].index(party)]
        for other in keys.parties
        if other != party
    )


def _read_signed(
    party: str, reply: GramShares, question: GramQuestion, parties: Sequence[str], transcript: bytes
) -> SignedDigest:
    ours, n_folds = question.n_columns[parties.index(party)], len(question.groups())
    others = sum(question.n_columns) - ours
    checks.shape(party, reply, reply.means, (n_folds, ours))
    checks.in_range(party, reply, reply.means)
    checks.shape(party, reply, reply.factors, (n_folds * ours, ours))
    checks.in_range(party, reply, reply.factors)
    due = (packed_size(len(question.rows), LIMBS, ours), packed_size(n_folds, LIMBS, ours, others))
    if (len(reply.share or b""), len(reply.blocks)) != due:
        raise checks.wrong(party, reply, f"a share or blocks of other than {due[0]} and {due[1]} bytes")
    if reply.transcript != transcript:
        raise checks.wrong(party, reply, "a digest of another request than it was sent")
    return SignedDigest(sent_digest(reply.means, reply.factors, reply.share or b"", reply.blocks), reply.signature)


def _products(replies: Mapping[str, GramShares], question: GramQuestion) -> dict[tuple[str, str], Floats]:
    """Add up what the server holds and what pairs of parties told; shape (folds, c_j, c_l) for each pair."""
    parties, groups = sorted(replies), question.groups()
    n_columns = dict(zip(parties, question.n_columns, strict=True))
    shares = {p: unpack_words(replies[p].share or b"", len(question.rows), LIMBS * n_columns[p]) for p in parties}
    blocks = {p: dict(split_blocks(replies[p].blocks, p, n_columns, len(groups))) for p in parties}
    found = {}
    for first, second in combinations(parties, 2):
        held = np.stack([limb_products(shares[first][group], shares[second][group]) for group in groups])
        found[first, second] = from_limbs(held + blocks[first][second] + blocks[second][first])
        if not (np.abs(found[first, second]) <= 1 + SLACK).all():
            raise senseless(first, second)
    return found


def split_blocks(packed: bytes, party: str, n_columns: Mapping[str, int], n_folds: int) -> list[tuple[str, Words]]:
    """Take a party's blocks apart: one with each other party, whose columns run along the later name's."""
    found, start = [], 0
    for other in sorted(n_columns):
        if other != party:
            first, second = sorted((party, other))
            shape = (n_folds, LIMBS, n_columns[first], n_columns[second])
            end = start + packed_size(*shape)
            found.append((other, unpack_words(packed[start:end], *shape)))
            start = end
    return found


def _of_fold(factors: Floats, fold: int) -> Floats:
    n_columns = factors.shape[1]
    return factors[fold * n_columns : (fold + 1) * n_columns]
