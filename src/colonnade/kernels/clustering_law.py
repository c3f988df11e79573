"""What a pilot tells of the excess cost of a clustering learned on any number of rows, drawn and rounded in any way.

Within its cluster a centre is a mean, so that the excess cost is K / m with K the sum over clusters of the squared
distances' part of the cost over the weight's. That leaves out that rows change clusters, and that the search ends in
other minima. Both are seen where half of the pilot's rows are clustered and the centres tried on the other half: the
gap is twice the excess.
"""

from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.kmeans import best_of_starts, nearest_centers
from colonnade.kernels.regression_law import Draw

HALVINGS, STARTS = 6, 5
# Larger coresets end in different minima as well, which halves of a small pilot show in part. Measured on Covertype.
OTHER_MINIMA = 1.5
# What the law itself misses by, relative: one standard error, likewise.
LAW_ERROR = 0.25
MOST_OWN = 0.5


@dataclass(frozen=True, eq=False)
class ClusteringLaw:
    """A pilot's rows, taken apart.

    Parameters
    ----------
    weights : (m0,) array
        The pilot's, relative to their mean.
    parts : (m0,) array
        What a row adds to K, where it weighs 1.
    cost : float
        Of the best clustering, a row.
    noise : float
        What rounding by a step of 1 adds to a row's squared distances.
    beyond_means, error : float
        By what factor the excess is larger than that of means, and the standard error of that, relative.
    """

    weights: Floats
    parts: Floats
    cost: float
    noise: float
    beyond_means: float
    error: float

    def excess(self, draw: Draw, size: int, step: float | None) -> float:
        """Predict the mean excess over the least cost, relative to it; without a step, columns are not rounded."""
        K = float(self.weights * draw.weights @ self.parts) / float(self.weights.sum()) / self.cost
        return self.beyond_means * K * self._rounded(step) / size

    def excess_of_all(self, n_rows: int, step: float) -> float:
        """Predict the excess where every row is sent, rounded."""
        even = Draw(np.ones_like(self.weights))
        return self.excess(even, n_rows, None) * (self._rounded(step) - 1)

    def relative_error(self, draw: Draw, step: float | None) -> float:  # noqa: ARG002  # as for regression
        """Tell the standard error of the excess, relative: the law's own, and the pilot's."""
        parts, costs = self.weights * draw.weights * self.parts, self.weights * self.parts
        ratio = parts / parts.mean() - costs / costs.mean()
        return float(np.hypot(LAW_ERROR, np.hypot(self.error, ratio.std(ddof=1) / np.sqrt(len(parts)))))

    def _rounded(self, step: float | None) -> float:
        return 1.0 if step is None else 1.0 + self.noise * step**2 / self.cost


def clustering_law(
    rows: Floats, weights: Floats, n_clusters: int, noise: float, rng: np.random.Generator
) -> ClusteringLaw:
    """Take a pilot's rows apart: shape (m0, d), four distinct ones a cluster at the least.

    The weights are relative to their mean; `noise` is what rounding by a step of 1 adds to a row's squared distances.
    The generator draws starts and halves.
    """
    centers = best_of_starts(rows, weights, n_clusters, STARTS, rng)
    parts, cost = _parts(rows, weights, centers)
    gaps, means, half = [], [], len(rows) // 2
    for _ in range(HALVINGS):
        order = rng.permutation(len(rows))
        for here, there in ((order[:half], order[half:]), (order[half:], order[:half])):
            tried = best_of_starts(rows[here], weights[here], n_clusters, STARTS, rng)
            own, other = (_mean_cost(rows[some], weights[some], tried) for some in (here, there))
            gaps.append(len(here) * (other - own) / max(other + own, 1e-300))
            shares, own_cost = _parts(rows[here], weights[here], tried)
            means.append(np.square(weights[here]) @ shares / weights[here].sum() / own_cost)
    gap, mean = float(np.mean(gaps)), float(np.mean(means))
    beyond = max(OTHER_MINIMA * gap / mean, 1.0)
    error = float(np.std(gaps, ddof=1) / np.sqrt(HALVINGS) / max(gap, 1e-300))
    return ClusteringLaw(weights, parts, cost, noise, beyond, error)


def _parts(rows: Floats, weights: Floats, centers: Floats) -> tuple[Floats, float]:
    labels, squared = nearest_centers(rows, centers)
    held = np.bincount(labels, weights, len(centers))[labels]
    # A centre is drawn towards its own rows: as far as they are on average where it is not.
    squared = squared / (1 - np.minimum(weights / held, MOST_OWN))
    total = float(weights.sum())
    return np.asarray(squared * total / held), max(float(weights @ squared) / total, 1e-300)


def _mean_cost(rows: Floats, weights: Floats, centers: Floats) -> float:
    return float(np.average(nearest_centers(rows, centers)[1], weights=weights))
