"""Condition numbers and dependences of columns, against the definition and against columns made to depend."""

import numpy as np
import pytest

from colonnade.kernels.arrays import Floats
from colonnade.kernels.dependence import dependences, unit_basis
from colonnade.kernels.row_blocks import ArrayBlocks
from cut_blocks import in_blocks


def found(X: Floats, least: float = 0.03, block: int = 97) -> tuple[float, list[tuple[int, tuple[int, ...]]]]:
    condition, each = dependences(in_blocks(X, block), least)
    return condition, [(one.column, one.others) for one in each]


def independent(n_columns: int, n_rows: int = 500) -> Floats:
    return np.random.default_rng(0).normal(size=(n_rows, n_columns)) * np.logspace(-3, 3, n_columns) + 5


def test_the_condition_number_is_that_of_centred_columns_of_length_1() -> None:
    X = independent(4)
    X[:, 3] += 0.9 * X[:, 2]
    centred = X - X.mean(axis=0)
    expected = np.linalg.cond(centred / np.linalg.norm(centred, axis=0))
    condition, dependent = found(X)
    assert condition == pytest.approx(expected, rel=1e-9)
    assert dependent == []


def test_each_of_two_dependences_is_named_by_itself() -> None:
    X = independent(5)
    X = np.column_stack([X, 3 * X[:, 0] - 2 * X[:, 1] + 7, X[:, 4]])
    condition, dependent = found(X)
    assert condition == np.inf
    sets = {frozenset((column, *others)) for column, others in dependent}
    assert sets == {frozenset({0, 1, 5}), frozenset({4, 6})}


def test_the_rest_is_what_others_leave_of_a_columns_deviation() -> None:
    rng, X = np.random.default_rng(1), independent(3, 20_000)
    X[:, 2] = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std() + 0.01 * rng.normal(size=len(X))
    ((one),) = dependences(ArrayBlocks(X), 0.03)[1]
    assert {one.column, *one.others} == {0, 2}
    assert one.rest == pytest.approx(0.01, rel=0.05)
    assert dependences(ArrayBlocks(X), 0.005)[1] == []


def test_columns_without_spread_do_not_count() -> None:
    X = np.column_stack([independent(2), np.full(500, 3.3)])
    condition, dependent = found(X)
    assert condition < 2
    assert dependent == []
    assert found(np.ones((10, 2))) == (1.0, [])
    assert found(np.empty((10, 0))) == (1.0, [])


def test_fewer_rows_than_columns() -> None:
    condition, dependent = found(independent(6, 4))
    assert condition == np.inf
    assert len(dependent) == 3, "four rows about their mean have three directions"


def test_the_size_of_blocks_changes_nothing() -> None:
    X = independent(4)
    X[:, 3] = X[:, 0] + 1e-4 * X[:, 1]
    assert found(X, block=7)[1] == found(X, block=500)[1]


@pytest.mark.parametrize("apart", [1.0, 1e-4, 1e-8])
def test_a_unit_basis_is_the_same_up_to_a_rotation_whether_inverted_or_taken_apart(apart: float) -> None:
    """The last two are columns that nearly coincide, on both sides of where an inverse is trusted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 5))
    X[:, 4] = X[:, 3] + apart * X[:, 4]
    X /= np.linalg.norm(X, axis=0)
    W, lost = unit_basis(X)
    assert (W.shape, lost.shape) == ((5, 5), (0, 5))
    np.testing.assert_allclose(W.T @ X.T @ X @ W, np.eye(5), atol=1e-14 / apart)
    _, values, Vt = np.linalg.svd(X)
    np.testing.assert_allclose(W @ W.T, (Vt.T / values**2) @ Vt, rtol=1e-13 / apart)


def test_a_unit_basis_tells_what_columns_lack() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(9, 4))
    X[:, 3], X[:, 1] = X[:, 0], 0.0
    X[:, [0, 2, 3]] /= np.linalg.norm(X[:, [0, 2, 3]], axis=0)
    W, lost = unit_basis(X)
    assert (W.shape, lost.shape) == ((4, 2), (2, 4))
    np.testing.assert_allclose(W.T @ X.T @ X @ W, np.eye(2), atol=1e-13)
    np.testing.assert_allclose(X @ lost.T, 0.0, atol=1e-13)
    assert [each.shape for each in unit_basis(np.empty((0, 0)))] == [(0, 0), (0, 0)]
