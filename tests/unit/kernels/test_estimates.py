"""Sums estimated from drawn rows."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm, t

from colonnade.kernels.estimates import (
    MISSED,
    Estimate,
    exactly,
    from_errors,
    plain_estimate,
    ratio_estimate,
    regression_estimate,
)


def test_a_value_that_its_controls_explain_is_known_exactly() -> None:
    rng = np.random.default_rng(0)
    all_rows = np.column_stack([np.ones(500), rng.normal(size=(500, 2))])
    drawn = rng.integers(500, size=60)
    values = all_rows @ [2.0, -1.0, 3.0]
    found = regression_estimate(values[drawn], all_rows[drawn], all_rows.sum(axis=0), np.full(60, 500 / 60))
    assert found.value == pytest.approx(values.sum())
    assert found.deviation < 1e-9 * abs(found.value)


def test_a_control_that_is_there_twice_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    control = np.column_stack([np.ones(80), rng.normal(size=80)])
    values, weights = rng.normal(size=80) ** 2, rng.uniform(1, 3, size=80)
    once = regression_estimate(values, control, np.array([160.0, 1.0]), weights)
    twice = regression_estimate(values, control[:, [0, 1, 1]], np.array([160.0, 1.0, 1.0]), weights)
    assert twice.value == pytest.approx(once.value)
    assert twice.deviation == pytest.approx(once.deviation)


def test_normal_errors_have_as_many_degrees_as_rows_and_heavy_ones_few() -> None:
    """The kurtosis of 20,000 normal numbers is off by 0.1 at most in all but one of ten thousand draws."""
    rng = np.random.default_rng(2)
    ones = np.ones(20_000)
    assert plain_estimate(rng.normal(size=20_000), ones).degrees > 19_000
    assert plain_estimate(rng.standard_t(2, size=20_000), ones).degrees < 4_000


def test_the_weighted_mean_does_not_depend_on_the_scale_of_the_weights() -> None:
    rng = np.random.default_rng(3)
    values, weights = rng.exponential(size=50), rng.uniform(1, 9, size=50)
    small, large = (ratio_estimate(values, scale * weights, 1000.0) for scale in (0.01, 100.0))
    assert small.value == pytest.approx(large.value)
    assert small.deviation == pytest.approx(large.deviation)
    assert small.value == pytest.approx(1000 * np.average(values, weights=weights))


def test_intervals_are_students_of_the_logarithm() -> None:
    low, high = Estimate(100.0, 10.0, 30.0).interval()
    half = t.ppf(0.975, 30) * 0.1
    assert (low, high) == pytest.approx((100 * np.exp(-half), 100 * np.exp(half)))
    assert Estimate(-1.0, 2.0, 1e6).interval() == pytest.approx((0.0, norm.ppf(0.975) * 2 - 1), rel=1e-3)
    assert np.isfinite(Estimate(1e-9, 1.0, 5.0).interval()).all()


def test_p_values_are_students_and_of_both_errors() -> None:
    found = Estimate(3.0, 1.0, 20.0)
    assert found.p_value(exactly(0.0)) == pytest.approx(2 * t.sf(3.0, 20))
    assert found.p_value(Estimate(0.0, np.sqrt(8.0), 7.0)) == pytest.approx(2 * t.sf(1.0, 81 / (1 / 20 + 64 / 7)))
    assert exactly(3.0).p_value(exactly(3.0)) == 1.0


def test_errors_of_distinct_rows_have_the_variance_that_all_their_samples_have() -> None:
    """Of six rows, each in a sample by itself: every sample's variance, by how likely it is, adds up to the exact."""
    values, chances = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0]), np.array([0.2, 0.9, 0.5, 0.3, 0.7, 1.0])
    expected, sums = 0.0, []
    for each in product([False, True], repeat=6):
        drawn = np.array(each)
        likely = float(np.prod(np.where(drawn, chances, 1 - chances)))
        errors = (values / chances)[drawn]
        found = from_errors(0.0, errors, chances[drawn])
        missed = MISSED * np.max((1 - chances[drawn]) * errors**2, initial=0.0)
        expected += likely * (found.deviation**2 - missed)
        sums.append((likely, errors.sum()))
    likely, totals = np.array(sums).T
    assert likely @ totals == pytest.approx(values.sum())
    assert expected == pytest.approx(likely @ (totals - values.sum()) ** 2)


def test_an_even_draw_of_distinct_rows_has_the_textbook_variance() -> None:
    """It is n^2 (1 - m / n) s^2 / m, up to m / (m - 1)."""
    values, m, n = np.random.default_rng(4).exponential(size=200), 200, 500
    found = ratio_estimate(values, np.full(m, n / m), float(n), np.full(m, m / n))
    parts = np.square(values - values.mean())
    exact = n**2 * (1 - m / n) * parts.mean() / m
    assert found.deviation**2 == pytest.approx(exact * (1 + MISSED * parts.max() / parts.sum()))


def test_certain_rows_are_no_matter_of_chance() -> None:
    rng = np.random.default_rng(5)
    values, weights = rng.exponential(size=60), np.ones(60)
    controls = np.column_stack([np.ones(60), rng.normal(size=60)])
    for found in (
        plain_estimate(values, weights, np.ones(60)),
        ratio_estimate(values, weights, 60.0, np.ones(60)),
        regression_estimate(values, controls, controls.sum(axis=0), weights, np.ones(60)),
    ):
        assert found.value == pytest.approx(values.sum())
        assert found.deviation == 0.0
        assert found.interval() == (found.value, found.value)


def test_a_certain_row_that_is_far_off_hardly_widens_the_interval() -> None:
    """It pulls the coefficients a little; as one of independent draws it would make up the whole interval."""
    rng = np.random.default_rng(6)
    values, weights = np.append(rng.exponential(size=100), 1e3), np.append(np.full(100, 4.0), 1.0)
    ones, n = np.ones((101, 1)), np.array([401.0])
    certain = regression_estimate(values, ones, n, weights, 1 / weights)
    assert certain.deviation < 0.1 * regression_estimate(values, ones, n, weights).deviation


def test_a_row_as_heavy_as_the_heaviest_may_have_been_missed() -> None:
    errors = np.append(np.full(99, 0.1), 3.0)
    assert from_errors(0.0, errors).deviation ** 2 == pytest.approx(99 * 0.01 + (1 + MISSED) * 9.0)
    assert from_errors(0.0, errors).degrees < 3
