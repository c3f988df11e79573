"""Masks between pairs of parties: what is signed, what masks are bound to, and the party's secret of one sum."""

from collections.abc import Sequence

import msgspec
import numpy as np

from colonnade.errors import RemoteProtocolError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.masks import Ring, Words, masked, to_words
from colonnade.ledger import SERVER
from colonnade.privacy.primitives import (
    KEY_BYTES,
    agreed_secret,
    decrypt,
    derive,
    digest,
    encrypt,
    mask_words,
    public_key,
)
from colonnade.protocol.identity import Identity

# In every signed or derived text, so that none of another protocol, or of another version, can take its place. The
# words beside it ("seal", "sealed") belong to this version, and stay with it.
_PROTOCOL = b"colonnade secure sum 1"


class SignedKey(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A party's public key of one sum, what it remembers of the run so far, and its signature on both."""

    key: bytes
    exchanged: bytes
    signature: bytes


class SignedDigest(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The digest of the masked numbers that a party sent, and its signature on it."""

    digest: bytes
    signature: bytes


class Secret:
    """A party's secret key of one sum, from 32 bytes of entropy: made afresh, in memory only, used once."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.key = public_key(secret)

    def masked(self, numbers: Floats, ring: Ring, keys: Sequence[bytes], transcript: bytes) -> Words:
        """Hide numbers, shape (m,), under a mask with each other party; summed over all parties, masks cancel.

        Keys are all parties', in one order for all. Masks of different transcripts do not cancel.
        """
        ours = keys.index(self.key)
        masks = [
            self.stream(other, keys, transcript, b"mask", len(numbers)) for other in range(len(keys)) if other != ours
        ]
        return masked(to_words(numbers, ring), masks[ours:], masks[:ours], ring.width)

    def stream(self, other: int, keys: Sequence[bytes], transcript: bytes, purpose: bytes, count: int) -> Words:
        """Stretch what is agreed with the party at a place among the keys to so many uniform words, the same at both.

        Another transcript, or another purpose, gives unrelated words.
        """
        first, second = sorted((keys.index(self.key), other))
        context = digest(_PROTOCOL, purpose, transcript, keys[first], keys[second])
        return mask_words(agreed_secret(self._secret, keys[other]), context, count)

    def own_seed(self, transcript: bytes) -> bytes:
        """Derive a seed that only this party can, until it tells it to others."""
        return derive(self._secret, digest(_PROTOCOL, b"own seed", transcript), KEY_BYTES)

    def encrypt_for(self, text: bytes, other: int, keys: Sequence[bytes], transcript: bytes) -> bytes:
        """Encrypt one text of this transcript to the party at this place among the keys; the server cannot read it."""
        context = digest(_PROTOCOL, b"sealed", transcript, self.key, keys[other])
        return encrypt(agreed_secret(self._secret, keys[other]), context, text)

    def decrypt_from(self, encrypted: bytes, other: int, keys: Sequence[bytes], transcript: bytes) -> bytes:
        """Read what the party at this place encrypted to us."""
        context = digest(_PROTOCOL, b"sealed", transcript, keys[other], self.key)
        text = decrypt(agreed_secret(self._secret, keys[other]), context, encrypted)
        if text is None:
            raise _relayed_wrongly("an encrypted text that was changed on the way, or that another party encrypted")
        return text

    def __repr__(self) -> str:
        return "Secret(not shown)"


def share_words(seed: bytes, transcript: bytes, count: int) -> Words:
    """Stretch a party's seed to the uniform words under which it hides its numbers from the server."""
    return mask_words(seed, digest(_PROTOCOL, b"share", transcript), count)


def key_statement(party: str, key: bytes, exchanged: bytes, view: bytes) -> bytes:
    """Give the text a party signs to say: this is my key, in the run in which this was exchanged."""
    return digest(_PROTOCOL, b"key", party.encode(), key, exchanged, view)


def sent_statement(party: str, transcript: bytes, sent: bytes) -> bytes:
    """Give the text a party signs to say: this is what I saw, and this is what I sent."""
    return digest(_PROTOCOL, b"seal", party.encode(), transcript, sent)


def transcript_of(
    purpose: str, parties: Sequence[str], keys: Sequence[SignedKey], view: bytes, asked: bytes, ring: Ring
) -> bytes:
    """Hash all that parties and server must agree on before anything is masked.

    It is new in every run and every attempt, since every honest party's key is.

    Parameters
    ----------
    purpose : str
        Which sum of a run it is.
    view : bytes
        The digest of which rows count and in which units.
    asked : bytes
        What is to be summed.
    """
    names = digest(*(party.encode() for party in parties))
    signed = digest(*(part for entry in keys for part in (entry.key, entry.exchanged, entry.signature)))
    in_ring = f"{ring.width} bytes, steps of 2^-{ring.exponent}".encode()
    return digest(_PROTOCOL, purpose.encode(), names, signed, view, digest(asked), in_ring)


def agreement_of(transcript: bytes, signed: Sequence[SignedDigest]) -> bytes:
    """Hash the transcript to its end: what all sides compare."""
    sent = digest(*(part for each in signed for part in (each.digest, each.signature)))
    return digest(_PROTOCOL, b"agreement", transcript, sent)


def digest_of_view(row_weights: Floats | None, scaling: str) -> bytes:
    """Hash which rows count, how much, and in which units columns enter."""
    counted = b"" if row_weights is None else np.ascontiguousarray(row_weights, "<f8").tobytes()
    return digest(_PROTOCOL, b"frame", counted, scaling.encode())


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
