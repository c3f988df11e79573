from typing import Any

import numpy as np
import pytest

from colonnade.kernels.lloyd import (
    draw_centers,
    largest_distance,
    means_by_label,
    single_clusters,
    squared_distances,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)) + 1e6


def test_distances_add_over_parts_and_obey_units() -> None:
    centers, scale = X[[3, 9]], np.array([1.0, 2.0, 4.0, 0.5])
    whole = squared_distances(X, centers, scale)
    parts = squared_distances(X[:, :1], centers[:, :1], scale[:1]) + squared_distances(
        X[:, 1:], centers[:, 1:], scale[1:]
    )
    np.testing.assert_allclose(whole, parts, rtol=1e-12)
    assert whole[3, 0] == whole[9, 1] == 0.0
    np.testing.assert_allclose(whole[:, 0], (((X - X[3]) / scale) ** 2).sum(axis=1), rtol=1e-12)
    assert squared_distances(X, centers).max() <= largest_distance(X)


def test_rows_are_drawn_by_weight_and_distance() -> None:
    """40,000 draws of four rows, within 5 standard deviations: false alarms 4 x 6e-7."""
    mass = np.array([0.1, 0.0, 0.6, 0.3])
    drawn = draw_centers(np.array([1.0, 9.0, 2.0, 3.0]), mass / [1.0, 9.0, 2.0, 3.0], 40_000, np.random.default_rng(0))
    shares = np.bincount(drawn, minlength=4) / 40_000
    assert shares[1] == 0.0
    assert (np.abs(shares - mass) <= 5 * np.sqrt(mass * (1 - mass) / 40_000)).all()


def test_means_move_and_clusters_without_weight_stay() -> None:
    labels, weights = np.repeat([0, 1, 2, 0], 10), np.where(np.arange(40) // 10 == 2, 0.0, 1.0)
    old = np.zeros((4, 4))
    centers = means_by_label(X, weights, labels, old)
    np.testing.assert_allclose(centers[0], X[labels == 0].mean(axis=0))
    np.testing.assert_array_equal(centers[2:], old[2:])
    assert not old.any()


@pytest.mark.parametrize(
    ("labels", "weights", "rows", "expected"),
    [
        ([0, 0, 1], [1.0, 1.0, 1.0], [4, 7, 9], [False, True, True]),
        ([0, 0, 1], [1.0, 1.0, 1.0], [4, 4, 9], [True, True, True]),
        ([0, 0, 1], [1.0, 0.0, 1.0], [4, 7, 9], [True, True, True]),
        ([1, 1, 1], [1.0, 1.0, 0.0], [4, 7, 9], [True, False, True]),
        ([1, 1, 1], [1.0, 1e-9, 1e-9], [4, 7, 9], [True, True, True]),
        ([1, 1, 1], [1e100, 1e100, 0.0], [4, 7, 9], [True, False, True]),
        ([1, 1, 1], [1e-100, 1e-100, 1e-100], [4, 4, 9], [True, False, True]),
    ],
)
def test_clusters_of_one_distinct_row_are_found(labels: Any, weights: Any, rows: Any, expected: Any) -> None:
    found = single_clusters(np.array(labels), np.array(weights), np.array(rows), 3)
    assert found.tolist() == expected
