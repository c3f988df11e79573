"""The audit behind a certificate: rows drawn by the scores, apart from the coreset, and the model's errors there."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as with_fields
from typing import assert_never

import numpy as np
from msgspec.structs import replace

from colonnade.contracts import Agreed, JobView, Roster, Script
from colonnade.coreset import Coreset, Precision
from colonnade.diagnostics.audited_distances import AskAuditedDistances, audited_distances
from colonnade.diagnostics.audited_predictions import AskAuditedPredictions, audit_dithers, audited_predictions
from colonnade.diagnostics.certificate import Certificate
from colonnade.diagnostics.model_in_view import coef_in_view
from colonnade.diagnostics.over_parties import shown_to_server
from colonnade.errors import InputError, RemoteProtocolError
from colonnade.evaluation.telling import model_digest
from colonnade.kernels.arrays import Floats
from colonnade.kernels.audit import AuditedRows, ResidualPart, clustering_cost, gradient_p, weights_p
from colonnade.kernels.estimates import Estimate
from colonnade.kernels.sixteen_bits import LOG_STEP
from colonnade.ledger import Ledger
from colonnade.protocol.checks import SLACK
from colonnade.protocol.splits import AnySplit
from colonnade.protocol.viewing import agree_on_view
from colonnade.routes import Ask, Hashing, Length, Route
from colonnade.sampling import ImportanceSampling
from colonnade.tasks import KMeans, KMeansModel, LinearModel, PaperTask, Regression
from colonnade.tasks.jobs import shared_seed

LEAST_ROWS = 50
# Each control, two a party, takes up some rows: with fewer than this for each, the interval would be too short.
ROWS_A_CONTROL = 10
SEEN_IN_HIDING = (
    "rounding hides directions in which the parties' columns nearly coincide, and along them a better model shows; "
    "learn again with a smaller step, or with Central()"
)


@dataclass(frozen=True, eq=False)
class AuditSubject:
    """What of a run is certified: a model of columns in their own units; rows held out do not count here either."""

    task: PaperTask
    model: LinearModel | KMeansModel
    split: AnySplit | None
    coreset: Coreset
    precision: Precision | None


def certify(run: AuditSubject, roster: Roster, rows: int, seed: int, *, secure: bool = False) -> Script[Certificate]:
    """Draw rows by the scores, ask the parties for their parts of the model's errors there, and conclude.

    Rows are drawn in a stream of their own: they do not depend on the coreset, whatever the seed. Scores are summed in
    secret, or not. What it cost is added by `with_cost`.
    """
    check_rows(run.task, roster, rows)
    rng = np.random.default_rng([seed, 3])
    view = yield from agree_on_view(roster, run.split, "train", run.task.scaling)
    drawn = yield from audit_sampler(rows, secure=secure).sample(roster, run.task.score_rule(), rng, view.row_weights)
    match run.task, run.model:
        case KMeans(), KMeansModel():
            return (yield from _audit_clustering(run, run.model, roster, view, drawn))
        case Regression(), LinearModel():
            return (yield from _audit_regression(run, run.task, run.model, roster, view, drawn, shared_seed(seed)))
    found, task = type(run.model).__name__, type(run.task).__name__
    raise InputError(f"A {found} is not what {task} learns. Certify a run as `fit` returned it.")


def with_cost(found: Certificate, ledger: Ledger, run_bytes: int) -> Certificate:
    """Add what an audit cost, what it showed the server, and what the run before it had cost."""
    shown = shown_to_server(ledger)
    return replace(found.checked(), units=ledger.units, bytes=ledger.bytes, run_bytes=run_bytes, reveals=shown)


def check_rows(task: PaperTask, roster: Roster, rows: int) -> None:
    """Require enough rows for an interval that can be relied on."""
    match task:
        case Regression():
            controls = 1 + 2 * len(roster.cards)
        case KMeans():
            controls = 1
        case _:
            assert_never(task)
    least = max(LEAST_ROWS, ROWS_A_CONTROL * controls)
    if rows < least:
        raise InputError(
            f"An audit of {rows} rows says too little about a model of {len(roster.cards)} parties. "
            f"Draw {least} rows or more; 600 are usual."
        )


def in_secret(sampler: str, n_parties: int, *, between_machines: bool) -> bool:
    """Tell whether scores are summed in secret: as in the run, or where it left that open as a run would be."""
    said_plain = "'plain'" in sampler or "round_scores=True" in sampler
    return "'secure'" in sampler or (between_machines and n_parties > 2 and not said_plain)


def audit_sampler(rows: int, *, secure: bool) -> ImportanceSampling:
    """Draw distinct rows, so that heavy ones are told once; with scores as secret as those of the run.

    In secret, independently: sums of scores may be told for audits of any size, chances of distinct rows for only one.
    """
    return ImportanceSampling(
        rows,
        draws="independent" if secure else "distinct",
        round_scores=not secure,
        scores="secure" if secure else None,
        allow_two_parties=secure,
    )


def audit_route(task: PaperTask, part: bytes, agreed: Agreed, n_directions: int) -> Route:
    """Say what a party is asked by `certify`, once rows are drawn: by the model whose part has this digest.

    Directions that rounding hid are the server's to say, and no part of the model: as many as there are columns show
    rows whole, and as rows they count. There are never more.
    """
    model, most = Hashing(part, model_digest), 1 + len(agreed.roster.feature_names)
    if not 1 <= n_directions <= most:
        raise InputError(
            f"a job sheet says that a model is audited along {n_directions:,} directions; there are 1 to {most:,}."
        )
    match task:
        case Regression():
            seed, hidden = audit_dithers(agreed.roster, agreed.seed)[agreed.party], n_directions - 1
            return Ask(AskAuditedPredictions, part=model, hidden=Length(hidden, hidden), seed=seed)
        case KMeans():
            return Ask(AskAuditedDistances, centers=Length(task.n_clusters), part=model)
        case _:
            assert_never(task)


def _audit_clustering(
    run: AuditSubject, model: KMeansModel, roster: Roster, view: JobView, drawn: Coreset
) -> Script[Certificate]:
    distances = yield from audited_distances(roster, len(drawn), model.cluster_centers_, model.scale_, view)
    counted = _counted(roster, view)
    chances = _chances(drawn, counted)
    found = clustering_cost(distances, drawn.weights, drawn.total_weight, chances)
    low, high = found.interval()
    # Rounded distances are off by half a step at most, relative.
    interval = low * (1 - LOG_STEP / 2), high * (1 + LOG_STEP / 2)
    draws_p = _also_of_coreset(run, weights_p(drawn.weights, drawn.total_weight, chances), counted)
    why = "nobody can tell what the best centres would cost"
    return Certificate("KMeans", len(drawn), found.value, interval, None, None, why, None, draws_p)


def _audit_regression(
    run: AuditSubject,
    task: Regression,
    model: LinearModel,
    roster: Roster,
    view: JobView,
    drawn: Coreset,
    shared: int,
) -> Script[Certificate]:
    coef, intercept = _in_view(model, view)
    precision = run.precision or Precision(None, "the server has not seen the rows that the model was learned on")
    hidden = np.array(precision.hidden).reshape(-1, len(coef))
    counted = _counted(roster, view)
    parts = counted[drawn.rows] / counted.sum()
    told, along = yield from audited_predictions(roster, drawn.rows, parts, model.coef_, hidden, shared)
    told_parts = _with_intercept(told, roster, intercept)
    audit = AuditedRows(told_parts, drawn.weights, drawn.total_weight, _chances(drawn, counted))
    found = audit.cost()
    low, high = found.interval()
    if high == 0 and found.value < -SLACK * audit.size():
        raise RemoteProtocolError(
            f"One of {', '.join(roster.names)} told parts of residuals that no table has: squares of them would add up "
            f"to {found.value:.3g}. The certificate was not made; if all are honest, draw other rows by another seed."
        )
    # Squares are not negative, also where too few rows leave their sum open on both sides of zero.
    common = ("Regression", len(drawn), max(found.value, 0.0), (low, high))
    draws_p = _also_of_coreset(run, audit.draws_p(), counted)
    if precision.excess is None:
        return Certificate(*common, None, None, precision.why_none, None, draws_p)
    excess = precision.excess + (audit.hidden_excess(along, centred=task.fit_intercept) if len(hidden) else 0.0)
    if math.isinf(excess):
        return Certificate(*common, None, None, SEEN_IN_HIDING, None, draws_p)
    penalty = task.cost(model, np.empty((0, len(coef))), np.empty(0), np.empty(0), drawn.total_weight)
    least = low + penalty - excess
    chance = gradient_p(_gradients(task, model, roster, audit, precision, coef))
    relative = excess / least if least > 0 else None
    return Certificate(*common, excess, relative, None, chance, draws_p, n_hidden=len(hidden))


def _gradients(
    task: Regression, model: LinearModel, roster: Roster, audit: AuditedRows, precision: Precision, coef: Floats
) -> list[tuple[Estimate, Estimate]]:
    """Estimate the objective's gradient, halved, along what is known, the intercept and parts without the label.

    Each with what is expected of it where the coreset is honest.
    """
    l2, l1 = task.penalties_of(model)
    offset = precision.offset_gradient
    found = [] if offset is None else [(audit.offset_gradient(), Estimate(*offset))]
    for which, (party, here) in enumerate(roster.parts.items()):
        if party == roster.label_party or not audit.parts[which].counts:
            continue
        own = coef[here]
        penalty = audit.total_weight * (l2 * float(own @ own) + l1 * float(np.abs(own).sum()) / 2)
        gradient = audit.gradient(which, centred=task.fit_intercept)
        found.append((with_fields(gradient, value=gradient.value + penalty), Estimate(*precision.gradient[party])))
    return found


def _with_intercept(told: Mapping[str, ResidualPart], roster: Roster, intercept: float) -> tuple[ResidualPart, ...]:
    """Add the intercept to the label party's part."""
    return tuple(
        with_fields(part, values=part.values + intercept, mean=part.mean + intercept)
        if party == roster.label_party
        else part
        for party, part in told.items()
    )


def _also_of_coreset(run: AuditSubject, chance: float, counted: Floats) -> float:
    """Join the chance of the audit's draws with that of the coreset's, if it was drawn by scores."""
    coreset = run.coreset
    if coreset.rule is None:
        return chance
    return min(1.0, 2 * min(chance, weights_p(coreset.weights, coreset.total_weight, _chances(coreset, counted))))


def _counted(roster: Roster, view: JobView) -> Floats:
    """Say what each row counts, shape (n_rows,)."""
    return np.ones(roster.n_rows) if view.row_weights is None else view.row_weights


def _chances(drawn: Coreset, counted: Floats) -> Floats | None:
    """Give each row's chance of being there, shape (m,), if they are distinct: what it counts over its weight."""
    return np.minimum(counted[drawn.rows] / drawn.weights, 1.0) if drawn.distinct else None


def _in_view(model: LinearModel, view: JobView) -> tuple[Floats, float]:
    """Give coefficients and intercept of the columns as the parties see them."""
    shift = 0.0 if view.shift is None else float(view.shift @ model.coef_)
    return coef_in_view(model.coef_, view), model.intercept_ + shift
