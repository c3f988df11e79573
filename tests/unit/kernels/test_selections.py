"""Windows cut rows without gaps; all rows that count are never listed, and are what a list would be."""

import numpy as np
import pytest

from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.kernels.per_row import numbers_in
from colonnade.kernels.selections import (
    WINDOW_NUMBERS,
    CountedRows,
    ListedRows,
    Window,
    last_window,
    windows_of,
)
from colonnade.signing import rows_digest


@pytest.mark.parametrize("n_numbers", [0, 1, 3, 10, 16, 17, 1000])
@pytest.mark.parametrize("n_places", [0, 1, BLOCK_ROWS, BLOCK_ROWS + 1, WINDOW_NUMBERS, 2 * WINDOW_NUMBERS + 5])
def test_windows_follow_one_another(n_places: int, n_numbers: int) -> None:
    windows = list(windows_of(n_places, n_numbers))
    assert [window.first for window in windows] == [0, *(window.stop for window in windows[:-1])]
    assert windows[-1] == last_window(n_places, n_numbers)
    assert windows[-1].stop == n_places
    assert all(window.stop % BLOCK_ROWS == 0 for window in windows[:-1])
    assert all(window.is_of(n_places) for window in windows)
    assert sum(len(window.blocks) for window in windows) == -(-n_places // BLOCK_ROWS)
    block = BLOCK_ROWS * max(n_numbers, 1)
    sizes = {(window.stop - window.first) * max(n_numbers, 1) for window in windows[:-1]}
    assert all(WINDOW_NUMBERS - block < size <= max(WINDOW_NUMBERS, block) for size in sizes), "and no block more"


def test_few_rows_are_one_window_and_the_most_that_can_be_are_cut_at_once() -> None:
    assert list(windows_of(WINDOW_NUMBERS, 1)) == [Window(0, WINDOW_NUMBERS, 1)]
    assert last_window(1 << 40, 10).stop == 1 << 40


@pytest.mark.parametrize(
    "window",
    [
        Window(-BLOCK_ROWS, 0, 16),
        Window(0, BLOCK_ROWS + 1, 16),
        Window(0, 40_000, 16),
        Window(1, BLOCK_ROWS, 16),
        Window(BLOCK_ROWS, BLOCK_ROWS, 16),
        Window(BLOCK_ROWS, 40_000, 16),
        Window(40_000, 40_000, 16),
        Window(3 * BLOCK_ROWS, 40_000, 16),
    ],
)
def test_others_are_no_windows(window: Window) -> None:
    assert not window.is_of(40_000)


def test_rows_that_count_are_those_of_a_list() -> None:
    weights = np.random.default_rng(0).integers(0, 3, size=40_000).astype(float)
    for selection, ids in (
        (CountedRows(40_000, numbers_in(weights)), np.flatnonzero(weights)),
        (CountedRows(40_000), np.arange(40_000)),
    ):
        np.testing.assert_array_equal(selection.ids, ids)
        np.testing.assert_array_equal(np.concatenate(list(selection.by_block())), ids)
        assert rows_digest(selection) == rows_digest(ids)
        assert len(selection) == len(ids)
        pieces = list(selection.pieces(16))
        assert len(pieces) == 3
        assert [ids[piece.chosen].tolist() for piece in pieces] == [
            ids[(piece.window.first <= ids) & (ids < piece.window.stop)].tolist() for piece in pieces
        ]
        if selection.row_weights is not None:
            np.testing.assert_array_equal(np.concatenate([piece.weights for piece in pieces]), weights[ids])
            assert selection.weight == weights.sum()


def test_listed_rows_are_cut_by_place() -> None:
    rows, weights = np.repeat(np.arange(10_000), 4), np.arange(40_000.0)
    pieces = list(ListedRows(rows, weights).pieces(16))
    assert [len(piece) for piece in pieces] == [BLOCK_ROWS, BLOCK_ROWS, 40_000 - 2 * BLOCK_ROWS]
    np.testing.assert_array_equal(np.concatenate([piece.weights for piece in pieces]), weights)
