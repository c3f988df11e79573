"""What a pilot tells of the excess cost of a clustering learned on other rows, drawn and rounded in any way.

The pilot's rows stand for all, and a run is rehearsed on them, as in `regression_law`: copies of rows are drawn and
rounded as the run would, clustered, and the centres tried on all of the pilot's rows, against the best centres found
for these. Rows that change clusters and searches that end in other minima are then rehearsed too.

`first_order` leaves both out: within its cluster a centre is a mean, so that the excess is the sum over clusters of the
squared distances' part of the cost over the weight's.
"""

from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.kmeans import best_of_starts, nearest_centers
from colonnade.kernels.regression_law import copies_drawn

STARTS = 3
MOST_OWN = 0.5


@dataclass(frozen=True, eq=False)
class ClusteringLaw:
    """A pilot's rows, taken apart.

    Parameters
    ----------
    rows : (m0, d) array
        As they came, rounded by the pilot's step.
    weights, counts : (m0,) array
        What each row stands for, and what it counts by itself.
    centers : (k, d) array
        The best found.
    parts : (m0,) array
        What a row adds to the excess, times the cost, where it is drawn with a chance that makes 1 / chance - 1 one.
    cost : float
        Of the best clustering, all rows together.
    noise : (d,) array
        The variance that rounding by a step of 1 adds to each column.
    """

    rows: Floats
    weights: Floats
    counts: Floats
    centers: Floats
    parts: Floats
    cost: float
    noise: Floats

    n_hidden = 0
    loose = 0.0
    least_seen = 1.0
    r2 = None

    @property
    def n_coefficients(self) -> int:
        """Of all centres."""
        return self.centers.size

    def heaviest(self, chances: Floats) -> float:
        """Give the largest part of the cost, as it weighs, of a row that a draw with these chances may miss."""
        distances = nearest_centers(self.rows, self.centers)[1]
        return float(np.max((1 - chances) / chances * self.counts * distances / self.cost, initial=0.0))

    def first_order(self, chances: Floats, step: float | None) -> float:
        """Predict the mean excess over the least cost, relative to it; without a step, columns are not rounded."""
        copies = self.weights / self.counts
        drawn = float(np.square(self.counts) * copies * (1 / chances - 1) @ self.parts)
        if step is None:
            return drawn / self.cost
        sent = float(np.square(self.counts) * copies / chances @ self.parts)
        added = step**2 * float(self.noise.sum()) * float(self.weights.sum()) / self.cost
        return (drawn + sent * added) / self.cost

    def rehearse(self, chances: Floats, step: float | None, repeats: int, rng: np.random.Generator) -> Floats:
        """Give the excess, relative to the least cost, of so many runs; the parameters are those of `first_order`."""
        costs = np.array([self._one_run(chances, step, rng) for _ in range(repeats)])
        least = float(self.weights @ nearest_centers(self.rows, self.centers)[1])
        return np.asarray(np.maximum(costs / min(least, costs.min()) - 1, 0.0))

    def bias_error(self, chances: Floats, step: float | None) -> float:  # noqa: ARG002  # as for regression
        """Give none: rounded rows have the same means."""
        return 0.0

    def relative_error(self, chances: Floats) -> float:
        """Tell the standard error of the mean excess, relative, that comes of the pilot's rows being a draw."""
        copies = self.weights / self.counts
        parts = np.square(self.counts) * copies * (1 / chances - 1) * self.parts
        if not parts.sum() > 0:
            return 0.0
        return float(np.sqrt((1 - 1 / copies) @ np.square(parts / parts.sum())))

    def _one_run(self, chances: Floats, step: float | None, rng: np.random.Generator) -> float:
        drawn = copies_drawn(self.weights / self.counts, chances, rng)
        there = np.flatnonzero(drawn)
        if len(there) <= len(self.centers):
            return float("inf")
        rows = self.rows[there]
        if step is not None:  # the mean of a row's copies is off by so much
            spread = step * np.sqrt(self.noise / drawn[there][:, np.newaxis])
            rows = rows + spread * rng.standard_normal(rows.shape)
        weights = (drawn * self.counts / chances)[there]
        centers = best_of_starts(rows, weights, len(self.centers), STARTS, rng)
        return float(self.weights @ nearest_centers(self.rows, centers)[1])


def clustering_law(
    rows: Floats, chances: Floats, counts: Floats, n_clusters: int, noise: Floats, rng: np.random.Generator
) -> ClusteringLaw:
    """Take a pilot's rows apart: shape (m0, d), four distinct ones a cluster at the least.

    They were drawn with `chances` and count so much, both (m0,); `noise`, (d,), is the variance that rounding by a step
    of 1 adds. The generator draws starts.
    """
    weights = counts / chances
    centers = best_of_starts(rows, weights, n_clusters, 2 * STARTS, rng)
    labels, squared = nearest_centers(rows, centers)
    held = np.bincount(labels, weights, len(centers))[labels]
    # A centre is drawn towards its own rows: as far as they are on average where it is not.
    squared = squared / (1 - np.minimum(weights / held, MOST_OWN))
    return ClusteringLaw(rows, weights, counts, centers, squared / held, max(float(weights @ squared), 1e-300), noise)
