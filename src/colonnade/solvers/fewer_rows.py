"""Rows whose codes must not exceed some bytes: where they would, a party leaves out rows, in an order that all know."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Rows

T = TypeVar("T")
# Rows were drawn by chance: which places among them go first need not be.
ORDER = 0


def kept_rows(n_rows: int, n_kept: int) -> Rows:
    """Say which of so many rows are left, by their places, ascending: with fewer, a part of the same ones."""
    if n_kept == n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(ORDER).permutation(n_rows)[:n_kept])


def coded_within(most: int | None, n_rows: int, encode: Callable[[Rows], tuple[T, bytes]]) -> tuple[int, T]:
    """Code as many rows as `most` bytes hold; give their number, and what `encode` gave beside the code.

    `encode` takes the places of the rows to code.
    """
    n_kept = n_rows
    while n_kept > 0:
        found, code = encode(kept_rows(n_rows, n_kept))
        if most is None or len(code) <= most:
            return n_kept, found
        n_kept = min(n_kept - 1, max(int(n_kept * most / max(len(code), 1)), 1))
    raise InputError(f"Not a single row fits the {most} bytes that the server allows for rows. Allow more.")
