"""Whole jobs as scripts: agree on rows and learn, or select rows and apply a model to them."""

from typing import TypeVar

import numpy as np

from colonnade.contracts import Roster, Script, Task
from colonnade.coreset import Coreset
from colonnade.errors import InputError
from colonnade.evaluation.clustering import nearest_center_distances
from colonnade.evaluation.linear import linear_predictions, linear_residuals
from colonnade.evaluation.reports import ClusteringReport, RegressionReport, clustering_report, regression_report
from colonnade.kernels.arrays import Floats, Rows
from colonnade.sampling import AnySampler
from colonnade.sampling.shared import use_all_rows, use_even_draw, use_rows
from colonnade.solvers import AnySolver
from colonnade.tasks.models import KMeansModel, LinearModel

M = TypeVar("M")


def draw(task: Task[object], sampler: AnySampler, roster: Roster, seed: int) -> Script[tuple[Coreset, None]]:
    """Agree on a coreset for a task, and learn nothing."""
    coreset = yield from sampler.sample(roster, task.score_rule(), _sampling_rng(seed))
    return coreset, None


def learn(
    task: Task[M], source: AnySampler | Coreset, solver: AnySolver, roster: Roster, seed: int
) -> Script[tuple[Coreset, M]]:
    """Agree on a coreset, or share one made before (Theorem 2.5), and learn on it."""
    if isinstance(source, Coreset):
        yield from use_rows(roster, source.rows)
        coreset = source
    else:
        coreset = yield from source.sample(roster, task.score_rule(), _sampling_rng(seed))
    model = yield from solver.solve(task, roster, coreset, _solving_rng(seed))
    return coreset, model


def predict(model: LinearModel | KMeansModel, rows: Rows | None, roster: Roster) -> Script[Floats | Rows]:
    """Predict the given rows (ascending), or all: values, or the index of each row's nearest centre."""
    size = len((yield from use_all_rows(roster)) if rows is None else (yield from use_rows(roster, rows)))
    if isinstance(model, LinearModel):
        return (yield from linear_predictions(roster, size, model.coef_)) + model.intercept_
    labels, _ = yield from nearest_center_distances(roster, size, model.cluster_centers_)
    return labels


def evaluate(
    model: LinearModel | KMeansModel, size: int | None, roster: Roster, seed: int
) -> Script[RegressionReport | ClusteringReport]:
    """Count a model's cost on all rows, or estimate it on an even sample of `size` rows."""
    sampled = size is not None
    rng = _sampling_rng(seed)
    selected = (yield from use_all_rows(roster)) if size is None else (yield from use_even_draw(roster, size, rng))
    if isinstance(model, LinearModel):
        residuals, spread = yield from linear_residuals(roster, len(selected), model.coef_)
        return regression_report(residuals + model.intercept_, spread, roster.n_rows, sampled=sampled)
    labels, distances = yield from nearest_center_distances(roster, len(selected), model.cluster_centers_)
    return clustering_report(labels, distances, len(model.cluster_centers_), roster.n_rows, sampled=sampled)


def check_columns(model: LinearModel | KMeansModel, roster: Roster) -> None:
    """Require that a model was made of these parties' columns, in this order.

    Parameters
    ----------
    model : LinearModel or KMeansModel
        Any.
    roster : Roster
        The parties.
    """
    ours, theirs = roster.feature_names, model.feature_names_in_
    if ours == theirs:
        return
    missing = ", ".join(name for name in theirs if name not in ours) or "nothing"
    extra = ", ".join(name for name in ours if name not in theirs) or "nothing"
    raise InputError(
        f"The model does not fit these parties: it has {missing} that they lack, and lacks {extra} that they have; "
        "or their columns stand in another order. Use the parties it was learned from, in their order."
    )


# Two streams of one seed: the solver's draws do not depend on how the coreset came about.
def _sampling_rng(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 0])


def _solving_rng(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 1])
