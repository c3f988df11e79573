import numpy as np
import pytest

from colonnade.kernels.gram import Summary, join_bases, local_basis, merge
from colonnade.kernels.linear import reduce_rows, solve_ridge

RNG = np.random.default_rng(0)
A = RNG.standard_t(4, size=(60, 5)) + 100.0
W = RNG.uniform(0.0, 2.0, size=60)


def summary(rows: slice | np.ndarray) -> Summary:
    basis = local_basis(A[rows], W[rows])
    return Summary(float(W[rows].sum()), basis.mean, basis.factor)


def test_a_basis_is_orthonormal_and_gives_back_the_columns() -> None:
    basis = local_basis(A, W)
    np.testing.assert_allclose(basis.directions.T @ basis.directions, np.eye(5), atol=1e-14)
    centred = np.sqrt(W)[:, None] * (A - np.average(A, axis=0, weights=W))
    np.testing.assert_allclose(basis.directions @ basis.factor, centred, atol=1e-10)


@pytest.mark.parametrize("columns", [np.c_[A[:, :2], A[:, 0] - A[:, 1]], np.c_[A[:, 0], np.full(60, 1e9)], A[:3]])
def test_what_depends_on_other_columns_has_no_direction(columns: np.ndarray) -> None:
    weights = W[: len(columns)]
    basis = local_basis(columns, weights)
    rank = np.linalg.matrix_rank(np.sqrt(weights)[:, None] * (columns - basis.mean), rtol=1e-9)
    assert np.count_nonzero(basis.factor.any(axis=1)) == np.count_nonzero(basis.directions.any(axis=0)) == rank


def test_joined_bases_have_the_gram_matrix_of_all_columns() -> None:
    left, right = local_basis(A[:, :2], W), local_basis(A[:, 2:], W)
    directions = np.hstack([left.directions, right.directions])
    joined = join_bases([left.factor, right.factor], directions.T @ directions, 1e-13)
    centred = np.sqrt(W)[:, None] * (A - np.average(A, axis=0, weights=W))
    np.testing.assert_allclose(joined.T @ joined, centred.T @ centred, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
def test_merged_parts_are_the_whole(intercept: bool) -> None:
    parts = [summary(np.arange(60) % 3 == part) for part in range(3)]
    ours = merge(parts).problem(fit_intercept=intercept)
    theirs = reduce_rows(A[:, :-1], A[:, -1], W, fit_intercept=intercept)
    np.testing.assert_allclose(ours.triangle.T @ ours.triangle, theirs.triangle.T @ theirs.triangle, rtol=1e-9)
    np.testing.assert_allclose(ours.centre, theirs.centre, rtol=1e-12)
    np.testing.assert_allclose(solve_ridge(ours, 0.5), solve_ridge(theirs, 0.5), rtol=1e-8)


def test_a_constant_column_stays_without_direction_when_parts_are_merged() -> None:
    columns = np.c_[A[:, :2], np.full(60, 0.1)]
    parts = []
    for rows in (np.arange(60) % 2 == 0, np.arange(60) % 2 == 1):
        basis = local_basis(columns[rows], W[rows])
        parts.append(Summary(float(W[rows].sum()), basis.mean, basis.factor))
    assert not merge(parts).triangle[:, 2].any()
