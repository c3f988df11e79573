"""A diagnosis where all tables are in one place: exact, and nothing is sent. For rehearsals and experiments."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import assert_never

import numpy as np

from colonnade.contracts import Table
from colonnade.coreset import Coreset
from colonnade.diagnostics.advice import classes_concern, clustering_concern, regression_concern
from colonnade.diagnostics.class_findings import ClassRows
from colonnade.diagnostics.findings import (
    JoinedSpectrum,
    clustering_epsilon,
    clustering_zeta,
    gamma_of,
    moved_centers,
    near_sets,
    pool_size,
    tau_of,
)
from colonnade.diagnostics.over_parties import check_two_classes
from colonnade.diagnostics.pair_distances import distances_of_pairs
from colonnade.diagnostics.records import Diagnosis, Robustness, Sensitivity
from colonnade.diagnostics.row_distances import distances_to
from colonnade.diagnostics.whitened_rows import coordinates, own_basis, own_class_basis
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.bases import gram, inverse_condition, sensitivities, spectrum, triangle, unit_columns
from colonnade.kernels.blocks import values_of
from colonnade.kernels.local_kmeans import local_kmeans
from colonnade.kernels.measured_error import costs_of_sets, random_sets, relative_errors
from colonnade.kernels.robust import share_set_aside
from colonnade.kernels.row_blocks import ArrayBlocks
from colonnade.protocol.classes import label_classes
from colonnade.sampling.rules.classes import ClassScores
from colonnade.tasks import Classification, KMeans, PaperTask, Regression

# Models at which rows are set aside: the worst, and so many random ones and ones near the best.
N_ROBUST = 8


def diagnose_tables(
    task: PaperTask,
    tables: Mapping[str, Table],
    coreset: Coreset | None,
    pairs: int,
    within: float,
    seed: int,
) -> Diagnosis:
    """Measure the assumptions of a task on all rows, and a coreset's error.

    Rows are set aside for an epsilon of `within`. Exact but for tau, which is of sampled pairs, and for the centres
    tried. Tables are cut into blocks alike.
    """
    rng = np.random.default_rng([seed, 2])
    match task:
        case Regression():
            return _regression(task, tables, coreset, within, rng)
        case Classification():
            return _classes(task, tables, coreset, within, rng)
        case KMeans():
            return _clustering(task, tables, coreset, pairs, within, rng)
        case _:
            assert_never(task)


@dataclass(frozen=True, eq=False)
class _JoinedTables:
    """All parties' rows in their bases, side by side, the label's coordinate last."""

    tables: tuple[Table, ...]
    fit_intercept: bool

    @cached_property
    def bases(self) -> list[Floats]:
        return [own_basis(table, fit_intercept=self.fit_intercept) for table in self.tables]

    @property
    def label(self) -> int:
        return int(sum(W.shape[1] for W in self.bases)) - 1

    def blocks(self) -> Iterator[Floats]:
        return map(self.join, zip(*(table.map(values_of) for table in self.tables), strict=True))

    def take(self, rows: Rows) -> Floats:
        return self.join(tuple(table.take(rows) for table in self.tables))

    def join(self, parts: tuple[Floats, ...]) -> Floats:
        coords = [coordinates(values, W) for values, W in zip(parts, self.bases, strict=True)]
        holder = next(j for j, table in enumerate(self.tables) if table.label_name is not None)
        label, coords[holder] = coords[holder][:, -1:], coords[holder][:, :-1]
        return np.hstack([*coords, label])


def _regression(
    task: Regression,
    tables: Mapping[str, Table],
    coreset: Coreset | None,
    within: float,
    rng: np.random.Generator,
) -> Diagnosis:
    joined = _JoinedTables(tuple(tables.values()), task.fit_intercept)
    whole = JoinedSpectrum(spectrum(np.sum([gram(U) for U in joined.blocks()], axis=0)), joined.label)
    gamma = gamma_of(whole, bounds=_lemma_bounds(joined))
    scores = np.sum([np.asarray(task.score_rule().scores(table)) for table in tables.values()], axis=0)
    influence = np.concatenate([sensitivities(U, whole.spectrum) for U in joined.blocks()])
    limit = 1 / gamma.effective**2 if gamma.effective else float("inf")
    sensitivity = Sensitivity(float(scores.sum()), float((influence / scores).max()), limit, float(influence.sum()))
    epsilon = robustness = None
    if coreset is not None:
        core = gram(joined.take(coreset.rows), coreset.weights)
        epsilon = whole.epsilon(core, len(coreset), rng, None)
        robustness = _regression_robustness(whole, core, joined, coreset, within, rng)
    size = len(scores) if coreset is None else len(coreset)
    concern = regression_concern(gamma, sensitivity, size, uncentred=task.fit_intercept and not task.standardize)
    return Diagnosis(
        *_facts(task, tables),
        sensitivity,
        gamma=gamma,
        epsilon=epsilon,
        robustness=robustness,
        concerns=() if concern is None else (concern,),
    )


def _classes(
    task: Classification, tables: Mapping[str, Table], coreset: Coreset | None, within: float, rng: np.random.Generator
) -> Diagnosis:
    d = {name: len(table.feature_names) for name, table in tables.items()}
    (label,) = (table for table in tables.values() if table.label_name is not None)
    found = label_classes(label)
    check_two_classes(len(found))
    bases = {name: own_class_basis(table, fit_intercept=task.fit_intercept) for name, table in tables.items()}
    own = [
        np.vstack([coordinates(b[:, : d[name]], bases[name]) for b in t.map(values_of)]) for name, t in tables.items()
    ]
    later = np.concatenate([block[:, -1] == found[-1] for block in label.map(values_of)]).astype(np.float64)
    rows = ClassRows(np.hstack(own), later, np.ones(len(later)))
    whole, mu = spectrum(gram(rows.rows)), rows.mu(None)
    rule = ClassScores(task.fit_intercept, sum(d.values()))
    scores = np.sum([np.asarray(rule.scores(table)) for table in tables.values()], axis=0)
    random, near = rows.models(rng)
    sensitivity = rows.sensitivity(scores, whole, mu, np.vstack([random, near]), len(later))
    epsilon = robustness = None
    if coreset is not None:
        core = ClassRows(rows.rows[coreset.rows], later[coreset.rows], coreset.weights)
        epsilon = rows.epsilon(core, random, near, None)
        losses = rows.losses(np.vstack([random[:N_ROBUST], near[:N_ROBUST]]))
        shares = [share_set_aside(loss, coreset.rows, coreset.weights, within) for loss in losses.T]
        robustness = Robustness(within, max(shares), len(shares))
    concern = classes_concern(mu, sensitivity.total, len(later) if coreset is None else len(coreset))
    return Diagnosis(
        *_facts(task, tables),
        sensitivity,
        gamma=gamma_of(JoinedSpectrum(whole, None)),
        mu=mu,
        epsilon=epsilon,
        robustness=robustness,
        concerns=() if concern is None else (concern,),
    )


def _lemma_bounds(joined: _JoinedTables) -> tuple[float, float]:
    """Lemma B.1 on [X, y], with a column of ones where the label party counts one."""
    rows = zip(*(table.map(values_of) for table in joined.tables), strict=True)
    R = triangle([*parts, np.ones((len(parts[0]), int(joined.fit_intercept)))] for parts in rows)
    return inverse_condition(R), inverse_condition(unit_columns(R))


def _regression_robustness(
    whole: JoinedSpectrum,
    core: Floats,
    joined: _JoinedTables,
    coreset: Coreset,
    within: float,
    rng: np.random.Generator,
) -> Robustness:
    relative = whole.compare(core)
    models = np.vstack([relative.worst()[1], *whole.models(relative, N_ROBUST, N_ROBUST, rng)])
    back = whole.spectrum.whitening @ models.T
    losses = np.square(np.concatenate([U @ back for U in joined.blocks()]))
    shares = [share_set_aside(loss, coreset.rows, coreset.weights, within) for loss in losses.T]
    return Robustness(within, max(shares), len(shares))


def _clustering(
    task: KMeans,
    tables: Mapping[str, Table],
    coreset: Coreset | None,
    pairs: int,
    within: float,
    rng: np.random.Generator,
) -> Diagnosis:
    features = {name: table for name, table in tables.items() if table.feature_names}
    n_rows = next(iter(tables.values())).n_rows
    tau = None
    if n_rows >= 2 and pairs >= 2:
        seed = int(rng.integers(2**63))
        tau = tau_of(np.stack([distances_of_pairs(table, pairs, seed) for table in features.values()]), list(features))

    joined = ArrayBlocks(np.hstack([_all_features(table) for table in features.values()]))
    k = task.n_clusters
    pool = joined.values[rng.permutation(n_rows)[: pool_size(k)]]
    centers = local_kmeans(joined, k, rng)
    versions = moved_centers(centers, rng)
    candidates = np.vstack([pool, versions.reshape(-1, pool.shape[1])])
    distances = np.vstack([distances_to(block, candidates) for block in joined.map(values_of)])
    random = random_sets(len(pool), min(k, len(pool)), 100, rng)
    near = near_sets(len(centers), len(versions), 30, rng) + len(pool)
    scores = np.sum([np.asarray(task.score_rule().scores(table)) for table in tables.values()], axis=0)
    ones = np.ones(n_rows)
    zeta = max(clustering_zeta(distances, ones, scores, [sets]) for sets in (random, near))
    total = float(scores.sum())
    sensitivity = Sensitivity(total, zeta, float("inf") if tau is None else 4 * tau.value, None)
    epsilon = robustness = None
    if coreset is not None:
        own = (distances[coreset.rows], coreset.weights)
        epsilon = clustering_epsilon(own, (distances, ones), random, near, None)
        robustness = _clustering_robustness(distances, coreset, [random, near], within)
    concern = None
    if tau is not None:
        concern = clustering_concern(tau, total, n_rows if coreset is None else len(coreset))
    return Diagnosis(
        *_facts(task, tables),
        sensitivity,
        tau=tau,
        epsilon=epsilon,
        robustness=robustness,
        concerns=() if concern is None else (concern,),
    )


def _clustering_robustness(distances: Floats, coreset: Coreset, tried: list[Rows], within: float) -> Robustness:
    """Set rows aside at the worst of the random sets and of those near the best."""
    shares = []
    for sets in tried:
        costs = costs_of_sets(distances, np.ones(len(distances)), sets)
        errors = relative_errors(costs_of_sets(distances[coreset.rows], coreset.weights, sets), costs)
        for which in np.argsort(-errors)[:N_ROBUST]:
            losses = distances[:, sets[which]].min(axis=1)
            shares.append(share_set_aside(losses, coreset.rows, coreset.weights, within))
    return Robustness(within, max(shares), len(shares))


def _all_features(table: Table) -> Floats:
    return np.concatenate([block[:, : len(table.feature_names)] for block in table.map(values_of)])


def _facts(task: PaperTask, tables: Mapping[str, Table]) -> tuple[str, int, int, int, bool, int]:
    n_rows = next(iter(tables.values())).n_rows
    n_features = sum(len(table.feature_names) for table in tables.values())
    return type(task).__name__, n_rows, n_features, len(tables), True, n_rows
