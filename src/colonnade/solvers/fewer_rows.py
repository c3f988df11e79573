"""Rows whose codes must not exceed some bytes.

Where they would, a party rounds more coarsely, up to a factor; and where that does not do, it leaves out rows, in an
order that all know. A row that is left out costs far more than some of its bits.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Rows
from colonnade.signing import rows_digest

T = TypeVar("T")
# Steps grow by this factor, and at most to so many times what was asked for.
COARSER, MOST_COARSER = 2**0.125, 2.0


def kept_rows(rows: Rows, n_kept: int) -> Rows:
    """Say which rows are left where so many are, by their places, ascending: with fewer, a part of the same ones."""
    if n_kept == len(rows):
        return np.arange(len(rows))
    # By the rows that were drawn: in an order that is the same in all runs, the same ones would always go.
    order = np.random.default_rng(int.from_bytes(rows_digest(rows)))
    return np.sort(order.permutation(len(rows))[:n_kept])


def coded_within(
    most: int | None, rows: Rows, step: float, encode: Callable[[Rows, float], tuple[T, bytes]]
) -> tuple[int, float, T]:
    """Code as many rows as `most` bytes hold; give their number, the step, and what `encode` gave beside the code.

    `encode` takes the places of the rows to code, and the step to round them by.
    """
    n_kept, coarser = len(rows), 1.0
    while n_kept > 0:
        found, code = encode(kept_rows(rows, n_kept), coarser * step)
        if most is None or len(code) <= most:
            return n_kept, coarser * step, found
        if coarser < MOST_COARSER:
            coarser = min(coarser * COARSER, MOST_COARSER)
        else:
            n_kept = min(n_kept - 1, max(int(n_kept * most / max(len(code), 1)), 1))
    raise InputError(f"Not a single row fits the {most} bytes that the server allows for rows. Allow more.")
