"""Distances of many rows to centres: right to a billionth, and the same bits however rows come."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.kernels.arrays import Floats
from colonnade.kernels.center_distances import CenterDistances

seeds = st.integers(0, 2**32 - 1)


def differences(features: Floats, centers: Floats, scale: Floats | float = 1.0) -> Floats:
    """Square and add all m x k x d differences: nothing cancels."""
    squares: Floats = np.square((features[:, np.newaxis] - centers) / scale).sum(axis=2)
    return squares


@given(
    seeds,
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
        found = CenterDistances.to(centers, unit).of(features)
        expected = differences(features, centers, 1.0 if unit is None else unit)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=0)
        assert (found[expected == 0] == 0).all()


def test_two_tight_groups_far_apart_lose_nothing() -> None:
    """Whatever point the centres are taken around, the product of one of these groups is lost in rounding."""
    rng = np.random.default_rng(0)
    centers = np.repeat([[0.0], [1e8]], 4, axis=0) + 1e-2 * rng.normal(size=(8, 3))
    rows = centers[rng.integers(8, size=500)] + 1e-3 * rng.normal(size=(500, 3))
    np.testing.assert_allclose(CenterDistances.to(centers).of(rows), differences(rows, centers), rtol=1e-9, atol=0)


def test_distances_that_overflow_are_those_of_differences() -> None:
    centers = np.array([[0.0, 0.0], [1e200, 1.0], [1.0, 2.0]])
    rows = np.array([[1e200, 0.0], [3.0, 2.0]])
    assert CenterDistances.to(centers).of(rows).tolist() == [[np.inf, 1.0, np.inf], [13.0, np.inf, 4.0]]


@settings(max_examples=30, deadline=None)
@given(
    seeds,
    st.sampled_from([1, 2, 3, 5, 10, 18, 33, 50]),
    st.sampled_from([1, 2, 3, 7, 10, 15, 30, 200]),
    st.lists(st.integers(0, 700), max_size=5),
)
def test_no_bit_of_a_row_depends_on_the_rows_beside_it(seed: int, d: int, k: int, cuts: list[int]) -> None:
    """BLAS gives a row other bits in products of other shapes, and some at the end of a product."""
    rng = np.random.default_rng(seed)
    features, centers = rng.normal(size=(700, d)), rng.normal(size=(k, d))
    to = CenterDistances.to(centers, rng.uniform(0.5, 2, size=d))
    whole = to.of(features)
    for part in (features, np.asfortranarray(features)):
        np.testing.assert_array_equal(np.concatenate([to.of(piece) for piece in np.split(part, sorted(cuts))]), whole)
    order = rng.permutation(700)[: rng.integers(1, 700)]
    np.testing.assert_array_equal(to.of(features[order]), whole[order])


@pytest.mark.parametrize("n_rows", [1, 17, 4095, 4097, 16_384])
@pytest.mark.parametrize("d", [4, 90])
def test_no_bit_depends_on_how_many_rows_are_asked_for(n_rows: int, d: int) -> None:
    rng = np.random.default_rng(d)
    features, to = rng.normal(size=(16_384, d)), CenterDistances.to(rng.normal(size=(10, d)))
    whole = to.of(features)
    assert whole.flags.f_contiguous
    np.testing.assert_array_equal(to.of(features[:n_rows]), whole[:n_rows])
    np.testing.assert_array_equal(to.of(features[-n_rows:]), whole[-n_rows:])


def test_it_may_be_sent_to_other_machines() -> None:
    rng = np.random.default_rng(0)
    features, to = rng.normal(size=(50, 3)), CenterDistances.to(rng.normal(size=(4, 3)), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(to)).of(features), to.of(features))  # noqa: S301  # ours


@pytest.mark.parametrize(("m", "k", "d"), [(0, 3, 2), (3, 0, 2), (3, 2, 0)])
def test_nothing_is_at_no_distance(m: int, k: int, d: int) -> None:
    found = CenterDistances.to(np.zeros((k, d))).of(np.zeros((m, d)))
    assert found.shape == (m, k)
    assert not found.any()
