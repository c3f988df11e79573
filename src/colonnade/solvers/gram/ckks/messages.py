"""What the server and the parties tell each other in Gram mode by homomorphic encryption, and what they hash of it."""

from typing import Annotated, ClassVar

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.messages import Message, Reveals
from colonnade.privacy.statements import CircleKeys
from colonnade.signing import digest

PURPOSE = "gram by ckks"
Ciphertexts = tuple[bytes, ...]


class EncryptedRows(Message, frozen=True):
    """Moments of the party's columns, and its rows in an orthonormal basis, encrypted and signed.

    Of c columns the factor is c x c. The first ciphertext is one of nothing, by which others hide what they send back.
    The party whose name comes last encrypts nothing. There is no signature where the key is lost.
    """

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    mean: Annotated[Floats, Reveals.MOMENTS]
    factor: Annotated[Floats, Reveals.MOMENTS]
    ciphertexts: Annotated[Ciphertexts, Reveals.NOTHING]
    signature: Annotated[bytes, Reveals.NOTHING]


class AskEncryptedRows(Message, frozen=True):
    """The rows' weights (none: all alike), every party's number of columns, and all parties' keys, by name."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = EncryptedRows

    weights: Annotated[Floats | None, Reveals.SCORE_SUMS]
    n_columns: Annotated[tuple[int, ...], Reveals.SCHEMA]
    keys: Annotated[CircleKeys, Reveals.NOTHING]


class EncryptedProducts(Message, frozen=True):
    """The masked products with each earlier party's rows, encrypted and signed, and the masks.

    There is a mask, a whole number of 32 bits, for each of their columns and each of the party's. There is no
    signature where the key is lost.
    """

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    products: Annotated[tuple[Ciphertexts, ...], Reveals.NOTHING]
    masks: Annotated[Floats, Reveals.MOMENTS]
    signatures: Annotated[tuple[bytes, ...], Reveals.NOTHING]
    has_key: Annotated[bool, Reveals.NOTHING]


class AskEncryptedProducts(Message, frozen=True):
    """The encrypted rows of all earlier parties, with their signatures."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = EncryptedProducts

    rows: Annotated[tuple[Ciphertexts, ...], Reveals.NOTHING]
    signatures: Annotated[tuple[bytes, ...], Reveals.NOTHING]


class DecryptedProducts(Message, frozen=True):
    """The masked products with each later party, modulo 2^32; a signature on all that the party sent.

    There is no signature where the key is lost.
    """

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    sums: Annotated[Floats, Reveals.MOMENTS]
    transcript: Annotated[bytes, Reveals.NOTHING]
    signature: Annotated[bytes, Reveals.NOTHING]


class AskDecryptedProducts(Message, frozen=True):
    """The masked products of all later parties with your rows, with their signatures."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = DecryptedProducts

    products: Annotated[tuple[Ciphertexts, ...], Reveals.NOTHING]
    signatures: Annotated[tuple[bytes, ...], Reveals.NOTHING]


def sent_digest(*told: Floats) -> bytes:
    """Hash all numbers that a party told; its ciphertexts are signed apart."""
    return digest(*(np.ascontiguousarray(each, "<f8").tobytes() for each in told))
