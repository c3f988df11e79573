"""Inner products under CKKS: as exact as is said, in any shape, and with errors as small as the argument needs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.kernels.arrays import Floats
from colonnade.kernels.polynomials import DEGREE, MODULUS, times, to_coefficients, to_integers
from colonnade.privacy import ckks

PUBLIC, SEED = b"public" * 6, b"seed" * 8
KEY = ckks.new_key(b"key" * 11)


def unit_columns(n_rows: int, n_columns: int, seed: int = 0) -> Floats:
    columns = np.random.default_rng(seed).standard_t(3, size=(n_rows, n_columns))
    return np.asarray(columns / np.linalg.norm(columns, axis=0))


def products(first: Floats, second: Floats) -> Floats:
    sent = ckks.encrypt_matrix(KEY, PUBLIC, first, SEED)
    assert len(sent) == ckks.n_ciphertexts(*first.shape)
    assert all(map(ckks.is_ciphertext, sent))
    back, masks = ckks.masked_products(sent, PUBLIC, first.shape[1], second, SEED)
    assert all(ckks.is_ciphertext(each, first.shape[1]) for each in back)
    sums = ckks.decrypt_products(KEY, back, first.shape[1])
    return ckks.unmasked(sums.astype(np.float64), masks.astype(np.float64))


@settings(max_examples=40)
@given(st.integers(1, 300), st.integers(1, 40), st.integers(0, 4), st.integers(0, 100))
def test_products_of_any_shape(n_rows: int, n_first: int, n_second: int, seed: int) -> None:
    first, second = unit_columns(n_rows, n_first, seed), unit_columns(n_rows, n_second, seed + 1)
    np.testing.assert_allclose(products(first, second), first.T @ second, atol=8 * ckks.ERROR)


def test_no_columns_are_no_ciphertexts() -> None:
    assert ckks.encrypt_matrix(KEY, PUBLIC, np.empty((5, 0)), SEED) == ()
    back, masks = ckks.masked_products((), PUBLIC, 0, unit_columns(5, 2), SEED)
    assert (back, masks.shape) == ((), (0, 2))
    assert ckks.decrypt_products(KEY, (), 0).size == 0


@pytest.mark.parametrize("n_columns", [1, 2048, DEGREE])
def test_as_wide_as_a_polynomial(n_columns: int) -> None:
    first, second = unit_columns(3, n_columns), unit_columns(3, 1, 1)
    np.testing.assert_allclose(products(first, second), first.T @ second, atol=8 * ckks.ERROR)


def test_errors_of_columns_of_few_values_do_not_add_up() -> None:
    """Equal columns of two values: if all were rounded alike, the error would be sqrt(m) times as large."""
    column = np.where(np.arange(20_000) % 3 == 0, 1.0, -0.5)[:, None]
    column /= np.linalg.norm(column)
    found = products(column, np.repeat(column, 50, axis=1)) - 1
    assert np.sqrt(np.mean(np.square(found))) < ckks.ERROR


def test_an_error_is_a_step_over_2_to_the_40() -> None:
    """E|error| of the 2,048 numbers of a fixed seed; a step of what is told is 2^68."""
    columns, other = unit_columns(500, 8), unit_columns(500, 1, 1)
    sent = ckks.encrypt_matrix(KEY, PUBLIC, columns, SEED)
    errors = []
    for k, data in enumerate(sent):
        hidden = ckks._unpacked(data) + times(KEY, ckks._public(PUBLIC, k))
        text = to_integers(to_coefficients(hidden))
        centred = (text + MODULUS // 2) % MODULUS - MODULUS // 2
        errors.append((centred + (1 << 25)) % (1 << ckks.SHIFT_BITS) - (1 << 25))
    spread = float(np.std(np.array(errors).astype(np.float64)))
    assert spread == pytest.approx(np.sqrt(2 * 21 / 4), rel=0.02)
    largest_deviation = spread * 2.0**ckks.COLUMN_BITS * np.linalg.norm(other)
    assert np.sqrt(2 / np.pi) * largest_deviation / (MODULUS / 2.0**ckks.WORD_BITS) < 2.0**-40


def test_parameters_are_within_the_standards_table() -> None:
    """At degree 4096, for keys of -1, 0 and 1: 109 bits, and 101 against quantum computers, for 128-bit security."""
    assert (DEGREE, MODULUS.bit_length()) == (4096, 100)
    key = to_integers(to_coefficients(KEY))
    values, counts = np.unique(((key + 1) % MODULUS).astype(np.int64), return_counts=True)
    assert values.tolist() == [0, 1, 2]
    assert counts.min() > DEGREE / 3 - 5 * np.sqrt(DEGREE * 2 / 9), "each as often, to within five deviations"


def test_nothing_that_is_sent_repeats() -> None:
    columns = unit_columns(50, 2)
    sent = ckks.encrypt_matrix(KEY, PUBLIC, np.zeros((5_000, 2)), SEED)
    assert len(set(sent)) == len(sent) == 4
    (first, second), _ = ckks.masked_products(sent[:2], PUBLIC, 2, np.repeat(columns[:, :1], 2, axis=1), SEED)
    assert first != second
    (again, _), _ = ckks.masked_products(sent[:2], PUBLIC, 2, columns, b"other" * 7)
    assert again != first
