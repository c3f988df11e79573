"""Rows in tiles of 256, column by column: the shape in which work on rows and centres is fastest, and always the same.

Matrix products of this size are the fastest that BLAS has, and their temporaries stay in the cache. Since every tile
has as many rows, what comes of a row depends on no other.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.kernels.arrays import Rows

TILE_ROWS = 256
# Numbers in a temporary of work on some tiles: a megabyte in 64 bits.
VALUES_AT_ONCE = 2**17
# In one of work on rows that are compared with centres: a megabyte in 32 bits.
VALUES_IN_PIECE = 2**18

Coarse = NDArray[np.floating[Any]]  # of 32 or 64 bits


def with_ones(X: Coarse, precision: "np.dtype[np.floating[Any]] | type[np.floating[Any]]") -> Coarse:
    """Copy rows, (n, d), column by column, with a column of ones: shape (d + 1, n)."""
    columns = np.empty((X.shape[1] + 1, len(X)), precision)
    columns[:-1], columns[-1] = X.T, 1
    return columns


def tiled(X: Coarse, precision: "np.dtype[np.floating[Any]] | type[np.floating[Any]]") -> Coarse:
    """Copy rows, (n, d), into tiles, (t, d + 1, 256), with a column of ones; the last is filled up by zeros."""
    n_rows, d = X.shape
    n_whole = n_rows // TILE_ROWS
    tiles = np.empty((-(-n_rows // TILE_ROWS), d + 1, TILE_ROWS), precision)
    end = n_whole * TILE_ROWS
    tiles[:n_whole, :-1] = X[:end].T.reshape(d, n_whole, TILE_ROWS).transpose(1, 0, 2)
    tiles[:, -1] = 1
    if end < n_rows:
        tiles[-1, :-1, : n_rows - end] = X[end:].T
        tiles[-1, :, n_rows - end :] = 0
    return tiles


def rows_in(tiles: Coarse, places: Rows) -> Coarse:
    """Copy the rows at these places of all tiles' rows in turn, (c, d)."""
    found: Coarse = tiles[places // TILE_ROWS, :-1, places % TILE_ROWS]
    return found


def cut(n_tiles: int, n_values: int) -> Iterator[slice]:
    """Cut tiles into pieces that make temporaries of a good size with so many numbers a row in them."""
    n_at_once = max(1, VALUES_AT_ONCE // (TILE_ROWS * max(1, n_values)))
    return (slice(start, start + n_at_once) for start in range(0, n_tiles, n_at_once))


def pieces(n_rows: int, n_values: int, n_at_once: int = VALUES_IN_PIECE) -> Iterator[slice]:
    """Cut rows likewise, into whole tiles but for the last."""
    n_tile_rows = max(1, n_at_once // (TILE_ROWS * max(1, n_values))) * TILE_ROWS
    return (slice(start, min(start + n_tile_rows, n_rows)) for start in range(0, n_rows, n_tile_rows))
