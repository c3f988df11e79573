"""Smoothed analysis (appendix B): a little noise on data made to fail, and gamma, tau and coresets recover.

Regression: two parties hold the same columns, but for one row in each, and the label is what they predict, but for one
row: gamma is almost 0, and which rows break the pattern no party can see. K-means: the DISJOINTNESS instance in many
columns, where each party sees two points. Both are perturbed by Gaussian noise of deviation r times the largest length
of a row.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from colonnade.data.parties import split_columns
from colonnade.diagnosing import diagnose
from colonnade.diagnostics import Diagnosis
from colonnade.errors import AssumptionWarning, LocalProtocolError
from colonnade.federation import Federation
from colonnade.kernels.arrays import Floats
from colonnade.paper.data_sets.hard_instances import disjointness_instance
from colonnade.paper.smoothed_report import SmoothedResult
from colonnade.sampling import ImportanceSampling
from colonnade.tasks import KMeans, Regression

T = TypeVar("T")
REGRESSION, CLUSTERING = Regression(fit_intercept=False), KMeans(n_clusters=3)


@dataclass(frozen=True)
class SmoothedPlan:
    """How much to run.

    Parameters
    ----------
    noises : tuple of float
        r; 0 is the data as made.
    repeats : int
        Perturbations of each.
    n_rows : int
        n.
    narrow, wide : int
        Columns of each of the two parties: few for regression; for k-means at least log² n, which Theorem B.4 asks for.
    size : int
        Of the coresets.
    pairs : int
        For tau.
    """

    noises: tuple[float, ...] = (0.0, 1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3)
    repeats: int = 5
    n_rows: int = 2_000
    narrow: int = 4
    wide: int = 64
    size: int = 400
    pairs: int = 20_000


def smoothed(plan: SmoothedPlan, seed: int) -> Iterator[SmoothedResult]:
    """Perturb, measure, draw a coreset, measure that; one noise or repeat more changes no other."""
    joined, centres = _overlapping(plan, seed), _two_faced(plan, seed)
    for noise in plan.noises:
        for repeat in range(plan.repeats):
            rng = np.random.default_rng([seed, repeat, round(noise * 1e9)])
            yield _measure(plan, noise, repeat, _perturbed(joined, noise, rng), _perturbed(centres, noise, rng))


def _overlapping(plan: SmoothedPlan, seed: int) -> Floats:
    """Make [X, y] of which the second party's columns and the label repeat the first's, but for one row each."""
    rng = np.random.default_rng([seed, 1])
    first = rng.normal(size=(plan.n_rows, plan.narrow))
    second = first @ np.linalg.qr(rng.normal(size=(plan.narrow, plan.narrow)))[0]
    joined = np.column_stack([first, second, first @ rng.normal(size=plan.narrow)])
    for column, row in enumerate(rng.choice(plan.n_rows, plan.narrow + 1, replace=False)):
        joined[row, plan.narrow + column] += 1.0
    return joined


def _two_faced(plan: SmoothedPlan, seed: int) -> Floats:
    """Let bits of the DISJOINTNESS instance choose between two points in the many columns of each party."""
    rng = np.random.default_rng([seed, 2])
    parties = disjointness_instance(plan.n_rows, 1, rng)
    points = rng.normal(size=(2, 2, plan.wide))
    faces = [
        own[party.table.take(np.arange(plan.n_rows))[:, 0].astype(int)]
        for own, party in zip(points, parties, strict=True)
    ]
    return np.hstack(faces)


def _perturbed(data: Floats, noise: float, rng: np.random.Generator) -> Floats:
    longest = np.linalg.norm(data, axis=1).max()
    disturbed: Floats = data + noise * longest * rng.standard_normal(data.shape)
    return disturbed


def _measure(plan: SmoothedPlan, noise: float, repeat: int, joined: Floats, centres: Floats) -> SmoothedResult:
    linear = _diagnosed(plan, REGRESSION, joined[:, :-1], joined[:, -1], repeat)
    clusters = _diagnosed(plan, CLUSTERING, centres, None, repeat)
    gamma, linear_epsilon = _measured(linear.gamma), _measured(linear.epsilon)
    tau, clusters_epsilon = _measured(clusters.tau), _measured(clusters.epsilon)
    rate = 1 / noise**2 + 2 * plan.wide / math.log(plan.n_rows) ** 2 if noise else math.inf
    return SmoothedResult(
        noise,
        repeat,
        gamma.effective,
        _measured(gamma.bound_scaled),
        linear.sensitivity.zeta,
        tau.value,
        rate,
        _measured(linear_epsilon.worst),
        max(clusters_epsilon.random_max, _measured(clusters_epsilon.near_max)),
    )


def _measured(value: T | None) -> T:
    if value is None:
        raise LocalProtocolError("An exact diagnosis left out what it measures for this task: a bug.")
    return value


def _diagnosed(plan: SmoothedPlan, task: Regression | KMeans, X: Floats, y: Floats | None, seed: int) -> Diagnosis:
    parties = split_columns(X, y, [X.shape[1] // 2] * 2)
    coreset = Federation(parties).coreset(task, ImportanceSampling(plan.size), seed=seed).coreset
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)  # failing is what this data is for
        return diagnose(parties, task, coreset=coreset, pairs=plan.pairs, seed=seed)
