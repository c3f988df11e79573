"""Numbers in a fixed number of bits each, by one step for all of them that is a power of two's part.

With bits b and 2^e the power of two just above the largest magnitude, the step is 2^e / (2^(b-1) - 2), and every number
is off by half of it at most: by less than the largest magnitude over 2^(b-1) - 2. With a dither that both ends share
the error is uniform over a step, whatever the number, so that its mean is zero and its variance step^2 / 12.
"""

import math

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.bits import Buffer, pack_bits, read_varints, unpack_bits, varint
from colonnade.kernels.quantise import draw_dither
from colonnade.options import whole_number

FEWEST_BITS, MOST_BITS = 4, 32
# Of the power of two, from 1e-100 to 1e100: exponents travel as differences from the least.
LEAST_EXPONENT, LARGEST_EXPONENT = -333, 334


def checked_bits(bits: int | None) -> int | None:
    """Require a number of bits that numbers can be rounded to, or none."""
    if bits is None:
        return None
    return whole_number("bits", bits, least=FEWEST_BITS, most=MOST_BITS, example="Pass for instance bits=16.")


def encode_fixed(values: Floats, bits: int, rng: np.random.Generator | None = None) -> bytes:
    """Write finite numbers, shape (n,), with 4 to 32 bits each.

    The generator draws the dither: the receiver's must be in the same state. Without one, numbers are rounded to the
    nearest. The exponent of the step comes first, as a varint, then the codes; a zero alone if all numbers are zero.
    """
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0:
        return varint(0)
    if not largest < math.ldexp(1.0, LARGEST_EXPONENT):  # nor NaN
        raise InputError("Numbers beyond the range of float64, or not finite, cannot be rounded. Rescale the columns.")
    exponent = max(math.frexp(largest)[1], LEAST_EXPONENT)
    scaled = values / _step(exponent, bits)
    if rng is not None:
        scaled += draw_dither(scaled.shape, rng)
    codes = np.rint(scaled, out=scaled).astype(np.int64) + _middle(bits)
    return varint(exponent - LEAST_EXPONENT + 1) + pack_bits(codes.view(np.uint64), bits)


def decode_fixed(data: Buffer, count: int, bits: int, rng: np.random.Generator | None = None) -> tuple[Floats, float]:
    """Read what `encode_fixed` wrote, and its step; anything else is a `ValueError`.

    The count and the bits are as the receiver knows them; the generator, if there was one, is in the same state.
    Numbers are off by half a step at most; the step is 0 where all are zero.
    """
    (shift,), packed = read_varints(data, 1)
    exponent = shift + LEAST_EXPONENT - 1
    if exponent > LARGEST_EXPONENT or (shift == 0 and len(packed)):
        raise ValueError(f"a step of two to the {exponent}, or bytes for numbers that are all zero")
    if shift == 0:
        return np.zeros(count), 0.0
    codes = unpack_bits(packed, count, bits).astype(np.int64) - _middle(bits)
    if codes.max(initial=0) > _middle(bits):
        raise ValueError("a code that no number has")
    step = _step(exponent, bits)
    values = codes.astype(np.float64)
    if rng is not None:
        values -= draw_dither(values.shape, rng)
    values *= step
    return values, step


def _middle(bits: int) -> int:
    """Give the code of zero: codes reach as far below as above it."""
    return (1 << (bits - 1)) - 1


def _step(exponent: int, bits: int) -> float:
    # One less than the codes reach: a dither may add half a step.
    return math.ldexp(1.0, exponent) / (_middle(bits) - 1)
