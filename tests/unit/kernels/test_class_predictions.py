"""Chances of classes from logits: a column each, wherever they are put."""

import numpy as np
import pytest

from colonnade.kernels.class_predictions import class_chances
from colonnade.kernels.logits import probabilities

RNG = np.random.default_rng(0)


def test_two_classes_have_a_column_each_that_add_up_to_1() -> None:
    logits = np.array([-800.0, -1.0, 0.0, 2.0, 800.0])
    found = class_chances(logits)
    np.testing.assert_array_equal(found[:, 1], probabilities(logits))
    np.testing.assert_array_equal(found[:, 0], 1.0 - probabilities(logits))
    assert found.flags.c_contiguous


@pytest.mark.parametrize("shape", [(7,), (7, 3), (0,), (0, 3)])
def test_they_are_put_where_they_are_wanted(shape: tuple[int, ...]) -> None:
    logits = RNG.normal(size=shape)
    place = np.full((9, shape[1] if len(shape) > 1 else 2), np.nan)
    out = place[1 : 1 + len(logits)]
    assert class_chances(logits, out=out) is out
    np.testing.assert_array_equal(out, class_chances(logits))
    assert np.isnan(place[0]).all()
    assert np.isnan(place[1 + len(logits) :]).all()
