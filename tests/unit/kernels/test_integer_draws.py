import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.integer_draws import (
    count_even,
    even_rows,
    high_product,
    on_grid,
    rows_at,
    shares,
    steps_in,
    stratified_points,
    to_steps,
    uniform_words,
)
from colonnade.kernels.per_row import numbers_in

keys = st.binary(max_size=8)
words = st.integers(0, 2**64 - 1)


@given(st.lists(words, max_size=20), words)
def test_the_high_half_of_a_product(numbers: list[int], factor: int) -> None:
    found = high_product(np.array(numbers, dtype=np.uint64), factor)
    assert found.tolist() == [number * factor >> 64 for number in numbers]


@given(st.integers(1, 2**63 - 1), st.integers(0, 300), keys)
def test_points_are_those_of_arithmetic_without_limits(total: int, count: int, key: bytes) -> None:
    within = [int(u) * total >> 64 for u in uniform_words(key, count)]
    points = stratified_points(total, count, key)
    assert points.tolist() == [(t * total + r) // count for t, r in enumerate(within)]
    assert all(t * total // count <= p <= (t + 1) * total // count for t, p in enumerate(points.tolist()))
    assert (points < total).all()


def test_the_largest_draw_does_not_wrap_round() -> None:
    total, count = 2**63 - 1, 1 << 24
    points = stratified_points(total, count, b"large")
    within = int(high_product(uniform_words(b"large", count)[-1:], total)[0])
    assert int(points[-1]) == ((count - 1) * total + within) // count
    assert (points[1:] > points[:-1]).all()


def test_draws_are_the_same_on_every_machine() -> None:
    """Numbers written down once: a processor or a library that gives others breaks every audit."""
    assert uniform_words(b"key", 3).tolist() == [
        int.from_bytes(hashlib.shake_256(b"key").digest(24)[8 * i : 8 * i + 8], "little") for i in range(3)
    ]
    steps = np.arange(1, 101, dtype=np.uint64) * np.uint64(2**50 + 12_345)
    rows = rows_at(steps_in(steps), stratified_points(int(steps.sum()), 12, b"golden"))
    assert rows.tolist() == [24, 31, 48, 50, 63, 69, 73, 77, 84, 86, 92, 98]
    assert shares([3 * 2**61, 2**61, 2**60], 1000, b"golden").tolist() == [667, 226, 107]
    assert even_rows(1000, 6, b"golden").tolist() == [44, 227, 742, 831, 875, 896]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=30), st.integers(40, 55))
def test_what_is_on_the_grid_is_counted_exactly_and_nothing_vanishes(values: list[float], exponent: int) -> None:
    array = np.array(values)
    rounded = on_grid(array, exponent)
    steps = to_steps(rounded, exponent)
    assert [int(s) * 2.0**-exponent for s in steps] == rounded.tolist()
    assert ((steps > 0) == (array > 0)).all()
    assert (np.abs(rounded - array) <= 2.0**-exponent).all()
    np.testing.assert_array_equal(on_grid(rounded, exponent), rounded)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20).filter(any), keys)
def test_a_row_is_drawn_where_its_part_of_the_line_lies(scores: list[int], key: bytes) -> None:
    steps = np.array(scores, dtype=np.uint64)
    line = np.repeat(np.arange(len(scores)), scores)
    points = stratified_points(int(steps.sum()), 7, key)
    assert rows_at(steps_in(steps), points).tolist() == line[points.astype(np.int64)].tolist()


@given(st.lists(st.integers(1, 2**62), min_size=1, max_size=60), st.integers(0, 200), keys)
def test_shares_are_those_of_arithmetic_without_limits(totals: list[int], count: int, key: bytes) -> None:
    ends = np.cumsum(np.array(totals, dtype=object))
    expected = [0] * len(totals)
    for u in uniform_words(key, count).tolist():
        point = u * int(ends[-1]) >> 64
        expected[int(np.searchsorted(ends, point, side="right"))] += 1
    assert shares(totals, count, key).tolist() == expected


def test_shares_follow_totals_within_five_sigma() -> None:
    found = shares([3 * 2**61, 2**61], 40_000, b"law")
    assert found[0] == pytest.approx(30_000, abs=5 * np.sqrt(40_000 * 0.75 * 0.25))


def test_even_draws_follow_their_share_and_the_weights() -> None:
    assert (count_even(0.0, 100, b"k"), count_even(1.0, 100, b"k")) == (0, 100)
    assert count_even(0.3, 40_000, b"k") == pytest.approx(12_000, abs=5 * np.sqrt(40_000 * 0.21))
    weights = np.array([0.0, 1.0, 3.0, 0.0])
    rows = even_rows(4, 40_000, b"k", numbers_in(weights))
    assert set(rows.tolist()) == {1, 2}
    assert np.count_nonzero(rows == 2) == pytest.approx(30_000, abs=5 * np.sqrt(40_000 * 0.75 * 0.25))
    np.testing.assert_array_equal(rows, even_rows(4, 40_000, b"k", numbers_in(8 * weights)))


def test_points_on_rows_of_many_blocks_are_as_on_one_line() -> None:
    rng = np.random.default_rng(0)
    steps = rng.integers(0, 2**40, size=100_000).astype(np.uint64)
    steps[20_000:60_000] = 0  # blocks on which nothing falls
    points = stratified_points(int(steps.sum()), 5_000, b"key")
    wanted = np.searchsorted(np.cumsum(steps), points, side="right")
    np.testing.assert_array_equal(rows_at(steps_in(steps), points), wanted)
    assert rows_at(steps_in(steps), points[:0]).tolist() == []
