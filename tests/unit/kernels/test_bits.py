import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from colonnade.kernels.bits import (
    UNARY_BITS,
    Numbers,
    pack_bits,
    packed_length,
    read_varints,
    rice_decode,
    rice_decode_few,
    rice_encode,
    rice_parameters,
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


def as_rows(values: list[list[int]], count: int) -> Numbers:
    return np.array(values, dtype=np.uint64).reshape(len(values), count)


@given(st.integers(0, 4), st.integers(0, 20), st.data())
def test_rice_codes_come_back(n_rows: int, count: int, data: st.DataObject) -> None:
    row = st.integers(0, 50).flatmap(lambda bits: st.lists(st.integers(0, 2**bits), min_size=count, max_size=count))
    numbers = as_rows([data.draw(row) for _ in range(n_rows)], count)
    parameters = rice_parameters(numbers)
    back = rice_decode(rice_encode(numbers, parameters), count, parameters, LARGEST)
    np.testing.assert_array_equal(back, numbers)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=40))
@example([1, 1, 1, 1, 1, 3, 3])
@example([2, 2, 2, 6, 6])
def test_the_parameter_is_nearly_the_best(values: list[int]) -> None:
    def bits(k: int) -> int:
        return len(values) * (k + 1) + sum(value >> k for value in values)

    (k,) = rice_parameters(as_rows([values], len(values)))
    assert bits(k) <= 1.15 * min(bits(k) for k in range(12))
    assert bits(k) - k * len(values) <= UNARY_BITS * len(values)


def test_geometric_numbers_take_about_their_entropy() -> None:
    numbers = (np.random.default_rng(0).geometric(0.05, size=(1, 20_000)) - 1).astype(np.uint64)
    entropy = (-0.95 * np.log2(0.95) - 0.05 * np.log2(0.05)) / 0.05
    assert 8 * len(rice_encode(numbers, rice_parameters(numbers))) / numbers.size < 1.02 * entropy


@given(st.binary(max_size=60), st.integers(-1, 100), st.lists(st.integers(-1, 64), max_size=3))
def test_any_bytes_are_numbers_within_bounds_or_an_error(data: bytes, count: int, parameters: list[int]) -> None:
    try:
        numbers = rice_decode(data, count, parameters, 1000)
    except ValueError:
        return
    assert numbers.shape == (len(parameters), count)
    assert sum(numbers.ravel().tolist()) <= 1000
    assert rice_encode(numbers, parameters) == data, "one form for one meaning"


@given(st.binary(max_size=60), st.integers(0, 40), st.integers(0, 64), st.sampled_from([1000, LARGEST]))
def test_few_numbers_are_read_as_many_are(data: bytes, count: int, k: int, largest: int) -> None:
    try:
        wanted = rice_decode(data, count, [k], largest)[0].tolist()
    except ValueError:
        with pytest.raises(ValueError, match=r"bytes|add up"):
            rice_decode_few(data, count, k, largest)
    else:
        assert rice_decode_few(data, count, k, largest) == wanted


@given(st.lists(st.integers(0, 2**40), max_size=40))
def test_few_numbers_come_back(values: list[int]) -> None:
    numbers = as_rows([values], len(values))
    (k,) = rice_parameters(numbers)
    assert rice_decode_few(rice_encode(numbers, [k]), len(values), k, LARGEST) == values


def test_a_row_that_is_large_does_not_count_against_another() -> None:
    numbers = as_rows([[2**52] * 4, [0, 0, 0, 9]], 4)
    parameters = [52, 0]
    assert rice_decode(rice_encode(numbers, parameters), 4, parameters, 2**55).tolist() == numbers.tolist()


@given(st.lists(st.integers(0, 2**56 - 1), max_size=5), st.binary(max_size=5))
def test_varints_come_back(values: list[int], rest: bytes) -> None:
    data = b"".join(varint(value) for value in values) + rest
    assert read_varints(data, len(values)) == (values, rest)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 20, b"\x80\x00"])
def test_a_varint_must_end(data: bytes) -> None:
    with pytest.raises(ValueError, match="a number"):
        read_varints(data, 1)
