"""Line 10 of Algorithm 3: its laws, its degenerate cases, and the bound on the sensitivity it is there for."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.data.tables import read_table
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.kernels.clustering_scores import clustering_scores
from colonnade.kernels.kmeans_search import weighted_kmeans
from colonnade.kernels.local_kmeans import local_kmeans
from colonnade.kernels.per_row import numbers_in
from colonnade.kernels.row_blocks import ArrayBlocks
from colonnade.protocol.viewed_table import ViewedTable
from cut_blocks import CutBlocks

seeds = st.integers(0, 2**32 - 1)


def scored(X: Floats, centers: Floats, weights: Floats | None = None) -> Floats:
    return np.asarray(clustering_scores(ArrayBlocks(X, weights), centers))


def line_10(X: Floats, centers: Floats) -> Floats:
    """Follow lines 3 to 11 word by word, alpha = 1, without weights."""
    distance = np.array([[((x - c) ** 2).sum() for c in centers] for x in X])
    pi, nearest = distance.argmin(axis=1), distance.min(axis=1)
    cost = nearest.sum()
    scores = []
    for i in range(len(X)):
        cluster = np.flatnonzero(pi == pi[i])
        scores.append(nearest[i] / cost + nearest[cluster].sum() / (len(cluster) * cost) + 2 / len(cluster))
    return np.array(scores)


def instance(seed: int, n_rows: int = 50, d: int = 3, k: int = 4) -> tuple[Floats, Floats]:
    """Rows with heavy tails, and centres that are no optimum."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, size=(n_rows, d))
    return X, X[rng.choice(n_rows, k, replace=False)] + 0.1 * rng.normal(size=(k, d))


@given(seeds, st.integers(1, 6), st.integers(1, 6))
def test_equals_line_10(seed: int, d: int, k: int) -> None:
    X, centers = instance(seed, 40, d, k)
    assert np.allclose(scored(X, centers), line_10(X, centers), rtol=1e-12)


@given(seeds)
def test_a_row_of_weight_k_scores_k_times_one_of_its_copies(seed: int) -> None:
    X, centers = instance(seed)
    copies = np.random.default_rng(seed).integers(0, 4, size=len(X))
    weighted = scored(X, centers, copies.astype(np.float64))
    copied = scored(np.repeat(X, copies, axis=0), centers)
    assert np.allclose(np.repeat(weighted, copies), np.repeat(copies, copies) * copied, rtol=1e-12)
    assert (weighted[copies == 0] == 0).all()
    assert (weighted[copies > 0] > 0).all()


@given(seeds, st.lists(st.integers(0, 50), max_size=6))
def test_the_cut_into_blocks_changes_rounding_only(seed: int, cuts: list[int]) -> None:
    X, centers = instance(seed)
    X = np.asfortranarray(X)
    assert np.allclose(clustering_scores(CutBlocks(X, cuts), centers), scored(X, centers), rtol=1e-13, atol=0)


@pytest.mark.parametrize("weighted", [False, True])
def test_who_reads_the_blocks_changes_no_bit(weighted: bool) -> None:
    X, centers = instance(1, n_rows=3 * BLOCK_ROWS + 5)
    weights = np.random.default_rng(2).uniform(size=len(X)) if weighted else None
    table = ViewedTable(read_table("bank", X), None if weights is None else numbers_in(weights), None, None)
    on_threads = clustering_scores(table, centers)
    assert np.array_equal(on_threads, scored(np.asfortranarray(X), centers, weights))


@given(seeds, st.floats(1e-6, 1e6), st.floats(1e-9, 1e9))
def test_units_of_data_and_weights_do_not_matter(seed: int, scale: float, weight_scale: float) -> None:
    X, centers = instance(seed)
    weights = np.random.default_rng(seed).uniform(0.1, 2, size=len(X))
    scores = scored(X, centers, weights)
    scaled = scored(scale * X, scale * centers, weight_scale * weights)
    assert np.allclose(scaled, scores, rtol=1e-11)


# A shift by 1e6 rounds the rows themselves at 1.2e-10: distances near 1 change by that much, and no more is lost.
@given(seeds)
def test_a_shift_by_a_million_changes_scores_by_its_rounding_only(seed: int) -> None:
    X, centers = instance(seed)
    shifted = scored(X + 1e6, centers + 1e6)
    assert np.allclose(shifted, scored(X, centers), rtol=1e-7)


@given(seeds, st.integers(1, 8))
def test_total_is_two_and_two_for_every_cluster_with_rows(seed: int, k: int) -> None:
    X, centers = instance(seed, k=k)
    centers = np.vstack([centers, centers[:1], np.full((1, 3), 1e9)])  # a duplicate and one that is never nearest
    weights = np.random.default_rng(seed).uniform(0.1, 2, size=len(X))
    distance = ((X[:, np.newaxis, :] - centers) ** 2).sum(axis=2)
    n_used = len(np.unique(distance.argmin(axis=1)))
    assert n_used <= k
    for w in (None, weights):
        assert scored(X, centers, w).sum() == pytest.approx(2 + 2 * n_used, rel=1e-12)


class TestZeroCost:
    @given(seeds, st.integers(1, 5), st.sampled_from([1.0, 1e-3, 1e6]))
    def test_fewer_distinct_rows_than_clusters(self, seed: int, n_distinct: int, scale: float) -> None:
        rng = np.random.default_rng(seed)
        kind = np.append(np.arange(n_distinct), rng.integers(0, n_distinct, size=30))
        X = (scale * rng.normal(size=(n_distinct, 3)))[kind]
        centers = local_kmeans(ArrayBlocks(X), 5, np.random.default_rng(0))
        scores = scored(X, centers)
        assert np.allclose(scores, 2 / np.bincount(kind)[kind], rtol=1e-12)
        assert scores.sum() == pytest.approx(2 * n_distinct, rel=1e-12)

    # The mean of many equal numbers is not that number: noise, and not a reason to tell equal rows apart.
    @settings(deadline=None)  # the first example imports scikit-learn
    @given(seeds, st.sampled_from([1.0, 1e-12, 1e9]))
    def test_rounded_centres_do_not_tell_equal_rows_apart(self, seed: int, scale: float) -> None:
        rng = np.random.default_rng(seed)
        kind = np.repeat([0, 1, 2], [700, 29, 3])
        X = (scale * rng.normal(size=(3, 4)))[kind]
        centers, _ = weighted_kmeans(X, rng.uniform(0.1, 9.0, size=len(X)), 3, 1, rng)
        centers = np.nextafter(centers, np.inf)
        assert np.allclose(scored(X, centers), 2 / np.bincount(kind)[kind], rtol=1e-12)

    def test_small_but_real_distances_count(self) -> None:
        X = np.array([[1e6], [1e6 + 1e-6], [1e6 + 2e-6], [5.0]])
        scores = scored(X, np.array([[1e6 + 1e-6], [5.0]]))
        assert scores.sum() == pytest.approx(6.0)
        assert scores[0] == pytest.approx(1 / 2 + 1 / 3 + 2 / 3, rel=1e-3)

    def test_a_party_without_columns_scores_all_rows_alike(self) -> None:
        assert scored(np.zeros((8, 0)), np.zeros((1, 0))).tolist() == [0.25] * 8


def costs(X: Floats, centers: Floats) -> Floats:
    nearest: Floats = ((X[:, np.newaxis, :] - centers) ** 2).sum(axis=2).min(axis=1)
    return nearest


def optimal_cost(X: Floats, k: int) -> float:
    """Search all partitions into at most k parts: the best centres are the means of some partition."""

    def cost(labels: tuple[int, ...]) -> float:
        parts = [X[np.array(labels) == label] for label in set(labels)]
        return float(sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts))

    return min(cost((0, *rest)) for rest in itertools.product(range(k), repeat=len(X) - 1))


def candidate_centres(X: Floats, k: int, rng: np.random.Generator) -> list[Floats]:
    """Give random centres near and far, all k-subsets of the rows, and the means of random partitions."""
    random = [10.0 ** rng.uniform(-2, 3) * rng.normal(size=(k, X.shape[1])) for _ in range(200)]
    rows = [X[list(chosen)] for chosen in itertools.combinations(range(len(X)), k)]
    labels = rng.integers(0, k, size=(200, len(X)))
    means = [np.array([X[row == label].mean(axis=0) for label in np.unique(row)]) for row in labels]
    return random + rows + means


class TestSensitivity:
    """Lemma F.4 for one party (T = 1, tau = 1): cost_i(C) / cost(C) <= 4 alpha g_i for every C of k centres.

    Here alpha = cost / optimal cost of the local solution, measured by exhaustive search, and g has alpha = 1.
    The 4 is 2 (triangle inequality for the projected row) times 2 (for the split of the pairwise distances) in
    the first two terms, and 2 times 4 = 2 (1 + 1) alpha (projected cost) in the third, 8 / |B| = 4 times 2 / |B|.
    """

    @pytest.mark.parametrize("seed", range(8))
    @pytest.mark.parametrize("k", [2, 3])
    def test_four_alpha_g_bounds_the_share_of_every_row(self, seed: int, k: int) -> None:
        rng = np.random.default_rng([seed, k])
        X = rng.standard_t(1.5, size=(8, 2))
        good, _ = weighted_kmeans(X, np.ones(8), k, 5, rng)
        best = optimal_cost(X, k)
        for centers in (good, X[:k], X[:k] + rng.normal(size=(k, 2))):
            alpha = costs(X, centers).sum() / best
            assert alpha >= 1 - 1e-12
            bound = 4 * alpha * scored(X, centers)
            for candidate in candidate_centres(X, k, rng):
                shares = costs(X, candidate)
                assert (shares <= bound * shares.sum()).all()

    @pytest.mark.parametrize("seed", range(4))
    def test_at_zero_cost_half_the_score_is_enough(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(3, 2))[[0, 0, 0, 0, 1, 1, 2, 2]]
        scores = scored(X, np.unique(X, axis=0))
        for candidate in candidate_centres(X, 3, rng):
            shares = costs(X, candidate)
            assert (shares <= 0.5 * scores * shares.sum() * (1 + 1e-12)).all()
