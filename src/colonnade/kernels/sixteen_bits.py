"""Numbers in 16 bits: predictions rounded evenly and right on average, distances rounded in logarithm.

Predictions of several parties are added and may cancel, so their error must be small in absolute terms: multiples of a
step, with a dither that both ends draw from one seed. The error is uniform over a step whatever the value: its mean is
zero, its variance step^2 / 12, and it is half a step at most. Distances are only ever added, so a relative error of
each is one of their sum.
"""

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats
from colonnade.kernels.bits import Buffer

Codes16 = npt.NDArray[np.uint16]

# Steps from the least value to the largest; the dither needs a little room at both ends.
STEPS = 65_000
# Distances are off by half of this at most, relative; those below exp(-40) of the largest count as zero.
LOG_STEP = 6.1e-4
ZERO = 65_535


def round_evenly(values: Floats, rng: np.random.Generator) -> tuple[float, float, bytes]:
    """Round finite values, at least one, to multiples of a step of a 65,000th of their range.

    Gives the least value, the step, which is positive, and two bytes a value. The generator draws the dither: the
    receiver's must be in the same state.
    """
    low, high = float(values.min()), float(values.max())
    # Where all values are nearly the same, a step that is small beside them will do.
    step = max(high - low, 1e-9 * abs(low), 1e-90) / STEPS
    codes = np.rint((values - low) / step + _dither(len(values), rng))
    return low, step, codes.astype("<u2").tobytes()


def restore_evenly(low: float, step: float, codes: Buffer, count: int, rng: np.random.Generator) -> Floats:
    """Undo `round_evenly`, up to half a step; other than two bytes a value is a `ValueError`."""
    return np.asarray(low + step * (_read(codes, count) - _dither(count, rng)))


def round_logarithms(distances: Floats) -> tuple[float, bytes]:
    """Round squared distances, zero or more, to less than 0.031 % of themselves.

    Gives the largest, positive, which codes are relative to, and two bytes a number, row by row.
    """
    largest = float(distances.max(initial=0.0)) or 1.0
    with np.errstate(divide="ignore"):
        steps = np.rint(np.log(largest / np.where(distances > 0, distances, 0.0)) / LOG_STEP)
    return largest, np.where(steps < ZERO, steps, ZERO).astype("<u2").tobytes()


def restore_logarithms(largest: float, codes: Buffer, shape: tuple[int, int]) -> Floats:
    """Undo `round_logarithms`, up to its rounding; other than two bytes a number is a `ValueError`."""
    steps = _read(codes, shape[0] * shape[1]).reshape(shape)
    return np.where(steps < ZERO, largest * np.exp(-LOG_STEP * steps), 0.0)


def _dither(count: int, rng: np.random.Generator) -> Floats:
    return rng.random(count) - 0.5


def _read(codes: Buffer, count: int) -> Codes16:
    if len(codes) != 2 * count:
        raise ValueError(f"{len(codes)} bytes, which are not {count} codes of 16 bits")
    return np.frombuffer(codes, "<u2").astype(np.uint16)
