"""Rows within some bytes: as many as fit, of which all parties know the places."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.errors import InputError
from colonnade.kernels.arrays import Rows
from colonnade.solvers.fewer_rows import COARSER, MOST_COARSER, coded_within, kept_rows


@given(st.integers(1, 300), st.data())
def test_places_ascend_and_fewer_are_among_more(n_rows: int, data: st.DataObject) -> None:
    n_kept = data.draw(st.integers(1, n_rows))
    kept, more = (
        kept_rows(np.arange(n_rows), n_kept),
        kept_rows(np.arange(n_rows), data.draw(st.integers(n_kept, n_rows))),
    )
    assert len(kept) == n_kept
    assert kept[0] >= 0
    assert kept[-1] < n_rows
    assert np.all(np.diff(kept) > 0)
    assert np.isin(kept, more).all()
    np.testing.assert_array_equal(kept, kept_rows(np.arange(n_rows), n_kept))


def test_all_are_kept_where_all_may_be() -> None:
    np.testing.assert_array_equal(kept_rows(np.arange(9), 9), np.arange(9))


def test_other_rows_go_in_another_order() -> None:
    """The same in all runs, the same rows would go where draws have rows in common."""
    orders = {tuple(kept_rows(np.arange(20) + first, 10).tolist()) for first in range(10)}
    assert len(orders) == 10


def test_no_part_of_the_rows_is_left_out_by_preference() -> None:
    """Of 10,000 rows, half are kept: of any tenth of them 500, give or take 15. Seeds are fixed; 75 are five of it."""
    tenths = np.bincount(kept_rows(np.arange(10_000), 5_000) // 1000, minlength=10)
    assert np.abs(tenths - 500).max() < 75


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(0, 40), st.integers(-5, 2000))
def test_codes_are_never_longer_than_allowed(lengths: list[int], header: int, most: int) -> None:
    """Rows of any lengths, after a header: all where they fit, none too many, or a refusal where not even one does.

    However coarsely they are rounded, these are as long: rows of levels alone.
    """

    def encode(places: Rows, step: float) -> tuple[list[int], bytes]:
        assert 0.5 <= step <= 0.5 * MOST_COARSER
        return places.tolist(), bytes(header + sum(lengths[place] for place in places))

    rows = np.arange(len(lengths))
    every = header + sum(lengths)
    first = header + lengths[int(kept_rows(rows, 1)[0])]
    if first > most:
        with pytest.raises(InputError, match=rf"Not a single row fits the {most} bytes .* Allow more"):
            coded_within(most, rows, 0.5, encode)
        return
    size, step, places = coded_within(most, rows, 0.5, encode)
    assert places == kept_rows(rows, size).tolist()
    assert header + sum(lengths[place] for place in places) <= most
    assert (size == len(lengths)) == (every <= most)
    assert (step == 0.5) == (every <= most)
    assert coded_within(None, rows, 0.5, encode)[:2] == (len(lengths), 0.5)


def test_rows_are_rounded_more_coarsely_before_they_are_left_out() -> None:
    """100 rows of 8 values, a bit less each where the step doubles: 100 bytes in all."""

    def encode(places: Rows, step: float) -> tuple[int, bytes]:
        return len(places), bytes(math.ceil(len(places) * (4 - math.log2(step))))

    assert coded_within(450, np.arange(100), 1.0, encode) == (100, 1.0, 100)
    size, step, _ = coded_within(360, np.arange(100), 1.0, encode)
    assert size == 100
    assert 2**0.4 <= step < 2**0.4 * COARSER
    size, step, _ = coded_within(240, np.arange(100), 1.0, encode)
    assert step == MOST_COARSER
    assert 76 <= size <= 80


def test_hardly_fewer_are_kept_than_fit() -> None:
    """1,000 rows of 8 to 12 bytes, where 5,000 bytes are allowed: 500 fit, less what lengths vary by."""
    lengths = np.random.default_rng(0).integers(8, 13, 1000)
    size, _, total = coded_within(
        5000, np.arange(1000), 0.5, lambda places, _: (int(lengths[places].sum()), bytes(lengths[places].sum()))
    )
    assert total <= 5000
    assert 485 <= size <= 515
