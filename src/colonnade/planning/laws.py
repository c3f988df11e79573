"""From a pilot to the laws that predict the excess of a task."""

from typing import assert_never

import numpy as np

from colonnade.job_sheets import PILOT_STEP
from colonnade.kernels.arrays import Floats
from colonnade.kernels.clustering_law import ClusteringLaw, clustering_law
from colonnade.kernels.column_codes import SPARSE
from colonnade.kernels.regression_law import Draw, RegressionLaw, regression_law
from colonnade.planning.pilot import PilotRows, ScaledRows
from colonnade.sampling import AnySampler, ImportanceSampling
from colonnade.solvers.compact import directions
from colonnade.solvers.whitened_columns import WhitenedRows
from colonnade.tasks import KMeans, PaperTask, Regression

Law = RegressionLaw | ClusteringLaw


def law_of(task: PaperTask, pilot: PilotRows, rng: np.random.Generator) -> Law:
    """Find the law by which the excess falls with the number of rows, for any draw and step.

    An l1 penalty, or one to be chosen, counts as none: it can only make the excess smaller.
    """
    match task:
        case KMeans():
            return _clustering_law(task, pilot, rng)
        case Regression():
            return _regression_law(task, pilot)
        case _:
            assert_never(task)


def _clustering_law(task: KMeans, pilot: PilotRows, rng: np.random.Generator) -> ClusteringLaw:
    scaled = [columns for columns in pilot.columns.values() if isinstance(columns, ScaledRows)]
    rows = np.hstack([columns.values for columns in scaled])
    noise = sum(_noise(columns, pilot.weights) for columns in scaled)
    return clustering_law(rows, pilot.weights, task.n_clusters, noise, rng)


def _regression_law(task: Regression, pilot: PilotRows) -> RegressionLaw:
    parties = [columns for columns in pilot.columns.values() if isinstance(columns, WhitenedRows)]
    features, label = directions(parties)
    penalty = _penalty(parties, features, 0.0 if isinstance(task.l2, str) else task.l2)
    return regression_law([party.values for party in parties], pilot.weights, PILOT_STEP, features, label, penalty)


def draw_of(sampler: AnySampler, pilot: PilotRows) -> Draw:
    """Say how a sampler, whatever its size, would draw and weigh the pilot's rows."""
    if not isinstance(sampler, ImportanceSampling):
        return Draw(np.ones_like(pilot.weights))
    share = sampler.uniform_share
    weights = 1 / ((1 - share) / pilot.weights + share)
    counts = (1 - share) * pilot.scores / pilot.totals.sum()
    return Draw(weights, counts if sampler.draws == "stratified" and not share else None)


def _penalty(parties: list[WhitenedRows], features: Floats, l2: float) -> Floats:
    """Write l2 |theta|^2 as a form in the model along `features`, which whitened columns u = x M^-1 make of theta."""
    mixing = np.zeros((len(features), sum(len(party.mean) - (party.label is not None) for party in parties)))
    row, column = 0, 0
    for party in parties:
        own = party.mixing if party.label is None else party.mixing[:, :-1]
        mixing[row : row + len(own), column : column + own.shape[1]] = own
        row, column = row + len(own), column + own.shape[1]
    back = np.linalg.pinv(features.T @ mixing)
    return np.asarray(l2 * back.T @ back)


def _noise(columns: ScaledRows, weights: Floats) -> float:
    """Say what rounding by a step of 1 adds to squared distances: 1/12 of its square for each value that is rounded."""
    w = weights / weights.sum()
    rounded = 0.0
    for column in columns.values.T:
        usual = np.partition(column, len(column) // 2)[len(column) // 2]
        others = column != usual
        if len(np.unique(column[others])) > 1:
            rounded += float(w @ others) if others.mean() <= SPARSE else 1.0
    return rounded * (columns.step / PILOT_STEP) ** 2 / 12
