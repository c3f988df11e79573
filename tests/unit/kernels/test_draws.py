from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.draws import (
    draw_by_scores,
    draw_evenly,
    draw_evenly_distinct,
    even_factor,
    most_copies,
    score_classes,
)
from colonnade.kernels.per_row import numbers_in

SCORES = st.lists(st.just(0.0) | st.floats(1e-300, 1e6), min_size=1, max_size=50).filter(lambda scores: sum(scores) > 0)


def drawn_by(scores: Any, count: int, rng: np.random.Generator | int, *, stratified: bool) -> Rows:
    return draw_by_scores(numbers_in(np.array(scores)), count, np.random.default_rng(rng), stratified=stratified)


@given(SCORES, st.integers(0, 200), st.integers(0, 2**32), st.booleans())
def test_rows_ascend_and_rows_of_score_zero_are_never_drawn(
    scores: list[float], count: int, seed: int, stratified: bool
) -> None:
    rows = drawn_by(scores, count, seed, stratified=stratified)
    assert rows.dtype == np.int64
    assert rows.shape == (count,)
    assert (np.diff(rows) >= 0).all()
    assert (np.array(scores)[rows] > 0).all()


@given(SCORES, st.integers(1, 200), st.integers(0, 2**32), st.booleans())
def test_no_honest_draw_has_more_copies_than_the_law_allows(
    scores: list[float], count: int, seed: int, stratified: bool
) -> None:
    """Independent draws exceed it with probability 1e-15 a row."""
    g = np.array(scores)
    ids, copies = np.unique(drawn_by(scores, count, seed, stratified=stratified), return_counts=True)
    assert (copies <= most_copies(g[ids] / g.sum(), count, stratified=stratified)).all()


def test_the_law_of_copies_is_not_idle() -> None:
    share = np.array([0.001, 0.2])
    assert most_copies(share, 1000, stratified=True).tolist() == [3, 202]
    assert (most_copies(share, 1000, stratified=False) < [28, 350]).all()


class Largest(np.random.Generator):
    """Draws the largest number there is."""

    def integers(self, low: int, *_: object, size: int | None = None, **__: object) -> Any:  # type: ignore[override]
        return low - 1 if size is None else np.full(size, low - 1)


@given(SCORES, st.integers(1, 9), st.booleans())
def test_the_largest_draw_falls_to_a_positive_score(scores: list[float], count: int, stratified: bool) -> None:
    rows = drawn_by([*scores, 0.0], count, Largest(np.random.PCG64(0)), stratified=stratified)
    assert (np.array(scores)[rows] > 0).all()


@given(SCORES)
def test_the_largest_draw_by_weight_falls_to_a_positive_weight(weights: list[float]) -> None:
    counted = numbers_in(np.array([*weights, 0.0]))
    rows = draw_evenly(len(weights) + 1, 1, Largest(np.random.PCG64(0)), counted)
    assert weights[rows[0]] > 0


@pytest.mark.parametrize("stratified", [True, False])
def test_every_row_is_expected_as_often_as_its_score_says_and_never_more_unevenly(stratified: bool) -> None:
    """Means of 20,000 draws of 7 rows, against a normal law at 5 standard errors: false alarm 1e-5 over 12 rows."""
    scores = np.random.default_rng(0).lognormal(sigma=1.5, size=12)
    expected = 7 * scores / scores.sum()
    draws = [drawn_by(scores, 7, seed, stratified=stratified) for seed in range(20_000)]
    counts = np.array([np.bincount(rows, minlength=12) for rows in draws])
    multinomial = expected * (1 - expected / 7)
    assert (np.abs(counts.mean(axis=0) - expected) < 5 * np.sqrt(multinomial / len(counts))).all()
    assert (counts.var(axis=0) <= 1.05 * multinomial).all()


def line_of(scores: Floats) -> Rows:
    """Order rows as stratified draws lay them: by the class of their scores, and as they are inside a class.

    Of classes there are four from each power of 2 up to the next one.
    """
    order: Rows = np.argsort(score_classes(scores), kind="stable")
    return order


def assert_each_stratum_has_one_draw(scores: Floats, rows: Rows) -> None:
    """Rows laid end to end in that order, each as long as its score: the t-th draw is of a row in the t-th part.

    That is exact. A row may be in several parts, and then each of them may have drawn it.
    """
    order = line_of(scores)
    ends = np.cumsum(scores[order]) / scores.sum() * len(rows)
    places = np.sort(np.argsort(order)[rows])
    parts = np.arange(len(rows))
    assert (ends[places] > parts - 1e-9).all()
    assert (ends[places] - scores[order][places] / scores.sum() * len(rows) < parts + 1 + 1e-9).all()


def test_each_stratum_of_similar_scores_has_one_draw() -> None:
    scores = np.random.default_rng(1).random(1000)
    rows = drawn_by(scores, 20, 2, stratified=True)
    assert_each_stratum_has_one_draw(scores, rows)
    assert max(np.diff(scores[line_of(scores)])) > 0 > min(np.diff(scores[line_of(scores)])), "they are not sorted"
    assert (np.diff(score_classes(scores[line_of(scores)])) >= 0).all(), "but their classes are"


def test_there_are_four_classes_from_a_power_of_2_to_the_next() -> None:
    numbers = np.array([0.0, 1.0, 1.24, 1.25, 1.5, 1.75, 1.99, 2.0, 3.0, 2.0**61 * 1.99])
    assert (score_classes(numbers)[1:] - score_classes(numbers)[1]).tolist() == [0, 0, 1, 2, 3, 3, 4, 6, 247]
    assert score_classes(numbers)[0] < score_classes(numbers)[1]


@given(SCORES, st.integers(1, 60), st.integers(0, 2**32))
def test_each_stratum_has_one_draw_whatever_the_scores(scores: list[float], count: int, seed: int) -> None:
    assert_each_stratum_has_one_draw(np.array(scores), drawn_by(scores, count, seed, stratified=True))


def test_scores_of_any_unit_draw_the_same_rows() -> None:
    """Multiplied by a power of 2: nothing rounds."""
    scores = np.random.default_rng(3).lognormal(size=1000)
    for stratified in (True, False):
        rows = drawn_by(scores, 50, 4, stratified=stratified)
        for unit in (2.0**-900, 2.0**-30, 2.0**900):
            np.testing.assert_array_equal(drawn_by(unit * scores, 50, 4, stratified=stratified), rows)


def test_even_draws_by_weight_are_independent() -> None:
    """Counts vary as the multinomial's: 20,000 draws of 6 rows, variance within 6 % (5 standard errors)."""
    weights = np.array([1.0, 2.0, 0.0, 3.0])
    counted = numbers_in(weights)
    counts = np.array(
        [np.bincount(draw_evenly(4, 6, np.random.default_rng(s), counted), minlength=4) for s in range(20_000)]
    )
    share = weights / weights.sum()
    np.testing.assert_allclose(counts.mean(axis=0), 6 * share, atol=0.05)
    np.testing.assert_allclose(counts.var(axis=0), 6 * share * (1 - share), rtol=0.06)


@given(st.integers(1, 1000), st.integers(0, 100), st.integers(0, 2**32))
def test_even_draws_stay_in_range(n_rows: int, count: int, seed: int) -> None:
    rows = draw_evenly(n_rows, count, np.random.default_rng(seed))
    assert rows.shape == (count,)
    assert (np.diff(rows) >= 0).all()
    assert count == 0 or (rows[0] >= 0 and rows[-1] < n_rows)


@given(st.integers(1, 100), st.integers(0, 120), st.integers(0, 2**32))
def test_even_distinct_draws_are_as_many_as_are_due(n_rows: int, count: int, seed: int) -> None:
    factor, rows = draw_evenly_distinct(n_rows, count, np.random.default_rng(seed))
    assert factor == even_factor(n_rows, count) == min(count / n_rows, 1.0)
    assert len(rows) == min(count, n_rows)
    assert (np.diff(rows) > 0).all()
    assert np.isin(rows, np.arange(n_rows)).all()


def test_even_distinct_draws_have_all_pairs_alike() -> None:
    """3 of 6, 20,000 times. 15 pairs at 5 standard errors; false alarm 1e-5."""
    together = np.zeros((6, 6))
    for seed in range(20_000):
        _, rows = draw_evenly_distinct(6, 3, np.random.default_rng(seed))
        together[np.ix_(rows, rows)] += 1
    pairs = together[np.triu_indices(6, 1)] / 20_000
    assert (np.abs(pairs - 0.2) < 5 * np.sqrt(0.2 * 0.8 / 20_000)).all()
