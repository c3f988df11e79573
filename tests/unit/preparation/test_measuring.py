"""What is measured of numbers that are not held: the values of NumPy, whatever they are cut into."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.preparation import measuring
from colonnade.preparation.measuring import Piece, Read, median, moments

FLOATS = st.floats(-1e100, 1e100) | st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1.0 + 2**-52])
SOME = settings(max_examples=60, deadline=None)


def pieces(values: Any, copies: Any = None, size: int = 3) -> Read:
    """Give numbers in pieces of this size."""

    def read() -> Iterator[Piece]:
        for start in range(0, len(values), size):
            rows = slice(start, start + size)
            yield Piece(np.asarray(values, float)[rows], None if copies is None else np.asarray(copies, float)[rows])

    return read


@SOME
@given(st.lists(FLOATS, min_size=1, max_size=60), st.integers(1, 9), st.sampled_from([0, 1, 4, 100]))
def test_a_median_is_that_of_all_numbers_however_few_are_held(values: list[float], size: int, held: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(measuring, "MOST_HELD", held)
        patched.setattr(measuring, "BLOCK_ROWS", 7)
        assert median(pieces(values, size=size)) == np.median(values)


@SOME
@given(st.lists(st.tuples(FLOATS, st.integers(1, 5)), min_size=1, max_size=40), st.sampled_from([0, 1, 4, 100]))
def test_a_median_counts_copies(pairs: list[tuple[float, int]], held: int) -> None:
    values, copies = zip(*pairs, strict=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(measuring, "MOST_HELD", held)
        assert median(pieces(values, copies)) == np.median(np.repeat(values, copies))


@pytest.mark.parametrize("n_bins", [2, 3, 1 << 16])
def test_half_of_the_numbers_may_be_one_and_half_another(n_bins: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "MOST_HELD", 1)
    monkeypatch.setattr(measuring, "N_BINS", n_bins)
    assert median(pieces([0.0] * 10 + [1.0] * 10)) == 0.5
    assert median(pieces([-3.0] * 11 + [1.0] * 10)) == -3.0


@SOME
@given(
    st.lists(st.tuples(st.floats(-1e9, 1e9), st.sampled_from([0.1, 0.7, 3.0])), min_size=1, max_size=60),
    st.integers(1, 9),
    st.booleans(),
)
def test_how_numbers_are_cut_changes_no_bit(pairs: list[tuple[float, float]], size: int, weighed: bool) -> None:
    values, copies = zip(*pairs, strict=True)
    weights = copies if weighed else None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(measuring, "BLOCK_ROWS", 8)
        patched.setattr(measuring, "MOST_HELD", 5)
        whole, cut = (moments(pieces(values, weights, each)) for each in (len(values), size))
        assert whole == cut
        assert median(pieces(values, weights, len(values))) == median(pieces(values, weights, size))
    mean = np.average(values, weights=weights)
    assert whole.mean == pytest.approx(mean, rel=1e-12, abs=1e-4)
    squares = np.average(np.square(np.array(values) - mean), weights=weights) * whole.size
    assert whole.squares == pytest.approx(squares, rel=1e-9, abs=1e-3)


def test_what_is_constant_but_for_rounding_has_the_deviation_one() -> None:
    assert moments(pieces([0.1] * 1000)).deviation == 1.0
    assert moments(pieces([0.1] * 1000 + [0.2])).deviation == pytest.approx(np.std([0.1] * 1000 + [0.2]))
