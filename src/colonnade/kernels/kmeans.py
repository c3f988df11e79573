"""Weighted k-means: assignment to the nearest centre, and Lloyd's iterations where all rows are in one place."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from colonnade.kernels.arrays import Floats, Rows

# Numbers in a temporary of the assignment pass: 2 MB, so that it stays in the cache.
CHUNK_VALUES = 2**18
# Stop where no centre moves by more than about a thousandth of the standard deviation.
TOLERANCE, MOST_ITERATIONS = 1e-6, 300


def nearest_centers(X: Floats, centers: Floats) -> tuple[Rows, Floats]:
    """Assign every row to its nearest centre: π and d(x, C)² of Algorithm 3, lines 4 to 7.

    The result is that of comparing the sums Σ_j (x_ij - c_lj)² of every centre, bit for bit, however the rows are cut
    into blocks. One matrix product settles all rows but those it cannot tell apart for rounding.

    The rows, shape (n, d), are fastest column-major; there is one centre at least, shape (k, d). Among equal centres
    the lowest is nearest, and a row that equals a centre has a squared distance of exactly 0.
    """
    labels = np.zeros(len(X), dtype=np.int64)
    squared_distances = np.empty(len(X))
    # Around their median the centres are small even where the data lie far from zero or one centre lies far
    # from the rest, so the product does not cancel. The rows need no shift: it would not change the order.
    origin = np.median(centers, axis=0)
    offsets = centers - origin
    radius = float(np.linalg.norm(offsets, axis=1).max())
    reach = float(np.linalg.norm(centers, axis=1).max() + np.linalg.norm(origin)) + radius
    halfway = offsets @ origin + 0.5 * np.einsum("lj,lj->l", offsets, offsets)
    rounding = 4 * (X.shape[1] + 4) * np.finfo(np.float64).eps
    n_chunk_rows = max(1, CHUNK_VALUES // max(1, *centers.shape))
    for start in range(0, len(X), n_chunk_rows):
        chunk = slice(start, start + n_chunk_rows)
        rows, label, squared = X[chunk], labels[chunk], squared_distances[chunk]
        lead = _closest(offsets @ rows.T - halfway[:, np.newaxis], label)
        squared[:] = _squared_distances(rows, centers, label)
        # Bounds the rounding of the product (|x| <= distance + reach) and of the squared distances themselves.
        distance = np.sqrt(squared)
        doubtful = np.flatnonzero(lead <= rounding * (distance + radius) * (distance + reach))
        label[doubtful], squared[doubtful] = _compared_directly(rows[doubtful], centers)
    return labels, squared_distances


def _closest(closeness: Floats, labels: Rows) -> Floats:
    """Write the row index of every column's maximum to `labels`; return its lead over the second largest."""
    best = closeness[0].copy()
    second = np.full_like(best, -np.inf)
    for label in range(1, len(closeness)):
        candidate = closeness[label]
        np.maximum(second, np.minimum(best, candidate), out=second)
        np.copyto(labels, label, where=candidate > best)
        np.maximum(best, candidate, out=best)
    lead: Floats = best - second
    return lead


def _compared_directly(X: Floats, centers: Floats) -> tuple[Rows, Floats]:
    labels = np.zeros(len(X), dtype=np.int64)
    nearest = np.full(len(X), np.inf)
    for label in range(len(centers)):
        squared = _squared_distances(X, centers, np.full(len(X), label))
        np.copyto(labels, label, where=squared < nearest)
        np.minimum(nearest, squared, out=nearest)
    return labels, nearest


def _squared_distances(X: Floats, centers: Floats, labels: Rows) -> Floats:
    """|x_i - c_labels[i]|² without cancellation: differences first, then squares.

    Columns are added in turn, so that a row's sum does not depend on the rows beside it (numpy's own sum
    changes its order with the shape).
    """
    # Labels are valid by construction: "clip" only spares a checked copy.
    gaps = np.take(np.ascontiguousarray(centers.T), labels, axis=1, mode="clip")
    np.subtract(X.T, gaps, out=gaps)
    np.multiply(gaps, gaps, out=gaps)
    total = np.zeros(len(X))
    for column in gaps:
        total += column
    return total


def best_of_starts(X: Floats, weights: Floats, n_clusters: int, n_starts: int, rng: np.random.Generator) -> Floats:
    """Run Lloyd's iterations from several k-means++ starts, and keep the centres of least cost.

    At least k of the rows are distinct, and all weights are positive.
    """
    with quiet_thread():
        return started(X, weights, n_clusters, n_starts, rng)[0]


@contextmanager
def quiet_thread() -> Iterator[None]:
    """Let `started` and `refined` run in one thread, and not warn."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # One thread: the same bits on any machine, and threads that wait for each other on a busy one cost tenfold.
    with threadpool_limits(1), warnings.catch_warnings():
        # Raised where clusters stay empty although there are enough distinct rows: some of these differ by
        # rounding only, and a centre more would gain a cost of that size.
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def started(
    X: Floats, weights: Floats, n_clusters: int, n_starts: int, rng: np.random.Generator, most: int = MOST_ITERATIONS
) -> tuple[Floats, float]:
    """Find the centres of least cost of several starts, each of at most so many iterations; the cost is relative."""
    seed = int(rng.integers(2**31))
    return _fitted(X, weights, n_clusters, n_init=n_starts, tol=TOLERANCE, max_iter=most, random_state=seed)


def refined(
    X: Floats, weights: Floats, centers: Floats, most: int = MOST_ITERATIONS, tolerance: float = TOLERANCE
) -> tuple[Floats, float]:
    """Run Lloyd's iterations from these centres; the cost is as of `started`."""
    return _fitted(X, weights, len(centers), init=centers, n_init=1, tol=tolerance, max_iter=most)


def _fitted(X: Floats, weights: Floats, n_clusters: int, **options: Any) -> tuple[Floats, float]:
    from sklearn.cluster import KMeans

    # Weights of mean 1: scikit-learn 1.9 does not mind their scale, but makes no promise of it.
    solver = KMeans(n_clusters, **options).fit(X, sample_weight=weights / weights.mean())
    return np.asarray(solver.cluster_centers_, dtype=np.float64), float(solver.inertia_)
