"""Polynomials modulo z^4096 + 1 and two primes: products are those of whole numbers, exactly."""

import numpy as np
import pytest

from colonnade.kernels.arrays import Rows
from colonnade.kernels.polynomials import (
    DEGREE,
    MODULUS,
    PRIMES,
    from_integers,
    reduced,
    times,
    to_coefficients,
    to_integers,
    to_values,
)


def exact_product(first: Rows, second: Rows) -> list[int]:
    """Multiply as whole numbers in base 2^128, each digit raised by 2^127, and take z^4096 for -1."""
    raised = bytes([*bytes(15), 128])
    numbers = [_in_base([int(c) + (1 << 127) for c in each]) - _of(raised * DEGREE) for each in (first, second)]
    product = (numbers[0] * numbers[1] + _of(raised * 2 * DEGREE)).to_bytes(32 * DEGREE + 1, "little")
    digits = [_of(product[i : i + 16]) - (1 << 127) for i in range(0, 32 * DEGREE, 16)]
    return [(low - high) % MODULUS for low, high in zip(digits[:DEGREE], digits[DEGREE:], strict=True)]


def _in_base(digits: list[int]) -> int:
    return _of(b"".join(digit.to_bytes(16, "little") for digit in digits))


def _of(data: bytes) -> int:
    return int.from_bytes(data, "little")


def is_prime(p: int) -> bool:
    """By Miller and Rabin, to bases that settle it below 2^64."""
    odd = (p - 1) // ((p - 1) & -(p - 1))
    powers = [
        [pow(base, odd << i, p) for i in range((p - 1).bit_length())] for base in (2, 3, 5, 7, 11, 13, 17, 19, 23)
    ]
    return all(line[0] == 1 or p - 1 in line for line in powers)


def test_the_primes_are_primes_with_all_roots() -> None:
    assert all(is_prime(p) and p % (2 * DEGREE) == 1 for p in PRIMES)
    assert 2**99 < MODULUS < 2**100


@pytest.mark.parametrize("largest", [1, 2**26, 2**50])
def test_values_multiply_as_polynomials_do(largest: int) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(-largest, largest, size=(2, DEGREE), endpoint=True)
    factors = reduced(to_values(from_integers(second)))
    product = to_coefficients(times(to_values(from_integers(first)), factors))
    assert to_integers(product).tolist() == exact_product(first, second)


def test_extremes_stay_exact() -> None:
    """The largest residues there are, and the same polynomial many times over."""
    for fill in (PRIMES[1] - 1, -PRIMES[0]):
        many = np.full((3, DEGREE), fill)
        values = to_values(from_integers(many))
        assert np.abs(values).max() < 2**58
        assert (to_integers(to_coefficients(values)) == fill % MODULUS).all()
        assert np.array_equal(reduced(values), values % np.array(PRIMES)[:, None, None])
