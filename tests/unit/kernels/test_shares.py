import numpy as np
import pytest

from colonnade.kernels.shares import from_limbs, limb_products, pack_words, packed_size, to_limbs, unpack_words


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
