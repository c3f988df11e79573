"""Numbers in 16 bits: bounded errors, right on average, and hostile lengths are errors."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colonnade.kernels.sixteen_bits import (
    LOG_STEP,
    restore_evenly,
    restore_logarithms,
    round_evenly,
    round_logarithms,
)

values = hnp.arrays("float64", st.integers(1, 30), elements=st.floats(-1e50, 1e50))
distances = hnp.arrays(
    "float64", st.tuples(st.integers(0, 9), st.integers(1, 4)), elements=st.just(0.0) | st.floats(1e-100, 1e100)
)


def there_and_back(exact: Any, seed: int) -> tuple[float, Any]:
    low, step, codes = round_evenly(exact, np.random.default_rng(seed))
    return step, restore_evenly(low, step, codes, len(exact), np.random.default_rng(seed))


@given(values, st.integers(0, 99))
def test_predictions_are_off_by_half_a_step_at_most(exact: Any, seed: int) -> None:
    step, found = there_and_back(exact, seed)
    assert step >= 1e-100
    assert (np.abs(found - exact) <= 0.5001 * step + 1e-15 * np.abs(exact).max()).all()
    assert step <= max(np.ptp(exact), 1e-9 * np.abs(exact).max(), 1e-90) / 65_000 * (1 + 1e-12)


def test_predictions_are_right_on_average() -> None:
    """Of 4,000 dithers; an honest mean is beyond 5 standard errors once in a million."""
    exact = np.array([0.0, 1 / 3, 1e-5, 2.0])
    found = np.array([there_and_back(exact, seed)[1] for seed in range(4000)])
    step = 2.0 / 65_000
    assert (np.abs(found.mean(axis=0) - exact) < 5 * step / np.sqrt(12 * 4000)).all()
    np.testing.assert_allclose(found.var(axis=0), step**2 / 12, rtol=0.1)


@given(distances)
def test_distances_are_off_by_less_than_a_thirtieth_of_a_percent(exact: Any) -> None:
    largest, codes = round_logarithms(exact)
    found = restore_logarithms(largest, codes, exact.shape)
    assert len(codes) == 2 * exact.size
    kept = exact > 1e-17 * largest
    assert (np.abs(found - exact)[kept] <= 0.501 * LOG_STEP * exact[kept]).all()
    assert (found[~kept] <= 1.1e-17 * largest).all()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_other_than_two_bytes_a_number_is_an_error(count: int) -> None:
    with pytest.raises(ValueError, match="16 bits"):
        restore_evenly(0.0, 1.0, bytes(4), count, np.random.default_rng(0))
    with pytest.raises(ValueError, match="16 bits"):
        restore_logarithms(1.0, bytes(4), (count, 1))
