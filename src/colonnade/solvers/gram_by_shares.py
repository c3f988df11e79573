"""The server's side of Gram mode by additive shares: keys, sealed seeds, shares and masked blocks, a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.gram import Summary
from colonnade.kernels.masks import WORD_BYTES, Ring, Words
from colonnade.kernels.shares import (
    HIGH_BITS,
    LIMBS,
    LOW_BITS,
    from_limbs,
    limb_products,
    packed_size,
    unpack_words,
)
from colonnade.messages import Message, Reveals, sendable_floats, sendable_rows
from colonnade.privacy.pair_keys import Keys, Lost, compare, exchange_keys, until_kept
from colonnade.privacy.pairwise import Seal, SignedKey, transcript_of
from colonnade.privacy.primitives import KEY_BYTES, TAG_BYTES, digest
from colonnade.protocol import checks
from colonnade.solvers.gram_moments import GramMoments, senseless, summary

PURPOSE = "gram by shares"
RING = Ring(WORD_BYTES, HIGH_BITS + LOW_BITS)
BOX_BYTES = KEY_BYTES + TAG_BYTES
# Rounding, in limbs and in the bases, adds about 2^-51 sqrt(c) to the spectrum of c orthonormal columns' products.
DEPENDENT = 64 * float(np.finfo(np.float64).eps)
SLACK = 1e-6


class SealedSeeds(Message, frozen=True):
    """The seed of the party's share, sealed for each other party, 48 bytes, by name; none where its key is lost."""

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    boxes: Annotated[tuple[bytes, ...], Reveals.NOTHING]


class AskSealedSeeds(Message, frozen=True):
    """All parties' keys in the order of their names."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = SealedSeeds

    keys: Annotated[tuple[SignedKey, ...], Reveals.NOTHING]


class GramShares(Message, frozen=True):
    """Means and factors of the party's columns in each fold, its share, and its masked blocks; or a lost key.

    The share and the blocks are uniform words to the server, 16 bytes each. Together with those of all parties they
    give the products of columns of different parties. With f folds, c columns (the label among them) and o columns of
    others, means are f x c, factors f c x c; the share has m c words, the blocks f c o.
    """

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    means: Annotated[Floats, Reveals.MOMENTS]
    factors: Annotated[Floats, Reveals.MOMENTS]
    share: Annotated[bytes | None, Reveals.MOMENTS]
    blocks: Annotated[bytes, Reveals.MOMENTS]
    transcript: Annotated[bytes, Reveals.NOTHING]
    signature: Annotated[bytes, Reveals.NOTHING]

    def units(self) -> int:
        """Count the numbers, those of the share and the blocks too."""
        shared = (len(self.share or b"") + len(self.blocks)) // (LIMBS * WORD_BYTES)
        return self.means.size + self.factors.size + shared


class AskGramShares(Message, frozen=True):
    """The rows' weights and folds (none: all alike), every party's number of columns, and what others sealed for you.

    A coreset's weights are 1 over the parties' summed scores, up to one factor: that is what they reveal.
    """

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = GramShares

    weights: Annotated[Floats | None, Reveals.SCORE_SUMS]
    folds: Annotated[Rows | None, Reveals.NOTHING]
    n_columns: Annotated[tuple[int, ...], Reveals.SCHEMA]
    boxes: Annotated[tuple[bytes, ...], Reveals.NOTHING]


@dataclass(frozen=True, eq=False)
class AskedGram:
    """What all parties are asked alike.

    Parameters
    ----------
    rows : ndarray of int64, shape (m,)
        The coreset's.
    weights : ndarray of float64, shape (m,), or None
        Relative to the largest; None where they are all equal.
    folds : ndarray of int64, shape (m,), or None
        Each row's fold, or -1; None where there is only one.
    n_columns : tuple of int
        Each party's columns, the label among them, in the order of names.
    """

    rows: Rows
    weights: Floats | None
    folds: Rows | None
    n_columns: tuple[int, ...]

    def transcript(self, parties: Sequence[str], signed: Sequence[SignedKey], frame: bytes, purpose: str) -> bytes:
        """Hash what parties and server must agree on."""
        return transcript_of(purpose, parties, signed, frame, self.fingerprint(), RING)

    def fingerprint(self) -> bytes:
        """Hash weights, folds and numbers of columns."""
        weights = b"" if self.weights is None else np.ascontiguousarray(self.weights, "<f8").tobytes()
        folds = b"" if self.folds is None else np.ascontiguousarray(self.folds, "<i8").tobytes()
        return digest(weights, folds, repr(self.n_columns).encode())

    def row_weights(self) -> Floats:
        """Give each row's weight."""
        return np.ones(len(self.rows)) if self.weights is None else self.weights

    def groups(self) -> list[Rows]:
        """Give the positions of each fold's rows."""
        if self.folds is None:
            return [np.arange(len(self.rows))]
        return [np.flatnonzero(self.folds == fold) for fold in range(int(self.folds.max()) + 1)]


def seeds_transcript(parties: Sequence[str], signed: Sequence[SignedKey], frame: bytes) -> bytes:
    """Hash what parties agree on when they seal the seeds of their shares."""
    return transcript_of("gram seeds", parties, signed, frame, b"", RING)


def gram_by_shares(roster: Roster, coreset: Coreset, folds: Rows | None) -> Script[list[Summary]]:
    """Learn the moments of the coreset's columns, in each fold if there are any, and nothing of single rows.

    Parameters
    ----------
    roster : Roster
        The parties; each knows the coreset's rows.
    coreset : Coreset
        Rows and weights.
    folds : ndarray of int64, shape (m,), or None
        Each row's fold, or -1.

    Returns
    -------
    list of Summary
        One a fold; features in the order of the roster, the label last.
    """
    asked = ask_of(roster, coreset, folds)
    replies = yield from until_kept(lambda: _attempt(roster, asked))
    products = _products(replies, asked)
    return [
        summary(
            roster,
            {party: GramMoments(reply.means[fold], _of_fold(reply.factors, fold)) for party, reply in replies.items()},
            {pair: blocks[fold] for pair, blocks in products.items()},
            coreset.weights[group],
            float(coreset.weights.max()),
            DEPENDENT,
        )
        for fold, group in enumerate(asked.groups())
    ]


def ask_of(roster: Roster, coreset: Coreset, folds: Rows | None) -> AskedGram:
    """Say what all parties are asked alike; the parameters are those of `gram_by_shares`."""
    columns = {card.name: card.n_features + (card.label_name is not None) for card in roster.cards}
    weights = None if (coreset.weights == coreset.weights[0]).all() else coreset.weights / coreset.weights.max()
    return AskedGram(
        coreset.rows,
        None if weights is None else sendable_floats(weights),
        None if folds is None else sendable_rows(folds),
        tuple(columns[party] for party in sorted(columns)),
    )


def _attempt(roster: Roster, asked: AskedGram) -> Script[Mapping[str, GramShares] | Lost]:
    keys = yield from exchange_keys(roster, asked.rows)
    inbox = yield dict.fromkeys(roster.names, AskSealedSeeds(keys.signed))
    sealed = checks.replies(inbox, SealedSeeds)
    for party, reply in sealed.items():
        if not reply.boxes:
            return Lost(party)
        if [len(box) for box in reply.boxes] != [BOX_BYTES] * (len(keys.parties) - 1):
            raise checks.wrong(party, reply, f"other than one sealed seed of {BOX_BYTES} bytes for each other party")
    inbox = yield {
        party: AskGramShares(asked.weights, asked.folds, asked.n_columns, _boxes_for(party, sealed, keys))
        for party in roster.names
    }
    replies = checks.replies(inbox, GramShares)
    for party, shared in replies.items():
        if shared.share is None:
            return Lost(party)
    transcript = asked.transcript(keys.parties, keys.signed, keys.frame, PURPOSE)
    seals = {party: _read_seal(party, replies[party], asked, keys.parties, transcript) for party in keys.parties}
    yield from compare(roster, transcript, seals)
    return replies


def _boxes_for(party: str, sealed: Mapping[str, SealedSeeds], keys: Keys) -> tuple[bytes, ...]:
    """Collect what the others sealed for a party, in the order of their names."""
    return tuple(
        sealed[other].boxes[[each for each in keys.parties if each != other].index(party)]
        for other in keys.parties
        if other != party
    )


def _read_seal(party: str, reply: GramShares, asked: AskedGram, parties: Sequence[str], transcript: bytes) -> Seal:
    ours, n_folds = asked.n_columns[parties.index(party)], len(asked.groups())
    others = sum(asked.n_columns) - ours
    checks.shape(party, reply, reply.means, (n_folds, ours))
    checks.in_range(party, reply, reply.means)
    checks.shape(party, reply, reply.factors, (n_folds * ours, ours))
    checks.in_range(party, reply, reply.factors)
    due = (packed_size(len(asked.rows), LIMBS, ours), packed_size(n_folds, LIMBS, ours, others))
    if (len(reply.share or b""), len(reply.blocks)) != due:
        raise checks.wrong(party, reply, f"a share or blocks of other than {due[0]} and {due[1]} bytes")
    if reply.transcript != transcript:
        raise checks.wrong(party, reply, "a digest of another request than it was sent")
    return Seal(sent_digest(reply.means, reply.factors, reply.share or b"", reply.blocks), reply.signature)


def sent_digest(means: Floats, factors: Floats, share: bytes, blocks: bytes) -> bytes:
    """Hash what a party sent."""
    moments = (np.ascontiguousarray(each, "<f8").tobytes() for each in (means, factors))
    return digest(*moments, share, blocks)


def _products(replies: Mapping[str, GramShares], asked: AskedGram) -> dict[tuple[str, str], Floats]:
    """Add up what the server holds and what pairs of parties told; shape (folds, c_j, c_l) for each pair."""
    parties, groups = sorted(replies), asked.groups()
    n_columns = dict(zip(parties, asked.n_columns, strict=True))
    shares = {p: unpack_words(replies[p].share or b"", len(asked.rows), LIMBS * n_columns[p]) for p in parties}
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
