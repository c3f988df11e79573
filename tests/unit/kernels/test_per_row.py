"""A number for each row, block by block: all that is asked of it is what the array would say."""

import hashlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS, Block
from colonnade.kernels.per_row import KEPT_ROWS, PerRow, numbers_by, numbers_from, numbers_in, ones
from colonnade.kernels.row_blocks import ArrayBlocks

N = 2 * BLOCK_ROWS + 100


def some_numbers(n_rows: int) -> Floats:
    rng = np.random.default_rng(n_rows)
    return np.asarray(rng.lognormal(size=n_rows) * (rng.random(n_rows) < 0.7))


def first_column(block: Block) -> Floats:
    return block.values[:, 0]


def from_rows(values: Floats) -> PerRow:
    return numbers_from(ArrayBlocks(values[:, np.newaxis]), first_column)


def by_number(values: Floats) -> PerRow:
    return numbers_by(len(values), lambda number: values[number * BLOCK_ROWS : (number + 1) * BLOCK_ROWS])


def kept(values: Floats) -> PerRow:
    return from_rows(values).kept()


WAYS = pytest.mark.parametrize("way", [numbers_in, from_rows, by_number, kept])
LENGTHS = pytest.mark.parametrize("n_rows", [1, 50, BLOCK_ROWS, N])


@WAYS
@LENGTHS
def test_it_says_what_the_array_says(way: Callable[[Floats], PerRow], n_rows: int) -> None:
    values = some_numbers(n_rows) + (n_rows == 1)
    numbers = way(values)
    assert len(numbers) == numbers.n_rows == n_rows
    np.testing.assert_array_equal(np.asarray(numbers), values)
    np.testing.assert_array_equal(np.asarray(numbers, bool), values > 0)
    assert numbers.sum() == pytest.approx(values.sum(), rel=1e-13)
    assert numbers.block_totals.shape == (-(-n_rows // BLOCK_ROWS),)
    assert (numbers.max(), numbers.least_positive()) == (values.max(), values[values > 0].min())
    assert numbers.n_positive == np.count_nonzero(values)
    np.testing.assert_array_equal(numbers.positive_rows(), np.flatnonzero(values))
    assert numbers.fingerprint == hashlib.sha256(values.astype("<f8").tobytes()).digest()
    last = (n_rows - 1) // BLOCK_ROWS
    np.testing.assert_array_equal(numbers.block(last), values[last * BLOCK_ROWS :])


def test_whoever_computes_them_sums_have_the_same_bits() -> None:
    values = some_numbers(N)
    assert len({way(values).sum() for way in (numbers_in, from_rows, by_number, kept)}) == 1


MANY = some_numbers(N)


@given(st.lists(st.integers(0, N - 1) | st.sampled_from([0, BLOCK_ROWS - 1, BLOCK_ROWS, N - 1])), st.booleans())
def test_rows_in_any_order_and_repeatedly(rows: list[int], is_there: bool) -> None:
    ids = np.array(rows, np.int64)
    found = (numbers_in(MANY) if is_there else from_rows(MANY))[ids]
    np.testing.assert_array_equal(found, MANY[ids])
    assert found.shape == (len(rows),)


def test_only_blocks_that_are_asked_for_are_computed() -> None:
    asked: list[int] = []

    def watched(number: int) -> Floats:
        asked.append(number)
        return MANY[number * BLOCK_ROWS : (number + 1) * BLOCK_ROWS]

    numbers = numbers_by(N, watched)
    numbers[np.array([N - 1, 3, N - 1])]
    assert asked == [0, 2]
    assert numbers.sum() == numbers.sum()
    assert asked == [0, 2, 0, 1, 2], "once"


@WAYS
def test_numbers_made_of_numbers(way: Callable[[Floats], PerRow]) -> None:
    changed = way(MANY).changed(lambda number, values: values * (number + 1))
    expected = MANY * (np.arange(N) // BLOCK_ROWS + 1)
    np.testing.assert_array_equal(np.asarray(changed), expected)
    np.testing.assert_array_equal(changed[np.array([N - 1, 0])], expected[[N - 1, 0]])


def test_fingerprints_differ_where_any_number_does() -> None:
    other = MANY.copy()
    other[N - 1] = np.nextafter(other[N - 1], 9.0)
    assert numbers_in(other).fingerprint != numbers_in(MANY).fingerprint


def test_every_row_counts_1() -> None:
    assert np.asarray(ones(N)).tolist() == [1.0] * N


def test_more_rows_than_are_kept_are_computed_again() -> None:
    many = ones(KEPT_ROWS + 1)
    assert many.kept() is many
    assert ones(5).kept() is not ones(5)
