from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from colonnade.kernels.arrays import Floats
from colonnade.kernels.leverage import inner_products, leverage, regression_scores
from colonnade.kernels.row_blocks import ArrayBlocks
from cut_blocks import CutBlocks, in_blocks

seeds = st.integers(0, 2**32 - 1)
matrices = st.tuples(st.integers(1, 60), st.integers(0, 8), seeds)
# The machine is shared: how long an example takes says nothing.
examples = settings(deadline=None, max_examples=60)


def gaussian(shape: tuple[int, int, int]) -> Floats:
    n, d, seed = shape
    return np.random.default_rng(seed).standard_normal((n, d))


def orthonormal(rng: np.random.Generator, n: int, d: int) -> Floats:
    return np.linalg.qr(rng.standard_normal((n, d)))[0]


def with_ones(X: Floats) -> Floats:
    return np.column_stack([X, np.ones(len(X))])


def by_svd(X: Floats) -> Floats:
    """The leverage of X from an SVD of the columns scaled to unit norm: the scaling is exact in rank and span."""
    norms = np.linalg.norm(X, axis=0)
    U, singular, _ = np.linalg.svd(X / np.where(norms > 0, norms, 1.0), full_matrices=False)
    U = U[:, singular > 1e-11 * singular.max(initial=0.0)]
    row_norms: Floats = np.sum(U**2, axis=1)
    return row_norms


# Agreement with a reference


@examples
@given(matrices, st.booleans())
def test_it_is_the_leverage_of_an_svd(shape: tuple[int, int, int], constant: bool) -> None:
    X = gaussian(shape)
    reference = by_svd(with_ones(X) if constant else X)
    assert_allclose(leverage(in_blocks(X), constant=constant), reference, rtol=1e-8)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("n", [50, 3000])
def test_column_scales_cost_no_accuracy(n: int, constant: bool) -> None:
    X = gaussian((n, 13, 1)) + 3.0
    scaled = X * np.logspace(-6, 6, 13)
    assert_allclose(
        leverage(in_blocks(scaled, 999), constant=constant),
        by_svd(with_ones(X) if constant else X),
        rtol=1e-8,
    )


@pytest.mark.parametrize("n", [200, 20_000])
@pytest.mark.parametrize(
    ("condition", "rtol"),
    [(1e2, 1e-8), (1e3, 1e-8), (3e3, 1e-8), (1e4, 1e-8), (1e5, 1e-8), (1e7, 1e-8), (1e9, 1e-4)],
)
def test_truly_ill_conditioned_columns_keep_their_leverage(n: int, condition: float, rtol: float) -> None:
    # U is known, so that no decomposition of an ill-conditioned X has to be trusted.
    rng = np.random.default_rng(2)
    U, V = orthonormal(rng, n, 12), orthonormal(rng, 12, 12)
    X = (U * np.geomspace(1.0, 1.0 / condition, 12)) @ V.T
    scaled = X / np.linalg.norm(X, axis=0)
    assert np.linalg.cond(scaled) > 0.1 * condition
    assert_allclose(leverage(in_blocks(X, 4096)), np.sum(U**2, axis=1), rtol=rtol)


def test_means_far_from_zero_keep_their_leverage() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((5000, 4)) * [1.0, 10.0, 0.1, 0.1] + [0.0, 2000.0, 47.5, -122.2]
    # Centring takes the condition number away: beside a constant, X and X - c span the same space.
    centred = with_ones(X - [0.0, 2000.0, 47.5, -122.2])
    assert_allclose(leverage(in_blocks(X), constant=True), by_svd(centred), rtol=1e-8)


@pytest.mark.parametrize("magnitude", [1e-100, 1e100])
def test_extreme_magnitudes_neither_overflow_nor_vanish(magnitude: float) -> None:
    X = gaussian((100, 4, 4))
    mixed = X * [magnitude, 1.0, magnitude, 1e-3]
    assert_allclose(leverage(in_blocks(mixed), constant=True), by_svd(with_ones(X)), rtol=1e-8)


# Rank


def collinear(X: Floats) -> Floats:
    return np.column_stack([X, X[:, 0] + X[:, 1]])


def nearly_collinear(X: Floats) -> Floats:
    """A sum that was standardised: dependent up to rounding only, beside the constant it comes from."""
    total = 1000.0 + X[:, 0] + 0.3 * X[:, 1]
    return np.column_stack([X, (total - total.mean()) / total.std(), np.ones(len(X))])


def duplicated(X: Floats) -> Floats:
    return np.column_stack([X, X[:, 1], 3e5 * X[:, 1], -X[:, 2]])


def zero_columns(X: Floats) -> Floats:
    return np.column_stack([np.zeros(len(X)), X, np.zeros(len(X))])


def two_constants(X: Floats) -> Floats:
    return np.column_stack([X, np.full(len(X), 7.0), np.full(len(X), -0.1)])


@pytest.mark.parametrize(
    ("deform", "rank"),
    [(collinear, 5), (nearly_collinear, 6), (duplicated, 5), (zero_columns, 5), (two_constants, 6)],
)
@pytest.mark.parametrize("n", [40, 20_000])
def test_dependent_columns_add_no_rank(deform: Callable[[Floats], Floats], rank: int, n: int) -> None:
    X = deform(gaussian((n, 5, 5)))
    scores = leverage(in_blocks(X, 1000))
    assert_allclose(scores.sum(), rank, rtol=1e-10)
    assert_allclose(scores, by_svd(X), rtol=1e-8)


def test_a_constant_column_next_to_the_constant_adds_nothing() -> None:
    X = gaussian((80, 3, 6))
    twice = leverage(in_blocks(np.column_stack([X, np.full(80, 5.0)])), constant=True)
    assert_allclose(twice, leverage(in_blocks(X), constant=True), rtol=1e-10)


@examples
@given(st.integers(1, 6), st.integers(7, 12), seeds)
def test_with_fewer_rows_than_columns_every_row_is_its_own_direction(n: int, d: int, seed: int) -> None:
    assert_allclose(leverage(in_blocks(gaussian((n, d, seed)))), np.ones(n), rtol=1e-8)


def test_zero_data_has_no_leverage() -> None:
    assert_array_equal(leverage(in_blocks(np.zeros((9, 3)))), np.zeros(9))


def test_without_columns_the_constant_is_all_there_is() -> None:
    assert_array_equal(leverage(in_blocks(np.empty((9, 0)))), np.zeros(9))
    assert_allclose(leverage(in_blocks(np.empty((9, 0))), constant=True), np.full(9, 1 / 9), rtol=1e-14)


def test_a_column_that_underflows_counts_as_zero() -> None:
    X = gaussian((30, 2, 7))
    assert_allclose(leverage(in_blocks(X * [1.0, 1e-170])), leverage(in_blocks(X[:, :1])), rtol=1e-12)


def test_a_zero_row_has_no_leverage_and_a_row_alone_in_its_direction_has_one() -> None:
    X = gaussian((30, 4, 8))
    X[3] = 0.0
    X[:, 2] = 0.0
    X[11, 2] = 1e-3
    scores = np.asarray(leverage(in_blocks(X)))
    assert scores[3] == 0.0
    assert_allclose(scores[11], 1.0, rtol=1e-12)


@examples
@given(st.integers(1, 40), st.integers(1, 8), st.integers(0, 8), seeds, st.booleans())
def test_leverage_lies_in_the_unit_interval_and_sums_to_the_rank(
    n: int, d: int, inner: int, seed: int, constant: bool
) -> None:
    rng = np.random.default_rng(seed)
    factors = rng.integers(-3, 4, (n, inner)), rng.integers(-3, 4, (inner, d))
    X = np.asarray(factors[0] @ factors[1], dtype=np.float64)
    scores = np.asarray(leverage(in_blocks(X), constant=constant))
    rank = np.linalg.matrix_rank(with_ones(X) if constant else X)
    assert scores.min() >= 0.0
    assert scores.max() <= 1.0 + 1e-9
    assert_allclose(scores.sum(), rank, rtol=1e-9)


# Laws


@examples
@given(st.integers(1, 3000), st.booleans(), st.booleans())
def test_the_blocks_make_no_difference(size: int, constant: bool, weighted: bool) -> None:
    X = gaussian((3000, 6, 9)) + 2.0
    weights = np.random.default_rng(9).uniform(0.0, 2.0, 3000) if weighted else None
    whole = leverage(ArrayBlocks(X, weights), constant=constant)
    split = leverage(in_blocks(X, max(size, 20), weights), constant=constant)
    assert_allclose(split, whole, rtol=1e-12)


def test_empty_and_unequal_blocks_are_blocks() -> None:
    X = gaussian((50, 3, 10))
    uneven = CutBlocks(X, [0, 1, 40, 40])
    assert [len(block.values) for block in uneven.map(lambda block: block)] == [0, 1, 39, 0, 10]
    assert_allclose(leverage(uneven, constant=True), leverage(ArrayBlocks(X), constant=True), rtol=1e-12)


@pytest.mark.parametrize("n_rows", [0, 1, 2047, 2048, 2049, 16_384])
def test_inner_products_count_each_row_once_however_pieces_end(n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    of_table = np.asfortranarray(rng.integers(-9, 10, size=(n_rows + 3, 12)).astype(np.float64))
    P, Q = of_table[1 : n_rows + 1].T, rng.integers(-9, 10, size=(5, n_rows)).astype(np.float64)
    # Whole numbers: sums are exact, however they are put together.
    assert_array_equal(inner_products(P, P), P @ P.T)
    assert_array_equal(inner_products(P, Q), P @ Q.T)


def test_the_blocks_are_left_as_they_were() -> None:
    X = np.asfortranarray(gaussian((2000, 3, 11)))
    before = X.copy()
    np.asarray(regression_scores(ArrayBlocks(X, np.full(2000, 0.5)), constant=True))
    assert_array_equal(X, before)


@examples
@given(st.lists(st.integers(0, 4), min_size=30, max_size=30).filter(any), seeds, st.booleans())
def test_a_row_of_weight_k_scores_k_times_one_of_its_copies(counts: list[int], seed: int, constant: bool) -> None:
    X = gaussian((30, 4, seed))
    weighted = regression_scores(in_blocks(X, weights=np.array(counts, dtype=np.float64)), constant=constant)
    copies = regression_scores(in_blocks(np.repeat(X, counts, axis=0)), constant=constant)
    per_row = np.zeros(30)
    np.add.at(per_row, np.repeat(np.arange(30), counts), np.asarray(copies))
    assert_allclose(weighted, per_row, rtol=1e-8)


@examples
@given(seeds, st.floats(1e-6, 1e6))
def test_weights_matter_only_in_proportion(seed: int, factor: float) -> None:
    X = gaussian((40, 4, seed))
    weights = np.random.default_rng(seed).exponential(size=40)
    scores = regression_scores(in_blocks(X, weights=weights), constant=True)
    assert_allclose(regression_scores(in_blocks(X, weights=factor * weights), constant=True), scores, rtol=1e-9)
    assert_allclose(scores.sum(), 4 + 1 + 1, rtol=1e-10)


def test_unit_weights_are_no_weights() -> None:
    X = gaussian((2500, 5, 12))
    assert_allclose(
        regression_scores(in_blocks(X, 700, np.ones(2500))),
        regression_scores(in_blocks(X, 700)),
        rtol=1e-12,
    )


def test_scores_add_an_equal_share_to_the_leverage() -> None:
    X = gaussian((25, 3, 13))
    assert_allclose(regression_scores(in_blocks(X)), np.asarray(leverage(in_blocks(X))) + 1 / 25, rtol=1e-15)


@examples
@given(seeds)
def test_mixing_columns_leaves_the_scores_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mixing = orthonormal(rng, 6, 6) * rng.uniform(0.01, 100.0, 6) @ orthonormal(rng, 6, 6)
    X = gaussian((200, 6, seed))
    assert_allclose(leverage(in_blocks(X @ mixing)), leverage(in_blocks(X)), rtol=1e-8)


@examples
@given(seeds, st.booleans())
def test_scores_follow_their_rows(seed: int, constant: bool) -> None:
    X = gaussian((300, 5, seed))
    order = np.random.default_rng(seed).permutation(300)
    shuffled = leverage(in_blocks(X[order], 64), constant=constant)
    assert_allclose(shuffled, np.asarray(leverage(in_blocks(X, 64), constant=constant))[order], rtol=1e-11)


# Data


def test_kc_house_where_living_space_is_above_plus_basement(kc_house: tuple[Floats, Floats]) -> None:
    features, price = kc_house
    living, above, basement = features[:, 2], features[:, 9], features[:, 10]
    assert_array_equal(living, above + basement)
    X = np.column_stack([features, price])
    scores = leverage(in_blocks(X, 8192), constant=True)
    assert_allclose(scores.sum(), X.shape[1] + 1 - 1, rtol=1e-10)
    assert_allclose(scores, by_svd(with_ones(X)), rtol=1e-8)
