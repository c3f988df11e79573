"""The few primitives that are used, all from the package `cryptography`, which is loaded only when one is called.

X25519 for key agreement, HKDF-SHA-256 to derive, AES-256 in counter mode to stretch, in Galois/counter mode to encrypt
and to stretch what is read from its beginning on, block by block to give hashes other names.
Ed25519, to sign, is in `identities`.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np

from colonnade.errors import RemoteProtocolError, UnsupportedError
from colonnade.kernels.masks import WORD_BYTES, Words
from colonnade.ledger import SERVER

KEY_BYTES = 32
_AES_KEY, _AES_BLOCK = 32, 16
# A key that encrypts one text and no other needs no other nonce than zero.
_NONCE = bytes(12)
# The counter of the first block that Galois/counter mode encrypts with; the one before makes the tag.
_GCM_FIRST = 2
TAG_BYTES = 16
# What is encrypted to get a stream: to make as many zeros anew takes several times as long as to encrypt them.
_ZEROS = memoryview(bytes(1 << 20))


def check_available() -> None:
    """Require the package; it is an extra."""
    if find_spec("cryptography") is None:
        raise UnsupportedError(
            "Secure sums and shares need the package cryptography. Install it: pip install 'colonnade[secure]'."
        )


class KeyPair:
    """An X25519 key of 32 secret bytes; what it agrees on with another key is computed once."""

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self._private = X25519PrivateKey.from_private_bytes(secret)
        self._agreed: dict[bytes, bytes] = {}
        self.public = self._private.public_key().public_bytes_raw()

    def agreed(self, their_key: bytes) -> bytes:
        """Agree on 32 bytes with whoever holds the secret of `their_key`; points of low order are refused."""
        if their_key not in self._agreed:
            self._agreed[their_key] = self.exchange(their_key)
        return self._agreed[their_key]

    def exchange(self, their_key: bytes) -> bytes:
        """Agree on them, and forget it."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(their_key))
        except ValueError as error:
            raise RemoteProtocolError(
                "The server relayed a public key that gives no shared secret. Check that all run the same version.",
                party=SERVER,
            ) from error

    def __repr__(self) -> str:
        return "KeyPair(not shown)"


def gives_secret(key: bytes) -> bool:
    """Tell whether these are a public key with which a secret can be agreed on: of any other nothing is hidden."""
    try:
        _any_pair().exchange(key)
    except RemoteProtocolError:
        return False
    return True


@cache
def _any_pair() -> KeyPair:
    return KeyPair(bytes(KEY_BYTES))


def mask_words(agreed: bytes, context: bytes, count: int) -> Words:
    """Stretch an agreed secret to uniform words: HKDF gives an AES key, with which zeros are encrypted.

    Another context, what the mask is for, gives an unrelated mask. Galois/counter mode is the quicker, as in
    `ManyWords.pieces`, and of a hundred parties each makes many short masks; its tag is left out.
    """
    key = derive(agreed, context, _AES_KEY)
    encrypted = _loaded().AESGCM(key).encrypt(_NONCE, _zeros(count * WORD_BYTES), None)
    return np.frombuffer(encrypted, "<u8", count).astype(np.uint64, copy=False)


class ManyWords:
    """A long line and a large grid of uniform words, from one secret and context: any part of them can be had alone."""

    def __init__(self, secret: bytes, context: bytes) -> None:
        derived = derive(secret, context, 2 * _AES_KEY)
        self._line, self._grid = derived[:_AES_KEY], derived[_AES_KEY:]

    def line(self, start: int, count: int) -> Words:
        """Give so many pairs of words of the line, from the pair at a place on."""
        return _stream(self._line, start.to_bytes(_AES_BLOCK, "big"), count * _AES_BLOCK)

    def pieces(self, counts: Sequence[int]) -> Iterator[Words]:
        """Give the line from its beginning on, in pieces of so many pairs, each in the place of the one before.

        Galois/counter mode counts as `line` does, from 2 on, and processors of today do it more than twice as fast.
        """
        parts, room, at = _loaded(), np.empty(2 * max(counts, default=0), "<u8"), 0
        counting = parts.Cipher(parts.AES256(self._line), parts.GCM(_NONCE)).encryptor()
        before = self.line(0, _GCM_FIRST)
        for count in counts:
            piece, first = room[: 2 * count], before[2 * at : 2 * (at + count)]
            piece[: len(first)] = first
            octets = piece[len(first) :].view(np.uint8).data
            for start in range(0, len(octets), len(_ZEROS)):
                some = octets[start : start + len(_ZEROS)]
                counting.update_into(_ZEROS[: len(some)], some)
            at += count
            yield piece.astype(np.uint64, copy=False)

    def grid(self, layers: int, rows: range, columns: range) -> Words:
        """Give two words for each place of a part of the grid, below 2^32; shape (layers, 2, n_rows, n_columns)."""
        places = np.empty((layers, len(rows), len(columns), 2), "<u8")
        places[..., 0] = np.arange(layers, dtype=np.uint64)[:, None, None]
        places[..., 1] = (np.asarray(rows, np.uint64)[:, None] << np.uint64(32)) | np.asarray(columns, np.uint64)
        words = _words(scrambled(self._grid, places.tobytes())).reshape(places.shape)
        return np.moveaxis(words, 3, 1)

    def __repr__(self) -> str:
        return "ManyWords(not shown)"


def _stream(key: bytes, start: bytes, count: int) -> Words:
    """Let AES count on from a first counter, to so many bytes."""
    parts = _loaded()
    return _words(parts.Cipher(parts.AES256(key), parts.CTR(start)).encryptor().update(_zeros(count)))


def _zeros(count: int) -> "bytes | memoryview":
    return _ZEROS[:count] if count <= len(_ZEROS) else bytes(count)


@cache  # a hundred parties make thousands of masks, and to import what is loaded takes as long as to make one
def _loaded() -> SimpleNamespace:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.ciphers.algorithms import AES256
    from cryptography.hazmat.primitives.ciphers.modes import CTR, ECB, GCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return SimpleNamespace(
        Cipher=Cipher, AESGCM=AESGCM, AES256=AES256, CTR=CTR, ECB=ECB, GCM=GCM, SHA256=SHA256, HKDF=HKDF
    )


def _words(stretched: bytes) -> Words:
    return np.frombuffer(stretched, "<u8").astype(np.uint64, copy=False)


def scrambled(secret: bytes, blocks: bytes) -> bytes:
    """Encrypt blocks of 16 bytes, each by itself (AES-256): those that are equal stay equal, and tell nothing else."""
    parts = _loaded()
    encrypted: bytes = parts.Cipher(parts.AES256(secret), parts.ECB()).encryptor().update(blocks)
    return encrypted


def derive(secret: bytes, context: bytes, count: int) -> bytes:
    """Derive so many bytes from a secret, for one purpose (HKDF-SHA-256)."""
    parts = _loaded()
    derived: bytes = parts.HKDF(parts.SHA256(), count, salt=None, info=context).derive(secret)
    return derived


def encrypt(agreed: bytes, context: bytes, text: bytes) -> bytes:
    """Encrypt one text so that the other holder of `agreed` alone can read it, and nobody can change it (AES-256-GCM).

    The context says what the text is, from whom and to whom: it must never be the same for two texts. Adds 16 bytes.
    """
    encrypted: bytes = _loaded().AESGCM(derive(agreed, context, _AES_KEY)).encrypt(_NONCE, text, context)
    return encrypted


def decrypt(agreed: bytes, context: bytes, encrypted: bytes) -> bytes | None:
    """Read what `encrypt` wrote; None where it was changed, or made by somebody else or for something else."""
    from cryptography.exceptions import InvalidTag

    try:
        text: bytes = _loaded().AESGCM(derive(agreed, context, _AES_KEY)).decrypt(_NONCE, encrypted, context)
    except (InvalidTag, ValueError):
        return None
    return text
