"""A diagnosis over the parties: an estimate from rows they agree to show in part, with its cost on the ledger.

The rows to look at are drawn half by scores and half evenly: by scores, so that heavy rows are among them; evenly, so
that rows which the scores overlook are too. A coreset is then compared with these rows.
"""

from collections.abc import Mapping
from typing import NamedTuple, assert_never

import numpy as np
from msgspec.structs import replace

from colonnade.contracts import Agreed, JobView, Roster, Script
from colonnade.coreset import Coreset
from colonnade.diagnostics.advice import classes_concern, clustering_concern, regression_concern
from colonnade.diagnostics.class_findings import ClassRows
from colonnade.diagnostics.findings import (
    EVEN_SHARE,
    MOVES,
    JoinedSpectrum,
    clustering_epsilon,
    clustering_zeta,
    gamma_of,
    near_sets,
    pool_size,
    tau_of,
)
from colonnade.diagnostics.moved_distances import AskMovedDistances, moved_distances
from colonnade.diagnostics.pair_distances import AskPairDistances, pair_distances
from colonnade.diagnostics.records import Diagnosis, Sensitivity
from colonnade.diagnostics.row_distances import AskRowDistances, Pool, row_distances
from colonnade.diagnostics.whitened_rows import (
    AskWhitenedClassRows,
    AskWhitenedRows,
    whitened_class_rows,
    whitened_rows,
)
from colonnade.errors import InputError, RemoteProtocolError, UnsupportedError
from colonnade.evaluation.telling import model_digest
from colonnade.kernels.arrays import Floats
from colonnade.kernels.bases import gram, sensitivities, spectrum
from colonnade.kernels.measured_error import random_sets
from colonnade.ledger import SERVER, Ledger
from colonnade.protocol.viewing import agree_on_view
from colonnade.routes import Ask, Hashing, Length, Route, then
from colonnade.sampling import AnySampler, ImportanceSampling
from colonnade.sampling.selecting import use_rows
from colonnade.tasks import Classification, KMeans, KMeansModel, PaperTask, Regression, jobs

Source = AnySampler | Coreset | None
# Scores are computed backwards from weights, and both from columns that may nearly depend on each other.
LENGTHS_DIFFER = 1e-4


class DiagnosisSeeds(NamedTuple):
    """By which all parties draw alike: pairs of rows, rows that serve as centres, and where centres are moved to."""

    pairs: int
    pool: int
    moves: int

    @classmethod
    def of(cls, shared: int) -> "DiagnosisSeeds":
        """Draw them from the seed on the sheet."""
        return cls(*np.random.default_rng([shared, 5]).integers(2**63, size=3).tolist())


def diagnose(
    task: PaperTask,
    roster: Roster,
    source: Source,
    model: KMeansModel | None,
    size: int,
    pairs: int,
    seed: int,
) -> Script[Diagnosis]:
    """Measure the assumptions of a task, and a coreset's error, from rows that the parties show in part.

    Regression shows the server rows in bases that only the parties know (features, labels), a classification also their
    classes. K-means shows distances of
    pairs of rows (scores), and of rows to a few rows, or to the centres of a model (predictions). The source is the
    coreset to measure, or how to draw it: as `coreset` with this seed would. What it cost is added by `with_cost`.
    """
    if roster.weight_party is not None:
        raise UnsupportedError(
            f"A diagnosis counts every row once, and {roster.weight_party!r} holds row weights. "
            "Diagnose a federation without weight=."
        )
    rng = np.random.default_rng([seed, 2])
    match task:
        case Regression():
            return (yield from _diagnose_regression(task, roster, source, size, rng, seed))
        case Classification():
            return (yield from _diagnose_classes(task, roster, source, size, rng, seed))
        case KMeans():
            pairs = min(pairs, roster.n_rows)
            return (yield from _diagnose_clustering(task, roster, source, model, size, pairs, rng, seed))
        case _:
            assert_never(task)


def with_cost(found: Diagnosis, ledger: Ledger) -> Diagnosis:
    """Add what a diagnosis cost, and what it showed the server."""
    return replace(found, units=ledger.units, bytes=ledger.bytes, reveals=shown_to_server(ledger))


def shown_to_server(ledger: Ledger) -> tuple[str, ...]:
    """List what parties showed the server, each kind once, in the order it came."""
    return tuple(dict.fromkeys(kind for entry in ledger if entry.receiver == SERVER for kind in entry.reveals))


def _diagnose_regression(
    task: Regression, roster: Roster, source: Source, size: int, rng: np.random.Generator, seed: int
) -> Script[Diagnosis]:
    reference, scores, _ = yield from _reference(task, roster, size, rng)
    shown = yield from whitened_rows(roster, reference.rows, fit_intercept=task.fit_intercept)
    _check_lengths(shown.values, scores, roster)
    half = rng.permutation(size) < size // 2
    grams = [gram(shown.values[part], 2 * reference.weights[part]) for part in (half, ~half)]
    whole = JoinedSpectrum(spectrum((grams[0] + grams[1]) / 2), shown.label)
    gamma = gamma_of(whole, halves=(spectrum(grams[0]), spectrum(grams[1])))
    influence = sensitivities(shown.values, whole.spectrum)
    sensitivity = Sensitivity(
        _total(reference),
        float((influence / scores).max()),
        1 / gamma.effective**2 if gamma.effective else float("inf"),
        float(len(whole.spectrum.eigenvalues)),
    )
    coreset = yield from _select(task, roster, source, seed)
    epsilon = None
    if coreset is not None:
        drawn = yield from whitened_rows(roster, coreset.rows, fit_intercept=task.fit_intercept)
        floor = whole.compare(grams[0]).worst()[0]
        core = gram(drawn.values, coreset.weights)
        epsilon = whole.epsilon(core, len(coreset), rng, floor)
    n_needed = roster.n_rows if coreset is None else len(coreset)
    concern = regression_concern(gamma, sensitivity, n_needed, uncentred=task.fit_intercept and not task.standardize)
    return Diagnosis(
        *_facts(task, roster, size),
        sensitivity,
        gamma=gamma,
        epsilon=epsilon,
        concerns=() if concern is None else (concern,),
    )


def _diagnose_classes(
    task: Classification, roster: Roster, source: Source, size: int, rng: np.random.Generator, seed: int
) -> Script[Diagnosis]:
    reference, scores, _ = yield from _reference(task, roster, size, rng)
    values, classes = yield from whitened_class_rows(roster, reference.rows, fit_intercept=task.fit_intercept)
    if (np.square(values).sum(axis=1) > scores * (1 + LENGTHS_DIFFER)).any():
        raise RemoteProtocolError(
            f"Rows that {', '.join(roster.names)} show are longer than their scores say: one of them shows other rows "
            "than it scored, and the sum does not show which. Nothing of it was used."
        )
    half = rng.permutation(size) < size // 2
    shown = ClassRows(values, classes, reference.weights)
    grams = [gram(values[part], 2 * reference.weights[part]) for part in (half, ~half)]
    whole = spectrum((grams[0] + grams[1]) / 2)
    gamma = gamma_of(JoinedSpectrum(whole, None), halves=(spectrum(grams[0]), spectrum(grams[1])))
    mu = shown.mu(half)
    random, near = shown.models(rng)
    sensitivity = shown.sensitivity(scores, whole, mu, np.vstack([random, near]), roster.n_rows)
    sensitivity = replace(sensitivity, total=_total(reference))
    coreset = yield from _select(task, roster, source, seed)
    epsilon = None
    if coreset is not None:
        drawn = yield from whitened_class_rows(roster, coreset.rows, fit_intercept=task.fit_intercept)
        epsilon = shown.epsilon(ClassRows(*drawn, coreset.weights), random, near, half)
    concern = classes_concern(mu, sensitivity.total, roster.n_rows if coreset is None else len(coreset))
    return Diagnosis(
        *_facts(task, roster, size),
        sensitivity,
        gamma=gamma,
        mu=mu,
        epsilon=epsilon,
        concerns=() if concern is None else (concern,),
    )


def _diagnose_clustering(
    task: KMeans,
    roster: Roster,
    source: Source,
    model: KMeansModel | None,
    size: int,
    n_pairs: int,
    rng: np.random.Generator,
    seed: int,
) -> Script[Diagnosis]:
    reference, scores, view = yield from _reference(task, roster, size, rng)
    tau, seeds = None, DiagnosisSeeds.of(jobs.shared_seed(seed))
    if n_pairs >= 2:
        distances = yield from pair_distances(roster, n_pairs, seeds.pairs)
        tau = tau_of(distances, [card.name for card in roster.cards if card.n_features])
    pool = Pool.of(reference.rows, pool_size(task.n_clusters), seeds.pool)
    n_pool = len(pool.rows)
    if n_pool < task.n_clusters:
        raise InputError(
            f"{n_pool} distinct rows were looked at, too few for sets of {task.n_clusters} centres. Look at more."
        )
    at_reference = yield from _pool_distances(roster, reference, pool, model, view, seeds.moves)
    random = random_sets(n_pool, task.n_clusters, 100, rng)
    near = None if model is None else near_sets(task.n_clusters, len(MOVES), 30, rng) + n_pool
    tried = [random] if near is None else [random, near]
    total = _total(reference)
    zeta = clustering_zeta(at_reference, reference.weights, scores, tried)
    sensitivity = Sensitivity(total, zeta, float("inf") if tau is None else 4 * tau.value, None)
    coreset = yield from _select(task, roster, source, seed)
    epsilon = None
    if coreset is not None:
        at_coreset = yield from _pool_distances(roster, coreset, pool, model, view, seeds.moves)
        half = rng.permutation(size) < size // 2
        epsilon = clustering_epsilon(
            (at_coreset, coreset.weights), (at_reference, reference.weights), random, near, half
        )
    concern = None
    if tau is not None:
        concern = clustering_concern(tau, total, roster.n_rows if coreset is None else len(coreset))
    return Diagnosis(
        *_facts(task, roster, size),
        sensitivity,
        tau=tau,
        epsilon=epsilon,
        concerns=() if concern is None else (concern,),
    )


def _check_lengths(values: Floats, scores: Floats, roster: Roster) -> None:
    """Require rows in the parties' bases that have the lengths which their scores are made of."""
    due = scores - len(roster.cards) / roster.n_rows
    if (np.abs(np.square(values).sum(axis=1) - due) > LENGTHS_DIFFER * scores).any():
        raise RemoteProtocolError(
            f"The rows that {', '.join(roster.names)} show do not have the lengths that their scores say: one of them "
            "shows other rows than it scored, and the sum does not show which. Nothing of it was used."
        )


def rows_to_look_at(roster: Roster, rows: int | None) -> int:
    """Choose how many rows to look at, or require enough of them."""
    n_coordinates = len(roster.feature_names) + 2
    if rows is None:
        return max(min(2_000, roster.n_rows), 10 * n_coordinates)
    if rows < 2 * n_coordinates:
        raise InputError(
            f"{rows} rows say nothing about {n_coordinates - 2} columns: so few always look dependent. "
            f"Look at {10 * n_coordinates} rows or more."
        )
    return rows


def _reference(
    task: PaperTask, roster: Roster, size: int, rng: np.random.Generator
) -> Script[tuple[Coreset, Floats, JobView]]:
    """Draw the rows to look at; return them with their scores g, and the units they are seen in."""
    view = yield from agree_on_view(roster, None, "train", task.scaling)
    sampler = reference_sampler(size)
    if isinstance(task, Classification):
        settled = yield from task.settled(roster, jobs.rows_told(task, sampler, roster))
        check_two_classes(len(settled.known_classes()))
    reference = yield from sampler.sample(roster, task.score_rule(), rng)
    total, n = _total(reference), roster.n_rows
    # Backwards from w = G / (m ((1 - s) g + s G / n)).
    return reference, (total / (size * reference.weights) - EVEN_SHARE * total / n) / (1 - EVEN_SHARE), view


def check_two_classes(n_classes: int) -> None:
    """Require two: of more nothing is known."""
    if n_classes > 2:
        raise UnsupportedError(
            f"A classification of {n_classes} classes cannot be diagnosed: only one of two can. Put classes together, "
            "or evaluate what was learned on rows that were held out."
        )


def reference_sampler(size: int) -> ImportanceSampling:
    """Say how the rows to look at are drawn."""
    return ImportanceSampling(size, uniform_share=EVEN_SHARE)


def diagnosis_route(
    task: PaperTask, agreed: Agreed, source: Route | None, part: bytes | None, options: Mapping[str, int | bool]
) -> Route:
    """Say what a party is asked by `diagnose`, after the view: about rows drawn by scores, then about a coreset.

    Where there is a model, its part at the party has this digest.
    """
    reference = reference_sampler(agreed.size).route(task.score_rule(), agreed)
    match task:
        case Regression() | Classification():
            kind = AskWhitenedRows if isinstance(task, Regression) else AskWhitenedClassRows
            shown = Ask(kind, fit_intercept=task.fit_intercept)
            return then(reference, shown) if source is None else then(reference, shown, source, shown)
        case KMeans():
            return _clustering_route(task, agreed, reference, source, part, options)
        case _:
            assert_never(task)


def _clustering_route(
    task: KMeans,
    agreed: Agreed,
    reference: Route,
    source: Route | None,
    part: bytes | None,
    options: Mapping[str, int | bool],
) -> Route:
    n_rows, seeds, k = agreed.roster.n_rows, DiagnosisSeeds.of(agreed.seed), task.n_clusters
    n_pairs = min(int(options.get("pairs", 0)), n_rows)
    has_features = agreed.roster.cards[agreed.place].n_features > 0
    pairs = [Ask(AskPairDistances, count=n_pairs, seed=seeds.pairs)] if n_pairs >= 2 and has_features else []
    looked: Route = Ask(AskRowDistances, count=pool_size(k), seed=seeds.pool)
    if part is not None:
        model = Hashing(part, model_digest)
        looked = then(looked, Ask(AskMovedDistances, centers=Length(k), part=model, seed=seeds.moves))
    return then(reference, *pairs, looked) if source is None else then(reference, *pairs, looked, source, looked)


def _select(task: PaperTask, roster: Roster, source: Source, seed: int) -> Script[Coreset | None]:
    """Draw the coreset to measure, or tell the parties its rows."""
    if source is None:
        return None
    if isinstance(source, Coreset):
        yield from agree_on_view(roster, None, "train", task.scaling)
        yield from use_rows(roster, source.rows)
        return source
    return (yield from jobs.draw(task, source, None, roster, seed)).coreset


def _pool_distances(
    roster: Roster, selected: Coreset, pool: Pool, model: KMeansModel | None, view: JobView, seed: int
) -> Script[Floats]:
    """Fetch distances of the selected rows to the pool's rows, and to the model's centres, moved, if there is one."""
    distances = yield from row_distances(roster, selected.rows, pool)
    if model is None:
        return distances
    moved = yield from moved_distances(roster, len(selected), model.parts(roster), view, seed)
    return np.hstack([distances, moved])


def _facts(task: PaperTask, roster: Roster, rows: int) -> tuple[str, int, int, int, bool, int]:
    return type(task).__name__, roster.n_rows, len(roster.feature_names), len(roster.cards), False, rows


def _total(reference: Coreset) -> float:
    return float(reference.total or 0.0)
