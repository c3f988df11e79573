"""Masks between pairs of parties: a party's secret of one sum, and whether what is relayed was signed."""

from collections.abc import Sequence

import numpy as np

from colonnade.errors import RemoteProtocolError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.masks import Ring, Words, masked, to_words
from colonnade.ledger import SERVER
from colonnade.privacy.primitives import KEY_BYTES, agreed_secret, decrypt, derive, encrypt, mask_words, public_key
from colonnade.privacy.statements import SignedDigest, SignedKey, key_context, key_statement, sent_statement
from colonnade.protocol.identity import Identity


class Secret:
    """A party's secret key of one sum, from 32 bytes of entropy: made afresh, in memory only, used once."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.key = public_key(secret)

    def masked(self, numbers: Floats, ring: Ring, keys: Sequence[bytes], transcript: bytes) -> Words:
        """Hide numbers, shape (m,), under a mask with each other party; summed over all parties, masks cancel.

        Keys are all parties', in one order for all. Masks of different transcripts do not cancel. An infinite number
        is any of the ring's, all alike: so is every sum with it, however many others are infinite.
        """
        ours = keys.index(self.key)
        masks = [
            self.stream(other, keys, transcript, b"mask", len(numbers)) for other in range(len(keys)) if other != ours
        ]
        infinite = np.isinf(numbers)
        words = to_words(np.where(infinite, 0.0, numbers), ring)
        if infinite.any():
            any_number = mask_words(self._secret, key_context(b"infinite", transcript), len(numbers))
            words = np.where(infinite, any_number, words)
        return masked(words, masks[ours:], masks[:ours], ring.width)

    def stream(self, other: int, keys: Sequence[bytes], transcript: bytes, purpose: bytes, count: int) -> Words:
        """Stretch what is agreed with the party at a place among the keys to so many uniform words, the same at both.

        Another transcript, or another purpose, gives unrelated words.
        """
        first, second = sorted((keys.index(self.key), other))
        context = key_context(purpose, transcript, keys[first], keys[second])
        return mask_words(agreed_secret(self._secret, keys[other]), context, count)

    def own_seed(self, transcript: bytes) -> bytes:
        """Derive a seed that only this party can, until it tells it to others."""
        return derive(self._secret, key_context(b"own seed", transcript), KEY_BYTES)

    def encrypt_for(self, text: bytes, other: int, keys: Sequence[bytes], transcript: bytes) -> bytes:
        """Encrypt one text of this transcript to the party at this place among the keys; the server cannot read it."""
        context = key_context(b"sealed", transcript, self.key, keys[other])
        return encrypt(agreed_secret(self._secret, keys[other]), context, text)

    def decrypt_from(self, party: str, encrypted: bytes, other: int, keys: Sequence[bytes], transcript: bytes) -> bytes:
        """Read what a party, at this place among the keys, encrypted to us."""
        context = key_context(b"sealed", transcript, keys[other], self.key)
        text = decrypt(agreed_secret(self._secret, keys[other]), context, encrypted)
        if text is None:
            raise _relayed_wrongly(
                f"an encrypted text of {party!r} that was changed on the way, or that another party encrypted"
            )
        return text

    def __repr__(self) -> str:
        return "Secret(not shown)"


def share_words(seed: bytes, transcript: bytes, count: int) -> Words:
    """Stretch a party's seed to the uniform words under which it hides its numbers from the server."""
    return mask_words(seed, key_context(b"share", transcript), count)


def check_keys(identity: Identity, keys: Sequence[SignedKey], view: bytes) -> None:
    """Require one key of each pinned party, in the order of names, signed by it for this view, all different."""
    if len(keys) != len(identity.parties):
        raise _relayed_wrongly(
            f"{len(keys)} keys, but its owner pinned {len(identity.parties)} parties: {', '.join(identity.parties)}"
        )
    for party, entry in zip(identity.parties, keys, strict=True):
        statement = key_statement(party, entry.key, entry.exchanged, view)
        if len(entry.key) != KEY_BYTES or not identity.is_signed(party, statement, entry.signature):
            raise _relayed_wrongly(f"a key for {party!r} that {party!r} did not sign")
    if len({entry.key for entry in keys}) != len(keys):
        raise _relayed_wrongly("one key for two parties")


def check_signatures(
    identity: Identity, transcript: bytes, signed: Sequence[SignedDigest], but: str | None = None
) -> None:
    """Require that every pinned party, but for one if so asked, signed the transcript that this party saw."""
    parties = [party for party in identity.parties if party != but]
    if len(signed) != len(parties):
        raise _relayed_wrongly(f"{len(signed)} signatures for {len(parties)} parties")
    for party, each in zip(parties, signed, strict=True):
        if not identity.is_signed(party, sent_statement(party, transcript, each.digest), each.signature):
            raise _relayed_wrongly(f"a signature of {party!r} on something else than this party saw")


def _relayed_wrongly(what: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"the server relayed {what}: it, or somebody between, may be listening in. Nothing more was told. "
        "Compare the parties' keys by telephone.",
        party=SERVER,
    )
