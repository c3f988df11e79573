"""Sums under masks: fixed point in the narrowest ring of whole bytes, and masks that cancel when all are added.

Party j sends y_j = x_j + Σ_{l > j} r_jl − Σ_{l < j} r_lj modulo 2^b, where r_jl is a stream of uniform words that
j and l alone can compute. Every r is added once and subtracted once, so Σ_j y_j = Σ_j x_j, while any T − 1 of the y_j
are uniform and independent to whoever knows none of the streams.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats

Words = npt.NDArray[np.uint64]

# How far a sum may be from the exact one, as a part of the smallest number that is added.
TOLERANCE = 1e-6
WORD_BYTES = 8
# 2^-400 is next to the smallest number a message may carry.
MAX_EXPONENT = 400
_LITTLE_ENDIAN = np.dtype("<u8")


@dataclass(frozen=True)
class Ring:
    """Whole numbers modulo 2^(8 width), of 1 to 8 bytes, that stand for multiples of 2^-exponent."""

    width: int
    exponent: int

    @property
    def largest(self) -> float:
        """The largest sum that does not wrap round."""
        return math.ldexp((1 << 8 * self.width) - 1, -self.exponent)


def narrowest_ring(smallest: float, largest: float, n_terms: int) -> Ring | None:
    """Find the ring of fewest bytes in which sums of positive numbers, within bounds, are exact enough and never wrap.

    Rounded to its step, T numbers add up to within TOLERANCE x smallest of their exact sum; None where that takes more
    than 8 bytes.
    """
    # Each term is rounded by half a step at most.
    exponent = math.ceil(-math.log2(2 * TOLERANCE * smallest / n_terms))
    most = math.ceil(math.ldexp(n_terms * largest * (1 + TOLERANCE), exponent)) + n_terms
    width = -(-most.bit_length() // 8)
    return Ring(width, exponent) if width <= WORD_BYTES else None


def magnitude_of(numbers: Floats) -> int:
    """Find the smallest e, from -400 to 400, with every |number| below 2^e: all that is told of them beforehand."""
    largest = float(np.abs(numbers).max(initial=0.0))
    return min(max(math.frexp(largest)[1] if largest else -MAX_EXPONENT, -MAX_EXPONENT), MAX_EXPONENT)


def ring_of_magnitude(magnitude: int, n_terms: int, width: int) -> Ring:
    """Find the finest ring of so many bytes in which sums of T numbers below 2^magnitude never wrap.

    Its step is T 2^magnitude / 2^(8 width), up to a factor of 4.
    """
    return Ring(width, 8 * width - 1 - magnitude - math.ceil(math.log2(n_terms)))


def to_words(numbers: Floats, ring: Ring) -> Words:
    """Round numbers, from 0 to ``ring.largest``, to steps of the ring, and count these."""
    return np.rint(np.ldexp(numbers, ring.exponent)).astype(np.uint64)


def to_numbers(words: Words, ring: Ring) -> Floats:
    """Turn a sum of `to_words`, and of masks that cancel, back into numbers; words are taken modulo the ring's size."""
    return np.ldexp(_reduced(words, ring.width).astype(np.float64), -ring.exponent)


def masked(words: Words, added: Iterable[Words], subtracted: Iterable[Words], width: int) -> Words:
    """Hide words x_j under masks, r_jl added for l > j and r_lj subtracted for l < j: y_j, below 2^(8 width)."""
    hidden = words.copy()  # uint64 wraps modulo 2^64, of which the ring's size is a divisor
    for mask in added:
        hidden += mask
    for mask in subtracted:
        hidden -= mask
    return _reduced(hidden, width)


def pack(words: Words, width: int) -> bytes:
    """Write the low bytes of each word, little-endian: no more than the ring needs."""
    octets = words.astype(_LITTLE_ENDIAN).view(np.uint8).reshape(-1, WORD_BYTES)
    return octets[:, :width].tobytes()


def unpack(packed: bytes, width: int) -> Words:
    """Read what `pack` wrote; the length is a multiple of the width."""
    octets = np.zeros((len(packed) // width, WORD_BYTES), np.uint8)
    octets[:, :width] = np.frombuffer(packed, np.uint8).reshape(-1, width)
    return octets.view(_LITTLE_ENDIAN)[:, 0].astype(np.uint64)


def _reduced(words: Words, width: int) -> Words:
    return words & np.uint64((1 << 8 * width) - 1)
