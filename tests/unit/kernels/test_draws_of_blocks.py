"""Draws from several blocks: the same laws as of one, and the same rows however and by whom scores are computed."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from colonnade.data.tables import read_table
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import BLOCK_ROWS, Block, n_blocks_of
from colonnade.kernels.draws import chances, distinct_factor, draw_by_scores, draw_distinct, held_out, score_classes
from colonnade.kernels.per_row import PerRow, numbers_from, numbers_in
from colonnade.kernels.row_blocks import ArrayBlocks

N = 40_000
BLOCK_OF_ROW = np.arange(N) // BLOCK_ROWS
# Twelve rows that are all in two blocks and a part of a third.
PLACES = np.array([0, 1, 7000, 16_383, 16_384, 20_000, 20_001, 32_767, 33_000, 35_000, 39_998, 39_999])

Draw = Callable[[PerRow, np.random.Generator], Rows]


def stratified(scores: PerRow, rng: np.random.Generator) -> Rows:
    return draw_by_scores(scores, 600, rng, stratified=True)


def independent(scores: PerRow, rng: np.random.Generator) -> Rows:
    return draw_by_scores(scores, 600, rng, stratified=False)


def distinct(scores: PerRow, rng: np.random.Generator) -> Rows:
    return draw_distinct(scores, 600, rng)[1]


DRAWS = pytest.mark.parametrize("draw", [stratified, independent, distinct])


@cache
def skewed() -> Floats:
    scores = np.random.default_rng(0).lognormal(sigma=1.5, size=N)
    scores[::7] = 0.0
    return np.asarray(scores)


def spread_over_blocks(scores: Floats) -> Floats:
    everywhere = np.zeros(N)
    everywhere[PLACES] = scores
    return everywhere


def second_column(block: Block) -> Floats:
    return block.values[:, 1]


@DRAWS
def test_rows_are_the_same_whoever_computes_scores_and_keeps_them(draw: Draw) -> None:
    table = np.column_stack([np.zeros(N), skewed()])
    ways = [
        numbers_in(skewed()),
        numbers_from(ArrayBlocks(table), second_column),
        numbers_from(ArrayBlocks(np.asfortranarray(table)), second_column).kept(),
        numbers_from(read_table("bank", table), second_column),  # on threads
    ]
    ways[1].block(2), ways[1].block(0)  # in another order first
    first, *others = (draw(scores, np.random.default_rng(5)) for scores in ways)
    for rows in others:
        np.testing.assert_array_equal(rows, first)


@pytest.mark.parametrize("is_stratified", [True, False])
def test_each_part_of_a_table_is_drawn_as_often_as_its_scores_say(is_stratified: bool) -> None:
    """200 draws of 600; 30 groups by block and score, at 5 standard errors of a multinomial law: false alarm 2e-5."""
    scores = skewed()
    groups = 10 * BLOCK_OF_ROW + (10 * stats.rankdata(scores) / (N + 1)).astype(int)
    expected = 600 * np.bincount(groups, scores, 30) / scores.sum()
    numbers, counts = numbers_in(scores), np.zeros(30)
    for seed in range(200):
        rows = draw_by_scores(numbers, 600, np.random.default_rng(seed), stratified=is_stratified)
        assert (np.diff(rows) >= 0).all()
        assert scores[rows].all()
        counts += np.bincount(groups[rows], minlength=30)
    assert (np.abs(counts / 200 - expected) <= 5 * np.sqrt(expected * (1 - expected / 600) / 200)).all()


@pytest.mark.parametrize("is_stratified", [True, False])
def test_every_row_is_drawn_as_often_as_its_score_says(is_stratified: bool) -> None:
    """1,000 draws of 7 of twelve rows, at 5 standard errors of a multinomial law: false alarm 1e-5."""
    own = np.random.default_rng(0).lognormal(sigma=1.5, size=12)
    numbers, expected = numbers_in(spread_over_blocks(own)), 7 * own / own.sum()
    counts = np.zeros(12)
    for seed in range(1000):
        rows = draw_by_scores(numbers, 7, np.random.default_rng(seed), stratified=is_stratified)
        counts += np.bincount(np.searchsorted(PLACES, rows), minlength=12)
        assert np.isin(rows, PLACES).all()
    assert (np.abs(counts / 1000 - expected) < 5 * np.sqrt(expected * (1 - expected / 7) / 1000)).all()


FEW = st.lists(st.just(0.0) | st.floats(1e-300, 1e6), min_size=12, max_size=12).filter(any).map(np.array)


@settings(max_examples=50, deadline=None)
@given(FEW, st.integers(0, 40), st.integers(0, 2**32))
def test_few_rows_far_apart_are_drawn_as_if_they_were_one_block(own: Floats, count: int, seed: int) -> None:
    """On the line rows of score 0 have no length: stratified and independent draws are of the same rows."""
    together, apart = numbers_in(own), numbers_in(spread_over_blocks(own))
    for is_stratified in (True, False):
        one, several = (
            draw_by_scores(scores, count, np.random.default_rng(seed), stratified=is_stratified)
            for scores in (together, apart)
        )
        np.testing.assert_array_equal(PLACES[one], several)
    factor, rows = draw_distinct(apart, count, np.random.default_rng(seed))
    assert factor == distinct_factor(together, count)
    assert len(rows) == min(count, np.count_nonzero(own))
    assert (np.diff(rows) > 0).all()
    assert np.isin(rows, PLACES[own > 0]).all()
    with np.errstate(over="ignore"):
        assert np.isin(PLACES[chances(factor, own) >= 1], rows).all()


def test_each_stratum_has_one_draw() -> None:
    """The line goes class by class, and by rows inside a class, whatever block they are in."""
    scores = skewed()
    order = np.argsort(score_classes(scores), kind="stable")
    ends = np.cumsum(scores[order]) / scores.sum() * 600
    places = np.sort(np.argsort(order)[stratified(numbers_in(scores), np.random.default_rng(1))])
    assert (ends[places] > np.arange(600) - 1e-9).all()
    assert (ends[places] - scores[order][places] / scores.sum() * 600 < np.arange(1, 601) + 1e-9).all()


# Distinct draws.


@pytest.mark.parametrize("sigma", [0.0, 1.5, 4.0])
def test_every_row_is_among_distinct_ones_as_often_as_its_chance_says(sigma: float) -> None:
    """1,000 draws of 5 of twelve rows, at 5 standard errors: false alarm 1e-5. Certain rows are in every draw."""
    own = np.random.default_rng(3).lognormal(sigma=sigma, size=12)
    numbers = numbers_in(spread_over_blocks(own))
    chance = chances(distinct_factor(numbers, 5), own)
    assert (chance == 1).any() == (sigma > 1)
    counts = np.zeros(12)
    for seed in range(1000):
        counts[np.searchsorted(PLACES, draw_distinct(numbers, 5, np.random.default_rng(seed))[1])] += 1
    assert (np.abs(counts / 1000 - chance) <= 5 * np.sqrt(chance * (1 - chance) / 1000)).all()


def test_each_part_of_a_table_is_among_distinct_rows_as_often_as_its_chances_say() -> None:
    """200 draws of 600, 20 of which are certain; 30 groups, at 5 standard errors of independent rows: 2e-5."""
    scores = skewed().copy()
    certain = np.arange(0, N, 2000) + 3
    scores[certain] = scores.sum()
    numbers = numbers_in(scores)
    chance = chances(distinct_factor(numbers, 600), scores)
    assert chance.sum() == pytest.approx(600, rel=1e-12)
    groups = 10 * BLOCK_OF_ROW + (10 * stats.rankdata(scores) / (N + 1)).astype(int)
    counts = np.zeros(30)
    for seed in range(200):
        _, rows = draw_distinct(numbers, 600, np.random.default_rng(seed))
        assert len(np.unique(rows)) == 600
        assert np.isin(certain, rows).all()
        counts += np.bincount(groups[rows], minlength=30)
    errors = np.sqrt(np.bincount(groups, chance * (1 - chance), 30) / 200)
    assert (np.abs(counts / 200 - np.bincount(groups, chance, 30)) <= 5 * errors + 1e-9).all()


def test_pairs_of_rows_of_equal_scores_are_nearly_those_of_simple_random_draws() -> None:
    """As many of a block are drawn as is its share, rounded: so pairs in one are rarer, by 1 in the rows drawn of it.

    Of 1,200 rows some 220 to 500 are of a block: by 1 / 220 at most. Rows next to each other, in one block or in two,
    are as others: 200 draws, 7,200 such pairs due, at 5 standard errors of a Poisson law: false alarm 1e-6.
    """
    count, n_draws, n_blocks = 1200, 200, n_blocks_of(N)
    equal, together, neighbours = numbers_in(np.ones(N)), np.zeros((n_blocks, n_blocks)), 0
    lengths = np.bincount(BLOCK_OF_ROW)
    for seed in range(n_draws):
        _, rows = draw_distinct(equal, count, np.random.default_rng(seed))
        drawn = np.bincount(BLOCK_OF_ROW[rows], minlength=n_blocks)
        assert (np.abs(drawn - count * lengths / N) < 1 + 1e-9).all()
        together += np.outer(drawn, drawn) - np.diag(drawn)
        neighbours += int(np.count_nonzero(np.diff(rows) == 1))
    possible = np.outer(lengths, lengths) - np.diag(lengths)
    ratio = together / n_draws / possible / (count * (count - 1) / (N * (N - 1)))
    np.testing.assert_allclose(ratio, 1.0, atol=1 / 200)
    due = n_draws * count**2 / N
    assert abs(neighbours - due) < 5 * np.sqrt(due)


# Rows held out.


@given(st.integers(1, 50_000), st.floats(0, 1), st.integers(0, 2**63 - 1))
def test_as_many_rows_are_held_out_as_are_due(n_rows: int, fraction: float, seed: int) -> None:
    marks = np.asarray(held_out(n_rows, fraction, seed))
    assert marks.shape == (n_rows,)
    assert np.isin(marks, [0.0, 1.0]).all()
    assert marks.sum() == round(fraction * n_rows)


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.999])
def test_each_row_is_held_out_equally_often(fraction: float) -> None:
    """40 rows and 10,000 seeds, a binomial law each: false alarm 1e-5 over all rows."""
    counts = sum(np.asarray(held_out(40, fraction, seed)) for seed in range(10_000))
    low, high = stats.binom.ppf([1e-5 / 80, 1 - 1e-5 / 80], 10_000, round(fraction * 40) / 40)
    assert ((low <= counts) & (counts <= high)).all()


def test_each_row_of_several_blocks_is_held_out_equally_often() -> None:
    """400 seeds, a binomial law for each of 40,000 rows, and for rows 0 and N - 1 together: false alarm 1e-5."""
    drawn = np.array([np.asarray(held_out(N, 0.25, seed), bool) for seed in range(400)])
    counts = drawn.sum(axis=0)
    low, high = stats.binom.ppf([1e-5 / 2 / N, 1 - 1e-5 / 2 / N], 400, 0.25)
    assert low <= counts.min()
    assert counts.max() <= high
    in_block = np.stack([drawn[:, number == BLOCK_OF_ROW].sum(axis=1) for number in range(3)])
    due = 0.25 * np.bincount(BLOCK_OF_ROW)[:, np.newaxis]
    assert (np.abs(in_block - due) < 1).all(), "its share, rounded up or down"
    low, high = stats.binom.ppf([5e-6, 1 - 5e-6], 400, 1 / 16)
    assert low <= np.count_nonzero(drawn[:, 0] & drawn[:, -1]) <= high


def test_rows_held_out_do_not_depend_on_which_block_is_asked_first() -> None:
    marks = np.asarray(held_out(N, 0.3, 7))
    for order in ([2, 0, 1], [1, 1, 2, 0]):
        again = held_out(N, 0.3, 7)
        for number in order:
            np.testing.assert_array_equal(again.block(number), marks[number == BLOCK_OF_ROW])
    some = np.array([N - 1, 0, 20_000, 0])
    np.testing.assert_array_equal(held_out(N, 0.3, 7)[some], marks[some])
    assert (marks != np.asarray(held_out(N, 0.3, 8))).any()
    assert (marks[:7232] != marks[BLOCK_ROWS : BLOCK_ROWS + 7232]).any(), "a block does not repeat another"
