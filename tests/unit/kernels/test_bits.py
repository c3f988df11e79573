import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.bits import (
    pack_bits,
    packed_length,
    read_varints,
    rice_decode,
    rice_encode,
    rice_parameter,
    unpack_bits,
    varint,
)

LARGEST = 2**62


@given(st.integers(0, 63), st.data())
def test_packed_numbers_come_back(width: int, data: st.DataObject) -> None:
    numbers = np.array(data.draw(st.lists(st.integers(0, 2**width - 1), max_size=40)), dtype=np.uint64)
    packed = pack_bits(numbers, width)
    assert len(packed) == packed_length(len(numbers), width)
    np.testing.assert_array_equal(unpack_bits(packed, len(numbers), width), numbers)


@pytest.mark.parametrize(("count", "width"), [(3, 3), (2, 5), (-1, 4), (2, 64), (2, -4)])
def test_a_declared_count_must_fill_the_bytes(count: int, width: int) -> None:
    with pytest.raises(ValueError, match="1 bytes do not hold"):
        unpack_bits(b"\xff", count, width)


def test_padding_is_zeros() -> None:
    with pytest.raises(ValueError, match="bits after the last number"):
        unpack_bits(b"\xff", 1, 7)


@given(st.lists(st.integers(0, 2**50), max_size=40))
def test_rice_codes_come_back(values: list[int]) -> None:
    numbers = np.array(values, dtype=np.uint64)
    k = rice_parameter(numbers)
    np.testing.assert_array_equal(rice_decode(rice_encode(numbers, k), len(numbers), k, LARGEST), numbers)


@pytest.mark.parametrize("stride", [2, 3, 5])
@pytest.mark.parametrize("other", [1, 100, 2**40])
def test_numbers_that_are_large_only_where_the_parameter_is_not_tried(stride: int, other: int) -> None:
    numbers = np.full(256 * stride, other, np.uint64)
    numbers[::stride] = 0
    k = rice_parameter(numbers)
    np.testing.assert_array_equal(rice_decode(rice_encode(numbers, k), len(numbers), k, LARGEST), numbers)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=40))
def test_the_parameter_is_the_best(values: list[int]) -> None:
    numbers = np.array(values, dtype=np.uint64)

    def bits(k: int) -> int:
        return len(values) * (k + 1) + sum(value >> k for value in values)

    assert bits(rice_parameter(numbers)) <= 1.1 * min(bits(k) for k in range(12))


def test_geometric_numbers_take_about_their_entropy() -> None:
    numbers = (np.random.default_rng(0).geometric(0.05, size=20_000) - 1).astype(np.uint64)
    entropy = (-0.95 * np.log2(0.95) - 0.05 * np.log2(0.05)) / 0.05
    assert 8 * len(rice_encode(numbers, rice_parameter(numbers))) / len(numbers) < 1.02 * entropy


@given(st.binary(max_size=60), st.integers(-1, 100), st.integers(-1, 64))
def test_any_bytes_are_numbers_within_bounds_or_an_error(data: bytes, count: int, k: int) -> None:
    try:
        numbers = rice_decode(data, count, k, 1000)
    except ValueError:
        return
    assert len(numbers) == count
    assert sum(numbers.tolist()) <= 1000
    assert rice_encode(numbers, k) == data, "one form for one meaning"


@given(st.lists(st.integers(0, 2**56 - 1), max_size=5), st.binary(max_size=5))
def test_varints_come_back(values: list[int], rest: bytes) -> None:
    data = b"".join(varint(value) for value in values) + rest
    assert read_varints(data, len(values)) == (values, rest)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 20, b"\x80\x00"])
def test_a_varint_must_end(data: bytes) -> None:
    with pytest.raises(ValueError, match="a number"):
        read_varints(data, 1)
