"""Whole numbers in few bits: of one width each, or by a Rice code, whose width follows the numbers themselves.

A Rice code with parameter k writes the lowest k bits of a number as they are and the rest in unary, as so many zeros
and a one. For numbers that thin out geometrically it is within a few per cent of their entropy. The two parts travel
one after the other, so that NumPy reads and writes each in a few passes.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Buffer = bytes | memoryview

MAX_BITS = 63
# Where the parameter suits the numbers, their unary parts take no more bits than this on average (`rice_parameter`
# tries one with at most 3, and others only up to two bits less, if that is shorter).
UNARY_BITS = 5


def packed_length(count: int, width: int) -> int:
    """Count the bytes of `count` numbers of `width` bits."""
    return -(-count * width // 8)


def pack_bits(numbers: Numbers, width: int) -> bytes:
    """Write numbers with `width` bits each, highest first, padded by zeros to whole bytes.

    Parameters
    ----------
    numbers : ndarray of uint64, shape (n,)
        Each below 2^width.
    width : int
        From 0 to 63.

    Returns
    -------
    bytes
        ``packed_length(n, width)`` of them.
    """
    if width == 0 or not numbers.size:
        return b""
    # The narrowest type that holds them: a row of the bit matrix is a byte a bit.
    kind = _narrowest(width)
    bits = np.unpackbits(numbers.astype(kind).view(np.uint8).reshape(len(numbers), kind.itemsize), axis=1)
    return np.packbits(bits[:, 8 * kind.itemsize - width :]).tobytes()


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
    ndarray of uint64, shape (n,)
        The numbers.
    """
    if not 0 <= width <= MAX_BITS or count < 0 or len(data) != packed_length(count, width):
        raise ValueError(f"{len(data)} bytes do not hold {count} numbers of {width} bits")
    if width == 0 or count == 0:
        return np.zeros(count, np.uint64)
    packed = np.frombuffer(data, np.uint8)
    used = count * width
    if packed[-1] & ((1 << (8 * len(packed) - used)) - 1):
        raise ValueError("there are bits after the last number")  # one form for one meaning
    kind = _narrowest(width)
    bits = np.zeros((count, 8 * kind.itemsize), np.uint8)
    bits[:, 8 * kind.itemsize - width :] = np.unpackbits(packed, count=used).reshape(count, width)
    return np.packbits(bits, axis=1).view(kind).ravel().astype(np.uint64)


def _narrowest(width: int) -> np.dtype[np.unsignedinteger[npt.NBitBase]]:
    return np.dtype(next(f">u{size}" for size in (1, 2, 4, 8) if width <= 8 * size))


def rice_parameter(numbers: Numbers) -> int:
    """Choose the k that makes the Rice code of these numbers shortest.

    Parameters
    ----------
    numbers : ndarray of uint64, shape (n,)
        Each below 2^63.

    Returns
    -------
    int
        k, from 0 to 62.
    """
    if not numbers.size:
        return 0
    # For a geometric law the best k is near log2 of the mean; for others, one beside it.
    near = max(int(numbers.mean(dtype=np.float64)), 1).bit_length()
    candidates = range(max(near - 3, 0), near + 1)
    return min(candidates, key=lambda k: numbers.size * k + int((numbers >> np.uint64(k)).sum()))


def rice_encode(numbers: Numbers, k: int) -> bytes:
    """Write numbers by their Rice code: first all low parts, then all unary parts.

    Parameters
    ----------
    numbers : ndarray of uint64, shape (n,)
        Each below 2^63.
    k : int
        The parameter, from 0 to 62.

    Returns
    -------
    bytes
        The code, each part padded by zeros to whole bytes.
    """
    low = numbers & np.uint64((1 << k) - 1)
    return pack_bits(low, k) + _unary(numbers >> np.uint64(k))


def rice_decode(data: Buffer, count: int, k: int, largest: int) -> Numbers:
    """Read what `rice_encode` wrote; anything else is a `ValueError`.

    At most about 100 bytes are allocated for each byte of `data`: every number takes at least one bit.

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
    ndarray of uint64, shape (n,)
        The numbers.
    """
    split = packed_length(count, k) if 0 <= k < MAX_BITS else -1
    if split < 0 or not count <= 8 * (len(data) - split) <= UNARY_BITS * count + 7:
        raise ValueError(f"{len(data)} bytes do not hold {count} numbers in a Rice code with parameter {k}")
    high = _read_unary(data[split:], count)
    # In Python's integers, which cannot overflow.
    if int(high.sum()) << k > largest:
        raise ValueError(f"numbers that add up to more than {largest}")
    numbers = (high << np.uint64(k)) | unpack_bits(data[:split], count, k)
    if int(numbers.sum()) > largest:
        raise ValueError(f"numbers that add up to more than {largest}")
    return numbers


def _unary(numbers: Numbers) -> bytes:
    ends = np.cumsum(numbers + np.uint64(1)) - np.uint64(1)
    if not ends.size:
        return b""
    bits = np.zeros(int(ends[-1]) + 1, np.bool_)
    bits[ends] = True
    return np.packbits(bits).tobytes()


def _read_unary(data: Buffer, count: int) -> Numbers:
    ends = np.flatnonzero(np.unpackbits(np.frombuffer(data, np.uint8)))
    if len(ends) != count or (len(data) != (int(ends[-1]) // 8 + 1 if count else 0)):
        raise ValueError(f"a unary part of {len(data)} bytes with {len(ends)} numbers instead of {count}")
    numbers = ends.astype(np.uint64)
    numbers[1:] -= ends[:-1].astype(np.uint64) + np.uint64(1)
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
