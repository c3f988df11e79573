"""The server's search ends lower than starts do, in no more rows' time, and minds weights as they do."""

import subprocess
import sys

import numpy as np
import pytest

from colonnade.errors import InputError
from colonnade.kernels import kmeans_search
from colonnade.kernels.arrays import Floats
from colonnade.kernels.kmeans import best_of_starts, nearest_centers
from colonnade.kernels.kmeans_search import searched, weighted_kmeans


def cost(X: Floats, weights: Floats, centers: Floats) -> float:
    return float(weights @ nearest_centers(X, centers)[1])


def blobs(n_blobs: int, each: int, seed: int) -> Floats:
    """Far apart and of equal size: a start misses some, and pays for it."""
    rng = np.random.default_rng(seed)
    corners = rng.permutation(np.stack(np.meshgrid(*[np.arange(6)] * 2), axis=-1).reshape(-1, 2))[:n_blobs]
    return np.repeat(10.0 * corners, each, axis=0) + rng.normal(size=(n_blobs * each, 2))


def test_it_ends_lower_than_starts_do() -> None:
    """With clusters that nothing sets apart starts scatter. The best of ten is never lower here, seeds fixed."""
    X, weights = np.random.default_rng(0).normal(size=(800, 3)), np.ones(800)
    rngs = [np.random.default_rng(seed) for seed in range(5)]
    starts = [cost(X, weights, best_of_starts(X, weights, 30, 10, rng)) for rng in rngs]
    found = [cost(X, weights, searched(X, weights, 30, 10, rng)) for rng in rngs]
    assert max(found) < min(starts)
    assert np.mean(found) < 0.99 * np.mean(starts)


def test_of_many_rows_some_are_searched_and_all_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kmeans_search, "SEARCHED", 300)
    monkeypatch.setattr(kmeans_search, "FOR_EACH", 10)
    X, weights = blobs(10, 200, seed=1), np.ones(2000)
    means = np.stack([blob.mean(axis=0) for blob in X.reshape(10, 200, 2)])
    found = searched(X, weights, 10, 3, np.random.default_rng(0))
    np.testing.assert_allclose(found[np.lexsort(found.T.round(1))], means[np.lexsort(means.T.round(1))], atol=1e-9)


def test_heavy_rows_draw_centres() -> None:
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(size=(400, 2)), [[50.0, 0.0], [50.0, 8.0]]])
    light, heavy = np.ones(402), np.append(np.ones(400), [1e4, 1e4])
    assert len(np.unique(searched(X, light, 3, 3, np.random.default_rng(0)).round(6)[:, 0] > 40)) == 2
    found = searched(X, heavy, 3, 3, np.random.default_rng(0))
    assert {(50.0, 0.0), (50.0, 8.0)} <= {tuple(center) for center in found.round(6).tolist()}


@pytest.mark.parametrize("shift", [0.0, 1e7])
def test_columns_far_from_zero_do_not_matter(shift: float) -> None:
    X, weights = blobs(12, 20, seed=4), np.ones(240)
    best = cost(X, weights, np.stack([blob.mean(axis=0) for blob in X.reshape(12, 20, 2)]))
    assert cost(X + shift, weights, searched(X + shift, weights, 12, 3, np.random.default_rng(0))) < 1.001 * best


def test_small_clusters_far_apart_are_searched_too() -> None:
    """At distances that 32 bits do not resolve beside the whole: two heaps, and clusters within each."""
    X, weights = blobs(24, 20, seed=6), np.ones(480)
    X[240:] += 1e5
    best = cost(X, weights, np.stack([blob.mean(axis=0) for blob in X.reshape(24, 20, 2)]))
    assert cost(X, weights, searched(X, weights, 24, 10, np.random.default_rng(0))) < 1.001 * best


def test_distinct_rows_are_found_late() -> None:
    X = np.append(np.zeros((5000, 1)), [[1.0], [2.0]], axis=0)
    centers, found = weighted_kmeans(X, np.ones(5002), 3, 3, np.random.default_rng(0))
    np.testing.assert_allclose(sorted(centers[:, 0].tolist()), [0.0, 1.0, 2.0], atol=1e-12)
    assert found < 1e-20
    with pytest.raises(InputError, match="only 3 distinct rows"):
        weighted_kmeans(X, np.ones(5002), 4, 3, np.random.default_rng(0))


@pytest.mark.parametrize(("n_rows", "n_clusters"), [(5, 5), (6, 5), (9, 5), (3, 1)])
def test_few_rows_leave_no_room_for_more_centres(n_rows: int, n_clusters: int) -> None:
    X = np.arange(2.0 * n_rows).reshape(n_rows, 2) ** 2
    centers, found = weighted_kmeans(X, np.ones(n_rows), n_clusters, 10, np.random.default_rng(0))
    assert centers.shape == (n_clusters, 2)
    assert (found == 0) == (n_rows == n_clusters)


def test_copies_of_few_rows_are_no_room_either() -> None:
    X = np.repeat([[0.0], [1.0], [5.0]], 40, axis=0)
    centers, found = weighted_kmeans(X, np.ones(120), 3, 10, np.random.default_rng(0))
    np.testing.assert_allclose(sorted(centers[:, 0].tolist()), [0.0, 1.0, 5.0], atol=1e-12)
    assert found < 1e-20


def test_one_start_is_one_start() -> None:
    X, weights = blobs(12, 20, seed=5), np.ones(240)
    found, _ = weighted_kmeans(X, weights, 12, 1, np.random.default_rng(2))
    np.testing.assert_array_equal(found, best_of_starts(X, weights, 12, 1, np.random.default_rng(2)))


def test_importing_it_does_not_import_scikit_learn() -> None:
    check = "import colonnade.kernels.kmeans_search, sys; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
