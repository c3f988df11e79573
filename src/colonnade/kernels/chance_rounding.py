"""Rows in few bits a value, each row with a scale of its own: rounded up or down by chance, right on average."""

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.bits import Buffer, pack_bits, unpack_bits


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
