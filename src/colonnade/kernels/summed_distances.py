"""The nearest of some centres, where squared distances to them are sums over parties."""

from collections.abc import Callable, Sequence

import numpy as np

from colonnade.kernels.arrays import Floats, Rows

# Numbers that stay near, 2 MB, and rows of a piece.
NUMBERS_AT_ONCE, LEAST_AT_ONCE, MOST_AT_ONCE = 2**18, 2**8, 2**14
# Looks at a part's distances, shape (k, c), of some of its rows: it raises where they cannot be.
Look = Callable[[int, slice, Floats], None]


def nearest_of_sums(parts: Sequence[Floats], look: Look) -> tuple[Rows, Floats]:
    """Find each row's least sum of parts, all of shape (m, k), and where it is, the lowest among equals; both (m,).

    Parts are added in their order, piece by piece: each is read once, and fastest where it is column-major. `look` is
    shown a copy of every piece, which stays near, by the number of its part.
    """
    n_rows, k = parts[0].shape
    labels, nearest = np.empty(n_rows, np.int64), np.empty(n_rows)
    at_once = min(MOST_AT_ONCE, max(LEAST_AT_ONCE, NUMBERS_AT_ONCE // k))
    sums, copies = np.empty((2, k, min(at_once, n_rows)))
    for start in range(0, n_rows, at_once):
        rows = slice(start, min(start + at_once, n_rows))
        total, copy = sums[:, : rows.stop - start], copies[:, : rows.stop - start]
        for number, part in enumerate(parts):
            own = copy if number else total
            own[:] = part[rows].T
            look(number, rows, own)
            if number:
                total += own
        _put_least(total, labels[rows], nearest[rows])
    return labels, nearest


def _put_least(sums: Floats, labels: Rows, least: Floats) -> None:
    """Find the least of each column, shape (k, c), and the first line that it is in; both of shape (c,)."""
    k = len(sums)
    sums.min(axis=0, out=least)
    # The first line that has it counts most: one byte a number, for few lines.
    counts = np.arange(k, 0, -1, dtype=np.min_scalar_type(k))[:, np.newaxis]
    np.subtract(k, np.max((sums == least).view(np.uint8) * counts, axis=0), out=labels, dtype=np.int64)
