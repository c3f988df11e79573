"""Losses, probabilities and curvatures of logits, however large."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.kernels.logits import curvature, log_loss, probabilities

logits_of_two = st.lists(st.floats(-800, 800), min_size=1, max_size=8)


@settings(deadline=None)
@given(logits_of_two, st.integers(0, 255))
def test_two_classes_are_a_softmax_with_zero(values: list[float], bits: int) -> None:
    one = np.array(values)
    codes = np.array([bits >> place & 1 for place in range(len(one))])
    both = np.column_stack([np.zeros(len(one)), one])
    np.testing.assert_allclose(log_loss(one, codes), log_loss(both, codes), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(probabilities(one), probabilities(both)[:, 1], rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(curvature(one), curvature(both)[:, 1], rtol=1e-6, atol=1e-15)
    assert (log_loss(one, codes) >= 0).all()


def test_by_hand() -> None:
    assert log_loss(np.array([0.0]), np.array([1])) == pytest.approx(np.log(2))
    assert log_loss(np.log([[1.0, 2.0, 5.0]]), np.array([2])) == pytest.approx(np.log(8 / 5))
    np.testing.assert_allclose(probabilities(np.log([[1.0, 2.0, 5.0]])), [[1 / 8, 2 / 8, 5 / 8]])
    np.testing.assert_allclose(curvature(np.log([[1.0, 2.0, 5.0]])), [[7 / 64, 12 / 64, 15 / 64]])


def test_nothing_overflows_nor_is_lost() -> None:
    huge = np.array([[1e300, -1e300, 0.0], [700.0, 0.0, -700.0]])
    np.testing.assert_array_equal(probabilities(huge), [[1, 0, 0], [1, np.exp(-700.0), 0]])
    np.testing.assert_allclose(log_loss(huge, np.array([0, 1])), [0.0, 700.0])
    assert log_loss(np.array([[60.0, 0.0]]), np.array([0])) == pytest.approx(np.exp(-60.0))
    assert curvature(np.array([60.0])) == pytest.approx(np.exp(-60.0))
