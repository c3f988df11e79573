"""Products of polynomials modulo z^4096 + 1, with coefficients modulo q, the product of two primes just below 2^50.

A polynomial is kept as residues modulo one prime and the other, shape (2, ..., 4096): whole numbers within 2^58, which
`reduced` brings to 0..p-1. Its *values* at the 4096 roots of z^4096 + 1, of the same shape, multiply one by one. They
come about by halving: modulo z^2h - r^2, f is f0 + z^h f1, and that is f0 + r f1 modulo z^h - r, and f0 - r f1 modulo
z^h + r.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Residues = npt.NDArray[np.int64]

DEGREE = 1 << 12
# Each is 1 modulo 2 DEGREE, so that z^DEGREE + 1 has all its roots.
PRIMES = (2**50 - 2 * 2**13 + 1, 2**50 - 26 * 2**13 + 1)
MODULUS = PRIMES[0] * PRIMES[1]


def from_integers(integers: Residues) -> Residues:
    """Take whole numbers within 2^50, shape (..., 4096), as coefficients."""
    return np.stack([integers] * len(PRIMES))


def to_integers(residues: Residues) -> npt.NDArray[Any]:
    """Give the whole numbers from 0 to q - 1 that have these residues, as Python's own."""
    first, second = reduced(residues).astype(object)
    p, other = PRIMES
    return np.asarray(first + p * ((second - first) * pow(p, -1, other) % other))


def reduced(residues: Residues) -> Residues:
    """Bring residues to 0..p-1."""
    primes = _by_prime(PRIMES, residues.ndim)
    left: Residues = residues - np.rint(residues / primes).astype(np.int64) * primes
    left += primes * (left < 0)
    return left


def times(residues: Residues, factors: Residues) -> Residues:
    """Multiply by factors of 0..p-1, one by one.

    Quotients by p are rounded, and so a few off; what is left is as many p off, and exact, for int64 wraps at 2^64.
    """
    primes = _by_prime(PRIMES, residues.ndim)
    quotients = np.rint(residues * (factors / primes)).astype(np.int64)
    quotients *= primes
    left: Residues = residues * factors
    left -= quotients
    return left


def to_values(residues: Residues) -> Residues:
    """Compute the values of polynomials; residues are within 2 p."""
    half = DEGREE // 2
    for roots, _ in _halvings():
        low, high = residues[..., :half], times(residues[..., half:], _spread(roots, residues.ndim))
        halved = np.empty((*low.shape, 2), np.int64)
        np.add(low, high, out=halved[..., 0])
        np.subtract(low, high, out=halved[..., 1])
        residues = halved.reshape(residues.shape)
    return residues


def to_coefficients(values: Residues) -> Residues:
    """Compute the polynomials that have these values: the halvings backwards."""
    for _, back in reversed(_halvings()):
        first, second = values[..., ::2], values[..., 1::2]
        half = _by_prime([pow(2, -1, p) for p in PRIMES], values.ndim)
        values = np.concatenate(
            [times(first + second, half), times(first - second, _spread(back, values.ndim))], axis=-1
        )
    return values


@cache
def _halvings() -> list[tuple[Residues, Residues]]:
    """Give r and 1 / 2r of each halving, shape (2, 2048): coefficients of one place follow each other, r changes."""
    powers = np.array([_root_powers(p) for p in PRIMES])
    found, exponents = [], np.array([DEGREE])  # of the root w, with w^DEGREE = -1, that z^2h is
    while len(exponents) < DEGREE:
        roots = powers[:, exponents // 2]
        back = np.array([[pow(2 * int(r), -1, p) for r in line] for p, line in zip(PRIMES, roots, strict=True)])
        times_over = DEGREE // 2 // len(exponents)
        found.append((np.tile(roots, times_over), np.tile(back, times_over)))
        exponents = np.stack([exponents // 2, exponents // 2 + DEGREE], axis=-1).reshape(-1)
    return found


def _root_powers(p: int) -> list[int]:
    """Give the powers of a w with w^DEGREE = -1."""
    candidates = (pow(base, (p - 1) // (2 * DEGREE), p) for base in range(2, p))
    root = next(w for w in candidates if pow(w, DEGREE, p) == p - 1)
    powers = [1]
    for _ in range(2 * DEGREE - 1):
        powers.append(powers[-1] * root % p)
    return powers


def _by_prime(numbers: Sequence[int], ndim: int) -> Residues:
    return np.array(numbers, np.int64).reshape(-1, *[1] * (ndim - 1))


def _spread(table: Residues, ndim: int) -> Residues:
    return table.reshape(len(PRIMES), *[1] * (ndim - 2), -1)
