"""Whole numbers in few bits: of one width each, or by a Rice code, whose width follows the numbers themselves.

A Rice code with parameter k writes the lowest k bits of a number as they are and the rest in unary, as so many zeros
and a one. For numbers that thin out geometrically it is within a few per cent of their entropy. The low parts travel
first, bit by bit of all numbers, then the unary parts, so that NumPy reads and writes each in a few passes.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

# Of any width: narrow ones are faster.
Numbers = npt.NDArray[np.unsignedinteger[Any]]
Buffer = bytes | memoryview

MAX_BITS = 63
# For numbers that thin out geometrically around a mean, the best 2^k is next above log(golden ratio) (mean + 1/2).
LOG_GOLDEN = 0.48121182505960347
# Unary parts take at most 1 + 1 / LOG_GOLDEN bits a number on average with that k, and so they must from anyone.
UNARY_BITS = 4
PLANES = np.uint8(1) << np.arange(8, dtype=np.uint8)[::-1, np.newaxis]


def packed_length(count: int, width: int) -> int:
    """Count the bytes of `count` numbers of `width` bits."""
    return -(-count * width // 8)


def pack_bits(numbers: Numbers, width: int) -> bytes:
    """Write numbers, shape (n,), with `width` bits each, from 0 to 63; higher bits are left out.

    First comes the highest bit of all of them, then the next, padded by zeros to ``packed_length(n, width)`` bytes.
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
    """Read what `pack_bits` wrote, as uint8 or uint64; any other number of bytes is a `ValueError`."""
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


def rice_parameters(numbers: Numbers) -> list[int]:
    """Choose a k, from 0 to 53, for each row of a matrix of numbers below 2^54, that makes its Rice code short."""
    sums: list[float] = numbers.sum(axis=1, dtype=np.float64).tolist()
    return [rice_parameter(total / max(numbers.shape[1], 1)) for total in sums]


def rice_parameter(mean: float) -> int:
    """Choose k for numbers of this mean."""
    return int(LOG_GOLDEN * (mean + 0.5)).bit_length()


def rice_encode(numbers: Numbers, parameters: Sequence[int]) -> bytes:
    """Write numbers below 2^63, shape (r, n), by their Rice code: first all low parts, then all unary parts.

    Each row has its parameter k, from 0 to 62. Low parts of rows that follow one another with the same k are written as
    one. Each part is padded by zeros to whole bytes.
    """
    low = [pack_bits(numbers[rows].ravel(), k) for k, rows in _runs(parameters)]
    high = numbers >> np.array(parameters, numbers.dtype)[:, np.newaxis]
    return b"".join([*low, _unary(high.ravel())])


def rice_decode(data: Buffer, count: int, parameters: Sequence[int], largest: int) -> Numbers:
    """Read what `rice_encode` wrote, as uint16 or uint64, shape (r, count); anything else is a `ValueError`.

    The count and the parameters are as declared; the numbers may add up to `largest`, which is below 2^63. At most
    about 250 bytes are allocated for each byte of `data`, and for each of at most 8 numbers in it.
    """
    widest, total = max(parameters, default=0), count * len(parameters)
    if min(parameters, default=0) < 0 or widest >= MAX_BITS or count < 0:
        raise ValueError(f"{len(data)} bytes cannot hold {count} numbers in a Rice code of {widest} bits and more")
    runs = _runs(parameters)
    lengths = [packed_length((rows.stop - rows.start) * count, k) for k, rows in runs]
    split = sum(lengths)
    if not total <= 8 * (len(data) - split) <= UNARY_BITS * total + 7:
        raise ValueError(f"{len(data)} bytes do not hold {total} numbers in a Rice code")
    high = _read_unary(data[split:], total)
    # In Python's integers, which cannot overflow. No sum is taken that could, nor one that could not matter.
    most = (int(high.max(initial=0)) + 1) << widest
    shape = (len(parameters), count)
    numbers: Numbers = (high.astype(np.uint16) if most <= 1 << 16 else high.astype(np.uint64)).reshape(shape)
    large = total * most > largest
    if large and any(longest << k > largest for longest, k in zip(_longest(numbers), parameters, strict=True)):
        raise ValueError(f"a number of more than {largest}")
    numbers <<= np.array(parameters, numbers.dtype)[:, np.newaxis]
    start = 0
    for (k, rows), length in zip(runs, lengths, strict=True):
        if k:
            numbers[rows] |= unpack_bits(data[start : start + length], numbers[rows].size, k).reshape(-1, count)
        start += length
    if large and (numbers.sum(dtype=np.float64) > 2.0**62 or int(numbers.sum(dtype=np.uint64)) > largest):
        raise ValueError(f"numbers that add up to more than {largest}")
    return numbers


def rice_decode_few(data: Buffer, count: int, k: int, largest: int) -> list[int]:
    """Read one row of few numbers as `rice_decode` does, a good deal sooner than NumPy."""
    split = packed_length(count, k)
    fits = count <= 8 * (len(data) - split) <= UNARY_BITS * count + 7
    if not fits or not 0 <= k < MAX_BITS or k > 0 == count:  # no numbers have one form, too
        raise ValueError(f"{len(data)} bytes do not hold {count} numbers in a Rice code of {k} bits")
    low, high = _bit_text(data[:split]), _bit_text(data[split:])
    *zeros, rest = high.split("1")
    if len(zeros) != count or len(rest) > 7 or "1" in low[count * k :]:
        raise ValueError(f"{len(data)} bytes with {len(zeros)} numbers instead of {count}, or bits after them")
    numbers = [len(part) << k | int(low[i : count * k : count] or "0", 2) for i, part in enumerate(zeros)]
    if sum(numbers) > largest:
        raise ValueError(f"numbers that add up to more than {largest}")
    return numbers


def _bit_text(data: Buffer) -> str:
    return f"{int.from_bytes(data, 'big'):0{8 * len(data)}b}" if len(data) else ""


def _runs(parameters: Sequence[int]) -> list[tuple[int, slice]]:
    """List parameters that follow one another, each once, with the rows that have it."""
    starts = [row for row, k in enumerate(parameters) if not row or k != parameters[row - 1]]
    return [(parameters[a], slice(a, b)) for a, b in pairwise([*starts, len(parameters)])]


def _longest(numbers: Numbers) -> list[int]:
    longest: list[int] = numbers.max(axis=1, initial=0).tolist()
    return longest


def _unary(numbers: Numbers) -> bytes:
    if not numbers.size:
        return b""
    ends = numbers.astype(np.int64)
    ends[1:] += 1
    ends.cumsum(out=ends)
    bits = np.zeros(int(ends[-1]) + 1, np.bool_)
    bits[ends] = True
    return np.packbits(bits).tobytes()


def _read_unary(data: Buffer, count: int) -> npt.NDArray[np.int64]:
    (ends,) = np.unpackbits(np.frombuffer(data, np.uint8)).view(np.bool_).nonzero()
    if len(ends) != count or (len(data) != (int(ends[-1]) // 8 + 1 if count else 0)):
        raise ValueError(f"a unary part of {len(data)} bytes with {len(ends)} numbers instead of {count}")
    numbers = ends.copy()
    numbers[1:] -= ends[:-1]
    numbers[1:] -= 1
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
