"""Rows by ascending value: as a stable sort has them, whatever the values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.arrays import Floats
from colonnade.kernels.ranks import DIGITS, ascending, each_of, firsts_of, sums_by

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
