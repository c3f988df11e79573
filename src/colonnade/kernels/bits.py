"""Whole numbers in few bits: of one width each, or by a Rice code, whose width follows the numbers themselves.

A Rice code with parameter k writes the lowest k bits of a number as they are and the rest in unary, as so many zeros
and a one. For numbers that thin out geometrically it is within a few per cent of their entropy. The low parts travel
first, bit by bit of all numbers, then the unary parts, so that NumPy reads and writes each in a few passes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

# Of any width: narrow ones are faster.
Numbers = npt.NDArray[np.unsignedinteger[Any]]
Buffer = bytes | memoryview

MAX_BITS = 63
# `rice_parameter` chooses no k for which unary parts take more bits than this on average: nobody else's does.
UNARY_BITS = 9
# The parameter is chosen by so many of the numbers; a somewhat worse one is longer, not wrong.
TRIED_NUMBERS = 256
# For a geometric law the best k is just below the bit length of the mean; for one with a longer tail, lower.
TRIED_PARAMETERS = np.maximum(np.arange(65)[:, np.newaxis] + np.arange(-3, 1), 0).astype(np.uint64)
PLANES = np.uint8(1) << np.arange(8, dtype=np.uint8)[::-1, np.newaxis]


def packed_length(count: int, width: int) -> int:
    """Count the bytes of `count` numbers of `width` bits."""
    return -(-count * width // 8)


def pack_bits(numbers: Numbers, width: int) -> bytes:
    """Write numbers with `width` bits each: the highest bit of all of them, then the next, padded by zeros to bytes.

    Parameters
    ----------
    numbers : ndarray of unsigned int, shape (n,)
        Higher bits are left out.
    width : int
        From 0 to 63.

    Returns
    -------
    bytes
        ``packed_length(n, width)`` of them.
    """
    if width == 0 or not numbers.size:
        return b""
    if width <= 8:
        return np.packbits(numbers.astype(np.uint8) & PLANES[8 - width :]).tobytes()
    bits = np.empty((width, len(numbers)), np.bool_)
    for plane in range(width):
        np.not_equal(numbers & numbers.dtype.type(1 << (width - 1 - plane)), 0, out=bits[plane])
    return np.packbits(bits).tobytes()


def unpack_bits(data: Buffer, count: int, width: int) -> Numbers:
    """Read what `pack_bits` wrote.

    Parameters
    ----------
    data : bytes
        Exactly ``packed_length(count, width)`` of them, else `ValueError`.
    count : int
        n.
    width : int
        From 0 to 63.

    Returns
    -------
    ndarray of uint8 or uint64, shape (n,)
        The numbers.
    """
    if not 0 <= width <= MAX_BITS or count < 0 or len(data) != packed_length(count, width):
        raise ValueError(f"{len(data)} bytes do not hold {count} numbers of {width} bits")
    dtype = np.uint8 if width <= 8 else np.uint64
    if width == 0 or count == 0:
        return np.zeros(count, dtype)
    packed, used = np.frombuffer(data, np.uint8), count * width
    if packed[-1] & ((1 << (8 * len(packed) - used)) - 1):
        raise ValueError("there are bits after the last number")  # one form for one meaning
    planes = np.unpackbits(packed, count=used).reshape(width, count)
    numbers: Numbers = planes[0].astype(dtype, copy=False)
    for bits in planes[1:]:
        numbers <<= numbers.dtype.type(1)
        numbers |= bits
    return numbers


def rice_parameter(numbers: Numbers) -> int:
    """Choose a k, from 0 to 54, that makes the Rice code of some numbers (n,), each below 2^54, short."""
    return rice_parameters(numbers[np.newaxis])[0]


def rice_parameters(numbers: Numbers) -> list[int]:
    """Choose a k for each row of a matrix of numbers.

    Parameters
    ----------
    numbers : ndarray of unsigned int, shape (r, n)
        Each below 2^54.

    Returns
    -------
    list of int
        r times a k from 0 to 54.
    """
    n_rows, count = numbers.shape
    if not count:
        return [0] * n_rows
    tried = numbers[:, :: -(-count // TRIED_NUMBERS)]
    n_tried = tried.shape[1]
    # The mean is that of all numbers: it keeps unary parts within UNARY_BITS.
    lengths = [(int(total) // count).bit_length() for total in numbers.sum(axis=1, dtype=np.float64).tolist()]
    parameters = TRIED_PARAMETERS[lengths]
    bits = (tried[:, np.newaxis] >> parameters[:, :, np.newaxis]).sum(axis=2) + parameters * n_tried
    best: list[int] = parameters[np.arange(n_rows), bits.argmin(axis=1)].tolist()
    return best


def rice_encode(numbers: Numbers, k: int) -> bytes:
    """Write numbers by their Rice code: first all low parts, then all unary parts.

    Parameters
    ----------
    numbers : ndarray of unsigned int, shape (n,)
        Each below 2^63.
    k : int
        The parameter, from 0 to 62.

    Returns
    -------
    bytes
        The code, each part padded by zeros to whole bytes.
    """
    return pack_bits(numbers, k) + _unary(numbers >> numbers.dtype.type(k) if k else numbers)


def rice_decode(data: Buffer, count: int, k: int, largest: int) -> Numbers:
    """Read what `rice_encode` wrote; anything else is a `ValueError`.

    At most about 250 bytes are allocated for each byte of `data`, and for each of at most 8 numbers in it.

    Parameters
    ----------
    data : bytes
        From anyone.
    count : int
        n, as declared.
    k : int
        The parameter, as declared.
    largest : int
        What the numbers may add up to, below 2^63.

    Returns
    -------
    ndarray of uint16 or uint64, shape (n,)
        The numbers.
    """
    split = packed_length(count, k) if 0 <= k < MAX_BITS else -1
    if split < 0 or not count <= 8 * (len(data) - split) <= UNARY_BITS * count + 7:
        raise ValueError(f"{len(data)} bytes do not hold {count} numbers in a Rice code with parameter {k}")
    high = _read_unary(data[split:], count)
    # In Python's integers, which cannot overflow.
    longest = int(high.max(initial=0))
    if longest << k > largest:
        raise ValueError(f"numbers that add up to more than {largest}")
    small = (longest + 1) << k <= 1 << 16
    numbers: Numbers = high.astype(np.uint16) if small else high.astype(np.uint64)
    if k:
        numbers <<= numbers.dtype.type(k)
        numbers |= unpack_bits(data[:split], count, k)
    # No sum is taken that could overflow, nor one that could not matter.
    if count * ((longest + 1) << k) > largest and (
        numbers.sum(dtype=np.float64) > 2.0**62 or int(numbers.sum(dtype=np.uint64)) > largest
    ):
        raise ValueError(f"numbers that add up to more than {largest}")
    return numbers


def _unary(numbers: Numbers) -> bytes:
    ends = numbers.cumsum(dtype=np.int64)
    if not ends.size:
        return b""
    ends += np.arange(len(ends))
    bits = np.zeros(int(ends[-1]) + 1, np.bool_)
    bits[ends] = True
    return np.packbits(bits).tobytes()


def _read_unary(data: Buffer, count: int) -> npt.NDArray[np.int64]:
    (ends,) = np.unpackbits(np.frombuffer(data, np.uint8)).view(np.bool_).nonzero()
    if len(ends) != count or (len(data) != (int(ends[-1]) // 8 + 1 if count else 0)):
        raise ValueError(f"a unary part of {len(data)} bytes with {len(ends)} numbers instead of {count}")
    numbers = ends.copy()
    numbers[1:] -= ends[:-1] + 1
    return numbers


def read_varints(data: Buffer, count: int) -> tuple[Sequence[int], Buffer]:
    """Read `count` numbers of 7 bits a byte, lowest first, and give what follows them."""
    numbers, position = [], 0
    for _ in range(count):
        number, shift = 0, 0
        while True:
            if position >= len(data) or shift > MAX_BITS - 7:
                raise ValueError("a number that does not end")
            byte = data[position]
            number |= (byte & 0x7F) << shift
            position, shift = position + 1, shift + 7
            if byte < 0x80:
                break
        if byte == 0 and shift > 7:
            raise ValueError("a number with a leading zero")  # one form for one meaning
        numbers.append(number)
    return numbers, data[position:]


def varint(number: int) -> bytes:
    """Write a number below 2^63 with 7 bits a byte, lowest first."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
