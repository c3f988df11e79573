"""From a pilot to the law that predicts the excess of a task, and to the chances that a draw gives the pilot's rows."""

from typing import assert_never

import numpy as np

from colonnade.contracts import Roster
from colonnade.job_sheets import PILOT_STEP
from colonnade.kernels.arrays import Floats
from colonnade.kernels.class_law import ClassLaw, class_law
from colonnade.kernels.clustering_law import ClusteringLaw, clustering_law
from colonnade.kernels.column_codes import SPARSE
from colonnade.kernels.regression_law import RegressionLaw, regression_law
from colonnade.planning.pilot import PilotRows
from colonnade.sampling import AllRows, AnySampler, ImportanceSampling
from colonnade.sampling.seeds import even_quota
from colonnade.solvers.compact import directions, exact_label
from colonnade.solvers.scaled_columns import ScaledRows
from colonnade.solvers.whitened_columns import WhitenedRows
from colonnade.tasks import Classification, KMeans, PaperTask, Regression

Law = RegressionLaw | ClassLaw | ClusteringLaw
MOST_PASSES = 50


def law_of(task: PaperTask, pilot: PilotRows, rng: np.random.Generator) -> Law:
    """Find the law by which the excess falls with the number of rows, for any draw and step.

    An l1 penalty, or one to be chosen, counts as none: it can only make the excess smaller.
    """
    match task:
        case KMeans():
            scaled = [columns for columns in pilot.columns.values() if isinstance(columns, ScaledRows)]
            rows = np.hstack([columns.values for columns in scaled])
            noise = np.concatenate([_noise(columns, pilot.weights) for columns in scaled])
            return clustering_law(rows, pilot.chances, pilot.counts, task.n_clusters, noise, rng)
        case Regression() | Classification():
            parties = [columns for columns in pilot.columns.values() if isinstance(columns, WhitenedRows)]
            features, label = directions(parties)
            penalty = _penalty(parties, features, 0.0 if isinstance(task.l2, str) else task.l2)
            rounding = [party.noise(pilot.weights) for party in parties]
            drawn = [party.values for party in parties], rounding, pilot.chances, pilot.counts, features
            if isinstance(task, Regression):
                return regression_law(*drawn, label, penalty)
            return class_law(*drawn, _later(parties), penalty, fit_intercept=task.fit_intercept)
        case _:
            assert_never(task)


def _later(parties: list[WhitenedRows]) -> Floats:
    """Tell which rows have the later of two classes, shape (m0,)."""
    (labels,) = (exact_label(party) for party in parties if party.label is not None)
    return np.asarray(labels == labels.max(), np.float64)


def chances_of(sampler: AnySampler, pilot: PilotRows, roster: Roster) -> Floats:
    """Say with which chance a sampler would draw each of the pilot's rows, shape (m0,)."""
    if isinstance(sampler, AllRows):
        return np.ones(len(pilot.counts))
    if not isinstance(sampler, ImportanceSampling):
        return _evenly(sampler.size, pilot)
    n_even = even_quota(sampler.size, sampler.uniform_share)
    missed = 1 - _evenly(n_even, pilot)
    for total, scores in zip(pilot.totals.tolist(), pilot.scores, strict=True):
        quota = (sampler.size - n_even) * total / pilot.totals.sum()
        missed = missed * (1 - _by_scores(min(quota, roster.n_rows), scores, total, pilot))
    return np.asarray(1 - missed)


def _evenly(count: float, pilot: PilotRows) -> Floats:
    return np.minimum(1.0, count * pilot.counts / pilot.total_weight)


def _by_scores(quota: float, scores: Floats, total: float, pilot: PilotRows) -> Floats:
    """Find the factor c by which min(1, c g) adds up to the quota over all rows, which the pilot's stand for."""
    copies, factor = 1 / pilot.chances, float(quota / total)
    for _ in range(MOST_PASSES):
        certain = factor * scores >= 1
        left, rest = quota - float(copies @ certain), total - float((copies * scores) @ certain)
        larger = left / rest if left > 0 and rest > 0 else factor
        if larger <= factor * (1 + 1e-9):
            break
        factor = larger
    return np.minimum(1.0, factor * scores)


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


def _noise(columns: ScaledRows, weights: Floats) -> Floats:
    """Say what variance rounding by a step of 1 adds to each column: 1/12 of its square, where values are rounded."""
    w = weights / weights.sum()
    rounded = np.zeros(columns.values.shape[1])
    for place, column in enumerate(columns.values.T):
        usual = np.partition(column, len(column) // 2)[len(column) // 2]
        others = column != usual
        if len(np.unique(column[others])) > 1:
            rounded[place] = float(w @ others) if others.mean() <= SPARSE else 1.0
    return np.asarray(rounded * (columns.step / PILOT_STEP) ** 2 / 12)
