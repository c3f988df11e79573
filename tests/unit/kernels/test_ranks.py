"""Rows by ascending value: as a stable sort has them, whatever the values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.arrays import Floats
from colonnade.kernels.ranks import (
    DIGITS,
    ROWS_AT_ONCE,
    ascending,
    ascending_marked,
    each_of,
    firsts_of,
    groups_of,
    sums_by,
)

N = DIGITS + 4321
RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=N)
MANY = {
    "normal": NORMAL,
    "with ties": np.round(NORMAL, 2),
    "a few values": RNG.integers(0, 3, N).astype(float),
    "all the same": np.full(N, -0.25),
    "far": 1e80 * NORMAL,
    "some far": np.where(RNG.random(N) < 0.01, 1e80, NORMAL),
    "near each other": 1.0 + 1e-14 * NORMAL,
    "falling where codes are equal": np.repeat(NORMAL, 3)[:N] - 1e-12 * np.tile([0, 1, 2], N)[:N],
    "beyond 40": 50.0 + NORMAL,
    "tiny": 1e-300 * NORMAL,
    "zeros of both signs": np.where(RNG.random(N) < 0.5, -0.0, 0.0),
}


@pytest.mark.parametrize("name", MANY)
def test_many_values_are_sorted_as_by_a_stable_sort(name: str) -> None:
    values = MANY[name]
    expected = np.argsort(values, kind="stable")
    order, ordered = ascending(values)
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(ordered, values[expected])


def next_to_each_other() -> Floats:
    """Draw values of which many differ in their last bit alone."""
    bits = NORMAL.view(np.int64) >> 3 << 3
    return (bits + RNG.integers(0, 4, N)).view(np.float64)


@pytest.mark.parametrize("name", [*MANY, "next to each other", "beyond all logits", "none"])
def test_marks_go_with_their_values_and_no_bit_is_lost(name: str) -> None:
    more = {"next to each other": next_to_each_other(), "beyond all logits": 1e200 * NORMAL, "none": np.empty(0)}
    values = (MANY | more)[name]
    marks = RNG.random(len(values)) < 0.3
    before = values.copy()
    ordered, found = ascending_marked(values, marks)
    np.testing.assert_array_equal(values, before)
    np.testing.assert_array_equal(ordered, np.sort(values))
    for mark in (True, False):
        np.testing.assert_array_equal(ordered[found == mark], np.sort(values[marks == mark]))


def test_pieces_are_cut_between_different_values() -> None:
    ordered = np.sort(np.concatenate([np.full(3 * ROWS_AT_ONCE, 0.5), np.round(NORMAL, 3)]))
    pieces = groups_of(ordered)
    np.testing.assert_array_equal(np.concatenate([ordered[piece] for piece in pieces]), ordered)
    assert all(ordered[piece.start - 1] < ordered[piece.start] for piece in pieces[1:])
    assert max(piece.stop - piece.start for piece in pieces if ordered[piece.start] != 0.5) < 3 * ROWS_AT_ONCE
    assert len(pieces) > 3
    assert groups_of(np.empty(0)) == []


@given(st.lists(st.integers(-3, 3), max_size=40))
def test_sums_by_value_are_those_of_its_rows(numbers: list[int]) -> None:
    values = np.array(numbers, dtype=float)
    order, ordered = ascending(values)
    weights: Floats = np.arange(1.0, len(values) + 1)
    firsts = firsts_of(ordered)
    by_value = sums_by(firsts, weights[order])
    expected = [weights[values == value].sum() for value in np.unique(values)]
    assert by_value.tolist() == expected
    each = each_of(firsts, len(values), by_value)
    assert each.tolist() == [weights[values == value].sum() for value in ordered]
