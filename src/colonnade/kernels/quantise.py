"""Values in few bits, right on average: rounded to multiples of a step, with a dither that both ends share.

A dither that both ends draw from one seed is added before rounding and taken off again afterwards: the error is then
uniform over a step whatever the value, so its mean is zero and its variance step^2 / 12. Codes travel by a Rice code.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.bits import (
    Buffer,
    Numbers,
    read_varints,
    rice_decode,
    rice_encode,
    rice_parameter,
    rice_parameters,
    varint,
)

Codes = npt.NDArray[np.signedinteger[Any]]

# Of a code, and of all codes together; steps so fine that codes are larger save nothing.
MAX_CODE = 1 << 40
MAX_CODE_SUM = 1 << 62
# Codes up to this fit two bytes when their signs are folded in.
SMALL_CODE = 1 << 14
# Columns are coded in runs of so many numbers. Both ends must agree on it.
CHUNK_NUMBERS = 1 << 17
SMALLEST_STEP, LARGEST_STEP = 1e-6, 16.0


def checked_step(step: float) -> float:
    """Require a step, in units of a column's standard deviation, that rounds, but not everything to nothing."""
    if isinstance(step, bool) or not isinstance(step, float | int) or not SMALLEST_STEP <= step <= LARGEST_STEP:
        raise InputError(
            f"step must be a number from {SMALLEST_STEP:g} to {LARGEST_STEP:g} standard deviations, got {step!r}. "
            "Pass for instance step=0.5."
        )
    return float(step)


def round_with_dither(values: Floats, step: float, rng: np.random.Generator) -> Codes:
    """Round values around zero, shape (m, r), to multiples of a step, shifted by a dither; codes have shape (r, m).

    They are int16 or int64. The generator draws the dither: the receiver's must be in the same state.
    """
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0))) / step
    if not largest < MAX_CODE:
        raise InputError(f"A step of {step:g} is too fine for values so many times as large. Use a larger step.")
    small = largest + 1 < SMALL_CODE
    codes: Codes = np.empty(values.shape[::-1], np.int16 if small else np.int64)
    for some in _chunks(*codes.shape):
        scaled = np.divide(values.T[some], step, order="C")
        if small:
            scaled = scaled.astype(np.float32)  # a thousandth of a step at most, and twice as fast
        scaled += draw_dither(scaled.shape, rng)
        codes[some] = np.rint(scaled, out=scaled)
    return codes


def restore_dithered(codes: Codes, step: float, rng: np.random.Generator) -> Floats:
    """Undo `round_with_dither`, up to an error that is uniform over a step and independent of the values.

    The generator is in the same state. Values (m, r) are column-major; errors have mean 0 and variance step^2 / 12.
    """
    values = np.empty(codes.shape)
    for some in _chunks(*codes.shape):
        np.subtract(codes[some], draw_dither(codes[some].shape, rng), out=values[some])
        values[some] *= step
    return values.T


def draw_dither(shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """Draw numbers from -1/2 to just below 1/2: multiples of 2^-16, finer than any step needs."""
    count = math.prod(shape)
    words = rng.bit_generator.random_raw(-(-count // 4)).astype("<u8", copy=False)
    dither: npt.NDArray[np.float32] = words.view("<i2")[:count].reshape(shape).astype(np.float32)
    dither *= np.float32(2**-16)
    return dither


def encode_codes(codes: Codes) -> bytes:
    """Write codes, shape (r, m), by a Rice code with a parameter for each of the r columns of values.

    First come the parameters, a byte each; then runs of columns, in the order of their parameters, each after its
    length.
    """
    numbers = zigzag(codes)
    parameters = rice_parameters(numbers)
    parts = [rice_encode(numbers[some], [parameters[j] for j in some]) for some in _runs(parameters, codes.shape[1])]
    return bytes(parameters) + b"".join(varint(len(part)) + part for part in parts)


def expected_bits(values: Floats, step: float, shares: Floats) -> Floats:
    """Count the bits of each row of values, (m, r), on average over the dither, where parameters suit rows by shares.

    The shares, (m,), are how often each row occurs among those that are encoded, relative.
    """
    scaled = values.T / step
    below = np.floor(scaled)
    above = scaled - below  # how often the code is the next one
    low, high = (np.abs(2 * below + shift) - 0.5 for shift in (0.5, 2.5))  # signs folded in, as `zigzag` does
    means: list[float] = ((low + above * (high - low)) @ (shares / shares.sum())).tolist()
    parameters = np.array([rice_parameter(mean) for mean in means], np.int64)
    low, high = (np.floor(np.ldexp(each, -parameters[:, np.newaxis])) for each in (low, high))
    return np.asarray((low + above * (high - low)).sum(axis=0) + float(parameters.sum()) + len(parameters))


def decode_codes(data: Buffer, n_columns: int, count: int) -> Codes:
    """Read what `encode_codes` wrote, r columns of m codes, as int16 or int64; anything else is a `ValueError`."""
    parameters = list(data[:n_columns])
    if len(parameters) != n_columns or n_columns * count > 8 * len(data):
        raise ValueError(f"{len(data)} bytes do not hold {count} codes of {n_columns} columns")
    rest, parts = data[n_columns:], []
    runs = _runs(parameters, count)
    for some in runs:
        (length,), rest = read_varints(rest, 1)
        parts.append(rice_decode(rest[:length], count, [parameters[j] for j in some], MAX_CODE_SUM))
        rest = rest[length:]
    if len(rest):
        raise ValueError(f"{len(rest)} bytes after the last code")
    folded = np.empty((n_columns, count), max((part.dtype for part in parts), default=np.dtype(np.uint16)))
    for some, part in zip(runs, parts, strict=True):
        folded[some] = part
    return unzigzag(folded)


def _runs(parameters: list[int], count: int) -> list[list[int]]:
    """List columns in the order of their parameters, not too many at a time."""
    order = sorted(range(len(parameters)), key=parameters.__getitem__)
    return [order[some] for some in _chunks(len(order), count)]


def _chunks(n_columns: int, count: int) -> list[slice]:
    """Cut columns of `count` numbers into runs that stay in cache: fresh memory is slower than arithmetic."""
    length = max(CHUNK_NUMBERS // max(count, 1), 1)
    return [slice(start, start + length) for start in range(0, n_columns, length)]


def zigzag(codes: Codes) -> Numbers:
    """Fold signs in: 0, -1, 1, -2, 2, ... become 0, 1, 2, 3, 4, ..."""
    folded = codes << 1
    folded ^= codes >> (8 * codes.dtype.itemsize - 1)
    return folded.view(f"u{codes.dtype.itemsize}")


def unzigzag(numbers: Numbers) -> Codes:
    """Undo `zigzag`."""
    signed = (numbers >> 1).view(f"i{numbers.dtype.itemsize}")
    signed ^= -(numbers & 1).view(signed.dtype)
    return signed
