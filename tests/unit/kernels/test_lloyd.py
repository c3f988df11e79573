from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.kernels.arrays import Floats
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


def differences(features: Floats, centers: Floats, scale: Floats | float = 1.0) -> Floats:
    """Square and add all m x k x d differences: nothing cancels."""
    squares: Floats = np.square((features[:, np.newaxis] - centers) / scale).sum(axis=2)
    return squares


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.integers(1, 12),
    st.sampled_from([0.0, 1.0, 1e6, -1e9]),
    st.sampled_from([1.0, 1e-3, 1e4]),
)
def test_distances_are_right_to_a_billionth_and_zero_where_rows_are_centres(
    seed: int, k: int, d: int, offset: float, spread: float
) -> None:
    """Also of duplicated centres, of rows next to one, and where one centre lies far from the rest."""
    rng = np.random.default_rng(seed)
    features = offset + rng.normal(size=(60, d))
    centers = offset + rng.normal(size=(k, d))
    centers[0] *= spread
    centers[rng.integers(k)] = features[7]
    centers[rng.integers(k)] = features[7]
    features[9] = np.nextafter(features[7], np.inf)
    scale = rng.uniform(0.1, 9.0, size=d)
    for unit in (None, scale):
        found = squared_distances(features, centers, unit)
        expected = differences(features, centers, 1.0 if unit is None else unit)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=0)
        assert (found[expected == 0] == 0).all()


def test_two_tight_groups_far_apart_lose_nothing() -> None:
    """Whatever point the centres are taken around, the product of one of these groups is lost in rounding."""
    rng = np.random.default_rng(0)
    centers = np.repeat([[0.0], [1e8]], 4, axis=0) + 1e-2 * rng.normal(size=(8, 3))
    rows = centers[rng.integers(8, size=500)] + 1e-3 * rng.normal(size=(500, 3))
    np.testing.assert_allclose(squared_distances(rows, centers), differences(rows, centers), rtol=1e-9, atol=0)


def test_distances_that_overflow_are_those_of_differences() -> None:
    centers = np.array([[0.0, 0.0], [1e200, 1.0], [1.0, 2.0]])
    rows = np.array([[1e200, 0.0], [3.0, 2.0]])
    assert squared_distances(rows, centers).tolist() == [[np.inf, 1.0, np.inf], [13.0, np.inf, 4.0]]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 3, 5, 10, 18, 33, 50]),
    st.sampled_from([1, 2, 3, 7, 10, 15, 30, 200]),
    st.lists(st.integers(0, 700), max_size=5),
)
def test_no_bit_of_a_row_depends_on_the_rows_beside_it(seed: int, d: int, k: int, cuts: list[int]) -> None:
    """BLAS gives a row other bits in products of other shapes, and some at the end of a product."""
    rng = np.random.default_rng(seed)
    features, centers = rng.normal(size=(700, d)), rng.normal(size=(k, d))
    scale = rng.uniform(0.5, 2, size=d)
    whole = squared_distances(features, centers, scale)
    for part in (features, np.asfortranarray(features)):
        pieces = [squared_distances(piece, centers, scale) for piece in np.split(part, sorted(cuts))]
        np.testing.assert_array_equal(np.concatenate(pieces), whole)
    order = rng.permutation(700)[: rng.integers(1, 700)]
    np.testing.assert_array_equal(squared_distances(features[order], centers, scale), whole[order])


@pytest.mark.parametrize("n_rows", [1, 17, 4095, 4097, 16_384])
@pytest.mark.parametrize("d", [4, 90])
def test_no_bit_depends_on_how_many_rows_are_asked_for(n_rows: int, d: int) -> None:
    rng = np.random.default_rng(d)
    features, centers = rng.normal(size=(16_384, d)), rng.normal(size=(10, d))
    whole = squared_distances(features, centers)
    np.testing.assert_array_equal(squared_distances(features[:n_rows], centers), whole[:n_rows])
    np.testing.assert_array_equal(squared_distances(features[-n_rows:], centers), whole[-n_rows:])


@pytest.mark.parametrize(("m", "k", "d"), [(0, 3, 2), (3, 0, 2), (3, 2, 0)])
def test_nothing_is_at_no_distance(m: int, k: int, d: int) -> None:
    found = squared_distances(np.zeros((m, d)), np.zeros((k, d)))
    assert found.shape == (m, k)
    assert not found.any()


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
