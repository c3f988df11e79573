"""Weighted k-means: assignment to the nearest centre, and Lloyd's iterations where all rows are in one place."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colonnade.kernels.arrays import Floats, Rows

# Numbers in a temporary of the assignment pass, and rows: about as much as stays in the cache.
CHUNK_VALUES, CHUNK_ROWS = 2**19, 2**13
# Of the centres' radius: within, each precision holds it, its square and products with rows that are not far away.
RANGES = {np.float32: (1e-15, 1e15), np.float64: (1e-140, 1e140)}
# Stop where no centre moves by more than about a thousandth of the standard deviation.
TOLERANCE, MOST_ITERATIONS = 1e-6, 300

Coarse = NDArray[np.floating[Any]]  # of 32 or 64 bits


class _Screen(NamedTuple):
    """The centres around their median, in one precision: a matrix product tells most rows' nearest one."""

    origin: Floats
    offsets: Coarse
    halfway: Coarse
    radius: float


def nearest_centers(X: Floats, centers: Floats) -> tuple[Rows, Floats]:
    """Assign every row to its nearest centre: π and d(x, C)² of Algorithm 3, lines 4 to 7.

    The result is that of comparing the sums Σ_j (x_ij - c_lj)² of every centre, bit for bit, whatever rows stand beside
    a row, however they are cut into blocks, and whatever the matrix product rounds. One product of 32 bits settles all
    rows but those it cannot tell apart for rounding, one of 64 bits most of these, and the rest is compared directly.

    The rows, shape (n, d), are fastest column-major; there is one centre at least, shape (k, d). Among equal centres
    the lowest is nearest, and a row that equals a centre has a squared distance of exactly 0.
    """
    labels, squared_distances = np.zeros(len(X), dtype=np.int64), np.empty(len(X))
    screens, center_columns = _screens(centers), np.ascontiguousarray(centers.T)
    n_chunk_rows = max(1, min(CHUNK_ROWS, CHUNK_VALUES // max(len(centers), 2 * X.shape[1])))
    for start in range(0, len(X), n_chunk_rows):
        chunk = slice(start, start + n_chunk_rows)
        columns = np.ascontiguousarray(X[chunk].T)
        labels[chunk] = _nearest(columns, center_columns, screens)
        # Labels are valid by construction: "clip" only spares a checked copy.
        own = np.take(center_columns, labels[chunk], axis=1, mode="clip")
        squared_distances[chunk] = _squared_distances(columns, own)
    return labels, squared_distances


def _screens(centers: Floats) -> list[_Screen]:
    # Around their median the centres are small even where the data lie far from zero or one centre lies far
    # from the rest, so the product does not cancel.
    origin = np.median(centers, axis=0)
    offsets = centers - origin
    norms = np.einsum("lj,lj->l", offsets, offsets)
    radius = float(np.sqrt(norms.max())) or 1.0
    # In units of the squared radius, so that products are near 1 and 32 bits do not overflow.
    offsets, halfway = offsets / radius / radius, 0.5 * norms[:, np.newaxis] / radius / radius
    return [
        _Screen(origin[:, np.newaxis], offsets.astype(precision), halfway.astype(precision), radius)
        for precision, (least, most) in RANGES.items()
        if least < radius < most
    ]


def _nearest(columns: Floats, centers: Floats, screens: Sequence[_Screen]) -> Rows:
    """Label rows, given as columns, (d, n): by the first screen that tells, or by all sums of squares."""
    if not screens:
        return _compared_directly(columns, centers)
    labels, doubtful = _screened(columns, screens[0])
    if len(doubtful):
        labels[doubtful] = _nearest(columns[:, doubtful], centers, screens[1:])
    return labels


def _screened(columns: Floats, screen: _Screen) -> tuple[Rows, Rows]:
    """Find for each row the centres that may be nearest; give one of them, and the rows where there are others."""
    precision, k = screen.offsets.dtype, len(screen.offsets)
    # A row so far away that something overflows comes out as doubtful.
    with np.errstate(over="ignore", invalid="ignore"):
        rows = (columns - screen.origin).astype(precision, copy=False)
        closeness = screen.offsets @ rows
        closeness -= screen.halfway
        distance = np.sqrt(np.einsum("jr,jr->r", rows, rows)) / screen.radius + 1
        # Bounds the rounding of the product, and that of the sums of squares themselves.
        rounding, of_sums = (4 * (len(columns) + 4) * float(np.finfo(each).eps) for each in (precision, np.float64))
        least = closeness.max(axis=0) - distance * (rounding + of_sums * distance)
        near = closeness >= least
    # In few bytes: the sum of the numbers of those near is the number where just one is, and elsewhere may overflow.
    small, ones = np.min_scalar_type(k), near.view(np.uint8)
    count = np.add.reduce(ones, axis=0, dtype=small)
    labels = np.add.reduce(ones * np.arange(k, dtype=small)[:, np.newaxis], axis=0, dtype=small)
    return labels.astype(np.int64), np.flatnonzero(count != 1)


def _compared_directly(columns: Floats, centers: Floats) -> Rows:
    labels = np.zeros(columns.shape[1], dtype=np.int64)
    nearest = np.full(columns.shape[1], np.inf)
    for label in range(centers.shape[1]):
        squared = _squared_distances(columns, centers[:, label : label + 1])
        np.copyto(labels, label, where=squared < nearest)
        np.minimum(nearest, squared, out=nearest)
    return labels


def _squared_distances(columns: Floats, centers: Floats) -> Floats:
    """|x_i - c|² without cancellation: differences first, then squares.

    Columns are added in turn, so that a row's sum does not depend on the rows beside it (numpy's own sum
    changes its order with the shape).
    """
    gaps = columns - centers
    np.multiply(gaps, gaps, out=gaps)
    total = np.zeros(columns.shape[1])
    for column in gaps:
        total += column
    return total


def best_of_starts(X: Floats, weights: Floats, n_clusters: int, n_starts: int, rng: np.random.Generator) -> Floats:
    """Run Lloyd's iterations from several k-means++ starts, and keep the centres of least cost.

    At least k of the rows are distinct, and all weights are positive.
    """
    seed = int(rng.integers(2**31))
    with quiet_thread():
        options = {"n_init": n_starts, "tol": TOLERANCE, "max_iter": MOST_ITERATIONS, "random_state": seed}
        return _fitted(X, weights, n_clusters, **options)[0]


@contextmanager
def quiet_thread() -> Iterator[None]:
    """Let `refined` run in one thread, and not warn."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # One thread: the same bits on any machine, and threads that wait for each other on a busy one cost tenfold.
    with threadpool_limits(1), warnings.catch_warnings():
        # Raised where clusters stay empty although there are enough distinct rows: some of these differ by
        # rounding only, and a centre more would gain a cost of that size.
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def refined(
    X: Floats, weights: Floats, centers: Floats, most: int = MOST_ITERATIONS, tolerance: float = TOLERANCE
) -> tuple[Floats, float]:
    """Run Lloyd's iterations from these centres; the cost is relative."""
    return _fitted(X, weights, len(centers), init=centers, n_init=1, tol=tolerance, max_iter=most)


def _fitted(X: Floats, weights: Floats, n_clusters: int, **options: Any) -> tuple[Floats, float]:
    from sklearn.cluster import KMeans

    # Weights of mean 1: scikit-learn 1.9 does not mind their scale, but makes no promise of it.
    solver = KMeans(n_clusters, **options).fit(X, sample_weight=weights / weights.mean())
    return np.asarray(solver.cluster_centers_, dtype=np.float64), float(solver.inertia_)
