"""What is hashed: the texts that parties sign, compare, and bind keys and masks to."""

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from colonnade.kernels.masks import Ring
from colonnade.kernels.per_row import PerRow
from colonnade.signing import digest

DIGEST_BYTES = 32
# In one process a statement is looked at by all around the party that signed it; of more parties, some are hashed anew.
KEPT_STATEMENTS = 256
# In every signed or derived text, so that none of another protocol, or of another version, can take its place. The
# words beside it ("seal", "sealed") belong to this version, and stay with it.
PROTOCOL = b"colonnade secure sum 3"


class SignedKey(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A party's public key of one sum, what it remembers of the run so far, and its signature on both."""

    key: bytes
    exchanged: bytes
    signature: bytes


class KeySignature(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a party remembers of the run so far, and its signature on that and on its public key."""

    exchanged: bytes
    signature: bytes


class CircleKeys(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """All parties' public keys, one after another by name, and what those signed that a party shares secrets with.

    It is among these. The other keys it compares with others, and uses none of them.
    """

    keys: bytes
    signed: tuple[KeySignature, ...]


class SignedDigest(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The digest of the masked numbers that a party sent, and its signature on it."""

    digest: bytes
    signature: bytes


@lru_cache(maxsize=KEPT_STATEMENTS)
def key_statement(party: str, key: bytes, exchanged: bytes, view: bytes) -> bytes:
    """Give the text a party signs to say: this is my key, in the run in which this was exchanged."""
    return digest(PROTOCOL, b"key", party.encode(), key, exchanged, view)


@lru_cache(maxsize=KEPT_STATEMENTS)
def sent_statement(party: str, transcript: bytes, sent: bytes) -> bytes:
    """Give the text a party signs to say: this is what I saw, and this is what I sent."""
    return digest(PROTOCOL, b"seal", party.encode(), transcript, sent)


def transcript_of(purpose: str, parties: Sequence[str], keys: bytes, view: bytes, question: bytes, ring: Ring) -> bytes:
    """Hash all that parties and server must agree on before anything is masked.

    It is new in every run and every attempt, since every honest party's key is.

    Parameters
    ----------
    purpose : str
        Which sum of a run it is.
    keys : bytes
        All parties' public keys, one after another.
    view : bytes
        The digest of which rows count and in which units.
    question : bytes
        What is to be summed.
    """
    in_ring = f"{ring.width} bytes, steps of 2^-{ring.exponent}".encode()
    return digest(PROTOCOL, purpose.encode(), _names(tuple(parties)), digest(keys), view, digest(question), in_ring)


@lru_cache(maxsize=4)  # a run's parties are the same in all its phases
def _names(parties: tuple[str, ...]) -> bytes:
    return digest(*(party.encode() for party in parties))


def agreement_of(transcript: bytes, signed: Sequence[SignedDigest]) -> bytes:
    """Hash the transcript to its end: what all sides compare."""
    sent = digest(*(part for each in signed for part in (each.digest, each.signature)))
    return digest(PROTOCOL, b"agreement", transcript, sent)


def digest_of_view(row_weights: PerRow | None, scaling: str) -> bytes:
    """Hash which rows count, how much, and in which units columns enter."""
    counted = b"" if row_weights is None else row_weights.fingerprint
    return digest(PROTOCOL, b"frame", counted, scaling.encode())


def key_context(purpose: bytes, transcript: bytes, *keys: bytes) -> bytes:
    """Hash what a derived key or mask is for: another purpose or transcript, or other keys, give unrelated ones."""
    return digest(PROTOCOL, purpose, transcript, *keys)
