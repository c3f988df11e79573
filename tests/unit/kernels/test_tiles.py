"""Tiles hold the rows, whatever their number and layout, and pieces of them are all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.tiles import TILE_ROWS, VALUES_IN_PIECE, pieces, rows_in, tiled, with_ones


@given(st.integers(0, 3 * TILE_ROWS + 1), st.integers(0, 3), st.sampled_from("CF"))
def test_every_row_is_in_its_place_and_the_rest_is_zero(n_rows: int, d: int, order: str) -> None:
    X = np.asarray(np.random.default_rng(n_rows).normal(size=(n_rows, d)), order=order)  # type: ignore[call-overload]
    tiles = tiled(X, np.float64)
    assert tiles.shape == (-(-n_rows // TILE_ROWS), d + 1, TILE_ROWS)
    np.testing.assert_array_equal(rows_in(tiles, np.arange(n_rows)), X)
    flat = tiles.transpose(0, 2, 1).reshape(-1, d + 1)
    assert (flat[:n_rows, -1] == 1).all()
    assert (flat[n_rows:] == 0).all()


def test_rows_are_rounded_to_the_precision_asked_for() -> None:
    X = np.array([[0.1, 1e300]])
    with np.errstate(over="ignore"):
        tiles = tiled(X, np.float32)
    assert tiles.dtype == np.float32
    assert tiles[0, 0, 0] == np.float32(0.1)


@pytest.mark.parametrize("n_values", [0, 1, 10, 1000])
@pytest.mark.parametrize("n_rows", [0, 1, 256, 257, 16_384])
def test_pieces_are_all_rows_in_turn_and_cut_between_tiles(n_rows: int, n_values: int) -> None:
    found = list(pieces(n_rows, n_values))
    assert [row for piece in found for row in range(piece.start, piece.stop)] == list(range(n_rows))
    assert all(piece.start % TILE_ROWS == 0 for piece in found)
    assert all((piece.stop - piece.start) * n_values <= max(VALUES_IN_PIECE, TILE_ROWS * n_values) for piece in found)


@given(st.integers(0, 40), st.integers(0, 3), st.sampled_from("CF"))
def test_rows_column_by_column_end_with_ones(n_rows: int, d: int, order: str) -> None:
    X = np.asarray(np.random.default_rng(n_rows).normal(size=(n_rows, d)), order=order)  # type: ignore[call-overload]
    columns = with_ones(X, np.float32)
    assert columns.dtype == np.float32
    np.testing.assert_array_equal(columns, np.column_stack([X, np.ones(n_rows)]).T.astype(np.float32))
