import numpy as np
import pytest

from colonnade.kernels import inverse_law
from colonnade.kernels.inverse_law import fit_inverse_law, interval_of_c

SIZES = np.repeat([100.0, 200.0, 400.0], 5)


def test_an_exact_law_is_found() -> None:
    assert fit_inverse_law(SIZES, 7.0 * (1 + 30.0 / SIZES)) == pytest.approx((7.0, 30.0))


def test_costs_of_zero_have_no_excess() -> None:
    assert fit_inverse_law(SIZES, np.zeros(15))[1] == 0.0


def test_the_interval_holds_the_truth_about_as_often_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 pilots of 5 repeats at least 75 intervals hold c: a bootstrap of 5 is a little narrow.

    A tenth of the resamples makes the ends rougher and not narrower: here 88 hold, and 84 of as many with all of them.
    """
    monkeypatch.setattr(inverse_law, "RESAMPLES", 200)
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(100):
        costs = 7.0 * (1 + 30.0 * rng.gamma(5, 1 / 5, size=15) / SIZES)
        low, high = interval_of_c(SIZES, costs, rng)
        held += low <= 30.0 <= high
    assert held >= 75
