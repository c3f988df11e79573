"""Quick iterations are Lloyd's, whatever the weights, the chunks and where the columns lie."""

import numpy as np
import pytest

from colonnade.kernels import tiles
from colonnade.kernels.arrays import Floats
from colonnade.kernels.kmeans import nearest_centers
from colonnade.kernels.quick_lloyd import (
    around_mean,
    best_start,
    cost_of,
    count_distinct,
    lloyd,
    squared_distances,
)

RNG = np.random.default_rng(0)
X = 1e3 + RNG.normal(size=(500, 3))
WEIGHTS = RNG.uniform(0.1, 9.0, size=500)
CENTERS = X[[3, 50, 120, 499]]


def one_step(X: Floats, weights: Floats, centers: Floats) -> Floats:
    labels = nearest_centers(X, centers)[0]
    means = [np.average(X[labels == k], axis=0, weights=weights[labels == k]) for k in range(len(centers))]
    return np.stack(means)


@pytest.mark.parametrize("values", [2**17, 100])
def test_an_iteration_moves_centres_to_the_weighted_means_of_their_rows(
    values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "VALUES_AT_ONCE", values)
    points, origin, unit = around_mean(X, WEIGHTS)
    start = (CENTERS - origin) / unit
    expected = one_step(X, WEIGHTS, CENTERS)
    np.testing.assert_allclose(lloyd(points, start, 1, 0.0) * unit + origin, expected, rtol=1e-12)
    coarse = lloyd(points.coarse(), start.astype(np.float32), 1, 0.0)
    assert coarse.dtype == np.float32
    np.testing.assert_allclose(coarse * unit + origin, expected, atol=1e-5)
    cost = WEIGHTS @ nearest_centers(X, CENTERS)[1] / WEIGHTS.mean() / unit**2
    assert cost_of(points, start) == pytest.approx(cost, rel=1e-10)
    assert cost_of(points.coarse(), start.astype(np.float32)) == pytest.approx(cost, rel=1e-4)


def test_starts_side_by_side_move_as_each_alone() -> None:
    points, _, _ = around_mean(X, WEIGHTS)
    starts = np.stack([tiles.rows_in(points.tiles, np.arange(first, first + 4)) for first in (0, 50, 100)])
    found = lloyd(points, starts, 3, 0.0)
    for start, together in zip(starts, found, strict=True):
        np.testing.assert_allclose(together, lloyd(points, start, 3, 0.0), rtol=1e-9, atol=1e-12)
    each = squared_distances(points, found) @ points.weights
    np.testing.assert_allclose(each, [cost_of(points, centers) for centers in found], rtol=1e-12)


def test_a_centre_without_rows_stays() -> None:
    points, _, _ = around_mean(X, WEIGHTS)
    far = np.full((1, 3), 9.0)
    found = lloyd(points, np.concatenate([np.zeros((1, 3)), far]), 5, 0.0)
    np.testing.assert_array_equal(found[1:], far)
    np.testing.assert_allclose(found[0], 0.0, atol=1e-12)


def test_it_stands_still_where_no_centre_moves() -> None:
    points, _, _ = around_mean(X, WEIGHTS)
    end = lloyd(points, tiles.rows_in(points.tiles, np.arange(4)), 300, 0.0)
    np.testing.assert_array_equal(lloyd(points, end, 1, 0.0), end)


def test_starts_find_heaps_far_apart_and_the_better_centres_are_kept() -> None:
    """Twenty heaps; greedy k-means++ hits all of them with every seed tried, 50 of 50."""
    heaps = 100.0 * np.stack(np.meshgrid(np.arange(5), np.arange(4)), axis=-1).reshape(-1, 2)
    rows = np.repeat(heaps, 50, axis=0) + np.random.default_rng(1).normal(size=(1000, 2))
    points, origin, unit = around_mean(rows, np.ones(1000))
    centers, cost = best_start(points, 20, 1, np.random.default_rng(0), 10, 1e-4)
    assert {tuple(heap) for heap in (centers * unit + origin).round(-2).tolist()} == {tuple(heap) for heap in heaps}
    assert cost == cost_of(points, centers)
    bad = np.zeros((20, 2))
    assert best_start(points, 20, 1, np.random.default_rng(0), 10, 1e-4, bad)[1] == cost
    assert best_start(points, 20, 0, np.random.default_rng(0), 10, 1e-4, bad, centers)[1] <= cost


def test_rows_of_no_weight_are_never_drawn() -> None:
    weights = np.where(np.arange(500) < 5, 1.0, 0.0)
    points, origin, unit = around_mean(X, weights)
    for seed in range(20):
        centers, _ = best_start(points, 3, 1, np.random.default_rng(seed), 0, 1e-4)
        drawn = centers * unit + origin
        assert (np.abs(drawn[:, np.newaxis] - X[:5]).sum(axis=2).min(axis=1) < 1e-9).all()


def test_fewer_distinct_rows_than_centres_end() -> None:
    rows = np.repeat([[0.0], [1.0]], 50, axis=0)
    points, _, _ = around_mean(rows, np.ones(100))
    assert best_start(points, 5, 2, np.random.default_rng(0), 10, 1e-4)[1] == 0.0


def test_costs_that_32_bits_hide_are_told() -> None:
    points, _, _ = around_mean(X, WEIGHTS)
    one = cost_of(points, np.zeros((1, 3)))
    assert points.resolves(0.01 * one)
    assert not points.resolves(1e-4 * one)


def test_some_rows_are_those_rows() -> None:
    points, _, _ = around_mean(X, WEIGHTS)
    some = points.some(40, np.random.default_rng(0))
    assert some.n_rows == 40
    places = np.array([int(np.flatnonzero(points.squares == square)[0]) for square in some.squares[:40]])
    assert len(set(places.tolist())) == 40
    own = np.arange(40)
    np.testing.assert_array_equal(tiles.rows_in(some.tiles, own), tiles.rows_in(points.tiles, places))
    for found, of in ((some, own), (points, places)):
        np.testing.assert_array_equal(
            found.masses[of // 256, of % 256, :-1], tiles.rows_in(found.tiles, of) * found.weights[of, np.newaxis]
        )
    np.testing.assert_array_equal(some.weights[:40], points.weights[places])
    assert points.some(500, np.random.default_rng(0)) is points


def test_rows_that_fill_up_the_last_tile_weigh_nothing() -> None:
    points, _, _ = around_mean(X[:300], WEIGHTS[:300])
    assert points.weights.shape == (512,)
    assert (points.weights[300:] == 0).all()
    assert (points.masses.reshape(512, -1)[300:] == 0).all()
    for seed in range(20):
        centers, _ = best_start(points, 3, 2, np.random.default_rng(seed), 0, 1e-4)
        drawn = np.abs(tiles.rows_in(points.tiles, np.arange(300))[:, np.newaxis] - centers).sum(axis=2).min(axis=0)
        np.testing.assert_array_equal(drawn, 0.0)


def test_distinct_rows_are_counted_until_there_are_enough() -> None:
    rows = np.append(np.zeros((500, 1)), [[1.0], [2.0]], axis=0)
    assert count_distinct(rows, 3) == 3
    assert count_distinct(rows, 9) == 3
    assert count_distinct(rows[:1], 2) == 1
