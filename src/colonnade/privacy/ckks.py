"""Inner products of columns under CKKS, with numbers in the coefficients of polynomials instead of slots.

**Keys.** All is modulo z^4096 + 1 and modulo q, just below 2^100 (128-bit security allows 106 bits at this degree). The
key s has coefficients -1, 0 and 1, errors e a deviation of 3.2. Polynomials a_0, a_1, ... are derived from what the
parties agreed on before (`public`): nobody chooses them. The key's holder sends b_0 = e - a_0 s, with which others hide
what they send back, and its rows, r = 4096 // c a block: b_k = e - a_k s + x_k, where coefficient i + r j of x_k is
row i of its column j, times 2^72. Whoever has other columns takes one of them as y_k, with row i times 2^26 at z^-i, and
a polynomial u as the key is, and computes

    first = Σ_k b_k y_k + b_0 u + e,    second = Σ_k a_k y_k + a_0 u + e .

Coefficient r j of first + second s is the inner product with column j, times 2^98, up to an error. It sends `second`
back, and of `first` only these c coefficients, scaled to 32 bits and masked by 32 uniform bits. The key's holder adds
those of `second` s, scaled likewise. It tells the server the sums, the other the masks, both modulo 2^32.

**A hostile holder of the key** may send any b. Whatever they are, the masked numbers are uniform, and `second` is: a_0 is
out of its hands, so that a_0 u + e is a sample of ring learning with errors that hides what it is added to. There is no
largest product that a mask has to exceed, and nothing to be proven of what it sent.

**Curious parties that share all they know with the server** see an inner product and its error to 32 bits. The
error has a deviation of 2^28 at most, columns having norm 1, and one step of the 32 bits is 2^68: but for one number in
2^40, what they see is the same without the error, which would tell of the key or of the others' rows. An inner product
is told in steps of 2^-30. Numbers y are rounded up or down by chance, so that errors are independent whatever the
columns are, and add up to a deviation of 2^-27.

**A hostile party that shares all it knows with the server** is not held: with b of its choice it reads 32 c bits of
each column, as many rows as it has columns; with a `second` of its choice the key, and so the rows.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats
from colonnade.kernels.masks import Words, pack, unpack
from colonnade.kernels.polynomials import (
    DEGREE,
    MODULUS,
    PRIMES,
    Residues,
    from_integers,
    reduced,
    times,
    to_coefficients,
    to_integers,
    to_values,
)
from colonnade.privacy.primitives import mask_words

# Of rows: whole numbers of 46 bits, times 2^26.
ROW_BITS, SHIFT_BITS, COLUMN_BITS = 46, 26, 26
WORD_BITS = 32
# What a step of a told number is of an inner product, and how exact that is: the deviation of its error at most.
STEP = MODULUS / 2.0 ** (ROW_BITS + SHIFT_BITS + COLUMN_BITS + WORD_BITS)
ERROR = 2.0**-27
_RESIDUE_BYTES, _WORD_BYTES = 7, WORD_BITS // 8
_POLYNOMIAL_BYTES = len(PRIMES) * DEGREE * _RESIDUE_BYTES
# An error is the number of ones among so many bits, less that among as many others.
_ERROR_BITS = 21


def rows_a_block(n_columns: int) -> int:
    """Say how many rows of so many columns, 4096 at most, one polynomial holds."""
    return DEGREE // n_columns


def n_ciphertexts(n_rows: int, n_columns: int) -> int:
    """Say how many polynomials a party sends of its columns: one to hide by, and its rows."""
    return 0 if n_columns == 0 else 1 - (-n_rows // rows_a_block(n_columns))


def ciphertext_bytes(n_words: int = 0) -> int:
    """Say how long a ciphertext is: that of rows, or that of products with so many columns."""
    return _POLYNOMIAL_BYTES + n_words * _WORD_BYTES


def is_ciphertext(data: bytes, n_words: int = 0) -> bool:
    """Tell whether bytes are of the one length, and residues, that a ciphertext has."""
    return len(data) == ciphertext_bytes(n_words) and bool((_unpacked(data) < _primes(2)).all())


def new_key(seed: bytes) -> Residues:
    """Make a secret key of a secret seed: its values."""
    return _small(_ternary(seed, b"key", DEGREE))


def encrypt_matrix(key: Residues, public: bytes, numbers: Floats, seed: bytes) -> tuple[bytes, ...]:
    """Encrypt numbers from -1 to 1, shape (m, c), by a fresh secret seed; `public` is never the same for two keys."""
    n_columns = numbers.shape[1]
    blocks = _blocks(numbers, n_columns)
    texts = np.zeros((1 + len(blocks), DEGREE), np.int64)
    for text, block in zip(texts[1:], blocks, strict=True):
        text[: block.size] = np.rint(np.ldexp(block.T, ROW_BITS)).reshape(-1)
    shifted = times(from_integers(texts), np.full((len(PRIMES), 1, 1), 1 << SHIFT_BITS))
    values = to_values(reduced(shifted + from_integers(_errors(seed, b"rows", texts.shape))))
    return tuple(
        _packed(values[:, place] - times(key, _public(public, place))) for place in range(len(texts) if n_columns else 0)
    )


def masked_products(
    encrypted: Sequence[bytes], public: bytes, n_columns: int, numbers: Floats, seed: bytes
) -> tuple[tuple[bytes, ...], Words]:
    """Multiply another's encrypted columns by one's own of norm 1, shape (m, p), and mask the products.

    Gives p ciphertexts, and the masks, shape (c, p).
    """
    n_own = numbers.shape[1]
    rounded = np.floor(np.ldexp(numbers, COLUMN_BITS) + _fractions(seed, numbers.shape)).astype(np.int64)
    factors = [_ternary(seed, b"hiding", n_own, DEGREE)]
    factors += [_reversed(block) for block in _blocks(rounded, n_columns)]
    first = to_values(from_integers(_errors(seed, b"first", (n_own, DEGREE))))
    second = to_values(from_integers(_errors(seed, b"second", (n_own, DEGREE))))
    for place, (data, factor) in enumerate(zip(encrypted, factors, strict=True)):
        values = _small(factor)
        first = reduced(first + times(values, _unpacked(data)[:, None]))
        second = reduced(second + times(values, _public(public, place)[:, None]))
    masks = mask_words(seed, b"masks", n_own * n_columns).reshape(n_own, n_columns) % (1 << WORD_BITS)
    words = (_words(first, n_columns) + masks) % (1 << WORD_BITS)
    packed = (_packed(second[:, own]) + pack(words[own], _WORD_BYTES) for own in range(n_own))
    return tuple(packed), masks.T


def decrypt_products(key: Residues, encrypted: Sequence[bytes], n_columns: int) -> Words:
    """Decrypt what `masked_products` gave: inner products in steps, plus their masks, modulo 2^32; shape (c, p)."""
    found = np.empty((len(encrypted), n_columns), np.uint64)
    for line, data in zip(found, encrypted, strict=True):
        line[:] = unpack(data[_POLYNOMIAL_BYTES:], _WORD_BYTES)
        line += _words(times(_unpacked(data), key), n_columns)
    return found.T % (1 << WORD_BITS)


def unmasked(sums: Floats, masks: Floats) -> Floats:
    """Take masks from sums, both whole numbers of 32 bits: the inner products."""
    steps = (sums - masks).astype(np.int64).astype(np.int32)  # modulo 2^32
    return STEP * steps


def _blocks(numbers: npt.NDArray[Any], n_columns: int) -> list[npt.NDArray[Any]]:
    """Cut rows into those of one polynomial each, the last filled up by zeros."""
    n_rows = rows_a_block(n_columns) if n_columns else 1
    n_blocks = -(-len(numbers) // n_rows) if n_columns else 0
    padded = np.zeros((n_blocks * n_rows, numbers.shape[1]), numbers.dtype)
    padded[: len(numbers)] = numbers
    return [padded[start : start + n_rows] for start in range(0, len(padded), n_rows)]


def _reversed(block: Residues) -> Residues:
    """Put row i of each column at z^-i, which is -z^(4096 - i)."""
    found = np.zeros((block.shape[1], DEGREE), np.int64)
    found[:, 0] = block[0]
    found[:, DEGREE - len(block) + 1 :] = -block[:0:-1].T
    return found


def _words(values: Residues, n_columns: int) -> Words:
    """Scale every coefficient that holds an inner product from 0..q-1 to 32 bits, to the nearest."""
    places = rows_a_block(n_columns) * np.arange(n_columns)
    wholes = to_integers(to_coefficients(values)[..., places])
    return (((wholes << WORD_BITS) + MODULUS // 2) // MODULUS % (1 << WORD_BITS)).astype(np.uint64)


def _small(integers: Residues) -> Residues:
    return reduced(to_values(from_integers(integers)))


def _public(seed: bytes, place: int) -> Residues:
    """Derive the values of a_k, uniform below each prime to within 2^-78: from 128 bits each."""
    words = mask_words(seed, b"ckks polynomial %d" % place, 2 * len(PRIMES) * DEGREE).reshape(2, len(PRIMES), DEGREE)
    high, low = (words % _primes(2).astype(np.uint64)).astype(np.int64)
    return reduced(times(high, np.array([[(1 << 64) % p] for p in PRIMES])) + low)


def _ternary(seed: bytes, what: bytes, *shape: int) -> Residues:
    words = mask_words(seed, b"ckks ternary " + what, int(np.prod(shape)))
    return (words % 3).astype(np.int64).reshape(shape) - 1


def _errors(seed: bytes, what: bytes, shape: tuple[int, ...]) -> Residues:
    words = mask_words(seed, b"ckks errors " + what, int(np.prod(shape)))
    ones = [np.bitwise_count(words >> shift & (1 << _ERROR_BITS) - 1) for shift in (0, _ERROR_BITS)]
    return (ones[0].astype(np.int64) - ones[1]).reshape(shape)


def _fractions(seed: bytes, shape: tuple[int, ...]) -> Floats:
    """Draw numbers from 0 to 1."""
    words = mask_words(seed, b"ckks rounding", int(np.prod(shape)))
    return np.ldexp((words >> 11).astype(np.float64), -53).reshape(shape)


def _packed(values: Residues) -> bytes:
    return pack(reduced(values).reshape(-1).astype(np.uint64), _RESIDUE_BYTES)


def _unpacked(data: bytes) -> Residues:
    """Read the values of a polynomial, which come first."""
    return unpack(data[:_POLYNOMIAL_BYTES], _RESIDUE_BYTES).astype(np.int64).reshape(len(PRIMES), DEGREE)


def _primes(ndim: int) -> Residues:
    return np.array(PRIMES).reshape(-1, *[1] * (ndim - 1))
