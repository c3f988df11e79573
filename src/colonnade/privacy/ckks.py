"""Products of matrices under CKKS, by TenSEAL, which is loaded only when one is needed (extra ``he``).

A matrix of m rows and c columns is packed row by row, P rows a ciphertext: slot p c + a of the k-th holds row k P + p,
column a. Whoever holds another matrix multiplies each ciphertext by one of its columns, repeated c times, and adds the
ciphertexts: slot p c + a of the sum then holds a part of the inner product of two columns, and the parts add up over p.
No slot is moved, so no further keys are needed. Every part is masked before it goes back to the key's holder.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from colonnade.errors import RemoteProtocolError, UnsupportedError
from colonnade.kernels.arrays import Floats

# 128-bit security at degree 4096 allows 109 bits of primes, of which the last is SEAL's own. A product has scale
# SCALE^2; it is divided by the second prime, not by SCALE, which leaves more digits to the result in fewer bytes.
DEGREE, PRIMES, SCALE = 4096, [50, 24, 35], 2.0**31
SLOTS = DEGREE // 2
# Masks are uniform within this, and parts of inner products of unit columns are at most 1.
MASK = 2.0**10
# To what a decrypted number is rounded before it is told: about twice its noise, which depends on the key.
STEP = 2.0**-22
MAX_CIPHERTEXT_BYTES = 132_000


def check_ckks_available() -> None:
    """Require the package; it is an extra."""
    if find_spec("tenseal") is None:
        raise UnsupportedError("CKKS needs the package tenseal. Install it: pip install 'colonnade[he]'.")


def new_context() -> Any:
    """Make a secret key, and what belongs to it; SEAL draws it from the operating system's entropy."""
    import tenseal

    context = tenseal.context(
        tenseal.SCHEME_TYPE.CKKS, DEGREE, -1, PRIMES, encryption_type=tenseal.ENCRYPTION_TYPE.SYMMETRIC
    )
    context.global_scale = SCALE
    context.auto_relin = False
    return context


def rows_a_ciphertext(n_columns: int) -> int:
    """Say how many rows of so many columns one ciphertext holds."""
    return SLOTS // n_columns


def n_ciphertexts(n_rows: int, n_columns: int) -> int:
    """Say how many ciphertexts a matrix takes."""
    return 0 if n_columns == 0 else -(-n_rows // rows_a_ciphertext(n_columns))


def encrypt_matrix(context: Any, numbers: Floats) -> tuple[bytes, ...]:
    """Encrypt a matrix of numbers from -1 to 1, several rows a ciphertext; the context has a secret key."""
    import tenseal

    return tuple(
        tenseal.ckks_vector(context, block.reshape(-1).tolist()).serialize()
        for block in _blocks(numbers, numbers.shape[1])
    )


def masked_products(encrypted: Sequence[bytes], n_columns: int, numbers: Floats, masks: Floats) -> tuple[bytes, ...]:
    """Multiply an encrypted matrix by one's own, without a key, and mask the parts of the result.

    The encrypted one has m rows and c columns, `numbers` shape (m, q), `masks` shape (q, P c). Gives q ciphertexts.
    """
    context, blocks = new_context(), _blocks(numbers, n_columns)
    found = []
    with _foreign_bytes():
        loaded = [_load(context, data, n_columns) for data in encrypted]
        for column, mask in enumerate(masks):
            total = None
            for vector, block in zip(loaded, blocks, strict=True):
                part = vector * np.repeat(block[:, column], n_columns).tolist()
                total = part if total is None else total.add_(part)
            found.append((total + (_lift() * mask).tolist()).serialize())
    return tuple(found)


def decrypt_products(context: Any, encrypted: Sequence[bytes], n_columns: int) -> Floats:
    """Decrypt what `masked_products` gave, add the parts up, and round the sums to multiples of 2^-22.

    Gives the inner products plus the sums of their masks, shape (c, q).
    """
    with _foreign_bytes():
        parts = [np.array(_load(context, data, n_columns).decrypt()).reshape(-1, n_columns) for data in encrypted]
    sums = [part.sum(axis=0) / _lift() for part in parts]
    rounded: Floats = STEP * np.rint(np.array(sums).reshape(len(parts), n_columns).T / STEP)
    return rounded


def _blocks(numbers: Floats, n_columns: int) -> list[Floats]:
    """Cut rows into those of one ciphertext each, the last filled up by zeros."""
    n_rows = rows_a_ciphertext(n_columns) if n_columns else 1
    padded = np.zeros((n_ciphertexts(len(numbers), n_columns) * n_rows, numbers.shape[1]))
    padded[: len(numbers)] = numbers
    return [padded[start : start + n_rows] for start in range(0, len(padded), n_rows)]


def _load(context: Any, data: bytes, n_columns: int) -> Any:
    """Read a ciphertext that another party signed."""
    import tenseal

    if len(data) > MAX_CIPHERTEXT_BYTES:
        raise ValueError(f"{len(data):,} bytes are more than a ciphertext has")
    vector = tenseal.ckks_vector_from(context, data)
    if vector.size() != rows_a_ciphertext(n_columns) * n_columns:
        raise ValueError(f"a ciphertext of {vector.size()} slots")
    return vector


@contextmanager
def _foreign_bytes() -> Iterator[None]:
    """Turn what TenSEAL says of bytes that are none of its own, or of other parameters, into an error with a name."""
    try:
        yield
    except (ValueError, RuntimeError, IndexError, TypeError, MemoryError) as error:
        raise RemoteProtocolError(
            f"What was relayed is not a ciphertext of this exchange: {error}. Check that all run the same version."
        ) from error


@cache
def _lift() -> float:
    """Say by how much TenSEAL overstates a product: it takes the second prime for SCALE."""
    from tenseal import sealapi

    return SCALE / float(sealapi.CoeffModulus.Create(DEGREE, PRIMES)[1].value())
