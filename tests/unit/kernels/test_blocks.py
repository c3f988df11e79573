"""Rows in blocks: which rows a block has, views of fewer columns or without weights, and rows by their ids."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.blocks import BLOCK_ROWS, Block, by_block, n_blocks_of, values_of
from colonnade.kernels.row_blocks import ArrayBlocks, FirstColumns, Unweighted, taken

N = 2 * BLOCK_ROWS + 100
VALUES = np.asfortranarray(np.random.default_rng(0).normal(size=(N, 3)))
WEIGHTS = np.random.default_rng(1).uniform(size=N)
ROWS = st.lists(st.integers(0, N - 1) | st.sampled_from([0, BLOCK_ROWS - 1, BLOCK_ROWS, N - 1]), min_size=1).map(sorted)


def whole(block: Block) -> Block:
    return block


@pytest.mark.parametrize("n_rows", [1, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, N])
def test_blocks_are_all_rows_in_order(n_rows: int) -> None:
    blocks = list(ArrayBlocks(VALUES[:n_rows], WEIGHTS[:n_rows]).map(whole))
    assert len(blocks) == n_blocks_of(n_rows)
    for number, block in enumerate(blocks):
        assert block.number == number
        np.testing.assert_array_equal(block.values, VALUES[:n_rows][block.rows])
        np.testing.assert_array_equal(block.weights, WEIGHTS[:n_rows][block.rows])
    assert sum(len(block.values) for block in blocks) == n_rows


def test_some_blocks_are_those_asked_for() -> None:
    found = list(ArrayBlocks(VALUES).map(whole, [0, 2]))
    assert [(block.number, len(block.values)) for block in found] == [(0, BLOCK_ROWS), (2, 100)]


def test_fewer_columns_and_no_weights() -> None:
    rows = ArrayBlocks(VALUES, WEIGHTS)
    narrow = list(FirstColumns(rows, 2).map(whole))
    np.testing.assert_array_equal(np.concatenate([block.values for block in narrow]), VALUES[:, :2])
    assert all(block.weights is not None for block in narrow)
    even = list(Unweighted(rows).map(whole, [1]))
    assert [(block.number, block.weights) for block in even] == [(1, None)]
    assert FirstColumns(rows, 2).n_rows == Unweighted(rows).n_rows == N


@given(ROWS)
def test_rows_by_their_ids_are_those_of_the_array(rows: list[int]) -> None:
    ids = np.array(rows)
    values, weights = taken(ArrayBlocks(VALUES, WEIGHTS), ids)
    np.testing.assert_array_equal(values, VALUES[ids])
    np.testing.assert_array_equal(weights, WEIGHTS[ids])
    values, nothing = taken(ArrayBlocks(VALUES), ids)
    np.testing.assert_array_equal(values, VALUES[ids])
    assert nothing is None
    grouped = by_block(ids // BLOCK_ROWS, ids)
    assert list(grouped) == sorted({row // BLOCK_ROWS for row in rows})
    assert all(own.tolist() == [row for row in rows if row // BLOCK_ROWS == number] for number, own in grouped.items())


def test_rows_are_copied_from_no_other_block() -> None:
    class Watched(ArrayBlocks):
        def map(self, work, numbers=None):  # type: ignore[no-untyped-def]
            assert numbers == [1]
            return super().map(work, numbers)

    values, _ = taken(Watched(VALUES), np.array([BLOCK_ROWS, BLOCK_ROWS + 7]))
    values[:] = 0.0
    assert VALUES[[BLOCK_ROWS, BLOCK_ROWS + 7]].all(), "a copy"
    assert len(list(ArrayBlocks(VALUES).map(values_of))) == 3
