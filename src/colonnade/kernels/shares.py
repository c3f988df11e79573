"""Products of matrices that are shared: fixed point modulo 2^64, in two limbs.

Party j holds Q_j, numbers from -1 to 1 in columns of norm 1 at most. It chooses E_j, uniform words that the server does
not know, and gives the server U_j = Q_j - E_j, which is then uniform to it. The server's part of the triple is U_j, U_l
and U_j'U_l; the masked matrices E_j and E_l are known to both parties. Then

    Q_j'Q_l = U_j'U_l + Q_j'E_l + E_j'U_l ,

of which the server knows the first term, party j the second, party l the third. Sums of whole numbers are exact, so
the result does not depend on E.

A number is high 2^-31 + low 2^-51 with whole high and low, and a product is high high' 2^-62 + (high low' + low high')
2^-82. What low low' would add is left out: 2^-64 at most for each row, and so little only where columns are nearly
alike. What rounding to steps of 2^-51 takes off a number is as small, but of a column with few distinct values it is
the same in every row, and adds up. So products of unit columns come out to a float64's last digits, and of many rows
nearly. Of more than 2^22 rows low limbs have fewer bits, so that sums fit 64 bits.
"""

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.masks import WORD_BYTES, Words

HIGH_BITS, LOW_BITS = 31, 20
LIMBS = 2
_LITTLE_ENDIAN = np.dtype("<u8")


def low_bits(n_rows: int) -> int:
    """Say how many bits low limbs have.

    Columns have norm 1, so that no inner product of high limbs exceeds 2^62, nor one of high and low ones, of which
    there are two, 2^(31 + bits) sqrt(m).
    """
    return min(LOW_BITS, HIGH_BITS - ((n_rows - 1).bit_length() + 1) // 2)


def rounding(n_rows: int) -> float:
    """Say by how much a product of columns of norm 1 may be off, a float64's rounding apart.

    Half a step in each row of either column: all of one sign, these are sqrt(m) steps. And low limbs' own products.
    """
    of_steps = np.ldexp(np.sqrt(n_rows), -HIGH_BITS - low_bits(n_rows))
    return float(of_steps + np.ldexp(n_rows, -2 * HIGH_BITS - 2))


def to_limbs(numbers: Floats, bits: int = LOW_BITS) -> Words:
    """Write numbers from -1 to 1, shape (m, c), in steps of 2^-(31 + bits): high limbs and low ones, shape (c, 2, m).

    Negative limbs count from 2^64 downwards.
    """
    scaled = np.ldexp(np.ascontiguousarray(numbers.T), HIGH_BITS)
    high = np.rint(scaled)
    return np.stack([high, np.rint(np.ldexp(scaled - high, bits))], axis=1).astype(np.int64).view(np.uint64)


def limb_products(first: Words, second: Words) -> Words:
    """Compute first' second limb by limb, modulo 2^64: uint64 wraps, which is what is meant.

    Of words (p, 2, m) and (q, 2, m), numbers in limbs or shares of them, these are the products of high limbs, and of
    high and low ones, shape (2, p, q).
    """
    if len(first) < len(second):
        return limb_products(second, first).swapaxes(1, 2)
    # No BLAS multiplies whole numbers; along rows that lie side by side this is several times as fast as `@`.
    products = np.empty((LIMBS, len(first), len(second)), np.uint64)
    np.einsum("im,jm->ij", first[:, 0], second[:, 0], out=products[0])
    np.einsum("ikm,jkm->ij", first, np.ascontiguousarray(second[:, ::-1]), out=products[1])
    return products


def from_limbs(words: Words, bits: int = LOW_BITS) -> Floats:
    """Turn sums of `limb_products`, (..., 2, p, q), back into numbers: inner products of columns, shape (..., p, q).

    The words are of numbers, not of shares.
    """
    limbs = words.view(np.int64).astype(np.float64)
    return np.ldexp(limbs[..., 0, :, :], -2 * HIGH_BITS) + np.ldexp(limbs[..., 1, :, :], -2 * HIGH_BITS - bits)


def pack_words(words: Words) -> bytes:
    """Write words of any shape, little-endian."""
    return words.astype(_LITTLE_ENDIAN, copy=False).tobytes()


def unpack_words(packed: bytes, *shape: int) -> Words:
    """Read what `pack_words` wrote, in its place; the length was checked."""
    return np.frombuffer(packed, _LITTLE_ENDIAN).astype(np.uint64, copy=False).reshape(shape)


def packed_size(*shape: int) -> int:
    """Count the bytes of so many words."""
    return WORD_BYTES * int(np.prod(shape, dtype=np.int64))
