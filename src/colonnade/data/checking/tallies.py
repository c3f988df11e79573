"""Counts how many different values there are, and how many rows each has, without holding them: by hashes."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from colonnade.kernels.key_texts import Words

Counts = npt.NDArray[np.int64]

# Different values that are counted at once, 128 MB of them with their counts; more are in several passes.
MOST_VALUES = 1 << 23
# Values that wait before they are counted.
WAITING = 1 << 20


def tallies(read: Callable[[], Iterator[Words]], n_rows: int) -> Iterator[Counts]:
    """Count the rows of each different value, of which hashes are read, in one part or in several."""
    counts = _counts(read(), 1, 0)
    if counts is not None:
        yield counts
        return
    n_parts = -(-n_rows // MOST_VALUES) + 1
    for part in range(n_parts):
        counts = _counts(read(), n_parts, part, most=n_rows)
        yield np.empty(0, np.int64) if counts is None else counts


def _counts(pieces: Iterator[Words], n_parts: int, part: int, most: int | None = None) -> Counts | None:
    """Count the values of one part of so many; None where there are too many different ones."""
    most = MOST_VALUES if most is None else most
    values, counts = np.empty(0, np.uint64), np.empty(0, np.int64)
    waiting: list[Words] = []
    for piece in pieces:
        waiting.append(piece if n_parts == 1 else piece[piece % np.uint64(n_parts) == np.uint64(part)])
        if sum(map(len, waiting)) > WAITING + len(values):
            values, counts = _added(values, counts, waiting)
            waiting = []
            if len(values) > most:
                return None
    return _added(values, counts, waiting)[1]


def _added(values: Words, counts: Counts, more: list[Words]) -> tuple[Words, Counts]:
    every = np.concatenate([values, *more])
    sizes = np.concatenate([counts, np.ones(len(every) - len(values), np.int64)])
    order = np.argsort(every, kind="stable")
    every, sizes = every[order], sizes[order]
    firsts = np.flatnonzero(np.append(True, every[1:] != every[:-1])) if len(every) else np.arange(0)
    return every[firsts], np.add.reduceat(sizes, firsts) if len(firsts) else sizes
