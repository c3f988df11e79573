"""Lloyd's iterations in steps: distances, k-means++ draws from them, and means of rows by label.

`kmeans` does all of it where the rows are in one place. Here each step can be done by another party.
"""

import numpy as np

from colonnade.kernels.arrays import Flags, Floats, Rows

# A mean of fewer, those of little weight counted less, is nearly one of them.
LEAST_EFFECTIVE_ROWS = 1.5


def squared_distances(features: Floats, centers: Floats, scale: Floats | None = None) -> Floats:
    """Compute |x_i - c_l|^2, shape (m, k), in units of `scale`, shape (d,). Those of parties' columns add up."""
    unit = 1.0 if scale is None else scale
    if not len(centers):
        return np.empty((len(features), 0))
    # Differences first, then squares: no cancellation, however far from zero the columns lie.
    return np.stack([np.square((features - center) / unit).sum(axis=1) for center in centers], axis=1)


def nearest_of(distances: Floats) -> tuple[Rows, Floats]:
    """Find each row's least distance, of shape (m, k), and where it is, the lowest among equals; both (m,)."""
    labels: Rows = distances.argmin(axis=1)
    return labels, distances[np.arange(len(distances)), labels]


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
