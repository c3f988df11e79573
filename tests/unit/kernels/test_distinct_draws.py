"""Distinct draws: chances that add up, rows none of which is there twice, and how often each and each pair is."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from colonnade.kernels.arrays import Floats
from colonnade.kernels.draws import (
    ROUNDING,
    chances,
    distinct_factor,
    draw_distinct,
    draw_evenly_distinct,
    even_factor,
)
from colonnade.kernels.per_row import numbers_in

SCORES = st.lists(st.just(0.0) | st.floats(1e-300, 1e6), min_size=1, max_size=50).filter(lambda scores: sum(scores) > 0)
ANY_SCORES = st.one_of(
    SCORES,
    st.tuples(st.floats(1e-300, 1e6), st.integers(1, 50)).map(lambda one: [one[0]] * one[1]),  # all the same
    SCORES.map(lambda scores: [*scores, 1e12]),  # one that is all the rest together
    st.lists(st.floats(1e-300, 1e-290), min_size=1, max_size=50),
    # Ties, and scores of very different magnitudes.
    st.lists(st.sampled_from([0.0, 1e-300, 3e-300, 1e-200, 1e-20, 1.0, 1.25, 1e12]), min_size=1).filter(any),
)


def found_chances(scores: Any, count: int) -> tuple[float, Floats]:
    g = np.array(scores)
    factor = distinct_factor(numbers_in(g), count)
    with np.errstate(over="ignore"):
        return factor, chances(factor, g)


@given(ANY_SCORES, st.integers(0, 70))
@example([1.0, 1e-300, 1e-200], 2)  # what is left are few steps of the sum of all
@example([1e12, 1.0, 3e-300, 2e-300, 1e-300], 4)
def test_chances_add_up_to_the_rows_that_are_due(scores: list[float], count: int) -> None:
    g = np.array(scores)
    factor, chance = found_chances(g, count)
    positive = int(np.count_nonzero(g))
    assert np.isfinite(factor)
    assert chance.sum() == pytest.approx(min(count, positive), rel=1e-12, abs=1e-12)
    assert (chance[g == 0] == 0).all()
    assert factor >= count / g.sum() * (1 - 1e-12) or count > positive, "certain rows leave more to the others"
    if count >= positive:
        assert (chance[g > 0] == 1).all()


class Largest(np.random.Generator):
    """Draws the largest number there is, where one is drawn."""

    def integers(self, low: int, *_: object, **__: object) -> Any:  # type: ignore[override]
        return low - 1


@given(ANY_SCORES, st.integers(0, 70), st.integers(0, 2**32), st.booleans())
@example([1.0, 1e-300, 1e-200], 2, 0, True)
def test_distinct_rows_ascend_and_are_as_many_as_are_due(
    scores: list[float], count: int, seed: int, largest: bool
) -> None:
    g, rng = np.array(scores), np.random.default_rng(seed)
    factor, chance = found_chances(g, count)
    told, rows = draw_distinct(numbers_in(g), count, Largest(rng.bit_generator) if largest else rng)
    assert told == factor
    assert rows.dtype == np.int64
    assert len(rows) == min(count, np.count_nonzero(g))
    assert (np.diff(rows) > 0).all(), "none twice"
    assert (chance[rows] > 0).all()
    # A chance that only a float takes for 1 has a last point, of 2^61, that misses it; that of a certain row has none.
    certain = chance >= 1 if not largest else factor * g.clip(max=1e6) > 1 + ROUNDING / 2
    assert np.isin(np.flatnonzero(certain), rows).all()


def test_rows_that_reach_1_leave_more_to_the_others() -> None:
    factor, chance = found_chances([100.0, 10.0, 1.0, 1.0, 0.0], 3)
    assert factor == 0.5
    assert chance.tolist() == [1.0, 1.0, 0.5, 0.5, 0.0]
    assert found_chances(np.ones(2**21), 2**21 - 1)[1].max() < 1, "nearly certain is not certain: else all were drawn"


@pytest.mark.parametrize("sigma", [0.0, 1.5, 4.0])
def test_every_row_is_among_distinct_ones_as_often_as_its_chance_says(sigma: float) -> None:
    """Frequencies over 5,000 draws of 5 of 12, against a normal law at 5 standard errors: false alarm 1e-5."""
    scores = np.random.default_rng(3).lognormal(sigma=sigma, size=12)
    chance = found_chances(scores, 5)[1]
    drawn = np.zeros((5_000, 12))
    for seed, found in enumerate(drawn):
        found[draw_distinct(numbers_in(scores), 5, np.random.default_rng(seed))[1]] = 1
    errors = np.sqrt(chance * (1 - chance) / len(drawn))
    assert (np.abs(drawn.mean(axis=0) - chance) <= 5 * errors).all()


def test_equal_chances_give_all_pairs_alike() -> None:
    """Rows in a random order: 3 of 6, 5,000 times. 15 pairs at 5 standard errors; false alarm 1e-5."""
    together = np.zeros((6, 6))
    for seed in range(5_000):
        _, rows = draw_distinct(numbers_in(np.full(6, 0.5)), 3, np.random.default_rng(seed))
        together[np.ix_(rows, rows)] += 1
    pairs = together[np.triu_indices(6, 1)] / 5_000
    assert (np.abs(pairs - 0.2) < 5 * np.sqrt(0.2 * 0.8 / 5_000)).all()


def test_what_is_left_beside_certain_rows_is_drawn_as_its_chance_says() -> None:
    """However small it is: 5,000 draws of 3 of 5, at 5 standard errors; false alarm 1e-6."""
    scores = np.array([1e12, 1.0, 3e-300, 2e-300, 1e-300])
    chance = found_chances(scores, 3)[1]
    np.testing.assert_allclose(chance, [1, 1, 1 / 2, 1 / 3, 1 / 6], rtol=1e-12)
    drawn = np.zeros((5_000, 5))
    for seed, found in enumerate(drawn):
        found[draw_distinct(numbers_in(scores), 3, np.random.default_rng(seed))[1]] = 1
    errors = np.sqrt(chance * (1 - chance) / len(drawn))
    assert (np.abs(drawn.mean(axis=0) - chance) <= 5 * errors).all()


def test_even_draws_by_weight_are_distinct_draws() -> None:
    weights = numbers_in(np.array([1.0, 0.0, 2.0, 3.0, 0.5]))
    for count in range(7):
        factor, rows = draw_evenly_distinct(5, count, np.random.default_rng(1), weights)
        assert factor == even_factor(5, count, weights) == distinct_factor(weights, count)
        np.testing.assert_array_equal(rows, draw_distinct(weights, count, np.random.default_rng(1))[1])


def test_scores_that_have_lost_digits_count_as_none() -> None:
    """Beside others they would be drawn by chances that no number holds."""
    scores = np.where(np.arange(50) < 3, 1.0, 1e-310)
    factor, rows = draw_distinct(numbers_in(scores), 10, np.random.default_rng(0))
    assert rows.tolist() == [0, 1, 2]
    assert np.isfinite(factor)
    assert chances(factor, scores[:3]).tolist() == [1.0, 1.0, 1.0]
    small = np.geomspace(1e-307, 1e-300, 50)
    factor, rows = draw_distinct(numbers_in(small), 10, np.random.default_rng(0))
    assert len(rows) == 10
    assert np.isfinite(factor)
