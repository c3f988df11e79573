"""A basis of columns that come block by block is that of all of them at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.arrays import Floats
from colonnade.kernels.block_basis import all_directions, block_basis
from colonnade.kernels.gram import local_basis
from cut_blocks import CutBlocks, in_blocks

RNG = np.random.default_rng(0)
A = RNG.standard_t(4, size=(200, 4)) + 100.0
W = RNG.integers(0, 4, size=200).astype(np.float64)


def directions(rows: CutBlocks) -> Floats:
    basis = block_basis(rows)
    return all_directions(basis, rows, range(len(rows.cuts) + 1))


@given(st.integers(0, 2**32), st.integers(1, 4), st.lists(st.integers(0, 60), max_size=9), st.booleans(), st.booleans())
def test_it_is_orthonormal_and_gives_back_the_columns(
    seed: int, n_columns: int, cuts: list[int], is_weighted: bool, is_large: bool
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(60, n_columns)) * 10.0 ** rng.integers(-6, 6, n_columns) + 1e6 * is_large
    weights = rng.integers(0, 3, 60).astype(np.float64) if is_weighted else np.ones(60)
    rows = CutBlocks(values, cuts, weights if is_weighted else None)
    basis, Q = block_basis(rows), directions(rows)
    counted, relative = values[weights > 0], weights[weights > 0] / weights.max()
    expected = local_basis(counted, relative)
    np.testing.assert_allclose(basis.mean, expected.mean, rtol=1e-13)
    sizes = np.linalg.norm(expected.factor, axis=0) + 1e-300
    gram, expected_gram = (each.factor.T @ each.factor / np.outer(sizes, sizes) for each in (basis, expected))
    np.testing.assert_allclose(gram, expected_gram, atol=1e-7 if is_large else 1e-12)
    present = basis.factor.any(axis=1)
    np.testing.assert_array_equal(Q.any(axis=0), present)
    np.testing.assert_allclose(Q.T @ Q, np.diag(present.astype(float)), atol=4e-15)
    centred = np.sqrt(relative)[:, None] * (counted - basis.mean)
    np.testing.assert_allclose(Q @ basis.factor / sizes, centred / sizes, atol=1e-13 if not is_large else 1e-7)


@pytest.mark.parametrize("nearly", [1e-4, 1e-7, 1e-10])
def test_columns_that_nearly_depend_on_each_other_have_an_orthonormal_basis(nearly: float) -> None:
    """One pass over them would leave it orthonormal up to 1e-16 over that."""
    values = np.c_[A[:, :2], A[:, 0] - A[:, 1] + nearly * RNG.normal(size=200)]
    Q = directions(in_blocks(values))
    np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=4e-15)


@pytest.mark.parametrize(
    "columns", [np.c_[A[:, :2], A[:, 0] - A[:, 1]], np.c_[A[:, 0], np.full(200, 1e9 / 3)], np.full((200, 2), 0.1)]
)
@pytest.mark.parametrize("weights", [None, W])
def test_what_depends_on_other_columns_has_no_direction(columns: Floats, weights: Floats | None) -> None:
    rows = in_blocks(columns, 9, weights)
    basis = block_basis(rows)
    counted = np.ones(200) if weights is None else weights
    rank = np.count_nonzero(local_basis(columns, counted).factor.any(axis=1))
    assert np.count_nonzero(basis.factor.any(axis=1)) == np.count_nonzero(directions(rows).any(axis=0)) == rank


def test_a_long_constant_column_has_its_own_mean() -> None:
    basis = block_basis(in_blocks(np.full((100_000, 1), 0.1), 1000))
    assert basis.mean[0] == pytest.approx(0.1, rel=1e-15)
    assert not basis.factor.any()
