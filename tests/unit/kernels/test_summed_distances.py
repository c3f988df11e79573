"""The nearest centre of sums over parties: the lowest among equals, of whatever many centres."""

import numpy as np
import pytest

from colonnade.kernels.arrays import Floats
from colonnade.kernels.summed_distances import nearest_of_sums


def unseen(_number: int, _rows: slice, _distances: Floats) -> None:
    """Look at nothing."""


@pytest.mark.parametrize("k", [1, 2, 10, 255, 256, 300])
@pytest.mark.parametrize("m", [0, 1, 9000])
def test_the_nearest_is_the_least_sum_and_the_lowest_among_equals(m: int, k: int) -> None:
    rng = np.random.default_rng(k)
    parts = [np.asfortranarray(rng.integers(0, 4, size=(m, k)).astype(float)) for _ in range(3)]
    labels, nearest = nearest_of_sums(parts, unseen)
    total = parts[0] + parts[1] + parts[2]
    np.testing.assert_array_equal(labels, total.argmin(axis=1) if m else np.empty(0))
    np.testing.assert_array_equal(nearest, total.min(axis=1) if m else np.empty(0))


@pytest.mark.parametrize("k", [3, 200])
def test_no_bit_depends_on_how_parts_lie_in_memory(k: int) -> None:
    """In one process they come column by column, and row by row from another one."""
    rng = np.random.default_rng(0)
    parts = [rng.exponential(size=(20_000, k)) for _ in range(3)]
    by_column = nearest_of_sums([np.asfortranarray(part) for part in parts], unseen)
    for one, other in zip(by_column, nearest_of_sums(parts, unseen), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("order", ["C", "F"])
def test_every_number_of_every_part_is_looked_at_once(order: str) -> None:
    rng = np.random.default_rng(0)
    parts = [np.asarray(rng.exponential(size=(20_000, 7)), order=order) for _ in range(2)]  # type: ignore[call-overload]  # one of two
    seen = [np.zeros((20_000, 7)) for _ in parts]

    def look(number: int, rows: slice, distances: Floats) -> None:
        seen[number][rows] += distances.T

    nearest_of_sums(parts, look)
    for part, own in zip(parts, seen, strict=True):
        np.testing.assert_array_equal(own, part)


def test_what_a_look_objects_to_ends_it() -> None:
    def look(number: int, rows: slice, _: Floats) -> None:
        if number == 1 and rows.start > 0:
            raise ValueError("seen")

    with pytest.raises(ValueError, match="seen"):
        nearest_of_sums([np.ones((20_000, 20)), np.ones((20_000, 20))], look)
