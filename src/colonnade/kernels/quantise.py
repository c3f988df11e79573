"""Numbers in few bits, with errors that are bounded or average out. Nothing here is used unless somebody asks for it.

Three ways. *Scores* are rounded in logarithm: only their relative error matters. *Values around zero* are rounded to
multiples of a step after adding a dither that both ends draw from one seed, and the dither is taken off again: the
error is uniform over a step whatever the value, so its mean is zero and its variance step^2 / 12. *Rows with a scale of
their own* are rounded up or down by chance, so that they are right on average.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.bits import (
    Buffer,
    Numbers,
    pack_bits,
    read_varints,
    rice_decode,
    rice_encode,
    rice_parameter,
    rice_parameters,
    unpack_bits,
    varint,
)

Codes = npt.NDArray[np.signedinteger[Any]]

# Rounded scores are off by half of this at most, relative: less than 1e-3.
LOG_STEP = 1.9e-3
# Of a code, and of all codes together; steps so fine that codes are larger save nothing.
MAX_CODE = 1 << 40
MAX_CODE_SUM = 1 << 62
# Codes up to this fit two bytes when their signs are folded in.
SMALL_CODE = 1 << 14
SMALLEST_STEP, LARGEST_STEP = 1e-6, 16.0


def checked_step(step: float) -> float:
    """Require a step that rounds, but not everything to nothing.

    Parameters
    ----------
    step : float
        In units of a column's standard deviation.

    Returns
    -------
    float
        The same.
    """
    if isinstance(step, bool) or not isinstance(step, float | int) or not SMALLEST_STEP <= step <= LARGEST_STEP:
        raise InputError(
            f"step must be a number from {SMALLEST_STEP:g} to {LARGEST_STEP:g} standard deviations, got {step!r}. "
            "Pass for instance step=0.5."
        )
    return float(step)


def round_scores(scores: Floats) -> Floats:
    """Round scores to powers of exp(0.0019).

    Parameters
    ----------
    scores : ndarray of float64, shape (n,)
        Non-negative.

    Returns
    -------
    ndarray of float64, shape (n,)
        Each off by less than a thousandth of itself; 0 stays 0.
    """
    return np.where(scores > 0, _scores(_score_codes(scores)), 0.0)


def encode_scores(scores: Floats) -> bytes:
    """Write rounded scores, with about 11 bits each where they spread over a factor of three.

    Parameters
    ----------
    scores : ndarray of float64, shape (n,)
        As `round_scores` gives them.

    Returns
    -------
    bytes
        A code around the median, and which are zero.
    """
    codes = _score_codes(scores)
    centre = int(np.median(codes[scores > 0])) if (scores > 0).any() else 0
    numbers: Numbers = np.where(scores > 0, _zigzag(codes - centre) + np.uint64(1), np.uint64(0))
    k = rice_parameter(numbers)
    return varint(int(_zigzag(np.array([centre]))[0])) + bytes([k]) + rice_encode(numbers, k)


def decode_scores(data: Buffer, count: int) -> Floats:
    """Read what `encode_scores` wrote; anything else is a `ValueError`.

    Parameters
    ----------
    data : bytes
        From anyone.
    count : int
        n, as the receiver knows it.

    Returns
    -------
    ndarray of float64, shape (n,)
        Non-negative; possibly infinite, if the sender is no honest one.
    """
    (centre, k), code = read_varints(data, 2)
    numbers = rice_decode(code, count, k, MAX_CODE_SUM)
    codes = _unzigzag(np.maximum(numbers.astype(np.uint64), 1) - np.uint64(1)) + _unzigzag(
        np.array([centre], np.uint64)
    )
    with np.errstate(over="ignore"):
        return np.where(numbers > 0, _scores(codes), 0.0)


def _score_codes(scores: Floats) -> Codes:
    positive = np.where(scores > 0, scores, 1.0)
    return np.rint(np.log(positive) / LOG_STEP).astype(np.int64)


def _scores(codes: Codes) -> Floats:
    return np.asarray(np.exp(codes * LOG_STEP))


def round_with_dither(values: Floats, step: float, rng: np.random.Generator) -> Codes:
    """Round values to multiples of a step, shifted by a dither.

    Parameters
    ----------
    values : ndarray of float64, shape (m, r)
        Around zero.
    step : float
        Positive.
    rng : numpy.random.Generator
        Draws the dither: the receiver's must be in the same state.

    Returns
    -------
    ndarray of int64, shape (r, m)
        Codes, a row for each column of values.
    """
    scaled = np.asarray(values, dtype=np.float64).T / step
    if not (np.abs(scaled) < MAX_CODE).all():
        raise InputError(
            f"A step of {step:g} is too fine for values up to {np.abs(values).max():g}. Use a larger step."
        )
    scaled += _dither(scaled.shape, rng)
    return np.rint(scaled, out=scaled).astype(np.int64)


def restore_dithered(codes: Codes, step: float, rng: np.random.Generator) -> Floats:
    """Undo `round_with_dither`, up to an error that is uniform over a step and independent of the values.

    Parameters
    ----------
    codes : ndarray of int, shape (r, m)
        Codes.
    step : float
        The same.
    rng : numpy.random.Generator
        In the same state.

    Returns
    -------
    ndarray of float64, shape (m, r)
        Column-major. Unbiased: errors have mean 0 and variance step^2 / 12.
    """
    values = np.subtract(codes, _dither(codes.shape, rng), dtype=np.float64)
    values *= step
    return values.T


def _dither(shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.float32]:
    # Uniform from -1/2 to 1/2, in the middle of one of 2^16 cells: finer than any step needs, and quickly drawn.
    cells = np.frombuffer(rng.bytes(2 * int(np.prod(shape))), "<u2").reshape(shape)
    dither: npt.NDArray[np.float32] = np.multiply(cells, np.float32(2**-16), dtype=np.float32)
    dither += np.float32(2**-17 - 0.5)
    return dither


def encode_codes(codes: Codes) -> bytes:
    """Write codes by a Rice code with a parameter for each column.

    Parameters
    ----------
    codes : ndarray of int, shape (r, m)
        A row for each column of values.

    Returns
    -------
    bytes
        The parameters, a byte each; then, parameter by parameter, the columns that have it.
    """
    numbers = _zigzag(codes)
    parameters = rice_parameters(numbers)
    parts = [rice_encode(numbers[columns].ravel(), k) for k, columns in _groups(parameters)]
    lengths = [varint(len(part)) for part in parts]
    return bytes(parameters) + b"".join(length + part for length, part in zip(lengths, parts, strict=True))


def decode_codes(data: Buffer, n_columns: int, count: int) -> Codes:
    """Read what `encode_codes` wrote; anything else is a `ValueError`.

    Parameters
    ----------
    data : bytes
        From anyone.
    n_columns, count : int
        r and m, as the receiver knows them.

    Returns
    -------
    ndarray of int16 or int64, shape (r, m)
        The codes.
    """
    parameters = list(data[:n_columns])
    if len(parameters) != n_columns or n_columns * count > 8 * len(data):
        raise ValueError(f"{len(data)} bytes do not hold {count} codes of {n_columns} columns")
    rest, groups = data[n_columns:], []
    for k, columns in _groups(parameters):
        (length,), rest = read_varints(rest, 1)
        numbers = rice_decode(rest[:length], len(columns) * count, k, MAX_CODE_SUM)
        groups.append((columns, _unzigzag(numbers).reshape(len(columns), count)))
        rest = rest[length:]
    if len(rest):
        raise ValueError(f"{len(rest)} bytes after the last code")
    codes = np.empty((n_columns, count), np.result_type(np.int16, *(group for _, group in groups)))
    for columns, group in groups:
        codes[columns] = group
    return codes


def _groups(parameters: list[int]) -> list[tuple[int, list[int]]]:
    return [(k, [i for i, other in enumerate(parameters) if other == k]) for k in sorted(set(parameters))]


def _zigzag(codes: Codes) -> Numbers:
    # 0, -1, 1, -2, 2, ... become 0, 1, 2, 3, 4, ...
    folded = codes << 1
    folded ^= codes >> (8 * codes.dtype.itemsize - 1)
    return folded.view(f"u{codes.dtype.itemsize}")


def _unzigzag(numbers: Numbers) -> Codes:
    signed = (numbers >> 1).view(f"i{numbers.dtype.itemsize}")
    signed ^= -(numbers & 1).view(signed.dtype)
    return signed


def round_by_chance(values: Floats, bits: int, rng: np.random.Generator) -> bytes:
    """Round the rows of a matrix to `bits` bits a value, up or down so that each is right on average.

    Parameters
    ----------
    values : ndarray of float64, shape (m, d)
        Each row is rounded within its own largest magnitude, its scale.
    bits : int
        From 2 to 16.
    rng : numpy.random.Generator
        The rounder's own: nobody else needs it.

    Returns
    -------
    bytes
        A float32 scale a row, then the codes. A value is off by less than 2 scale / (2^bits - 2).
    """
    top = _top(bits)
    scales = _upwards(np.abs(values).max(axis=1, initial=0.0))
    unit = np.where(scales > 0, scales, 1.0)[:, np.newaxis] / top
    codes = np.floor(values / unit + rng.random(values.shape))
    numbers = (np.clip(codes, -top, top) + top).astype(np.uint64)
    return scales.astype("<f4").tobytes() + pack_bits(numbers.ravel(), bits)


def restore_rounded(data: Buffer, n_rows: int, n_columns: int, bits: int) -> Floats:
    """Read what `round_by_chance` wrote; anything else is a `ValueError`.

    Parameters
    ----------
    data : bytes
        From anyone.
    n_rows, n_columns : int
        m and d, as the receiver knows them.
    bits : int
        As agreed.

    Returns
    -------
    ndarray of float64, shape (m, d)
        Right on average.
    """
    top = _top(bits)
    if len(data) < 4 * n_rows:
        raise ValueError(f"{len(data)} bytes do not hold {n_rows} scales")
    scales = np.frombuffer(data[: 4 * n_rows], "<f4").astype(np.float64)
    if not (np.isfinite(scales).all() and (scales >= 0).all()):
        raise ValueError("a scale that is negative, infinite or no number")
    numbers = unpack_bits(data[4 * n_rows :], n_rows * n_columns, bits).reshape(n_rows, n_columns)
    if numbers.size and numbers.max() > 2 * top:
        raise ValueError(f"a code above {2 * top}")
    return (numbers.astype(np.float64) - top) * (scales[:, np.newaxis] / top)


def _top(bits: int) -> int:
    if isinstance(bits, bool) or not isinstance(bits, int) or not 2 <= bits <= 16:
        raise InputError(f"bits must be a whole number from 2 to 16, got {bits!r}. Pass for instance 8.")
    return int((1 << (bits - 1)) - 1)


def _upwards(scales: Floats) -> Floats:
    """Round to float32, never down: a value must stay within its scale."""
    if not (scales < float(np.finfo(np.float32).max)).all():
        raise InputError("A row has a value that no float32 holds. Rescale the columns.")
    narrow = scales.astype(np.float32)
    return np.where(narrow < scales, np.nextafter(narrow, np.float32(np.inf)), narrow).astype(np.float64)
