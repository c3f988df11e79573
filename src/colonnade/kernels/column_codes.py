"""Columns in few bits, each in the form that suits it, for distances: scaled, never mixed with one another.

A column of one value takes none; one of two values takes a bit a row, or the places of the rarer value where that is
shorter; one that is mostly a single value takes the places of the others and their codes; any other takes codes. Codes
are rounded with a dither, all columns by one step: an error counts the same in every column's square of a distance.
"""

from enum import IntEnum

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.bits import Buffer, packed_length, read_varints, unpack_bits, varint
from colonnade.kernels.quantise import decode_codes, encode_codes, restore_dithered, round_with_dither
from colonnade.kernels.row_ids import decode_row_ids, encode_row_ids

# Below this share of other values, their places and codes are shorter than codes of all.
SPARSE = 0.25
# The most frequent value is looked for in so many rows; to miss it makes a code longer, not wrong.
TRIED_ROWS = 255
CHUNK_ROWS = 512


class Form(IntEnum):
    """How a column is written; its levels are the values that are exact."""

    CONSTANT = 0
    BITS = 1
    PLACES = 2
    SPARSE = 3
    DENSE = 4


LEVELS = {Form.CONSTANT: 1, Form.BITS: 2, Form.PLACES: 2, Form.SPARSE: 1, Form.DENSE: 1}


def encode_columns(values: Floats, centres: Floats, step: float, rng: np.random.Generator) -> tuple[Floats, bytes]:
    """Write columns of at least one row, shape (m, d), each in its form: as exact levels, and as a code.

    Codes are small near `centres`, shape (d,), and rounded by a step in the columns' own units. The generator draws the
    dither: the receiver's must be in the same state. There are one or two levels a column, column by column. The code
    has a byte a column for its form; then each column's code, preceded by its length; last the dense ones' together.
    """
    levels: list[float] = []
    forms, parts, dense = bytearray(), [], []
    columns = _by_column(values)
    for column, usual, centre in zip(columns, _usual_values(columns), centres.tolist(), strict=True):
        form, own_levels, part = _encode_column(column, usual, centre, step, rng)
        forms.append(form)
        levels += own_levels
        if form is Form.DENSE:
            dense.append(column - centre)
        else:
            parts.append(varint(len(part)) + part)
    if dense:
        parts.append(encode_codes(round_with_dither(np.column_stack(dense), step, rng)))
    return np.array(levels), bytes(forms) + b"".join(parts)


def decode_columns(
    levels: Floats, code: Buffer, shape: tuple[int, int], step: float, rng: np.random.Generator
) -> Floats:
    """Read what `encode_columns` wrote; anything else is a `ValueError`.

    Levels are finite; else they and the code may be from anyone. The shape (m, d) and the step are as the receiver
    knows them, and the generator is in the same state. Values are exact but for codes, which are unbiased and off by
    half a step, and a thousandth, at most.
    """
    n_rows, n_columns = shape
    if len(code) < n_columns:
        raise ValueError(f"{len(code)} bytes do not say the form of {n_columns} columns")
    forms, rest = [Form(number) for number in code[:n_columns]], code[n_columns:]
    if sum(LEVELS[form] for form in forms) != len(levels):
        raise ValueError(f"{len(levels)} levels do not suit the columns' forms")
    dense = [j for j, form in enumerate(forms) if form is Form.DENSE]
    values, given, centres = np.empty(shape, order="F"), iter(levels.tolist()), {}
    for j, form in enumerate(forms):
        own = [next(given) for _ in range(LEVELS[form])]
        if form is Form.DENSE:
            centres[j] = own[0]
            continue
        (length,), rest = read_varints(rest, 1)
        _decode_column(form, own, rest[:length], step, rng, values[:, j])
        rest = rest[length:]
    if dense:
        codes = decode_codes(rest, len(dense), n_rows)
        values[:, dense] = restore_dithered(codes, step, rng) + np.array([centres[j] for j in dense])
    elif len(rest):
        raise ValueError(f"{len(rest)} bytes after the last column")
    return values


def common_step(spreads: Floats, step: float) -> float:
    """Turn a step in standard deviations into one in the columns' units: their root mean square, for all alike."""
    common = step * float(np.sqrt(np.mean(np.square(spreads)))) if len(spreads) else step
    if not 0 < common < np.inf:
        raise InputError("Columns with so large standard deviations cannot be rounded. Rescale them.")
    return common


def _encode_column(
    column: Floats, usual: float, centre: float, step: float, rng: np.random.Generator
) -> tuple[Form, list[float], bytes]:
    others = column != usual
    (places,) = others.nonzero()
    if not len(places):
        return Form.CONSTANT, [usual], b""
    different = column[places]
    other = float(different[0])
    if (different == other).all():
        rarer = encode_row_ids(places)
        if packed_length(len(column), 1) <= len(rarer):
            return Form.BITS, [usual, other], np.packbits(others).tobytes()
        return Form.PLACES, [usual, other], rarer
    if len(places) > SPARSE * len(column):
        return Form.DENSE, [centre], b""
    where = encode_row_ids(places)
    codes = encode_codes(round_with_dither(different[:, np.newaxis] - usual, step, rng))
    return Form.SPARSE, [usual], varint(len(where)) + where + codes


def _decode_column(
    form: Form, levels: list[float], part: Buffer, step: float, rng: np.random.Generator, column: Floats
) -> None:
    column[:] = levels[0]
    if form is Form.CONSTANT and len(part):
        raise ValueError("bytes for a column of one value")
    if form is Form.BITS:
        column[unpack_bits(part, len(column), 1).view(np.bool_)] = levels[1]
    if form is Form.PLACES:
        column[_read_places(part, len(column))] = levels[1]
    if form is Form.SPARSE:
        (length,), rest = read_varints(part, 1)
        places = _read_places(rest[:length], len(column))
        codes = decode_codes(rest[length:], 1, len(places))
        column[places] += restore_dithered(codes, step, rng)[:, 0]


def _by_column(values: Floats) -> Floats:
    """Transpose (m, d), by runs of rows that stay in cache."""
    columns = np.empty(values.shape[::-1])
    for start in range(0, len(values), CHUNK_ROWS):
        some = slice(start, start + CHUNK_ROWS)
        columns[:, some] = values[some].T
    return columns


def _usual_values(columns: Floats) -> list[float]:
    """Give each column's (row of a matrix) most frequent value, if one is in most rows: then it is the median."""
    tried = columns[:, :: -(-columns.shape[1] // TRIED_ROWS)]
    middle = tried.shape[1] // 2
    usual: list[float] = np.partition(tried, middle, axis=1)[:, middle].tolist()
    return usual


def _read_places(data: Buffer, n_rows: int) -> np.ndarray:
    places = decode_row_ids(data, n_rows)
    if len(places) and (places[-1] >= n_rows or (places[1:] == places[:-1]).any()):
        raise ValueError(f"places that are not among {n_rows} rows, or one twice")
    return places
