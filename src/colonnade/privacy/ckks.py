"""Inner products of columns under CKKS, with numbers in the coefficients of polynomials instead of slots.

**The scheme.** All is modulo z^4096 + 1 and modulo q, just below 2^100: for 128-bit security at this degree the
Homomorphic Encryption Standard allows 109 bits, and 101 against quantum computers. The key s has coefficients -1, 0 and
1 alike, errors e are centred binomial with a deviation of 3.2. Polynomials a_0, a_1,
... are derived from what all parties saw before (`public`): nobody chooses them. The key's holder sends b_0 = e - a_0
s, by which others hide what they send back, and of its c columns r = 4096 // c rows a block, b_k = e - a_k s + x_k:
coefficient r j + i of x_k is row i of column j, times 2^72. Another party puts row i of a column of its own, times
2^26, at z^-i of y_k, draws u as a key is drawn, and computes

    first = Σ_k b_k y_k + b_0 u + e,    second = Σ_k a_k y_k + a_0 u + e .

Coefficient r j of first + second s is the inner product with column j, times 2^98, up to an error. It sends `second`
back, and of `first` these c coefficients only, scaled to 32 bits and under masks of 32 uniform bits. The key's holder
adds those of `second` s, scaled likewise. It tells the server the sums, the other party the masks, modulo 2^32 both.

**A hostile holder of the key** may send any b_k. Whatever they are, the masked numbers are uniform, and `second` cannot
be told from uniform: a_0 is not of its choice, and a_0 u + e is ring learning with errors, whatever it is added to. So
there is no largest product that a mask must exceed, and nothing to prove of what was sent.

**A curious party that shares all it knows with the server** sees the scaled sum of an inner product and its error,
which tells of the other's rows or key. Columns have norm 1, so the error has a deviation of 2^28 at most; one step of
the 32 bits is 2^68. But for one number in 2^40 they see the same as without the error.

**A hostile party that does so** is not held. With b_k of its choice it reads 32 bits a number instead of inner
products: as many of the other's rows as it has columns. With a `second` of its choice it reads the key, and the rows.

An inner product comes out in steps of 2^-30. Whether a number of y_k is rounded up or down is drawn, so that errors are
independent of each other whatever the columns are: they add up to a deviation of 2^-27 at most.
"""

from collections.abc import Sequence

import numpy as np

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

# Rows are whole numbers of 46 bits, shifted by 26.
ROW_BITS, SHIFT_BITS, COLUMN_BITS, WORD_BITS = 46, 26, 26, 32
STEP = MODULUS / 2.0 ** (ROW_BITS + SHIFT_BITS + COLUMN_BITS + WORD_BITS)
# The deviation of an inner product's error at most.
ERROR = 2.0**-27
# An error of encryption is the number of ones among so many bits, less that among as many others.
_ERROR_BITS = 21
_RESIDUE_BYTES, _WORD_BYTES = 7, WORD_BITS // 8
_POLYNOMIAL_BYTES = len(PRIMES) * DEGREE * _RESIDUE_BYTES
_PRIMES = np.array(PRIMES)[:, None]


def rows_a_block(n_columns: int) -> int:
    """Say how many rows of so many columns, 4096 at most, one polynomial holds."""
    return DEGREE // n_columns


def n_ciphertexts(n_rows: int, n_columns: int) -> int:
    """Say how many polynomials a party sends of its columns: one to hide by, and its rows."""
    return 0 if n_columns == 0 else 1 + -(-n_rows // rows_a_block(n_columns))


def ciphertext_bytes(n_words: int = 0) -> int:
    """Say how long a ciphertext is: that of rows, or that of products with so many columns."""
    return _POLYNOMIAL_BYTES + n_words * _WORD_BYTES


def is_ciphertext(data: bytes, n_words: int = 0) -> bool:
    """Tell whether bytes are of the one length, and residues, that a ciphertext has."""
    return len(data) == ciphertext_bytes(n_words) and bool((_unpacked(data) < _PRIMES).all())


def new_key(seed: bytes) -> Residues:
    """Make a secret key of a secret seed: its values."""
    return _values(_ternary(seed, b"key", (DEGREE,)))


def encrypt_matrix(key: Residues, public: bytes, numbers: Floats, seed: bytes) -> tuple[bytes, ...]:
    """Encrypt numbers from -1 to 1, shape (m, c), by a secret seed; neither it nor `public` is used again."""
    n_columns = numbers.shape[1]
    if n_columns == 0:
        return ()
    blocks = _blocks(np.rint(np.ldexp(numbers, ROW_BITS)).astype(np.int64), n_columns)
    texts = np.zeros((1 + len(blocks), DEGREE), np.int64)
    for text, block in zip(texts[1:], blocks, strict=True):
        text[: block.size] = block.T.reshape(-1)
    shifted = times(from_integers(texts), np.full((len(PRIMES), 1, 1), 1 << SHIFT_BITS))
    values = to_values(reduced(shifted + from_integers(_errors(seed, b"rows", texts.shape))))
    return tuple(_packed(values[:, k] - times(key, _public(public, k))) for k in range(len(texts)))


def masked_products(
    encrypted: Sequence[bytes], public: bytes, n_columns: int, numbers: Floats, seed: bytes
) -> tuple[tuple[bytes, ...], Words]:
    """Multiply another's encrypted columns by one's own of norm 1, shape (m, p), and mask the products.

    Gives p ciphertexts, and the masks, shape (c, p).
    """
    n_own = numbers.shape[1]
    if n_columns == 0:
        return (), np.empty((0, n_own), np.uint64)
    rounded = np.floor(np.ldexp(numbers, COLUMN_BITS) + _fractions(seed, numbers.shape)).astype(np.int64)
    factors = [_ternary(seed, b"u", (n_own, DEGREE)), *(_reversed(block) for block in _blocks(rounded, n_columns))]
    first, second = (_values(_errors(seed, what, (n_own, DEGREE))) for what in (b"first", b"second"))
    for k, (data, factor) in enumerate(zip(encrypted, factors, strict=True)):
        values = _values(factor)
        first = reduced(first + times(values, _unpacked(data)[:, None]))
        second = reduced(second + times(values, _public(public, k)[:, None]))
    masks = mask_words(seed, b"ckks masks", n_own * n_columns).reshape(n_own, n_columns) % (1 << WORD_BITS)
    words = (_words(first, n_columns) + masks) % (1 << WORD_BITS)
    return tuple(_packed(second[:, j]) + pack(words[j], _WORD_BYTES) for j in range(n_own)), masks.T


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
    return STEP * steps.astype(np.float64)


def _blocks(integers: Residues, n_columns: int) -> list[Residues]:
    """Cut rows into those of one polynomial each, the last filled up by zeros."""
    n_rows = rows_a_block(n_columns)
    padded = np.pad(integers, [(0, -len(integers) % n_rows), (0, 0)])
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


def _values(integers: Residues) -> Residues:
    return reduced(to_values(from_integers(integers)))


def _public(seed: bytes, k: int) -> Residues:
    """Derive the values of a_k, uniform below each prime to within 2^-78: from 128 bits each."""
    words = mask_words(seed, b"ckks polynomial %d" % k, 2 * len(PRIMES) * DEGREE).reshape(2, len(PRIMES), DEGREE)
    high, low = (words % _PRIMES.astype(np.uint64)).astype(np.int64)
    return reduced(times(high, np.array([[(1 << 64) % p] for p in PRIMES])) + low)


def _ternary(seed: bytes, what: bytes, shape: tuple[int, ...]) -> Residues:
    words = mask_words(seed, b"ckks ternary " + what, int(np.prod(shape)))
    return (words % 3).astype(np.int64).reshape(shape) - 1


def _errors(seed: bytes, what: bytes, shape: tuple[int, ...]) -> Residues:
    words = mask_words(seed, b"ckks errors " + what, int(np.prod(shape)))
    ones = [np.bitwise_count(words >> shift & (1 << _ERROR_BITS) - 1) for shift in (0, _ERROR_BITS)]
    errors: Residues = np.subtract(*ones, dtype=np.int64)
    return errors.reshape(shape)


def _fractions(seed: bytes, shape: tuple[int, ...]) -> Floats:
    """Draw numbers from 0 to 1."""
    words = mask_words(seed, b"ckks rounding", int(np.prod(shape)))
    return np.ldexp((words >> 11).astype(np.float64), -53).reshape(shape)


def _packed(values: Residues) -> bytes:
    return pack(reduced(values).reshape(-1).astype(np.uint64), _RESIDUE_BYTES)


def _unpacked(data: bytes) -> Residues:
    """Read the values of a polynomial, which come first."""
    return unpack(data[:_POLYNOMIAL_BYTES], _RESIDUE_BYTES).astype(np.int64).reshape(len(PRIMES), DEGREE)
