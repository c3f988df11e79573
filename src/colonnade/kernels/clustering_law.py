"""What a pilot tells of the excess cost of a clustering learned on other rows, drawn and rounded in any way.

Within its cluster a centre is a mean, so that the excess is the sum over clusters of the squared distances' part of the
cost over the weight's: the first order. That leaves out that rows change clusters, and that the search ends in other
minima. Both are rehearsed where half of the pilot's rows are clustered and the centres tried on the other half: the gap
is twice the excess. (Copies of a pilot's rows, as for regressions, would not do: so few rows have minima of their own.)

Near all rows something else is left: iterations stop where no row changes its cluster, and slightly other rows let them
go on a little. That is a matter of single rows, each about one n-th of the cost, however finely rows are rounded. And
coarse rounding carries rows over to other clusters, in one minimum more than in another: it may favour a worse one.
"""

from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.kmeans import TOLERANCE, best_of_starts, nearest_centers

HALVINGS, STARTS = 6, 5
# Larger coresets end in different minima as well, which halves of a small pilot show in part. Measured on Covertype.
OTHER_MINIMA = 1.5
# Of what rounding saves by rows that change clusters, minima differ by such a part. Measured on Covertype, k = 15.
MISLED = 0.1
MOST_OWN, MOST_SCATTER = 0.5, 0.5


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
    beyond : (h,) array
        By what factor the excess is larger than that of means, in each rehearsal.
    switched : float
        What rows save, relative to the cost, that rounding by a step of 1 carries over to another cluster.
    """

    rows: Floats
    weights: Floats
    counts: Floats
    centers: Floats
    parts: Floats
    cost: float
    noise: Floats
    beyond: Floats
    switched: float

    loose = 0.0
    least_seen = 1.0
    unrounded = 1.0
    r2 = None

    def grain(self, step: float | None) -> float:
        """Give what fits of nearly the same rows, rounded by the step, may differ by, relative, whatever was drawn."""
        return float(1 / (self.weights / self.counts).sum() + TOLERANCE + self._misled(step))

    def _misled(self, step: float | None) -> float:
        return 0.0 if step is None else MISLED * step**2 * self.switched

    @property
    def n_coefficients(self) -> int:
        """Of all centres."""
        return self.centers.size

    def heaviest(self, chances: Floats) -> float:
        """Give the largest part of the cost, as it weighs, of a row that a draw with these chances may miss."""
        distances = nearest_centers(self.rows, self.centers)[1]
        return float(np.max((1 - chances) / chances * self.counts * distances / self.cost, initial=0.0))

    def first_order(self, chances: Floats, step: float | None) -> float:
        """Predict the mean excess over the least cost, relative to it; without a step, columns are not rounded.

        What rounding may mislead to counts: a step should not hang on luck.
        """
        return self._of_means(chances, step) + self._misled(step)

    def _of_means(self, chances: Floats, step: float | None) -> float:
        copies = self.weights / self.counts
        drawn = float(np.square(self.counts) * copies * (1 / chances - 1) @ self.parts)
        if step is None:
            return drawn / self.cost
        sent = float(np.square(self.counts) * copies / chances @ self.parts)
        added = step**2 * float(self.noise.sum()) * float(self.weights.sum()) / self.cost
        return (drawn + sent * added) / self.cost

    def rehearse(self, chances: Floats, step: float | None, repeats: int, rng: np.random.Generator) -> Floats:
        """Give the excess, relative to the least cost, of so many runs; the parameters are those of `first_order`."""
        return np.asarray(self._of_means(chances, step) * rng.choice(self.beyond, repeats))

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


def clustering_law(
    rows: Floats, chances: Floats, counts: Floats, n_clusters: int, noise: Floats, rng: np.random.Generator
) -> ClusteringLaw:
    """Take a pilot's rows apart: shape (m0, d), four distinct ones a cluster at the least.

    They were drawn with `chances` and count so much, both (m0,); `noise`, (d,), is the variance that rounding by a step
    of 1 adds. The generator draws starts.
    """
    weights = counts / chances
    centers = best_of_starts(rows, weights, n_clusters, STARTS, rng)
    parts, cost = _parts(rows, weights, centers)
    beyond = _beyond(rows, weights, n_clusters, rng)
    switched = _switched(rows, weights, centers, noise, rng) / cost
    return ClusteringLaw(rows, weights, counts, centers, parts, cost, noise, beyond, switched)


def _switched(rows: Floats, weights: Floats, centers: Floats, noise: Floats, rng: np.random.Generator) -> float:
    """Round rows, and compare the distances to their old centres with those to the nearest."""
    rounded = rows + np.sqrt(12 * noise) * (rng.random(rows.shape) - 0.5)
    old = centers[nearest_centers(rows, centers)[0]]
    return float(weights @ (np.square(rounded - old).sum(axis=1) - nearest_centers(rounded, centers)[1]))


def _beyond(rows: Floats, weights: Floats, n_clusters: int, rng: np.random.Generator) -> Floats:
    """Cluster halves of the pilot, and try their centres on the other halves."""
    gaps, means, half = [], [], len(rows) // 2
    for _ in range(HALVINGS):
        order = rng.permutation(len(rows))
        for here, there in ((order[:half], order[half:]), (order[half:], order[:half])):
            tried = best_of_starts(rows[here], weights[here], n_clusters, STARTS, rng)
            own, other = (_mean_cost(rows[some], weights[some], tried) for some in (here, there))
            gaps.append((other - own) / max(other + own, 1e-300))
            parts, cost = _parts(rows[here], weights[here], tried)
            means.append(float(np.square(weights[here]) @ parts) / cost)
    beyond = max(OTHER_MINIMA * float(np.mean(gaps)) / float(np.mean(means)), 1.0)
    # Gaps of small halves scatter more than runs do.
    scatter = np.array(gaps) / max(float(np.mean(gaps)), 1e-300) - 1
    return np.asarray(beyond * (1 + scatter * min(1.0, MOST_SCATTER / max(float(np.abs(scatter).max()), 1e-300))))


def _parts(rows: Floats, weights: Floats, centers: Floats) -> tuple[Floats, float]:
    labels, squared = nearest_centers(rows, centers)
    held = np.bincount(labels, weights, len(centers))[labels]
    # A centre is drawn towards its own rows: as far as they are on average where it is not.
    squared = squared / (1 - np.minimum(weights / held, MOST_OWN))
    return np.asarray(squared / held), max(float(weights @ squared), 1e-300)


def _mean_cost(rows: Floats, weights: Floats, centers: Floats) -> float:
    return float(np.average(nearest_centers(rows, centers)[1], weights=weights))
