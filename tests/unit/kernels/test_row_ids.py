import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from colonnade.kernels.row_ids import MAX_ROW_ID, decode_row_ids, encode_row_ids, is_ascending, row_id_bytes

MOST = 1 << 27


def entropy_bytes(n_rows: int, size: int, *, multiset: bool) -> float:
    n = n_rows + size - 1 if multiset else n_rows
    return float((gammaln(n + 1) - gammaln(size + 1) - gammaln(n - size + 1)) / np.log(2) / 8)


@given(st.lists(st.integers(0, MAX_ROW_ID), max_size=50))
def test_they_come_back(values: list[int]) -> None:
    rows = np.sort(np.array(values, dtype=np.int64))
    decoded = decode_row_ids(encode_row_ids(rows), MOST)
    assert decoded.dtype == np.int64
    np.testing.assert_array_equal(decoded, rows)


@pytest.mark.parametrize(
    ("values", "n_bytes"),
    [([], 0), ([0], 3), ([MAX_ROW_ID], 8), ([7] * 1000, 129), (range(1000), 254), ([MAX_ROW_ID] * 1000, 135)],
)
def test_ends_of_the_range(values: list[int], n_bytes: int) -> None:
    rows = np.array(values, dtype=np.int64)
    encoded = encode_row_ids(rows)
    np.testing.assert_array_equal(decode_row_ids(encoded, MOST), rows)
    assert len(encoded) <= n_bytes


@pytest.mark.parametrize("size", [100, 1_000, 10_000, 100_000])
@pytest.mark.parametrize("n_rows", [463_715, 581_012, 10**9, 2**40])
def test_within_15_percent_of_the_entropy(n_rows: int, size: int) -> None:
    rows = np.sort(np.random.default_rng(size).integers(n_rows, size=size))
    assert len(encode_row_ids(rows)) < 1.15 * entropy_bytes(n_rows, size, multiset=False)


@pytest.mark.parametrize("size", [100, 1_000, 10_000, 40_000])
def test_within_15_percent_of_the_multisets_entropy_where_rows_repeat(size: int) -> None:
    rows = np.sort(np.random.default_rng(size).integers(21_613, size=size))
    assert len(encode_row_ids(rows)) < 1.15 * entropy_bytes(21_613, size, multiset=True)


@pytest.mark.parametrize("size", [0, 100, 1_000, 30_000, 400_000])
def test_the_length_is_predicted(size: int) -> None:
    rows = np.sort(np.random.default_rng(size).integers(21_613, size=size))
    assert len(encode_row_ids(rows)) == pytest.approx(row_id_bytes(21_613, size), rel=0.02)


@given(st.binary(max_size=60))
def test_any_bytes_are_row_ids_or_an_error(data: bytes) -> None:
    try:
        rows = decode_row_ids(data, MOST)
    except ValueError:
        return
    assert is_ascending(rows)


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=30), st.data())
def test_a_truncated_payload_is_an_error(values: list[int], data: st.DataObject) -> None:
    encoded = encode_row_ids(np.sort(np.array(values, dtype=np.int64)))
    cut = data.draw(st.integers(1, len(encoded) - 1))
    with pytest.raises(ValueError, match=r"bytes|rows|number"):
        decode_row_ids(encoded[:cut], MOST)


@pytest.mark.parametrize(
    "data", [b"\x00\x00\x00", b"\x02\x00\x28\x00", b"\x02\x00\x3f\x00", b"\xff\xff\xff\xff\x7f\x00\x00\x80"]
)
def test_declared_counts_are_checked_first(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"rows|bytes"):
        decode_row_ids(data, MOST)
