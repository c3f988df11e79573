import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.draws import chances, draw_by_scores, draw_distinct, draw_evenly, most_copies

SCORES = st.lists(st.just(0.0) | st.floats(1e-300, 1e6), min_size=1, max_size=50).filter(lambda scores: sum(scores) > 0)


@given(SCORES, st.integers(0, 200), st.integers(0, 2**32), st.booleans())
def test_rows_ascend_and_rows_of_score_zero_are_never_drawn(
    scores: list[float], count: int, seed: int, stratified: bool
) -> None:
    rows = draw_by_scores(np.array(scores), count, np.random.default_rng(seed), stratified=stratified)
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
    ids, copies = np.unique(
        draw_by_scores(g, count, np.random.default_rng(seed), stratified=stratified), return_counts=True
    )
    assert (copies <= most_copies(g[ids] / g.sum(), count, stratified=stratified)).all()


def test_the_law_of_copies_is_not_idle() -> None:
    share = np.array([0.001, 0.2])
    assert most_copies(share, 1000, stratified=True).tolist() == [3, 202]
    assert (most_copies(share, 1000, stratified=False) < [28, 350]).all()


class AlmostOne(np.random.Generator):
    """Draws the largest number below one."""

    def random(self, *_: object, **__: object) -> np.ndarray:  # type: ignore[override]
        return np.array([np.nextafter(1.0, 0.0)])


@given(SCORES, st.booleans())
def test_the_largest_draw_falls_to_a_positive_score(scores: list[float], stratified: bool) -> None:
    rows = draw_by_scores(np.array([*scores, 0.0]), 1, AlmostOne(np.random.PCG64(0)), stratified=stratified)
    assert scores[rows[0]] > 0


@given(SCORES)
def test_the_largest_draw_by_weight_falls_to_a_positive_weight(weights: list[float]) -> None:
    rows = draw_evenly(len(weights) + 1, 1, AlmostOne(np.random.PCG64(0)), np.array([*weights, 0.0]))
    assert weights[rows[0]] > 0


@pytest.mark.parametrize("stratified", [True, False])
def test_every_row_is_expected_as_often_as_its_score_says_and_never_more_unevenly(stratified: bool) -> None:
    """Means of 20,000 draws of 7 rows, against a normal law at 5 standard errors: false alarm 1e-5 over 12 rows."""
    scores = np.random.default_rng(0).lognormal(sigma=1.5, size=12)
    expected = 7 * scores / scores.sum()
    generators = map(np.random.default_rng, range(20_000))
    draws = [draw_by_scores(scores, 7, rng, stratified=stratified) for rng in generators]
    counts = np.array([np.bincount(rows, minlength=12) for rows in draws])
    multinomial = expected * (1 - expected / 7)
    assert (np.abs(counts.mean(axis=0) - expected) < 5 * np.sqrt(multinomial / len(counts))).all()
    assert (counts.var(axis=0) <= 1.05 * multinomial).all()


def test_each_stratum_of_equal_scores_has_one_draw() -> None:
    scores = np.random.default_rng(1).random(1000)
    rows = draw_by_scores(scores, 20, np.random.default_rng(2), stratified=True)
    ends = np.cumsum(np.sort(scores))
    ranks = np.argsort(np.argsort(scores))[rows]
    strata = ends[ranks] / ends[-1] * 20
    # A row may straddle two strata: its end lies in the next one then.
    np.testing.assert_allclose(np.sort(strata), np.arange(20) + 0.5, atol=0.5 + 20 * scores.max() / ends[-1])


def test_even_draws_by_weight_are_independent() -> None:
    """Counts vary as the multinomial's: 20,000 draws of 6 rows, variance within 6 % (5 standard errors)."""
    weights = np.array([1.0, 2.0, 0.0, 3.0])
    counts = np.array(
        [np.bincount(draw_evenly(4, 6, np.random.default_rng(s), weights), minlength=4) for s in range(20_000)]
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


# Distinct draws.

ANY_SCORES = st.one_of(
    SCORES,
    st.tuples(st.floats(1e-300, 1e6), st.integers(1, 50)).map(lambda one: [one[0]] * one[1]),  # all the same
    SCORES.map(lambda scores: [*scores, 1e12]),  # one that is all the rest together
    st.lists(st.floats(1e-300, 1e-290), min_size=1, max_size=50),
)


@given(ANY_SCORES, st.integers(0, 70))
def test_chances_add_up_to_the_rows_that_are_due(scores: list[float], count: int) -> None:
    g = np.array(scores)
    factor, chance = chances(g, count)
    np.testing.assert_array_equal(chance, np.minimum(1, factor * g))
    positive = int(np.count_nonzero(g))
    assert np.isfinite(factor)
    assert chance.sum() == pytest.approx(min(count, positive), rel=1e-12, abs=1e-12)
    assert (chance[g == 0] == 0).all()
    assert factor >= count / g.sum() * (1 - 1e-12) or count > positive, "certain rows leave more to the others"
    if count >= positive:
        assert (chance[g > 0] == 1).all()


@given(ANY_SCORES, st.integers(0, 70), st.integers(0, 2**32), st.booleans())
def test_distinct_rows_ascend_and_are_as_many_as_are_due(
    scores: list[float], count: int, seed: int, largest: bool
) -> None:
    g, rng = np.array(scores), np.random.default_rng(seed)
    chance = chances(g, count)[1]
    rows = draw_distinct(chance, Last(rng.bit_generator) if largest else rng)
    assert rows.dtype == np.int64
    assert len(rows) == min(count, np.count_nonzero(g))
    assert (np.diff(rows) > 0).all(), "none twice"
    assert (chance[rows] > 0).all()
    assert np.isin(np.flatnonzero(chance >= 1), rows).all()


class Last(np.random.Generator):
    """Draws the largest number below one, where one is drawn."""

    def random(self, *_: object, **__: object) -> float:  # type: ignore[override]
        return float(np.nextafter(1.0, 0.0))


def test_rows_that_reach_1_leave_more_to_the_others() -> None:
    factor, chance = chances(np.array([100.0, 10.0, 1.0, 1.0, 0.0]), 3)
    assert factor == 0.5
    assert chance.tolist() == [1.0, 1.0, 0.5, 0.5, 0.0]
    assert chances(np.ones(2**21), 2**21 - 1)[1].max() < 1, "nearly certain is not certain: else all were drawn"


@pytest.mark.parametrize("sigma", [0.0, 1.5, 4.0])
def test_every_row_is_among_distinct_ones_as_often_as_its_chance_says(sigma: float) -> None:
    """Frequencies over 20,000 draws of 5 of 12, against a normal law at 5 standard errors: false alarm 1e-5."""
    chance = chances(np.random.default_rng(3).lognormal(sigma=sigma, size=12), 5)[1]
    drawn = np.zeros((20_000, 12))
    for seed, found in enumerate(drawn):
        found[draw_distinct(chance, np.random.default_rng(seed))] = 1
    errors = np.sqrt(chance * (1 - chance) / len(drawn))
    assert (np.abs(drawn.mean(axis=0) - chance) <= 5 * errors).all()


def test_equal_chances_give_all_pairs_alike() -> None:
    """Rows in a random order: 3 of 6, 20,000 times. 15 pairs at 5 standard errors; false alarm 1e-5."""
    together = np.zeros((6, 6))
    for seed in range(20_000):
        rows = draw_distinct(np.full(6, 0.5), np.random.default_rng(seed))
        together[np.ix_(rows, rows)] += 1
    pairs = together[np.triu_indices(6, 1)] / 20_000
    assert (np.abs(pairs - 0.2) < 5 * np.sqrt(0.2 * 0.8 / 20_000)).all()
