import numpy as np
import pytest

from colonnade.kernels.shares import (
    HIGH_BITS,
    LOW_BITS,
    from_limbs,
    limb_products,
    low_bits,
    pack_words,
    packed_size,
    rounding,
    to_limbs,
    unpack_words,
)


def unit_columns(rng: np.random.Generator, n_rows: int, n_columns: int) -> np.ndarray:
    return np.asarray(np.linalg.qr(rng.standard_t(3, size=(n_rows, n_columns)))[0])


@pytest.mark.parametrize("n_rows", [4, 50, 20_000])
def test_products_of_unit_columns_are_exact_to_the_last_digits(n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    first, second = unit_columns(rng, n_rows, 3), unit_columns(rng, n_rows, 4)
    found = from_limbs(limb_products(to_limbs(first), to_limbs(second)))
    np.testing.assert_allclose(found, first.T @ second, atol=4e-16)


def test_the_largest_products_do_not_wrap() -> None:
    """A column with one entry of 1, and its negative; and constant columns of 2^20 rows, all low limbs alike."""
    ones = np.array([[1.0], [0.0]])
    assert from_limbs(limb_products(to_limbs(ones), to_limbs(-ones)))[0, 0] == -1.0
    constant = np.full((1 << 20, 1), 2.0**-10 * (1 - 2.0**-20))
    expected = float(constant[:, 0] @ constant[:, 0])
    found = from_limbs(limb_products(to_limbs(constant), to_limbs(constant)))[0, 0]
    assert found == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("bits", range(41))
def test_no_sum_over_any_number_of_rows_exceeds_64_bits(bits: int) -> None:
    """High and low limbs are 2^31 |q| and 2^(bits - 1) at most, and |q| adds up to sqrt(m) at most."""
    for n_rows in {1 << bits, (1 << bits) + 1, max((1 << bits) - 1, 1)}:
        largest = 2 * 2.0**HIGH_BITS * n_rows**0.5 * 2.0 ** (low_bits(n_rows) - 1)
        assert largest <= 2.0**62
        assert low_bits(n_rows) == LOW_BITS if n_rows <= 1 << 22 else 4 * largest > 2.0**62


@pytest.mark.parametrize("n_rows", [300_000, 1 << 21])
def test_columns_that_are_alike_have_products_within_what_is_left_out(n_rows: int) -> None:
    column = unit_columns(np.random.default_rng(0), n_rows, 1)
    found = from_limbs(limb_products(to_limbs(column), to_limbs(column)))[0, 0]
    assert abs(found - 1) < rounding(n_rows)
    assert abs(found - 1) > n_rows * 2.0**-67, "it is that, and not a float64's rounding"


@pytest.mark.parametrize("n_rows", [2000, 20_000, 65_434, 3_000_000, 4_201_686])
def test_columns_of_one_size_are_rounded_alike_in_every_row(n_rows: int) -> None:
    column, bits = np.full((n_rows, 1), n_rows**-0.5), low_bits(n_rows)
    limbs = to_limbs(column, bits)
    off = abs(from_limbs(limb_products(limbs, limbs), bits)[0, 0] - 1)
    assert rounding(n_rows) / 100 < off < rounding(n_rows), "steps add up: what low limbs leave out is not all"


@pytest.mark.parametrize("bits", [11, 19, LOW_BITS])
def test_fewer_low_bits_cost_that_many_digits(bits: int) -> None:
    rng = np.random.default_rng(1)
    first, second = unit_columns(rng, 500, 2), unit_columns(rng, 500, 3)
    found = from_limbs(limb_products(to_limbs(first, bits), to_limbs(second, bits)), bits)
    np.testing.assert_allclose(found, first.T @ second, atol=4 * 2.0 ** -(HIGH_BITS + bits))


def test_shares_add_up_whatever_the_masks() -> None:
    """Q_j'Q_l = U_j'U_l + Q_j'E_l + E_j'U_l, modulo 2^64."""
    rng = np.random.default_rng(0)
    Q_j, Q_l = to_limbs(unit_columns(rng, 30, 2)), to_limbs(unit_columns(rng, 30, 3))
    E_j, E_l = (rng.integers(2**64, size=Q.shape, dtype=np.uint64) for Q in (Q_j, Q_l))
    U_j, U_l = Q_j - E_j, Q_l - E_l
    total = limb_products(U_j, U_l) + limb_products(Q_j, E_l) + limb_products(E_j, U_l)
    np.testing.assert_array_equal(total, limb_products(Q_j, Q_l))


@pytest.mark.parametrize("shape", [(2, 5), (5, 2), (3, 3), (0, 2)])
def test_products_of_limbs_are_those_of_whole_numbers_modulo_two_to_the_64(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    first, second = (rng.integers(2**64, size=(count, 2, 7), dtype=np.uint64) for count in shape)
    (high, low), (other_high, other_low) = (np.moveaxis(words.astype(object), 1, 0) for words in (first, second))
    expected = np.stack([high @ other_high.T, high @ other_low.T + low @ other_high.T]) % 2**64
    np.testing.assert_array_equal(limb_products(first, second), expected.astype(np.uint64))


def test_words_travel_little_endian() -> None:
    words = np.arange(12, dtype=np.uint64).reshape(2, 2, 3) << np.uint64(40)
    packed = pack_words(words)
    assert len(packed) == packed_size(2, 2, 3) == 96
    np.testing.assert_array_equal(unpack_words(packed, 2, 2, 3), words)
    assert packed[8:16] == (1 << 40).to_bytes(8, "little")
