"""Assignment to the nearest centre is exact; the solver reaches the cost that scikit-learn reaches."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.kmeans import nearest_centers
from colonnade.kernels.kmeans_search import weighted_kmeans

seeds = st.integers(0, 2**32 - 1)


def compare_all(X: Floats, centers: Floats) -> tuple[Rows, Floats]:
    """Assign by all n x k x d differences: what `nearest_centers` must give."""
    squared: Floats = np.cumsum((X[:, np.newaxis, :] - centers) ** 2, axis=2)[:, :, -1]
    return squared.argmin(axis=1), squared.min(axis=1)


def blobs(n_rows: int, n_features: int, n_blobs: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    middles = 20.0 * rng.normal(size=(n_blobs, n_features))
    return middles[np.arange(n_rows) % n_blobs] + rng.normal(size=(n_rows, n_features))


class TestNearestCenters:
    @given(seeds, st.integers(1, 12), st.integers(1, 12), st.sampled_from([0.0, 1.0, 1e6, -1e9]))
    def test_equals_all_comparisons_bit_for_bit(self, seed: int, k: int, d: int, offset: float) -> None:
        rng = np.random.default_rng(seed)
        X = np.asfortranarray(offset + rng.normal(size=(60, d)))
        centers = offset + rng.normal(size=(k, d))
        centers[rng.integers(k)] = X[rng.integers(60)]
        labels, squared = nearest_centers(X, centers)
        expected_labels, expected_squared = compare_all(X, centers)
        assert labels.dtype == np.int64
        assert np.array_equal(labels, expected_labels)
        assert np.array_equal(squared, expected_squared)

    @given(seeds, st.integers(1, 9), st.integers(1, 4))
    def test_ties_go_to_the_lowest_index(self, seed: int, k: int, d: int) -> None:
        rng = np.random.default_rng(seed)
        X = rng.integers(-2, 3, size=(80, d)).astype(np.float64)
        centers = rng.integers(-2, 3, size=(k, d)).astype(np.float64)
        labels, squared = nearest_centers(X, centers)
        expected_labels, expected_squared = compare_all(X, centers)
        assert np.array_equal(labels, expected_labels)
        assert np.array_equal(squared, expected_squared)

    @given(seeds, st.lists(st.integers(0, 70), max_size=5))
    def test_a_row_does_not_depend_on_the_rows_beside_it(self, seed: int, cuts: list[int]) -> None:
        rng = np.random.default_rng(seed)
        X = np.asfortranarray(rng.normal(size=(70, 9)).round(1))
        centers = rng.normal(size=(5, 9)).round(1)
        labels, squared = nearest_centers(X, centers)
        parts = [nearest_centers(part, centers) for part in np.split(X, sorted(cuts))]
        assert np.array_equal(np.concatenate([part for part, _ in parts]), labels)
        assert np.array_equal(np.concatenate([part for _, part in parts]), squared)

    def test_far_offset_and_a_far_centre_do_not_cancel(self) -> None:
        rng = np.random.default_rng(0)
        centers = 1e6 + 1e-3 * rng.normal(size=(6, 4))
        centers[0] = 1e9
        labels, squared = nearest_centers(centers.copy(order="F"), centers)
        assert np.array_equal(labels, np.arange(6))
        assert np.array_equal(squared, np.zeros(6))

    # Whatever point the centres are taken around, the product of one of these groups is lost in rounding.
    @given(seeds, st.integers(1, 6))
    def test_two_tight_groups_far_apart(self, seed: int, d: int) -> None:
        rng = np.random.default_rng(seed)
        centers = np.repeat([[0.0], [1e8]], 4, axis=0) + 1e-2 * rng.normal(size=(8, d))
        X = centers[rng.integers(8, size=50)] + 1e-3 * rng.normal(size=(50, d))
        labels, squared = nearest_centers(X, centers)
        expected_labels, expected_squared = compare_all(X, centers)
        assert np.array_equal(labels, expected_labels)
        assert np.array_equal(squared, expected_squared)

    # 32 bits cannot tell these centres apart, or do not hold them at all; more centres than a byte numbers.
    @pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-40, 1e-15, 1.0, 1e15, 1e40, 1e140])
    @pytest.mark.parametrize("k", [2, 5, 255, 256, 300])
    def test_scales_and_numbers_that_few_bits_do_not_hold(self, scale: float, k: int) -> None:
        rng = np.random.default_rng(k)
        centers = rng.normal(size=(k, 3))
        centers[1] = centers[0] + 1e-7
        X = np.concatenate([rng.normal(size=(300, 3)), centers, 1e9 * rng.normal(size=(20, 3))])
        labels, squared = nearest_centers(scale * X, scale * centers)
        with np.errstate(under="ignore"):
            expected_labels, expected_squared = compare_all(scale * X, scale * centers)
        assert np.array_equal(labels, expected_labels)
        assert np.array_equal(squared, expected_squared)

    def test_rows_farther_than_32_bits_reach(self) -> None:
        rng = np.random.default_rng(0)
        centers = rng.normal(size=(6, 2))
        X = np.concatenate([rng.normal(size=(40, 2)) * size for size in (1e18, 1e20, 1e38, 1e40, 1e140)])
        labels, squared = nearest_centers(X, centers)
        expected_labels, expected_squared = compare_all(X, centers)
        assert np.array_equal(labels, expected_labels)
        assert np.array_equal(squared, expected_squared)

    @pytest.mark.parametrize("k", [255, 256, 257, 511, 512])
    def test_as_many_centres_as_a_byte_counts_and_more(self, k: int) -> None:
        """Also where a row is as near to all of them, or to 256: how many there are is counted, and none is lost."""
        rng = np.random.default_rng(k)
        X, centers = rng.normal(size=(300, 3)), rng.normal(size=(k, 3))
        for some in (
            centers,
            np.repeat(centers[:1], k, axis=0),
            centers[np.r_[0, np.maximum(np.arange(k) - 254, 1)][:k]],
        ):
            labels, squared = nearest_centers(X, some)
            expected_labels, expected_squared = compare_all(X, some)
            assert np.array_equal(labels, expected_labels)
            assert np.array_equal(squared, expected_squared)

    def test_several_chunks(self) -> None:
        X, centers = blobs(70_001, 5, 7, seed=1), blobs(7, 5, 7, seed=2)
        labels, squared = nearest_centers(X, centers)
        expected_labels, expected_squared = compare_all(X, centers)
        assert np.array_equal(labels, expected_labels)
        assert np.array_equal(squared, expected_squared)

    @pytest.mark.parametrize(("n_rows", "d"), [(0, 3), (4, 0)])
    def test_no_rows_and_no_columns(self, n_rows: int, d: int) -> None:
        labels, squared = nearest_centers(np.zeros((n_rows, d)), np.zeros((2, d)))
        assert labels.tolist() == [0] * n_rows
        assert squared.tolist() == [0.0] * n_rows


class TestWeightedKMeans:
    def test_cost_is_that_of_the_centres(self) -> None:
        X, weights = blobs(300, 4, 3, seed=0), np.random.default_rng(0).uniform(0, 3, size=300)
        centers, cost = weighted_kmeans(X, weights, 3, 5, np.random.default_rng(1))
        assert centers.shape == (3, 4)
        assert cost == pytest.approx(weights @ compare_all(X, centers)[1], rel=1e-12)

    # Blobs some 20 standard deviations apart, 10 starts: the optimum is found by every seed tried (2,000 of 2,000).
    def test_weight_k_equals_k_copies(self) -> None:
        X, copies = blobs(120, 3, 4, seed=3), np.random.default_rng(3).integers(0, 4, size=120)
        weighted, cost = weighted_kmeans(X, copies.astype(np.float64), 4, 10, np.random.default_rng(0))
        repeated = np.repeat(X, copies, axis=0)
        copied, cost_of_copies = weighted_kmeans(repeated, np.ones(len(repeated)), 4, 10, np.random.default_rng(0))
        assert cost == pytest.approx(cost_of_copies, rel=1e-12)
        assert np.allclose(np.sort(weighted, axis=0), np.sort(copied, axis=0), rtol=1e-12)

    @pytest.mark.parametrize("scale", [2.0**-900, 1e-30, 3.0, 1e30, 2.0**900])
    def test_scaling_all_weights_changes_nothing(self, scale: float) -> None:
        X, weights = blobs(200, 3, 4, seed=5), np.random.default_rng(5).uniform(size=200)
        centers, cost = weighted_kmeans(X, weights, 4, 3, np.random.default_rng(0))
        rescaled, scaled_cost = weighted_kmeans(X, scale * weights, 4, 3, np.random.default_rng(0))
        assert np.allclose(centers, rescaled, rtol=1e-12)
        assert scaled_cost == pytest.approx(scale * cost, rel=1e-12)

    def test_rows_of_weight_zero_play_no_part(self) -> None:
        X, weights = blobs(90, 2, 3, seed=7), np.ones(90)
        far = np.full((10, 2), 1e9)
        centers, cost = weighted_kmeans(X, weights, 3, 3, np.random.default_rng(0))
        with_far, cost_with_far = weighted_kmeans(
            np.vstack([X, far]), np.append(weights, np.zeros(10)), 3, 3, np.random.default_rng(0)
        )
        assert np.array_equal(centers, with_far)
        assert cost == cost_with_far

    def test_as_many_distinct_rows_as_clusters_cost_nothing(self) -> None:
        X = np.repeat(np.eye(4), 5, axis=0)
        centers, cost = weighted_kmeans(X, np.ones(20), 4, 2, np.random.default_rng(0))
        assert np.array_equal(np.unique(centers, axis=0), np.unique(X, axis=0))
        assert cost == 0.0

    def test_too_few_distinct_rows_are_refused(self) -> None:
        X = np.repeat(np.eye(3), 5, axis=0)
        weights = np.where(X[:, 0] == 1, 0.0, 1.0)
        with pytest.raises(InputError, match=r"only 2 distinct rows .* larger size, or at most 2 clusters"):
            weighted_kmeans(X, weights, 3, 1, np.random.default_rng(0))

    def test_rows_that_differ_by_rounding_only_give_no_warning(self) -> None:
        X = np.nextafter(np.repeat([[1.0], [2.0], [3.0]], 2, axis=0), [[0.0], [9.0]] * 3)
        _, cost = weighted_kmeans(X, np.ones(6), 5, 2, np.random.default_rng(0))
        assert cost < 1e-28

    def test_same_generator_same_bits(self) -> None:
        X = blobs(200, 3, 6, seed=11)
        first, _ = weighted_kmeans(X, np.ones(200), 4, 2, np.random.default_rng(5))
        again, _ = weighted_kmeans(X, np.ones(200), 4, 2, np.random.default_rng(5))
        assert np.array_equal(first, again)


def test_importing_the_kernel_does_not_import_scikit_learn() -> None:
    check = "import colonnade.kernels.kmeans, sys; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


class TestOneLloydStep:
    """The laws of weights hold step by step: here for one step of the solver from given centres."""

    X = np.random.default_rng(11).normal(size=(200, 3))
    COPIES = np.random.default_rng(12).integers(0, 4, size=200)
    CENTERS = X[[3, 50, 120, 199]]

    @pytest.fixture(autouse=True)
    def _one_step(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import sklearn.cluster

        start = self.CENTERS

        class OneStep(sklearn.cluster.KMeans):  # type: ignore[misc]
            def __init__(self, n_clusters: int, *, n_init: int, max_iter: int, tol: float, random_state: int) -> None:
                del max_iter
                super().__init__(n_clusters, init=start, n_init=n_init, max_iter=1, tol=tol, random_state=random_state)

        monkeypatch.setattr(sklearn.cluster, "KMeans", OneStep)

    def step(self, X: Floats, weights: Any) -> Floats:
        weights = np.asarray(weights, dtype=np.float64)
        return weighted_kmeans(X, weights, 4, 1, np.random.default_rng(0))[0]

    def test_it_is_the_weighted_means_of_the_nearest_rows(self) -> None:
        labels = compare_all(self.X, self.CENTERS)[0]
        means = [np.average(self.X[labels == k], axis=0, weights=self.COPIES[labels == k]) for k in range(4)]
        np.testing.assert_allclose(self.step(self.X, self.COPIES), means, rtol=1e-12)

    def test_weight_k_equals_k_copies(self) -> None:
        copied = np.repeat(self.X, self.COPIES, axis=0)
        np.testing.assert_allclose(self.step(self.X, self.COPIES), self.step(copied, np.ones(len(copied))), rtol=1e-12)

    def test_rows_of_weight_zero_are_dropped(self) -> None:
        kept = self.COPIES > 0
        np.testing.assert_array_equal(self.step(self.X, self.COPIES), self.step(self.X[kept], self.COPIES[kept]))

    @pytest.mark.parametrize("scale", [1e-30, 1000.0, 1e30])
    def test_the_scale_of_weights_does_not_matter(self, scale: float) -> None:
        np.testing.assert_allclose(self.step(self.X, self.COPIES), self.step(self.X, scale * self.COPIES), rtol=1e-12)

    def test_the_order_of_rows_does_not_matter(self) -> None:
        order = np.random.default_rng(13).permutation(200)
        turned = self.step(self.X[order], self.COPIES[order])
        np.testing.assert_allclose(self.step(self.X, self.COPIES), turned, rtol=1e-12)
