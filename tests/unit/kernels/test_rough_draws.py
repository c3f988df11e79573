"""Rows drawn by a guess stand for all rows, whatever the guess: each is drawn by its chance, and weighs one over it."""

import numpy as np
import pytest

from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.kernels.kmeans import nearest_centers
from colonnade.kernels.rough_draws import Guess, drawn_roughly, guessed
from colonnade.kernels.row_blocks import ArrayBlocks
from cut_blocks import CutBlocks

RNG = np.random.default_rng(3)
X = np.asfortranarray(RNG.standard_t(2, size=(BLOCK_ROWS + 3_000, 3)))
CENTERS = X[:6] + 0.1
WEIGHTS = RNG.integers(0, 4, size=len(X)).astype(np.float64)


def line_10(X: Floats, weights: Floats, centers: Floats) -> Floats:
    labels, squared = nearest_centers(X, centers)
    total, costs = (np.bincount(labels, each, len(centers)) for each in (weights, weights * squared))
    scores: Floats = squared / costs.sum() + ((costs / costs.sum() + 2) / total)[labels]
    return scores


def guess_of(X: Floats) -> Guess:
    return guessed(X, np.ones(len(X)), CENTERS)


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e9])
def test_a_guess_from_all_rows_is_line_10_up_to_rounding(shift: float) -> None:
    """In 32 bits, or in 64 where these would show nothing of the distances."""
    guess = guessed(X + shift, np.ones(len(X)), CENTERS + shift)
    np.testing.assert_allclose(guess.of(X + shift), line_10(X, np.ones(len(X)), CENTERS), rtol=1e-3)


def test_clusters_far_apart_are_guessed_in_64_bits() -> None:
    heaps = X + np.where(np.arange(len(X)) % 2, 1e6, 0.0)[:, np.newaxis]
    centers = np.concatenate([CENTERS, CENTERS + 1e6])
    guess = guessed(heaps, np.ones(len(X)), centers)
    assert guess.factors is None
    np.testing.assert_allclose(guess.of(heaps), line_10(heaps, np.ones(len(X)), centers), rtol=1e-6)


@pytest.mark.parametrize("far", [1e18, 1e25, 1e200])
def test_a_row_farther_than_numbers_reach_is_certain(far: float) -> None:
    """No row gets lost because its distance overflows."""
    rows = X.copy()
    rows[77] = far
    drawn = drawn_roughly(ArrayBlocks(rows), guess_of(X[100:2000]), 500, 1e-2, 1)
    place = np.flatnonzero(drawn.columns[0] == far)
    assert len(place) == 1
    assert drawn.weighted()[1][place] == 1.0


def test_a_guess_from_equal_rows_makes_all_others_certain() -> None:
    rows = np.zeros((5_000, 2))
    rows[[7, 4_000]] = [[1.0, 2.0], [1e-3, 0.0]]
    guess = guessed(rows[100:200], np.ones(100), rows[:1])
    columns, weights = drawn_roughly(ArrayBlocks(rows), guess, 200, 200 * 100 / 5_000 / 4, 1).weighted()
    others = columns.any(axis=1)
    assert sorted(columns[others, 0].tolist()) == [1e-3, 1.0]
    np.testing.assert_array_equal(weights[others], 1.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("chance", [0.02, 50.0])
def test_weights_stand_for_all_rows(weighted: bool, chance: float) -> None:
    """Sums over 200 draws, with and without too many rows: within 4.5 standard errors, false alarm 5e-5 in all."""
    weights = WEIGHTS if weighted else None
    counts = np.ones(len(X)) if weights is None else weights
    rows, guess = ArrayBlocks(X, weights), guess_of(X[:500])
    found = []
    for seed in range(200):
        drawn, given = drawn_roughly(rows, guess, 400, chance, seed).weighted()
        found.append([given.sum(), given @ np.minimum(drawn[:, 0] ** 2, 9.0)])
    expected = [counts.sum(), counts @ np.minimum(X[:, 0] ** 2, 9.0)]
    errors = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - expected) < 4.5 * errors).all()


def test_rows_of_weight_zero_are_never_drawn_and_no_more_than_asked_for() -> None:
    drawn = drawn_roughly(ArrayBlocks(X, WEIGHTS), guess_of(X[:500]), 400, np.inf, 0)
    assert len(drawn) == 400
    assert (drawn.weights > 0).all()
    assert (drawn.keys < drawn.limit).all()


def test_all_rows_are_drawn_where_they_may_be() -> None:
    columns, weights = drawn_roughly(ArrayBlocks(X), guess_of(X[:500]), len(X), np.inf, 0).weighted()
    np.testing.assert_array_equal(columns, X)
    np.testing.assert_array_equal(weights, 1.0)


def test_some_of_the_rows_drawn_are_drawn_likewise() -> None:
    """Fewer of them are those that a smaller size draws, with its weights."""
    guess = guess_of(X[:500])
    many, few = (drawn_roughly(ArrayBlocks(X), guess, size, 50.0, 9) for size in (900, 300))
    for found, expected in zip(many.some(300).weighted(), few.weighted(), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_how_rows_lie_in_memory_changes_no_bit() -> None:
    guess = guess_of(X[:500])
    whole = drawn_roughly(ArrayBlocks(X), guess, 300, 50.0, 9)
    row_major = drawn_roughly(ArrayBlocks(np.ascontiguousarray(X)), guess, 300, 50.0, 9)
    for found, expected in zip(row_major[:4], whole[:4], strict=True):
        np.testing.assert_array_equal(found, expected)
    assert row_major.limit == whole.limit


def test_no_block_gives_more_than_the_size() -> None:
    held: list[int] = []

    class Watched(CutBlocks):
        def map(self, work, numbers=None):  # type: ignore[no-untyped-def]
            for found in super().map(work, numbers):
                held.append(len(found))
                yield found

    cuts = list(range(500, len(X), 500))
    drawn = drawn_roughly(Watched(X, cuts), guess_of(X[:500]), 100, 1e9, 0)
    assert len(drawn) == 100
    assert max(held) <= 100
