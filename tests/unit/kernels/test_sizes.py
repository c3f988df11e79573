"""The theorems' formulas, worked out by hand, and that special cases are what the proofs make of the general one."""

import math

import pytest

from colonnade.kernels import sizes


def test_theorem_3_1_by_hand() -> None:
    # 2 * 3 / 0.01 * (4 log 6 + log 20)
    assert sizes.sampling_size(0.1, 0.05, 2.0, 3.0, 4, 1.0) == pytest.approx(600 * (4 * math.log(6) + math.log(20)))


def test_theorem_4_2_by_hand() -> None:
    # gamma = 1/2: 4 * 3 / 0.25 * (9 log 12 + log 10)
    assert sizes.regression_size(0.5, 0.1, 3, 0.5, 1.0) == pytest.approx(48 * (9 * math.log(12) + math.log(10)))


def test_theorem_5_2_by_hand() -> None:
    # alpha tau k T = 2 * 3 * 4 * 5 = 120; d k = 24
    found = sizes.clustering_size(0.5, 0.1, 6, 4, 5, 3.0, 2.0, 1.0)
    assert found == pytest.approx(480 * (24 * math.log(120) + math.log(10)))


def test_the_robust_theorems_by_hand() -> None:
    # d^4 / (eps beta T)^2 (d^2 + log 1/delta) = 81 / 0.01 (9 + log 10)
    found = sizes.robust_regression_size(0.5, 0.1, 0.1, 3, 2, 1.0)
    assert found == pytest.approx(8100 * (9 + math.log(10)))
    # alpha^2 k^4 / (eps beta)^2 (d k + log 1/delta) = 4 * 16 / 0.0025 (6 + log 10)
    found = sizes.robust_clustering_size(0.5, 0.1, 0.1, 3, 2, 2.0, 1.0)
    assert found == pytest.approx(25_600 * (6 + math.log(10)))


@pytest.mark.parametrize("constant", [0.5, 3.0])
def test_the_constant_multiplies(constant: float) -> None:
    assert sizes.regression_size(0.1, 0.1, 5, 0.3, constant) == pytest.approx(
        constant * sizes.regression_size(0.1, 0.1, 5, 0.3, 1.0)
    )
