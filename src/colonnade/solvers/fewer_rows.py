"""Rows whose codes must not exceed some bytes: where they would, a party leaves out rows, in an order that all know."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Rows
from colonnade.signing import rows_digest

T = TypeVar("T")


def kept_rows(rows: Rows, n_kept: int) -> Rows:
    """Say which rows are left where so many are, by their places, ascending: with fewer, a part of the same ones."""
    if n_kept == len(rows):
        return np.arange(len(rows))
    # By the rows that were drawn: in an order that is the same in all runs, the same ones would always go.
    order = np.random.default_rng(int.from_bytes(rows_digest(rows)))
    return np.sort(order.permutation(len(rows))[:n_kept])


def coded_within(most: int | None, rows: Rows, encode: Callable[[Rows], tuple[T, bytes]]) -> tuple[int, T]:
    """Code as many rows as `most` bytes hold; give their number, and what `encode` gave beside the code.

    `encode` takes the places of the rows to code.
    """
    n_kept = len(rows)
    while n_kept > 0:
        found, code = encode(kept_rows(rows, n_kept))
        if most is None or len(code) <= most:
            return n_kept, found
        n_kept = min(n_kept - 1, max(int(n_kept * most / max(len(code), 1)), 1))
    raise InputError(f"Not a single row fits the {most} bytes that the server allows for rows. Allow more.")
