"""How much more a model costs on all rows than the best one: what plans are held to."""

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from tables import Table

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.kernels.kmeans import nearest_centers

FITS = 10


class LinearExcess:
    """Least squares, with or without a ridge: exact, from the moments of all rows."""

    def __init__(self, table: Table) -> None:
        self._mean = np.append(table.features.mean(axis=0), np.mean(table.labels))  # type: ignore[arg-type]  # it has some
        centred = np.column_stack([table.features, table.labels]) - self._mean  # type: ignore[list-item]
        second = centred.T @ centred / len(centred)
        self._curvature = second[:-1, :-1] + table.task.l2 * np.eye(len(second) - 1)
        self._coef = _solved(self._curvature, second[:-1, -1])
        self._best = float(second[-1, -1] - self._coef @ second[:-1, -1])

    def __call__(self, model: Any) -> float:
        """Take the quadratic form around the least cost: nothing cancels, however small the excess."""
        apart = model.coef_ - self._coef
        offset = model.intercept_ + self._mean[:-1] @ model.coef_ - self._mean[-1]
        return float(apart @ self._curvature @ apart + offset**2) / self._best


def _solved(curvature: Floats, slope: Floats) -> Floats:
    """Solve with columns at equal scale, and leave out what collinear ones do not determine."""
    scale = np.sqrt(np.diag(curvature))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(curvature / np.outer(scale, scale))
    kept = values > 1e-12 * values[-1]
    vectors = vectors[:, kept]
    solution: Floats = vectors @ ((vectors.T @ (slope / scale)) / values[kept]) / scale
    return solution


class ClusteringExcess:
    """K-means: over the optimum on all rows that the model's own centres lead to.

    There are many optima, and fits of all rows end in one or another: on KC House they differ by 2 %. Which one a run
    ends in is luck that no plan can promise, unless it is worse than the worst of ten fits of all rows: then the excess
    is over that.
    """

    def __init__(self, table: Table) -> None:
        self._features, federation = table.features, table.federation()
        fits = [federation.fit(table.task, sampler=cn.AllRows(), seed=seed).model for seed in range(FITS)]
        self._worst = max(self._cost(model.cluster_centers_) for model in fits)

    def __call__(self, model: Any) -> float:
        """Go on from the model's centres with all rows."""
        centers = model.cluster_centers_
        own = KMeans(len(centers), init=centers, n_init=1, tol=1e-6).fit(self._features)
        return self._cost(centers) / min(self._cost(own.cluster_centers_), self._worst) - 1

    def _cost(self, centers: Floats) -> float:
        return float(nearest_centers(self._features, centers)[1].sum())
