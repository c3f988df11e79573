"""The cells that occur, against a walk over the whole grid."""

import itertools
import tracemalloc
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.grid import occupied_cells


def whole_grid(centers: list[Floats], labels: list[Rows], weights: Floats) -> tuple[Floats, Floats]:
    """Walk over all k^T cells and keep those that have rows."""
    cells, cell_weights = [], []
    for combination in itertools.product(*(range(len(own)) for own in centers)):
        inside = np.all([own == label for own, label in zip(labels, combination, strict=True)], axis=0)
        if inside.any():
            cells.append(np.concatenate([own[label] for own, label in zip(centers, combination, strict=True)]))
            cell_weights.append(weights[inside].sum())
    return np.array(cells), np.array(cell_weights)


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=4),
    st.integers(1, 30),
)
def test_equals_the_whole_grid(seed: int, shapes: list[tuple[int, int]], m: int) -> None:
    rng = np.random.default_rng(seed)
    centers = [rng.normal(size=shape) for shape in shapes]
    labels = [rng.integers(k, size=m) for k, _ in shapes]
    weights = rng.integers(0, 5, size=m).astype(np.float64)
    cells, cell_weights = occupied_cells(centers, labels, weights)
    expected_cells, expected_weights = whole_grid(centers, labels, weights)
    assert cells.dtype == cell_weights.dtype == np.float64
    assert np.array_equal(cells, expected_cells)
    assert np.array_equal(cell_weights, expected_weights)


def test_one_party_and_one_row() -> None:
    cells, weights = occupied_cells([np.array([[1.0], [2.0]])], [np.array([1])], np.array([3.0]))
    assert (cells.tolist(), weights.tolist()) == ([[2.0]], [3.0])


# 10^8 cells of 16 numbers would be 12 GB; 400 parties have more cells than an int64 can number.
@pytest.mark.parametrize("n_parties", [5, 8, 400])
def test_many_parties_take_little_memory_and_time(n_parties: int) -> None:
    rng = np.random.default_rng(0)
    m = 6_000
    centers = [rng.normal(size=(10, 2)) for _ in range(n_parties)]
    labels = [rng.integers(10, size=m) for _ in range(n_parties)]
    start = perf_counter()
    tracemalloc.start()
    try:
        cells, weights = occupied_cells(centers, labels, np.ones(m))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert perf_counter() - start < 10.0
    assert peak < 2 * cells.nbytes + 20 * 8 * m
    assert len(cells) <= m
    assert weights.sum() == m
