"""The audit behind a certificate: rows drawn by the scores, apart from the coreset, and the model's errors there."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_fields
from typing import assert_never

import numpy as np
from msgspec.structs import replace

from colonnade.contracts import Agreed, JobView, Roster, Script
from colonnade.coreset import Coreset, Precision
from colonnade.diagnostics.audited_distances import AskAuditedDistances, audited_distances
from colonnade.diagnostics.audited_logits import AskAuditedLogits, audited_logits
from colonnade.diagnostics.audited_predictions import AskAuditedPredictions, audit_dithers, audited_predictions
from colonnade.diagnostics.certificate import Certificate
from colonnade.diagnostics.model_in_view import coef_in_view
from colonnade.diagnostics.over_parties import shown_to_server
from colonnade.errors import InputError, RemoteProtocolError
from colonnade.evaluation.telling import model_digest
from colonnade.kernels.arrays import Floats
from colonnade.kernels.audit import AuditedRows, ResidualPart, clustering_cost, gradient_p, weights_p
from colonnade.kernels.class_audit import AuditedClasses
from colonnade.kernels.estimates import Estimate
from colonnade.kernels.per_row import PerRow, ones
from colonnade.kernels.sixteen_bits import LOG_STEP
from colonnade.ledger import Ledger
from colonnade.protocol.checks import SLACK
from colonnade.protocol.classes import label_values
from colonnade.protocol.splits import AnySplit
from colonnade.protocol.viewing import agree_on_view
from colonnade.routes import Ask, Hashing, Length, Route
from colonnade.sampling import ImportanceSampling
from colonnade.tasks import (
    Classification,
    ClassificationModel,
    KMeans,
    KMeansModel,
    LinearModel,
    PaperTask,
    Regression,
)
from colonnade.tasks.jobs import rows_told, shared_seed

LEAST_ROWS = 50
# Each control, two a party, takes up some rows: with fewer than this for each, the interval would be too short.
ROWS_A_CONTROL = 10
UNSEEN = Precision(None, "the server has not seen the rows that the model was learned on")
SEEN_IN_HIDING = (
    "rounding hides directions in which the parties' columns nearly coincide, and along them a better model shows; "
    "learn again with a smaller step, or with Central()"
)


@dataclass(frozen=True, eq=False)
class AuditSubject:
    """What of a run is certified: a model of columns in their own units; rows held out do not count here either."""

    task: PaperTask
    model: LinearModel | ClassificationModel | KMeansModel
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
    sampler = audit_sampler(rows, secure=secure)
    task = _of_classes(run)
    if isinstance(task, Classification):
        task = yield from task.settled(roster, rows_told(task, sampler, roster))
    drawn = yield from sampler.sample(roster, task.score_rule(), rng, view.row_weights)
    match task, run.model:
        case KMeans(), KMeansModel():
            return (yield from _audit_clustering(run, run.model, roster, view, drawn))
        case Regression(), LinearModel():
            return (yield from _audit_regression(run, task, run.model, roster, view, drawn, shared_seed(seed)))
        case Classification(), ClassificationModel():
            return (yield from _audit_classes(run, task, run.model, roster, view, drawn, shared_seed(seed)))
    found, wanted = type(run.model).__name__, type(run.task).__name__
    raise InputError(f"A {found} is not what {wanted} learns. Certify a run as `fit` returned it.")


def _of_classes(run: AuditSubject) -> PaperTask:
    """Give the task with the model's classes: the label must have these."""
    if isinstance(run.task, Classification) and isinstance(run.model, ClassificationModel):
        return replace(run.task, classes=run.model.classes_)
    return run.task


def with_cost(found: Certificate, ledger: Ledger, run_bytes: int) -> Certificate:
    """Add what an audit cost, what it showed the server, and what the run before it had cost."""
    shown = shown_to_server(ledger)
    return replace(found.checked(), units=ledger.units, bytes=ledger.bytes, run_bytes=run_bytes, reveals=shown)


def check_rows(task: PaperTask, roster: Roster, rows: int) -> None:
    """Require enough rows for an interval that can be relied on."""
    match task:
        case Regression():
            controls = 1 + 2 * len(roster.cards)
        case Classification():
            controls = 3 + 2 * len(roster.cards)
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
        case Regression() | Classification():
            seed, hidden = audit_dithers(agreed.roster, agreed.seed)[agreed.party], n_directions - 1
            kind = AskAuditedPredictions if isinstance(task, Regression) else AskAuditedLogits
            return Ask(kind, part=model, hidden=Length(hidden, hidden), seed=seed)
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
    coef, intercept = _in_view(model.coef_, model.intercept_, view)
    precision, counted = run.precision or UNSEEN, _counted(roster, view)
    hidden = np.array(precision.hidden).reshape(-1, len(coef))
    parts = counted[drawn.rows] / counted.sum()
    told, along = yield from audited_predictions(roster, drawn.rows, parts, model.coef_, hidden, shared)
    told_parts = _with_intercept(told, roster, intercept)
    audit = AuditedRows(told_parts, drawn.weights, drawn.total_weight, _chances(drawn, counted))
    found = audit.cost()
    if found.interval()[1] == 0 and found.value < -SLACK * audit.size():
        raise RemoteProtocolError(
            f"One of {', '.join(roster.names)} told parts of residuals that no table has: squares of them would add up "
            f"to {found.value:.3g}. The certificate was not made; if all are honest, draw other rows by another seed."
        )
    draws_p = _also_of_coreset(run, audit.draws_p(), counted)
    penalty = task.cost(model, np.empty((0, len(coef))), np.empty(0), np.empty(0), drawn.total_weight)
    # The objective's gradient is halved.
    gradients = _gradients(
        audit, roster, precision, coef, task.penalties_of(model), halved=True, centred=task.fit_intercept
    )
    hides = audit.hidden_excess(along, centred=task.fit_intercept) if len(hidden) else 0.0
    return _concluded("Regression", len(drawn), found, draws_p, precision, gradients, hides, penalty)


def _audit_classes(
    run: AuditSubject,
    task: Classification,
    model: ClassificationModel,
    roster: Roster,
    view: JobView,
    drawn: Coreset,
    shared: int,
) -> Script[Certificate]:
    own = model.coef_[0]
    coef, intercept = _in_view(own, float(model.intercept_[0]), view)
    precision, counted = run.precision or UNSEEN, _counted(roster, view)
    hidden = np.array(precision.hidden).reshape(-1, len(coef))
    parts = counted[drawn.rows] / counted.sum()
    told, along, classes = yield from audited_logits(roster, drawn.rows, parts, own, hidden, shared)
    of_label = told[roster.label_party or ""]
    mean = classes.share * (classes.mean - of_label.mean)
    known = classes.codes - classes.share, classes.codes * (of_label.values - of_label.mean) - mean
    told_parts = _with_intercept(told, roster, intercept)
    rows = AuditedRows(told_parts, drawn.weights, drawn.total_weight, _chances(drawn, counted), known)
    first, last = label_values(model.classes_).tolist()
    audit = AuditedClasses(rows, classes.codes if first < last else 1.0 - classes.codes)
    draws_p = _also_of_coreset(run, rows.draws_p(), counted)
    penalty = task.cost(model, np.empty((0, len(coef))), np.empty(0), np.empty(0), drawn.total_weight)
    gradients = _gradients(
        audit, roster, precision, coef, task.penalties_of(model), halved=False, centred=task.fit_intercept
    )
    hides = audit.hidden_excess(along, centred=task.fit_intercept) if len(hidden) else 0.0
    return _concluded("Classification", len(drawn), audit.cost(), draws_p, precision, gradients, hides, penalty)


def _concluded(
    task: str,
    size: int,
    found: Estimate,
    draws_p: float,
    precision: Precision,
    gradients: Sequence[tuple[Estimate, Estimate]],
    hides: float,
    penalty: float,
) -> Certificate:
    """Conclude from what was found of the cost, and of gradients beside what is expected of each."""
    low, high = found.interval()
    # No loss is negative, also where too few rows leave their sum open on both sides of zero.
    common = (task, size, max(found.value, 0.0), (low, high))
    if precision.excess is None:
        return Certificate(*common, None, None, precision.why_none, None, draws_p)
    excess = precision.excess + hides
    if math.isinf(excess):
        return Certificate(*common, None, None, SEEN_IN_HIDING, None, draws_p)
    least = low + penalty - excess
    relative = excess / least if least > 0 else None
    n_hidden = len(precision.hidden)
    return Certificate(*common, excess, relative, None, gradient_p(gradients), draws_p, n_hidden=n_hidden)


def _gradients(
    audit: AuditedRows | AuditedClasses,
    roster: Roster,
    precision: Precision,
    coef: Floats,
    penalties: tuple[float, float],
    *,
    halved: bool,
    centred: bool,
) -> list[tuple[Estimate, Estimate]]:
    """Estimate the objective's gradient along what is known, the intercept and parts without the label.

    Each with what is expected of it where the coreset is honest; halved, or not.
    """
    if precision.excess is None:
        return []
    (l2, l1), rows, half = penalties, audit if isinstance(audit, AuditedRows) else audit.rows, 0.5 if halved else 1.0
    offset = precision.offset_gradient
    found = [] if offset is None else [(audit.offset_gradient(), Estimate(*offset))]
    for which, (party, here) in enumerate(roster.parts.items()):
        if party == roster.label_party or not rows.parts[which].counts:
            continue
        own = coef[here]
        penalty = half * rows.total_weight * (2 * l2 * float(own @ own) + l1 * float(np.abs(own).sum()))
        gradient = audit.gradient(which, centred=centred)
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


def _also_of_coreset(run: AuditSubject, chance: float, counted: PerRow) -> float:
    """Join the chance of the audit's draws with that of the coreset's, if it was drawn by scores."""
    coreset = run.coreset
    if coreset.rule is None:
        return chance
    return min(1.0, 2 * min(chance, weights_p(coreset.weights, coreset.total_weight, _chances(coreset, counted))))


def _counted(roster: Roster, view: JobView) -> PerRow:
    """Say what each row counts."""
    return ones(roster.n_rows) if view.row_weights is None else view.row_weights


def _chances(drawn: Coreset, counted: PerRow) -> Floats | None:
    """Give each row's chance of being there, shape (m,), if they are distinct: what it counts over its weight."""
    return np.minimum(counted[drawn.rows] / drawn.weights, 1.0) if drawn.distinct else None


def _in_view(coef: Floats, intercept: float, view: JobView) -> tuple[Floats, float]:
    """Give coefficients and intercept of the columns as the parties see them."""
    shift = 0.0 if view.shift is None else float(view.shift @ coef)
    return coef_in_view(coef, view), intercept + shift
