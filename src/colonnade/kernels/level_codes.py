"""Columns of few values as they are: the values once, by how often they occur, and for every row which of them it has.

A column that is mostly one value takes the places of the other rows, one of two values a bit a row, and any other the
Rice code of which value, from the most frequent on. What suits a column follows from its rows.
"""

from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.bits import (
    Buffer,
    Numbers,
    pack_bits,
    packed_length,
    read_varints,
    rice_decode,
    rice_encode,
    rice_parameter,
    unpack_bits,
    varint,
)
from colonnade.kernels.row_ids import decode_row_ids, encode_row_ids, row_id_bytes

# About as long as a value that is rounded by the usual half of a standard deviation, in bits.
FEW_BITS = 3.5
# So many rows tell which columns have few values.
LOOKED_AT = 4096
# Below this share of other values, their places are shorter than a code of all rows.
SPARSE = 0.25
MOST_WHOLE = float(1 << 52)
NUMBER_BYTES = 8
# Of values that so many times as many rows have: by this power of it more that are rare.
UNSEEN = 0.7
# Lengths and parameters of a column.
AROUND = 4


def few_valued(rows: Floats) -> Rows:
    """Say which columns of some rows, shape (m, d), take few bits a row: to tell the values, and which a row has."""
    return np.array([j for j, column in enumerate(rows.T) if _bits(column) <= FEW_BITS], np.int64)


def _bits(column: Floats) -> float:
    levels, counts = np.unique(column, return_counts=True)
    shares = counts / max(len(column), 1)
    # Values themselves take most where a column is mostly one of them, and else a number that no other row has.
    return float(-shares @ np.log2(shares)) + 8 * len(_written(levels)) / max(len(column), 1)


def encode_levels(columns: Floats) -> bytes:
    """Write the columns of rows, shape (m, e), finite, as they are; the code of each comes after its length."""
    codes = [_encode(column) for column in np.ascontiguousarray(columns.T)]
    return b"".join(varint(len(code)) + code for code in codes)


def decode_levels(data: Buffer, n_columns: int, count: int) -> tuple[Floats, Buffer]:
    """Read what `encode_levels` wrote of so many columns and rows, and give what follows; else a `ValueError`."""
    columns = np.empty((n_columns, count))
    for column in columns:
        (length,), rest = read_varints(data, 1)
        if length > len(rest):
            raise ValueError(f"{len(rest)} bytes do not hold a column of {length}")
        levels, code = _read_levels(rest[:length], count)
        column[:] = levels[_read_numbers(code, len(levels), count)]
        data = rest[length:]
    return columns.T, data


def level_bits(column: Floats, shares: Floats) -> Floats:
    """Predict the bits of each row of a column, (m,), where a row occurs so often among those coded, relative."""
    if not len(column):
        return np.zeros(0)
    _, numbers = np.unique(column, return_inverse=True)
    often = np.bincount(numbers, shares)
    ranks = np.empty(len(often), np.int64)
    ranks[np.argsort(-often, kind="stable")] = np.arange(len(often))
    numbers, others = ranks[numbers], 1 - float(often.max() / often.sum())
    if len(often) == 1:
        return np.zeros(len(column))
    if others <= SPARSE:
        count = 1 << 12
        place = 8 * row_id_bytes(count, max(round(others * count), 1)) / max(round(others * count), 1)
        which = _rice_bits(np.maximum(numbers - 1, 0), shares * (numbers > 0)) if len(often) > 2 else 0.0
        return np.where(numbers > 0, place + which, 0.0)
    return np.ones(len(column)) if len(often) == 2 else _rice_bits(numbers, shares)


@dataclass(frozen=True)
class LevelsBytes:
    """The bytes of values, and of what else is not rows' own, in some rows; and of those that one row has alone."""

    n_rows: int
    seen: float
    alone: float

    def of(self, count: int) -> float:
        """Predict them for so many rows. More have more values, the more so the more of those seen are rare."""
        more: float = (count / max(self.n_rows, 1)) ** UNSEEN
        return self.seen + self.alone * max(more - 1, 0.0)


def levels_bytes(columns: Floats) -> LevelsBytes:
    """Count the bytes of values in rows, (m, e)."""
    found = [np.unique(column, return_counts=True) for column in columns.T]
    lengths = [len(_written(levels)) for levels, _ in found]
    alone = [np.count_nonzero(counts == 1) / max(len(counts), 1) for _, counts in found]
    return LevelsBytes(len(columns), sum(lengths) + AROUND * len(lengths), float(np.dot(alone, lengths)))


def _rice_bits(numbers: Rows, shares: Floats) -> Floats:
    k = rice_parameter(float(np.average(numbers, weights=shares)))
    return np.asarray((numbers >> k) + 1.0 + k)


def _encode(column: Floats) -> bytes:
    levels, numbers = _by_frequency(column)
    (places,) = numbers.nonzero()
    head = _written(levels)
    if len(levels) <= 1:
        return head
    if len(places) <= SPARSE * len(column):
        where = encode_row_ids(places)
        return head + varint(len(where)) + where + (_rice(numbers[places] - 1) if len(levels) > 2 else b"")
    # No places take no bytes, and these are never written: a zero tells that a code of all rows follows.
    return head + varint(0) + (pack_bits(numbers.view(np.uint64), 1) if len(levels) == 2 else _rice(numbers))


def _by_frequency(column: Floats) -> tuple[Floats, Rows]:
    """List a column's values, the most frequent first, and say which of them each row has."""
    if not len(column):
        return column, np.empty(0, np.int64)
    first = column[0]
    others = column != first
    count, second = np.count_nonzero(others), column[int(others.argmax())]
    if not count:
        return column[:1], np.zeros(len(column), np.int64)
    if count == np.count_nonzero(column == second):  # sooner than by sorting
        if 2 * count > len(column):
            first, second, others = second, first, ~others
        return np.array([first, second]), others.astype(np.int64)
    levels, numbers = np.unique(column, return_inverse=True)
    counts = np.bincount(numbers, minlength=len(levels))
    order = np.argsort(-counts, kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return levels[order], ranks[numbers]


def _written(levels: Floats) -> bytes:
    numbers: list[float] = levels.tolist()
    whole = all(number.is_integer() and abs(number) < MOST_WHOLE for number in numbers) and "-0.0" not in map(
        repr, numbers
    )
    head = varint(2 * len(levels) + whole)
    if not whole:
        return head + levels.astype("<f8").tobytes()
    return head + b"".join(varint(2 * level if level >= 0 else -2 * level - 1) for level in map(int, numbers))


def _read_levels(data: Buffer, count: int) -> tuple[Floats, Buffer]:
    (head,), rest = read_varints(data, 1)
    n_levels, whole = head >> 1, head & 1
    if n_levels > count or (n_levels == 0) != (count == 0):
        raise ValueError(f"{n_levels} values in {count} rows")
    if whole:
        folded, rest = read_varints(rest, n_levels)
        levels = np.array([number >> 1 ^ -(number & 1) for number in folded], np.float64)
    else:
        levels, rest = np.frombuffer(rest[: NUMBER_BYTES * n_levels], "<f8"), rest[NUMBER_BYTES * n_levels :]
    if len(levels) != n_levels or not np.all(np.isfinite(levels)):
        raise ValueError("values that are no numbers, or too few of them")
    return levels, rest


def _read_numbers(data: Buffer, n_levels: int, count: int) -> Rows:
    numbers = np.zeros(count, np.int64)
    if n_levels <= 1:
        if len(data):
            raise ValueError("bytes for a column of one value")
        return numbers
    (length,), rest = read_varints(data, 1)
    if length > len(rest):
        raise ValueError(f"{len(rest)} bytes do not hold places of {length}")
    if length:
        places = decode_row_ids(rest[:length], count)
        if places[-1] >= count or np.any(places[1:] == places[:-1]):
            raise ValueError(f"places that are not among {count} rows, or one twice")
        rest = rest[length:]
        numbers[places] = 1 + (_read_rice(rest, len(places)) if n_levels > 2 else 0)
        if n_levels == 2 and len(rest):
            raise ValueError(f"{len(rest)} bytes after a column's code")
    elif n_levels == 2:
        numbers[:] = unpack_bits(rest[: packed_length(count, 1)], count, 1)
        if len(rest) != packed_length(count, 1):
            raise ValueError(f"{len(rest)} bytes do not hold {count} bits")
    else:
        numbers[:] = _read_rice(rest, count)
    if numbers.max(initial=0) >= n_levels:
        raise ValueError(f"a value of more than {n_levels}")
    return numbers


def _rice(numbers: Rows) -> bytes:
    folded: Numbers = numbers.astype(np.uint64)[np.newaxis]
    parameter = rice_parameter(float(folded.mean()))
    return bytes([parameter]) + rice_encode(folded, [parameter])


def _read_rice(data: Buffer, count: int) -> Rows:
    if not len(data):
        raise ValueError("a code without a parameter")
    (numbers,) = rice_decode(data[1:], count, [data[0]], count * count)
    found: Rows = numbers.astype(np.int64)
    return found
