"""The server's side of Gram mode by additive shares: keys, encrypted seeds, shares and masked blocks, a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    rounding,
    unpack_words,
)
from colonnade.privacy.circles import Circle
from colonnade.privacy.pair_keys import LostKey, RelayedKeys, compare, exchange_keys, until_kept
from colonnade.privacy.primitives import KEY_BYTES, TAG_BYTES
from colonnade.privacy.statements import CircleKeys, SignedDigest
from colonnade.protocol import checks
from colonnade.solvers.gram.moments import GramMoments, senseless, summary
from colonnade.solvers.gram.question import GramQuestion, check_size, question_of
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
    sent_digest,
)

BOX_BYTES = KEY_BYTES + TAG_BYTES
# Rounding, in limbs and in the bases, adds about 2^-51 sqrt(c) to the spectrum of c orthonormal columns' products; of
# many rows, what limbs leave out adds more.
DEPENDENT = 64 * float(np.finfo(np.float64).eps)
SLACK = 1e-6


def gram_by_shares(roster: Roster, coreset: Coreset, fold_seed: int | None) -> Script[list[Summary]]:
    """Learn the moments of the coreset's columns, in each fold if there are any, and nothing of single rows.

    Folds are dealt by the seed. Gives one summary a fold: features as in the roster, the label last.
    """
    check_size(len(coreset), roster)
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
            products[fold],
            float(coreset.weights[group].sum()),
            float(coreset.weights.max()),
            max(DEPENDENT, rounding(len(group))),
        )
        for fold, group in enumerate(question.groups())
    ]


@dataclass(frozen=True, eq=False)
class Shared:
    """What parties shared, their keys, who checks whose, and what they signed."""

    replies: Mapping[str, GramShares]
    keys: RelayedKeys
    circle: Circle
    transcript: bytes
    signed: Mapping[str, SignedDigest]


def _attempt(roster: Roster, question: GramQuestion) -> Script[Mapping[str, GramShares] | LostKey]:
    shared = yield from share_columns(roster, question)
    if isinstance(shared, LostKey):
        return shared
    yield from compare(roster, shared.transcript, shared.signed, shared.circle)
    return shared.replies


def share_columns(roster: Roster, question: GramQuestion) -> Script[Shared | LostKey]:
    """Let parties share their columns, under fresh keys; what follows ends with a comparison."""
    keys = yield from exchange_keys(roster, question.rows)
    boxes = yield from deal_seed(keys)
    if isinstance(boxes, LostKey):
        return boxes
    circle = circle_for(question, keys.parties)
    inbox = yield {party: _asked(question, keys.to(party, circle), boxes[party]) for party in roster.names}
    replies = checks.replies(inbox, GramShares)
    for party, shared in replies.items():
        if shared.share is None:
            return LostKey(party)
    transcript = question.transcript(keys.parties, keys.keys, keys.view, PURPOSE)
    signed = {
        party: read_signed(party, reply, question, keys.parties, transcript, reply.share or b"")
        for party, reply in sorted(replies.items())
    }
    return Shared(replies, keys, circle, transcript, signed)


def deal_seed(keys: RelayedKeys) -> Script[Mapping[str, bytes] | LostKey]:
    """Let one party deal a seed; give what it encrypted to each of the others, by name, and nothing for itself."""
    dealer = keys.parties[DEALER]
    inbox = yield {dealer: AskSealedSeeds(keys.to(dealer, STAR))}
    dealt = checks.replies(inbox, SealedSeeds)[dealer]
    if not dealt.boxes:
        return LostKey(dealer)
    if [len(box) for box in dealt.boxes] != [BOX_BYTES] * (len(keys.parties) - 1):
        raise checks.wrong(dealer, dealt, f"other than one encrypted seed of {BOX_BYTES} bytes for each other party")
    return dict(zip(keys.parties, (b"", *dealt.boxes), strict=True))


def _asked(question: GramQuestion, keys: CircleKeys, box: bytes) -> AskGramShares | AskStepShares:
    if question.steps:
        return AskStepShares(question.weights, question.n_columns, question.steps, question.to, keys, box)
    return AskGramShares(question.weights, question.fold_seed, question.n_columns, keys, box)


def read_signed(
    party: str, reply: GramShares, question: GramQuestion, parties: Sequence[str], transcript: bytes, shares: bytes
) -> SignedDigest:
    """Check what a party told at last, and say what it signed: that, and what it shared, or a digest of it."""
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
    return SignedDigest(sent_digest(reply.means, reply.factors, shares, reply.blocks), reply.signature)


def _products(replies: Mapping[str, GramShares], question: GramQuestion) -> Floats:
    """Add up what the server holds and what pairs of parties told; shape (folds, c, c), above the parties' own blocks.

    Columns are in the order of names.
    """
    columns = {party: question.columns_of(place) for place, party in enumerate(sorted(replies))}
    shares = {party: reply.share or b"" for party, reply in replies.items()}
    return read_products(held_products(shares, question, columns), replies, columns, question.low_bits)


def held_products(shares: Mapping[str, bytes], question: GramQuestion, columns: Mapping[str, range]) -> Words:
    """Multiply the shares of all pairs; shape (folds, 2, c, c), above the parties' own blocks."""
    size, n_all, folds = len(question.rows), sum(question.n_columns), question.fold_rows()
    joined = np.concatenate([unpack_words(shares[party], len(own), LIMBS, size) for party, own in columns.items()])
    words = np.zeros((len(folds), LIMBS, n_all, n_all), np.uint64)
    for own in columns.values():
        later = slice(own.stop, n_all)
        for fold, group in enumerate(folds):
            words[fold, :, _slice(own), later] = limb_products(joined[_slice(own), :, group], joined[later][..., group])
    return words


def read_products(
    held: Words, replies: Mapping[str, GramShares], columns: Mapping[str, range], low_bits: int
) -> Floats:
    """Add the parties' blocks to what the server holds: the products, shape (folds, c, c), which are checked."""
    words = held.copy()
    for party, own in columns.items():
        earlier, later = split_blocks(replies[party].blocks, own, words.shape[-1], len(words))
        words[:, :, : own.start, _slice(own)] += earlier
        words[:, :, _slice(own), own.stop :] += later
    found = from_limbs(words, low_bits)
    _check_products(found, columns)
    return found


def split_blocks(packed: bytes, own: range, n_all: int, n_folds: int) -> tuple[Words, Words]:
    """Take a party's blocks apart: of its columns with those of earlier names, (folds, 2, b, c), and later ones."""
    before, after = (n_folds, LIMBS, own.start, len(own)), (n_folds, LIMBS, len(own), n_all - own.stop)
    cut = packed_size(*before)
    return unpack_words(packed[:cut], *before), unpack_words(packed[cut:], *after)


def _check_products(found: Floats, columns: Mapping[str, range]) -> None:
    """Require products, shape (folds, c, c), that columns of norm 1 have."""
    for _, row, column in np.argwhere(~(np.abs(found) <= 1 + SLACK))[:1].tolist():
        raise senseless(*(party for place in (row, column) for party, own in columns.items() if place in own))


def _slice(columns: range) -> slice:
    return slice(columns.start, columns.stop)


def _of_fold(factors: Floats, fold: int) -> Floats:
    n_columns = factors.shape[1]
    return factors[fold * n_columns : (fold + 1) * n_columns]
