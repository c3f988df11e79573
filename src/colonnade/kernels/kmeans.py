"""Weighted k-means: assignment to the nearest centre, and Lloyd's iterations where all rows are in one place."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.tiles import Coarse, pieces, with_ones

# Of the centres' radius: within, each precision holds it, its square and products with rows that are not far away.
RANGES = {np.float32: (1e-15, 1e15), np.float64: (1e-140, 1e140)}
EPS: Mapping[Any, float] = {np.float32: float(np.finfo(np.float32).eps), np.float64: float(np.finfo(np.float64).eps)}
# Numbers in a temporary, two megabytes in 32 bits: half and twice of it take longer. No result depends on it.
NEARNESSES_IN_PIECE = 2**19
# Stop where no centre moves by more than about a thousandth of the standard deviation.
TOLERANCE, MOST_ITERATIONS = 1e-6, 300


class _Screen(NamedTuple):
    """The centres around a point near them, in one precision: a matrix product tells most rows' nearest one."""

    origin: Floats | None
    factors: Coarse
    radius: float
    rounding: float
    numbers: NDArray[np.unsignedinteger[Any]]


class Centers(NamedTuple):
    """Centres, (k, d), made ready for many blocks of rows to be assigned to them."""

    columns: Floats
    screens: tuple[_Screen, ...]

    def nearest(self, X: Floats) -> tuple[Rows, Floats]:
        """Assign every row, as `nearest_centers` does."""
        labels, squared_distances = np.empty(len(X), dtype=np.int64), np.empty(len(X))
        for piece in pieces(len(X), max(self.columns.shape), NEARNESSES_IN_PIECE):
            labels[piece] = _nearest(X[piece], self.columns, self.screens)
            own = np.take(self.columns, labels[piece], axis=1)
            squared_distances[piece] = _squares(np.subtract(X[piece].T, own, out=own))
        return labels, squared_distances


def nearest_centers(X: Floats, centers: Floats) -> tuple[Rows, Floats]:
    """Assign every row to its nearest centre: π and d(x, C)² of Algorithm 3, lines 4 to 7.

    The result is that of comparing the sums Σ_j (x_ij - c_lj)² of every centre, bit for bit, whatever rows stand beside
    a row, however they are cut into blocks, and whatever the matrix product rounds. One product of 32 bits settles all
    rows but those it cannot tell apart for rounding, one of 64 bits most of these, and the rest is compared directly.

    The rows, shape (n, d), are fastest column-major; there is one centre at least, shape (k, d). Among equal centres
    the lowest is nearest, and a row that equals a centre has a squared distance of exactly 0.
    """
    return made_ready(centers).nearest(X)


def made_ready(centers: Floats) -> Centers:
    """Make centres, of which there is one at least, ready for many blocks."""
    return Centers(np.ascontiguousarray(centers.T), tuple(_screens(centers)))


def _screens(centers: Floats) -> list[_Screen]:
    # Around their median the centres are small even where the data lie far from zero or one centre lies far
    # from the rest, so the product does not cancel. Where zero is as near, nothing need be taken away.
    median = np.sort(centers, axis=0)[len(centers) // 2]
    radius = float(np.sqrt(np.square(centers - median).sum(axis=1).max()))
    origin = None if median @ median <= radius * radius else median
    offsets = centers if origin is None else centers - origin
    norms = np.square(offsets).sum(axis=1, keepdims=True)
    radius = float(np.sqrt(norms.max())) or 1.0
    # In units of the squared radius, so that products are near 1 and 32 bits do not overflow.
    factors = np.concatenate([offsets, -0.5 * norms], axis=1) / radius / radius
    numbers = np.arange(len(centers), dtype=np.min_scalar_type(len(centers)))[:, np.newaxis]
    # Bounds the rounding of the product in either precision, and in 64 bits that of the sums of squares themselves.
    rounding = 4 * (centers.shape[1] + 4)
    return [
        _Screen(origin, factors.astype(precision), radius, rounding * EPS[precision], numbers)
        for precision, (least, most) in RANGES.items()
        if least < radius < most
    ]


def _nearest(X: Floats, centers: Floats, screens: Sequence[_Screen]) -> Rows:
    """Label rows by the first screen that tells, or by all sums of squares."""
    if not screens:
        return _compared_directly(X, centers)
    labels, doubtful = _screened(X, screens[0])
    if len(doubtful):
        labels[doubtful] = _nearest(X[doubtful], centers, screens[1:])
    return labels


def _screened(X: Floats, screen: _Screen) -> tuple[Rows, Rows]:
    """Find for each row the centres that may be nearest; give one of them, and the rows where there are others."""
    of_sums = 4 * (X.shape[1] + 4) * EPS[np.float64]
    # A row so far away that something overflows comes out as doubtful.
    with np.errstate(over="ignore", invalid="ignore"):
        rows = with_ones(X if screen.origin is None else X - screen.origin, screen.factors.dtype)
        closeness = screen.factors @ rows
        distance = np.sqrt(np.einsum("jr,jr->r", rows[:-1], rows[:-1])) / screen.radius + 1
        least = closeness.max(axis=0) - distance * (screen.rounding + of_sums * distance)
        near = (closeness >= least).view(np.uint8)
    # How many are near, and the largest of their numbers: where just one is, its number. One byte each, for few.
    count = np.add.reduce(near, axis=0, dtype=screen.numbers.dtype)
    labels = np.maximum.reduce(near * screen.numbers, axis=0)
    return labels.astype(np.int64), np.flatnonzero(count != 1)


def _compared_directly(X: Floats, centers: Floats) -> Rows:
    labels = np.zeros(len(X), dtype=np.int64)
    nearest = np.full(len(X), np.inf)
    for label in range(centers.shape[1]):
        squared = _squares(X.T - centers[:, label : label + 1])
        np.copyto(labels, label, where=squared < nearest)
        np.minimum(nearest, squared, out=nearest)
    return labels


def _squares(gaps: Floats) -> Floats:
    """Turn differences, (d, n), into the sums of their squares, added in turn: |x_i - c|² without cancellation."""
    np.multiply(gaps, gaps, out=gaps)
    n = gaps.shape[1]
    if n == 1:  # numpy would change the order of a single sum
        gaps = np.repeat(gaps, 2, axis=1)
    total: Floats = np.add.reduce(gaps, axis=0)
    return total[:n]


def best_of_starts(X: Floats, weights: Floats, n_clusters: int, n_starts: int, rng: np.random.Generator) -> Floats:
    """Run Lloyd's iterations from several k-means++ starts, and keep the centres of least cost.

    At least k of the rows are distinct, and all weights are positive.
    """
    from sklearn.cluster import KMeans

    seed = int(rng.integers(2**31))
    options = {"n_init": n_starts, "tol": TOLERANCE, "max_iter": MOST_ITERATIONS, "random_state": seed}
    with _quiet_thread():
        # Weights of mean 1: scikit-learn 1.9 does not mind their scale, but makes no promise of it.
        solver = KMeans(n_clusters, **options).fit(X, sample_weight=weights / weights.mean())
    return np.asarray(solver.cluster_centers_, dtype=np.float64)


@contextmanager
def _quiet_thread() -> Iterator[None]:
    """Let scikit-learn run in one thread, and not warn."""
    from sklearn.exceptions import ConvergenceWarning

    # One thread: the same bits on any machine, and threads that wait for each other on a busy one cost tenfold.
    with _libraries().limit(limits=1), warnings.catch_warnings():
        # Raised where clusters stay empty although there are enough distinct rows: some of these differ by
        # rounding only, and a centre more would gain a cost of that size.
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@cache
def _libraries() -> Any:
    """Look for libraries that start threads, once: that takes as long as a fit of two thousand rows."""
    import sklearn.cluster  # noqa: F401  # which brings one of them
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
