"""Whether numbers can be of any data: those of honest data always can, in whatever units, and lies cannot."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from colonnade.kernels.fixed_codes import decode_fixed, encode_fixed
from colonnade.kernels.lloyd import squared_distances
from colonnade.kernels.possible import PossibleDistances, first_copies, moments_fit, norm_fits, places_of
from colonnade.kernels.quantise import restore_dithered, round_with_dither
from colonnade.kernels.row_blocks import ArrayBlocks
from colonnade.kernels.sixteen_bits import restore_logarithms, round_logarithms
from colonnade.kernels.whitening import whiten

seeds = st.integers(0, 10_000)
scales = st.sampled_from([1e-30, 1e-3, 1.0, 1e6, 1e30])
offsets = st.sampled_from([0.0, 1.0, 1e4])


def distances_fit(distances: Any, centers: Any, error: Any) -> Any:
    return PossibleDistances.to(centers).fit(distances, error)


def table(seed: int, n: int, d: int, scale: float, offset: float) -> Any:
    rng = np.random.default_rng(seed)
    columns = rng.standard_t(2, size=(n, d)) + offset
    columns[:, rng.random(d) < 0.2] = 1.0
    return columns * scale


@given(seeds, st.integers(1, 6), st.integers(1, 5), st.sampled_from([1e-20, 1.0, 1e20]), offsets)
def test_distances_of_any_points_fit(seed: int, k: int, d: int, scale: float, offset: float) -> None:
    rng, points = np.random.default_rng(seed), table(seed, 40, d, scale, offset)
    centers = points[rng.integers(40, size=k)] + scale * rng.choice([0.0, 1e-4, 1.0]) * rng.normal(size=(k, d))
    exact = squared_distances(points, centers)
    assert distances_fit(exact, centers, 0.0).all()
    largest, codes = round_logarithms(exact)
    rounded = restore_logarithms(largest, codes, exact.shape)
    assert distances_fit(rounded, centers, 3.1e-4 * rounded.max(axis=1, keepdims=True)).all()
    coded, step = decode_fixed(encode_fixed(exact.ravel(), 6, rng), exact.size, 6, np.random.default_rng(seed))
    assert distances_fit(coded.reshape(exact.shape), centers, step).all()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_distances_of_no_point_do_not(scale: float) -> None:
    centers = scale * np.array([[0.0], [1.0], [2.0]])
    to = scale**2 * np.array([[1.0, 0.0, 1.0], [1e9, 0.0, 1e9], [0.0, 0.0, 0.0], [0.0, 1.0, 4.0], [0.0, 1.0, 4.1]])
    assert distances_fit(to, centers, 0.0).tolist() == [True, False, False, True, False]
    plane = np.hstack([centers, np.zeros((3, 1))])
    to = scale**2 * np.array([[10.0, 9.0, 10.0], [10.0, 9.0, 9.0], [0.9, 0.0, 0.9]])
    assert distances_fit(to, plane, 0.0).tolist() == [True, False, False]
    assert distances_fit(scale**2 * np.array([[0.0, 0.0], [0.25, 0.25]]), centers[:2], 0.0).tolist() == [False, True]
    assert distances_fit(np.array([[0.0], [1.0]]), np.empty((1, 0)), 0.0).tolist() == [True, False]


@given(seeds, st.integers(1, 40), scales, offsets, st.booleans())
def test_moments_of_any_numbers_fit(seed: int, seen: int, scale: float, offset: float, weighted: bool) -> None:
    rng, values = np.random.default_rng(seed), table(seed, 40, 1, scale, offset)[:, 0]
    weights = 10.0 ** rng.uniform(-3, 3, size=40) if weighted else np.ones(40)
    parts = weights / weights.sum()
    mean = float(parts @ values)
    variance, error = float(parts @ np.square(values - mean)), 1e-3 * scale
    some = rng.permutation(40)[:seen]
    assert moments_fit(values[some], parts[some], mean, variance, 0.0)
    assert moments_fit(values[some] + rng.uniform(-error, error, seen), parts[some], mean, variance, error)


def test_moments_of_no_numbers_do_not() -> None:
    values, parts = np.array([0.0, 10.0]), np.full(2, 0.01)
    assert moments_fit(values, parts, 0.0, 1.1, 0.0)
    assert not moments_fit(values, parts, 0.0, 0.9, 0.0), "one row alone has more"
    assert not moments_fit(values, parts, 5.0, 0.4, 0.0)
    assert moments_fit(values, parts, 0.0, 1e50, 0.0), "another row may have any value"
    assert not moments_fit(np.arange(5.0), np.full(5, 0.2), 2.0, 3.0, 0.0), "these are all rows"
    assert not moments_fit(np.arange(5.0), np.full(5, 0.2), 2.5, 2.25, 0.0), "and this is not their mean"


@given(seeds, st.integers(1, 5), scales, offsets)
@example(161, 5, 1e30, 0.0)  # a constant column whose rounding is large
def test_whitened_rows_fit(seed: int, d: int, scale: float, offset: float) -> None:
    rng, columns = np.random.default_rng(seed), table(seed, 50, d, scale, offset)
    whitened = whiten(ArrayBlocks(columns)).of(columns)
    some = np.unique(rng.integers(50, size=30))
    assert norm_fits(whitened[some], np.sqrt(50), 0.0)
    rounded = restore_dithered(
        round_with_dither(whitened[some], 0.5, np.random.default_rng(seed)), 0.5, np.random.default_rng(seed)
    )
    assert norm_fits(rounded, np.sqrt(50), 0.25)


def test_rows_beyond_their_covariance_do_not() -> None:
    assert norm_fits(np.array([[7.0], [0.0]]), np.sqrt(50), 0.0)
    assert not norm_fits(np.array([[7.1], [0.0]]), np.sqrt(50), 0.0)
    assert norm_fits(np.array([[7.1], [0.0]]), np.sqrt(50), 0.1)
    assert not norm_fits(np.full((30, 1), 3.0), np.sqrt(50), 0.25)
    assert norm_fits(np.ones((2, 3)), np.sqrt(6), 0.0, "fro")
    assert not norm_fits(np.ones((2, 3)), np.sqrt(5), 0.0, "fro")


@given(seeds, st.integers(1, 12), st.integers(1, 5), st.sampled_from([1e-20, 1.0, 1e20]), offsets)
def test_points_are_found_from_their_distances(seed: int, p: int, d: int, scale: float, offset: float) -> None:
    points = table(seed, 40, d, scale, offset)
    exact = squared_distances(points, points[:p])
    found = places_of(exact[:p], d)
    assert found.shape == (p, d)
    np.testing.assert_allclose(squared_distances(found, found), exact[:p], atol=1e-9 * exact[:p].max())
    assert distances_fit(exact, found, 0.0).all()


def test_first_copies_of_rows() -> None:
    assert first_copies(np.array([1, 1, 4, 7, 7, 7])).tolist() == [0, 2, 3]
    assert first_copies(np.empty(0, np.int64)).tolist() == []


def test_the_largest_singular_value_is_told_from_bounds_and_where_these_do_not_do_from_itself() -> None:
    rng = np.random.default_rng(5)
    for shape in ((60, 7), (7, 60), (5, 1)):
        values = rng.normal(size=shape) * 10.0 ** rng.integers(-90, 90)
        norm = float(np.linalg.norm(values, 2))
        assert norm_fits(values, norm, 0.0)
        assert norm_fits(values, 20 * norm, 0.0)
        assert not norm_fits(values, 0.999 * norm, 0.0)
    assert norm_fits(np.zeros((4, 2)), 0.0, 0.0)
