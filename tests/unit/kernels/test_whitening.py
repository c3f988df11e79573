from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from colonnade.kernels.whitening import pack_mixing, unpack_mixing, whiten, whiten_first
from cut_blocks import in_blocks


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 40), st.integers(0, 5), st.booleans(), st.integers(0, 999))
@example(2, 2, False, 842)  # the rounding of a mean that is 1e5 times the spread looks like a direction
def test_whitened_columns_are_uncorrelated_and_lead_back(n_rows: int, d: int, weighted: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, d)) * 10.0 ** rng.uniform(-3, 3, d) + rng.normal(size=d)
    weights = rng.integers(0, 3, size=n_rows) + (np.arange(n_rows) < 2).astype(float) if weighted else None
    found = whiten(in_blocks(X, weights=weights))
    w = np.ones(n_rows) if weights is None else weights
    U = found.of(X)[w > 0]
    np.testing.assert_allclose(w[w > 0] @ U, 0.0, atol=1e-7 * w.sum())
    np.testing.assert_allclose((U * w[w > 0][:, None]).T @ U, w.sum() * np.eye(U.shape[1]), atol=1e-6 * w.sum())
    np.testing.assert_allclose(
        found.mean + U @ found.mixing, X[w > 0], rtol=1e-6, atol=1e-6 * np.abs(X).max(initial=1.0)
    )
    np.testing.assert_array_equal(np.tril(found.mixing, -1), 0.0)
    np.testing.assert_array_equal(unpack_mixing(pack_mixing(found.mixing, found.first), d, found.first), found.mixing)


@pytest.mark.parametrize(
    ("columns", "rank"),
    [
        (np.full((20, 3), 0.1), 0),
        (np.column_stack([np.arange(20.0), 2 * np.arange(20.0), np.full(20, 1e9 / 3)]), 1),
        (np.column_stack([np.arange(20.0), np.arange(20.0) ** 2, np.arange(20.0) + np.arange(20.0) ** 2]), 2),
        (np.empty((20, 0)), 0),
    ],
)
def test_dependent_columns_lose_only_their_rank(columns: Any, rank: int) -> None:
    found = whiten(in_blocks(columns))
    assert found.mixing.shape == (rank, columns.shape[1])
    np.testing.assert_allclose(found.mean + found.of(columns) @ found.mixing, columns, rtol=1e-9, atol=1e-12)


def test_the_mixing_matrix_gives_the_covariance() -> None:
    X = np.random.default_rng(0).normal(size=(100, 4)) @ np.random.default_rng(1).normal(size=(4, 4))
    found = whiten(in_blocks(X))
    np.testing.assert_allclose(found.mixing.T @ found.mixing, np.cov(X.T, bias=True), rtol=1e-9)


@pytest.mark.parametrize(
    ("entries", "first", "what"),
    [
        ([1.0, 2.0], [], "no mixing matrix of 3 columns"),
        ([1.0] * 7, [], "no mixing matrix"),
        ([-1.0, 0.0, 0.0], [], "not positive"),
        ([1.0, 0.0, 0.0, 0.0, 0.0], [], "not positive"),
        ([1.0, 0.0, 0.0], [0, 2], "depend on each other"),
        ([0.0, 1.0, 0.0], [1], "depend on each other"),
    ],
)
def test_hostile_mixing(entries: list[float], first: list[int], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        unpack_mixing(np.array(entries), 3, np.array(first, np.int64))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 999))
def test_columns_that_come_first_are_whitened_by_themselves(seed: int) -> None:
    """Levels as dummies, all of them, beside numbers: those that do not depend on each other come first."""
    rng = np.random.default_rng(seed)
    levels = np.eye(4)[rng.integers(4, size=60)]
    X = np.column_stack([rng.normal(size=60), levels, rng.normal(size=60) + levels[:, 0], np.full(60, 3.0)])
    X = X[:, order := rng.permutation(7)]
    candidates = np.flatnonzero((order >= 1) & (order <= 4) | (order == 6))
    found = whiten(in_blocks(X), candidates)
    assert len(found.first) == 3
    assert set(found.first) <= set(candidates)
    U = found.of(X)
    np.testing.assert_allclose(U.T @ U / 60, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(found.mean + U @ found.mixing, X, atol=1e-9)
    np.testing.assert_allclose(
        whiten_first(X[:, found.first], found.mean, found.mixing, found.first), U[:, :3], atol=1e-9
    )
    np.testing.assert_array_equal(unpack_mixing(pack_mixing(found.mixing, found.first), 7, found.first), found.mixing)
