"""What no data of one party can bring about: laws that a result obeys whatever the table of the party that lies.

They are worked out from the honest parties' tables, and from no check of the server's.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

import colonnade as cn
from colonnade.contracts import ScoreBounds
from colonnade.diagnostics.certificate import Certificate
from colonnade.diagnostics.records import Diagnosis, Gamma
from colonnade.evaluation.classes.reports import ClassificationReport
from colonnade.evaluation.reports import ClusteringReport, RegressionReport
from colonnade.kernels.draws import chances, even_factor
from colonnade.protocol.session import PartySession
from hostile.replies_jobs import Job

Sessions = Mapping[str, PartySession]
# Of arithmetic, and of scores rounded as coarsely as any job here has them.
SLACK, COARSE = 1e-5, 1.25


def broken_laws(result: Any, job: Job, liar: str, sessions: Sessions) -> list[str]:
    """List what of a result no table of the liar's explains."""
    return list(_laws(result, job, liar, sessions))


def _laws(result: Any, job: Job, liar: str, sessions: Sessions) -> Iterator[str]:
    if isinstance(result, tuple | list):
        for each in result:
            yield from _laws(each, job, liar, sessions)
    elif isinstance(result, cn.Run):
        yield from _coreset(result, job, liar, sessions)
        yield from _model(result, job, liar)
    elif isinstance(result, RegressionReport):
        yield from _regression(result, job)
    elif isinstance(result, ClassificationReport):
        yield from _classification(result, job)
    elif isinstance(result, ClusteringReport):
        if sum(result.cluster_sizes) != result.n_evaluated or result.cost < 0:
            yield f"clusters of {result.cluster_sizes} among {result.n_evaluated} rows, of cost {result.cost:g}"
        yield from _interval(result.cost, result.cost_interval)
    elif isinstance(result, Certificate):
        yield from _interval(result.cost, result.cost_interval)
        for chance in (result.draws_p, result.gradient_p or 0.0):
            if not 0 <= chance <= 1:
                yield f"a chance of {chance}"
        if (result.excess or 0.0) < 0 or (result.relative_excess or 0.0) < 0:
            yield f"an excess of {result.excess}"
    elif isinstance(result, Diagnosis):
        yield from _diagnosis(result)


def _coreset(run: Any, job: Job, liar: str, sessions: Sessions) -> Iterator[str]:
    """Rows that there are, as many as were asked for; weights that some scores of the liar's make of the others'."""
    coreset, sampler = run.coreset, run.sampler
    if coreset.n_rows != job.n_rows or not is_within(coreset.rows, job.n_rows):
        yield "rows that there are not"
    distinct = getattr(sampler, "draws", None) == "distinct"
    if distinct and not (len(np.unique(coreset.rows)) == len(coreset) <= sampler.size):
        yield f"{len(coreset)} rows, some of them twice, or more than {sampler.size}"
    if not distinct and not isinstance(sampler, cn.AllRows) and len(coreset) != sampler.size:
        yield f"{len(coreset)} rows"
    if isinstance(sampler, cn.ImportanceSampling):
        if sessions[liar].state.rule is not None:  # else it was drawn in an earlier run
            yield from (_chances if distinct else _scores)(run, liar, sessions)
    elif liar != "shop" and abs(coreset.weights.sum() / coreset.total_weight - 1) > SLACK and run.split is None:
        yield "weights of even rows that do not add up"


def is_within(rows: Any, n_rows: int) -> bool:
    return bool(rows[0] >= 0 and rows[-1] < n_rows and (np.diff(rows) >= 0).all())


def _scores(run: Any, liar: str, sessions: Sessions) -> Iterator[str]:
    """Work back from weights to the liar's scores: do they add up, is each between a row's part and the most?"""
    coreset, share = run.coreset, run.sampler.uniform_share
    rows, m, total, all_weight = coreset.rows, len(coreset), coreset.total, coreset.total_weight
    counts, others, others_total = np.ones(m), np.zeros(m), 0.0
    for name, session in sessions.items():
        data = session._data.seen(session.state.view)
        if data.table.row_weights is not None:
            counts = data.table.row_weights[rows]
        if name != liar:
            scores = data.scores(session.state.rule)
            others, others_total = others + scores[rows], others_total + float(scores.sum())
    sums = (total * counts / (m * coreset.weights) - share * total * counts / all_weight) / (1 - share)
    own, own_total = sums - others, total - others_total
    most = _most(run, sessions[liar])
    slack = SLACK * (1 + total)
    if not 1 / COARSE - slack <= own_total <= COARSE * most.total + slack:
        yield f"its scores add up to {own_total:g}"
    least = counts / all_weight / COARSE
    if (own < least - SLACK * sums).any() or (own > COARSE * most.score + SLACK * sums).any():
        yield f"its scores are {own.min():g} to {own.max():g}"
    first = np.unique(rows, return_index=True)[1]
    # Under masks there are sums over parties alone, and only all totals together say anything of them.
    seen, most_seen = (sums, total) if run.sampler.scores == "secure" else (own, own_total)
    if seen[first].sum() > most_seen + slack:
        yield f"its scores of these rows add up to more than {own_total:g}"


def _chances(run: Any, liar: str, sessions: Sessions) -> Iterator[str]:
    """Work back from weights to the liar's chances: is each one, and do they add up to no more than all draws?"""
    coreset, sampler = run.coreset, run.sampler
    rows, n_even = coreset.rows, round(sampler.uniform_share * sampler.size)
    counts, missed = np.ones(len(rows)), np.ones(len(rows))
    for name, session in sessions.items():
        data = session._data.seen(session.state.view)
        if data.table.row_weights is not None:
            counts = data.table.row_weights[rows]
        if name != liar:
            missed *= 1 - np.minimum(1.0, (session.state.draw_factor or 0.0) * data.scores(session.state.rule)[rows])
            weights = data.table.row_weights
    missed *= 1 - chances(even_factor(coreset.n_rows, n_even, weights), counts)
    open_ = missed > 1e-3
    own = 1 - (1 - (counts / coreset.weights)[open_]) / missed[open_]
    if (counts / coreset.weights > 1 + SLACK).any() or (own < -SLACK / 1e-3).any():
        yield f"its chances are {own.min():g} to {own.max():g}"
    if own.sum() > (sampler.size - n_even) * (1 + SLACK):
        yield f"its chances of these rows add up to {own.sum():g}"


def _most(run: Any, session: PartySession) -> ScoreBounds:
    """Bound scores as the paper does: leverages and a row's part by 1 each; the three terms of clustering by 4."""
    table, rule = session._data.table, cast("Any", session.state.rule)
    if isinstance(run.task, cn.KMeans):
        bounds = ScoreBounds(4.0, 2.0 + 2.0 * run.task.n_clusters)
    elif isinstance(run.task, cn.Classification):
        # A class of few rows has its part in one of them.
        classes = 2 / 3 * run.model.coef_.shape[1] * (table.label_name is not None)
        bounds = ScoreBounds(2.0 + classes, len(table.feature_names) + 1.0 + classes)
    elif run.sampler.sharpened and table.label_name is not None:
        # Squares of residuals add up to 1, and leverages to as many as there are columns: by Cauchy and Schwarz.
        columns = len(table.feature_names) + 1.0
        residuals = rule.residuals * columns**0.5
        bounds = ScoreBounds(2.0 + residuals, columns + residuals)
    else:
        bounds = ScoreBounds(2.0, len(table.feature_names) + 1.0 + 2 * (table.label_name is not None))
    return ScoreBounds(bounds.total, bounds.total) if run.sampler.totals == "set" else bounds


def _model(run: Any, job: Job, liar: str) -> Iterator[str]:
    """Centres are means of rows in the honest parties' columns; a fit is no worse than none to honest labels."""
    start, rows = 0, run.coreset.rows
    weights = run.coreset.weights
    for party in job.parties():
        d = len(party.table.feature_names)
        values = party.table.take(rows)
        if isinstance(run.model, cn.KMeansModel) and party.name != liar:
            found = run.model.cluster_centers_[:, start : start + d]
            least, most = values[:, :d].min(axis=0), values[:, :d].max(axis=0)
            # Rounded columns are off by half a step of half a deviation.
            slack = SLACK + (most - least if isinstance(run.solver, cn.CompactCentral) else 0.0)
            if ((found < least - slack) | (found > most + slack)).any():
                yield f"centres outside the rows of {party.name}"
        exact = isinstance(run.solver, cn.Central)
        if isinstance(run.model, cn.LinearModel) and party.table.label_name and party.name != liar and exact:
            y = values[:, d]
            spread = float(weights @ np.square(y - np.average(y, weights=weights)))
            if not -SLACK <= run.facts["cost"] <= spread * (1 + SLACK):
                yield f"a cost of {run.facts['cost']:g}, where labels vary by {spread:g}"
        start += d
    if (run.facts or {}).get("cost", 0.0) < 0:
        yield "a negative cost"


def _regression(report: RegressionReport, job: Job) -> Iterator[str]:
    if not 1 <= report.n_evaluated <= job.n_rows:
        yield f"{report.n_evaluated} rows"
    rounded = report.rounded_by or 0.0
    if report.cost < 0 or report.mae > np.sqrt(report.mse) * (1 + SLACK) + rounded:
        yield f"a mean error of {report.mae:g} beside a mean square of {report.mse:g}"
    if report.r2 is not None and report.r2 > 1:
        yield f"R2 of {report.r2}"
    yield from _interval(report.cost, report.cost_interval)


def _classification(report: ClassificationReport, job: Job) -> Iterator[str]:
    if not 1 <= report.n_evaluated <= job.n_rows or report.cost < 0:
        yield f"{report.n_evaluated} rows, of cost {report.cost:g}"
    chances = [report.accuracy, report.brier, report.auc or 0.0, *(report.auc_interval or ())]
    chances += [
        each for line in report.by_class for each in (line.precision, line.recall, line.auc) if each is not None
    ]
    chances += [each for line in report.calibration for each in (line.predicted, line.observed)]
    if not all(0 <= chance <= 1 + SLACK for chance in chances):
        yield f"a chance outside 0 and 1 among {chances}"
    rows = sum(line.support for line in report.by_class)
    if report.calibration and abs(sum(line.support for line in report.calibration) - rows) > SLACK * rows:
        yield "a calibration of other rows than the classes have"
    yield from _interval(report.cost, report.cost_interval)


def _interval(cost: float, interval: tuple[float, float] | None) -> Iterator[str]:
    if interval is not None and not 0 <= interval[0] <= cost * (1 + SLACK) <= interval[1] * (1 + 2 * SLACK):
        yield f"a cost of {cost:g} outside {interval}"


def _diagnosis(found: Diagnosis) -> Iterator[str]:
    gamma: Gamma | None = found.gamma
    if gamma is not None and not 0 <= gamma.value <= 1 + SLACK:
        yield f"gamma {gamma.value}"
    if found.sensitivity.zeta < 0 or found.sensitivity.total < 0:
        yield f"zeta {found.sensitivity.zeta}"
    if found.tau is not None and found.tau.value < 1 - SLACK:
        yield f"tau {found.tau.value}"
