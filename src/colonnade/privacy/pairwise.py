"""Masks between pairs of parties: a party's secret of one sum, and whether what is relayed was signed."""

from collections.abc import Callable, Sequence

import numpy as np

from colonnade.errors import RemoteProtocolError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.masks import Ring, Words, masked, to_words
from colonnade.ledger import SERVER
from colonnade.privacy.primitives import KEY_BYTES, KeyPair, ManyWords, decrypt, derive, encrypt, mask_words
from colonnade.privacy.statements import (
    DIGEST_BYTES,
    CircleKeys,
    SignedDigest,
    SignedKey,
    key_context,
    key_statement,
    sent_statement,
)
from colonnade.protocol.identity import Identity, Pair


class Secret:
    """A party's secret key of one sum, from 32 bytes of entropy: made afresh, in memory only, used once.

    `pair` makes a key to agree with of them.
    """

    def __init__(self, secret: bytes, pair: Callable[[bytes], Pair] = KeyPair) -> None:
        self._secret, self._pair = secret, pair(secret)
        self.key = self._pair.public

    def masked(
        self, numbers: Floats, ring: Ring, keys: Sequence[bytes], circle: Sequence[int], transcript: bytes
    ) -> Words:
        """Hide numbers, shape (m,), under a mask with each other party around; summed over all parties, masks cancel.

        Keys are all parties', in one order for all; the circle has places among them, ours too. Masks of different
        transcripts do not cancel. An infinite number is any of the ring's, all alike: so is every sum with it, however
        many others are infinite.
        """
        ours = keys.index(self.key)
        added, subtracted = (
            (self.stream(other, keys, transcript, b"mask", len(numbers)) for other in others)
            for others in ([place for place in circle if place > ours], [place for place in circle if place < ours])
        )
        infinite = np.isinf(numbers)
        words = to_words(np.where(infinite, 0.0, numbers), ring)
        if infinite.any():
            any_number = mask_words(self._secret, key_context(b"infinite", transcript), len(numbers))
            words = np.where(infinite, any_number, words)
        return masked(words, added, subtracted, ring.width)

    def stream(self, other: int, keys: Sequence[bytes], transcript: bytes, purpose: bytes, count: int) -> Words:
        """Stretch what is agreed with the party at a place among the keys to so many uniform words, the same at both.

        Another transcript, or another purpose, gives unrelated words.
        """
        first, second = sorted((keys.index(self.key), other))
        context = key_context(purpose, transcript, keys[first], keys[second])
        return mask_words(self._pair.agreed(keys[other]), context, count)

    def own_seed(self, transcript: bytes) -> bytes:
        """Derive a seed that only this party can, until it tells it to others."""
        return derive(self._secret, key_context(b"own seed", transcript), KEY_BYTES)

    def encrypt_for(self, text: bytes, other: int, keys: Sequence[bytes], transcript: bytes) -> bytes:
        """Encrypt one text of this transcript to the party at this place among the keys; the server cannot read it."""
        context = key_context(b"sealed", transcript, self.key, keys[other])
        return encrypt(self._pair.agreed(keys[other]), context, text)

    def decrypt_from(self, party: str, encrypted: bytes, other: int, keys: Sequence[bytes], transcript: bytes) -> bytes:
        """Read what a party, at this place among the keys, encrypted to us."""
        context = key_context(b"sealed", transcript, keys[other], self.key)
        text = decrypt(self._pair.agreed(keys[other]), context, encrypted)
        if text is None:
            raise _relayed_wrongly(
                f"an encrypted text of {party!r} that was changed on the way, or that another party encrypted"
            )
        return text

    def __repr__(self) -> str:
        return "Secret(not shown)"


def share_words(seed: bytes, transcript: bytes) -> ManyWords:
    """Stretch a seed that all parties have to the uniform words under which they hide numbers from the server."""
    return ManyWords(seed, key_context(b"share", transcript))


def check_keys(identity: Identity, keys: Sequence[SignedKey], view: bytes) -> None:
    """Require one key of each pinned party, in the order of names, signed by it for this view, all different."""
    _check_number(identity, len(keys))
    for party, entry in zip(identity.parties, keys, strict=True):
        _check_signed(identity, party, entry, view)
    _check_different([entry.key for entry in keys])


def check_circle(identity: Identity, circle: Sequence[int], relayed: CircleKeys, view: bytes) -> None:
    """Require one key of each pinned party, all different, and those of a circle of places signed for this view."""
    keys, signed = split_keys(relayed.keys), relayed.signed
    _check_number(identity, len(keys))
    if len(signed) != len(circle):
        raise _relayed_wrongly(f"signatures on {len(signed)} keys where {len(circle)} are due")
    parties = identity.parties
    for place, each in zip(circle, signed, strict=True):
        _check_signed(identity, parties[place], SignedKey(keys[place], each.exchanged, each.signature), view)
    _check_different(keys)


def split_keys(keys: bytes) -> tuple[bytes, ...]:
    """Take public keys apart that stand one after another."""
    return tuple([keys[start : start + KEY_BYTES] for start in range(0, len(keys), KEY_BYTES)])


def _check_number(identity: Identity, count: int) -> None:
    if count != len(identity.parties):
        raise _relayed_wrongly(
            f"{count} keys, but its owner pinned {len(identity.parties)} parties: {', '.join(identity.parties)}"
        )


def _check_signed(identity: Identity, party: str, entry: SignedKey, view: bytes) -> None:
    # Statements are kept, and what the server relays may be long.
    is_short = len(entry.key) == KEY_BYTES and len(entry.exchanged) <= DIGEST_BYTES
    if not is_short or not identity.is_signed(
        party, key_statement(party, entry.key, entry.exchanged, view), entry.signature
    ):
        raise _relayed_wrongly(f"a key for {party!r} that {party!r} did not sign")


def _check_different(keys: Sequence[bytes]) -> None:
    if len(set(keys)) != len(keys):
        raise _relayed_wrongly("one key for two parties")


def check_signatures(
    identity: Identity, places: Sequence[int], transcript: bytes, signed: Sequence[SignedDigest]
) -> None:
    """Require that the pinned parties at these places signed the transcript that this party saw."""
    if len(signed) != len(places):
        raise _relayed_wrongly(f"{len(signed)} signatures for {len(places)} parties")
    parties = identity.parties
    for party, each in zip((parties[place] for place in places), signed, strict=True):
        is_short = len(each.digest) == DIGEST_BYTES
        if not is_short or not identity.is_signed(
            party, sent_statement(party, transcript, each.digest), each.signature
        ):
            raise _relayed_wrongly(f"a signature of {party!r} on something else than this party saw")


def _relayed_wrongly(what: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"the server relayed {what}: it, or somebody between, may be listening in. Nothing more was told. "
        "Compare the parties' keys by telephone.",
        party=SERVER,
    )
