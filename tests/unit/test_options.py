from typing import Any

import numpy as np
import pytest

import colonnade as cn


@pytest.mark.parametrize("size", [5, np.int64(5), np.uint8(5)])
def test_numpys_integers_are_whole_numbers(size: Any) -> None:
    assert type(cn.ImportanceSampling(size).size) is int
    assert type(cn.KMeans(size).n_clusters) is int
    assert cn.UniformSampling(size=size) == cn.UniformSampling(size=5)


@pytest.mark.parametrize("size", [0, -1, 5.0, "5", True, None, np.array([5, 6]), 2**40])
def test_what_is_no_size(size: Any) -> None:
    with pytest.raises(cn.InputError, match=r"size must be a whole number from 1 to 16,777,216, got .* size=2000"):
        cn.ImportanceSampling(size)


@pytest.mark.parametrize("l2", [1, np.float32(1), np.int8(1), True and 1.0])
def test_numpys_numbers_are_numbers(l2: Any) -> None:
    assert type(cn.Regression(l2=l2).l2) is float
    assert cn.Regression(l2=l2) == cn.Regression(l2=1.0)


def test_numpys_booleans_are_flags() -> None:
    assert cn.Regression(fit_intercept=np.False_).fit_intercept is False  # type: ignore[arg-type]


@pytest.mark.parametrize("fit_intercept", ["no", 1, None])
def test_a_flag_is_true_or_false(fit_intercept: Any) -> None:
    with pytest.raises(cn.InputError, match="fit_intercept must be True or False, got"):
        cn.Regression(fit_intercept=fit_intercept)
