"""Lloyd's iterations in steps: distances, k-means++ draws from them, and means of rows by label.

`kmeans` does all of it where the rows are in one place. Here each step can be done by another party.
"""

import numpy as np

from colonnade.kernels.arrays import Flags, Floats, Rows

# What a distance may be wrong by, of itself.
TOLERANCE = 1e-9
# Numbers in a temporary of `squared_distances`, 1 MB, and rows at a time: powers of 2, which every BLAS cuts evenly.
VALUES_AT_ONCE, LEAST_AT_ONCE, MOST_AT_ONCE = 2**17, 2**8, 2**12
# A mean of fewer, those of little weight counted less, is nearly one of them.
LEAST_EFFECTIVE_ROWS = 1.5


def squared_distances(features: Floats, centers: Floats, scale: Floats | None = None) -> Floats:
    """Compute |x_i - c_l|^2, shape (m, k), in units of `scale`, shape (d,). Those of parties' columns add up.

    They are right to 1e-9 of themselves, and to some ten units in the last place of |x_i - o|^2 + |c_l - o|^2, with o
    the median of the centres: so where columns lie does not matter. A row that equals a centre is at exactly 0.

    A row's distances are the same bits whatever rows stand beside it, however many there are, and in whichever order
    they lie in memory, on one kind of processor with one BLAS.
    """
    distances = np.empty((len(centers), len(features))).T
    if not distances.size:
        return distances
    unit = np.ones(features.shape[1]) if scale is None else scale
    origin = np.median(centers, axis=0)
    offsets = (centers - origin) / unit
    norms = np.einsum("lj,lj->l", offsets, offsets)
    # |x|^2 + |c|^2 - 2 x.c as one product: the rows get two columns more.
    factors = np.column_stack([-2 * offsets, norms, np.ones(len(centers))])
    # Always of one shape, whatever is asked for: the bits of a product depend on its shape, and on a row's place where
    # that is near the end of a shape that BLAS cannot cut evenly.
    n_chunk_rows = min(MOST_AT_ONCE, max(LEAST_AT_ONCE, 1 << (VALUES_AT_ONCE // max(factors.shape)).bit_length() - 1))
    rows = np.zeros((factors.shape[1], n_chunk_rows))
    rows[-2] = 1.0
    for start in range(0, len(features), n_chunk_rows):
        chunk = slice(start, min(start + n_chunk_rows, len(features)))
        own = rows[:, : chunk.stop - start]
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is computed by differences
            own[:-2] = features[chunk].T
            own[:-2] -= origin[:, np.newaxis]
            if scale is not None:
                own[:-2] /= scale[:, np.newaxis]
            rows[-1] = np.square(rows[:-2]).sum(axis=0)
            found = (factors @ rows)[:, : own.shape[1]]
            doubtful = _lost_to_rounding(found, norms, own[-1], features.shape[1])
        found[doubtful] = _by_differences(features[chunk], centers, unit, *doubtful)
        distances[chunk] = found.T
    return distances


def _lost_to_rounding(found: Floats, norms: Floats, squares: Floats, n_features: int) -> tuple[Rows, Rows]:
    """Find the entries, (centre, row), whose rounding may exceed the tolerance: those of rows close to a centre."""
    # Bounds the rounding of |x|^2, |c|^2, of all sums, and of the differences from the median.
    part = (2 * n_features + 8) * float(np.finfo(np.float64).eps) / TOLERANCE
    # Most rows are told by their smallest entry. Not "<": what is no number is lost as well.
    rows = np.flatnonzero(~(found.min(axis=0) >= part * (norms.max() + squares)))
    label, place = np.nonzero(~(found[:, rows] >= part * (norms[:, np.newaxis] + squares[rows])))
    return label, rows[place]


def _by_differences(features: Floats, centers: Floats, unit: Floats, label: Rows, row: Rows) -> Floats:
    """Differences first, then squares: no cancellation. Column by column, whose order no shape changes."""
    total = np.zeros(len(row))
    for column, (own, scale) in enumerate(zip(centers.T, unit, strict=True)):
        total += np.square((features[row, column] - own[label]) / scale)
    return total


def largest_distance(features: Floats) -> float:
    """Bound the squared distance between any two points in the span of the rows: the diagonal of their box."""
    return float(np.square(np.ptp(features, axis=0)).sum()) if len(features) else 0.0


def draw_centers(nearest: Floats, weights: Floats, count: int, rng: np.random.Generator) -> Rows:
    """Draw places of rows by k-means++: each with probability proportional to w_i times its squared distance.

    `nearest` has each row's squared distance to the nearest centre; 1 each before there is one. Weights are not zero at
    all rows away from centres. Places may repeat.
    """
    mass = weights * nearest
    chances = np.cumsum(mass)
    drawn: Rows = np.searchsorted(chances, rng.random(count) * chances[-1], side="right").astype(np.int64)
    drawn[drawn == len(mass)] = np.flatnonzero(mass)[-1]  # rounding may reach the end
    return drawn


def means_by_label(features: Floats, weights: Floats, labels: Rows, old: Floats) -> Floats:
    """Move each centre, shape (k, d), to the weighted mean of its rows; one without rows of weight stays."""
    centers = old.copy()
    for label in range(len(old)):
        own = labels == label
        if weights[own].sum() > 0:
            centers[label] = np.average(features[own], axis=0, weights=weights[own])
    return centers


def single_clusters(labels: Rows, weights: Floats, rows: Rows, n_clusters: int) -> Flags:
    """Find the clusters whose centre is a row, or nearly so: one row has most weight, or no row has moved it.

    Their distinct rows are effectively fewer than 1.5, (sum w)^2 / sum w^2: weights that someone chose could else make
    the mean of two rows one of them.
    """
    (label_of, _), place = np.unique(np.stack([labels, rows]), axis=1, return_inverse=True)
    total = np.bincount(place.reshape(-1), weights=weights)
    largest = np.zeros(n_clusters)
    np.maximum.at(largest, label_of, total)
    # Relative to the cluster's largest, so that no square leaves float64's range.
    relative = total / np.where(largest > 0, largest, 1.0)[label_of]
    sums, squares = (np.bincount(label_of, weights=each, minlength=n_clusters) for each in (relative, relative**2))
    found: Flags = (sums**2 < LEAST_EFFECTIVE_ROWS * squares) | (largest == 0)
    return found
