import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from colonnade.kernels.level_codes import decode_levels, encode_levels, few_valued, level_bits, levels_bytes

VALUES = st.sampled_from([0.0, 1.0, -3.0, 2.0**60, 0.1, -0.25, -0.0, 7.0])


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 60), st.integers(0, 4), st.data())
def test_columns_come_back_as_they_were(n_rows: int, n_columns: int, data: st.DataObject) -> None:
    columns = data.draw(arrays(np.float64, (n_rows, n_columns), elements=VALUES))
    found, rest = decode_levels(encode_levels(columns) + b"more", n_columns, n_rows)
    np.testing.assert_array_equal(found.view(np.uint64) << 1, columns.view(np.uint64) << 1)
    assert bytes(rest) == b"more"


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=40), st.integers(0, 3), st.integers(0, 50))
def test_garbage_is_refused_or_read_as_numbers(data: bytes, n_columns: int, count: int) -> None:
    try:
        columns, _ = decode_levels(data, n_columns, count)
    except ValueError:
        return
    assert columns.shape == (count, n_columns)
    assert np.isfinite(columns).all()


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_code_that_was_cut_is_refused(cut: int) -> None:
    code = encode_levels(np.random.default_rng(0).integers(5, size=(80, 1)).astype(float))
    with pytest.raises(ValueError, match=r"."):
        decode_levels(code[:-cut], 1, 80)


def test_places_that_are_not_there_are_refused() -> None:
    """A length of places with nothing, or too little, after it."""
    for places in (b"", b"\x01\x02"):
        code = bytes([5, 0, 2, 5]) + places
        with pytest.raises(ValueError, match=r"bytes do not hold|do not hold"):
            decode_levels(bytes([len(code)]) + code, 1, 10)


def test_very_many_values_come_back() -> None:
    """So many that 16 bits do not number them."""
    column = np.concatenate([np.zeros(300_000), np.arange(1.0, 65_537.0)])[:, np.newaxis]
    found, _ = decode_levels(encode_levels(column), 1, len(column))
    np.testing.assert_array_equal(found, column)


def test_more_values_than_rows_are_refused() -> None:
    """A head that promises many values makes nobody allocate them."""
    with pytest.raises(ValueError, match="values in 3 rows"):
        decode_levels(bytes([10, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0, 0, 0, 0, 0]), 1, 3)


@pytest.mark.parametrize(
    ("shares", "most"),
    [
        ([1.0], 0.01),
        ([0.5, 0.5], 1.02),
        ([0.99, 0.01], 0.12),
        ([0.9, 0.05, 0.05], 0.85),
        ([0.4, 0.3, 0.2, 0.1], 2.3),
        ([1 / 16] * 16, 4.8),
    ],
)
def test_lengths_are_near_the_entropy_and_foretold(shares: list[float], most: float) -> None:
    """Bits a row of 20,000; foretold from 2,000 of them to 15 % and the values."""
    column = np.random.default_rng(0).choice(len(shares), 20_000, p=shares).astype(float)
    values = levels_bytes(column[:, np.newaxis]).of(len(column))
    taken = 8 * (len(encode_levels(column[:, np.newaxis])) - values) / len(column)
    assert taken <= most
    some = column[:2000]
    assert float(level_bits(some, np.ones(2000)).mean()) == pytest.approx(taken, rel=0.15, abs=0.03)


def test_few_values_are_told_from_many() -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack(
        [rng.normal(size=4096), rng.integers(2, size=4096), rng.integers(100, size=4096), np.zeros(4096)]
    )
    np.testing.assert_array_equal(few_valued(rows), [1, 3])
    years = np.where(rng.random(4096) < 0.05, rng.integers(1940, 2015, size=4096), 0)
    amounts = np.where(rng.random(4096) < 0.2, rng.lognormal(size=4096), 0.0)  # numbers, if mostly none
    np.testing.assert_array_equal(few_valued(np.column_stack([years, amounts])), [0])
    np.testing.assert_array_equal(few_valued(rng.normal(size=(8, 2))), [])


def test_values_that_few_rows_did_not_have_are_foretold() -> None:
    """Years, most of them none: 150 rows have seen a few, 2,000 have many more. A factor of 1.5 is allowed."""
    rng = np.random.default_rng(0)
    years = np.where(rng.random(2000) < 0.05, rng.integers(1940, 2015, size=2000), 0).astype(float)[:, np.newaxis]
    whole = levels_bytes(years).of(2000)
    assert levels_bytes(years[:150]).of(150) < 0.5 * whole
    assert whole / 1.5 < levels_bytes(years[:150]).of(2000) < 1.5 * whole
