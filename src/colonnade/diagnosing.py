"""A diagnosis in one place: for whoever may hold all parties' rows."""

import warnings
from collections.abc import Iterable

from colonnade import validation
from colonnade.coreset import Coreset
from colonnade.data.parties import Party
from colonnade.diagnostics.in_one_place import diagnose_tables
from colonnade.diagnostics.records import Diagnosis
from colonnade.errors import AssumptionWarning, UnsupportedError
from colonnade.federation import Federation
from colonnade.options import positive_number, whole_number
from colonnade.protocol.viewing import UseFrame
from colonnade.tasks import AnyTask


def diagnose(
    parties: Iterable[Party],
    task: AnyTask,
    *,
    coreset: Coreset | None = None,
    pairs: int = 2000,
    epsilon: float = 0.1,
    seed: int = 0,
) -> Diagnosis:
    """Measure what the theory assumes, and a coreset's error, on all rows of all parties: for whoever may hold them.

    `Federation.diagnose` is the form over the parties, which estimates the same from a few rows.

    Parameters
    ----------
    parties : iterable of Party
        All of them, with their tables.
    task : Regression, Classification or KMeans
        Whose assumptions.
    coreset : Coreset, optional
        The one to measure.
    pairs : int
        For k-means: how many pairs of rows to compare.
    epsilon : float
        For the robust definition: how many rows must be set aside for the coreset to be within this.
    seed : int
        Draws pairs, models and centres.

    Returns
    -------
    Diagnosis
        Exact. Nothing is sent.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.random.default_rng(0).normal(size=(1000, 4))
    >>> parties = cn.split_columns(X, X @ np.ones(4) + np.random.default_rng(1).normal(size=1000), [2, 2])
    >>> coreset = cn.Federation(parties).coreset(cn.Regression(), cn.ImportanceSampling(size=400)).coreset
    >>> found = cn.diagnose(parties, cn.Regression(), coreset=coreset)
    >>> round(found.gamma.value, 2), found.gamma.bound <= found.gamma.value, round(found.sensitivity.total, 6)
    (0.44, True, 8.0)
    """
    parties = validation.check_parties(parties)
    roster = Federation(parties).roster
    task = validation.paper_task(task, "diagnosed")
    validation.check_job(task, roster, coreset=coreset)
    if roster.weight_party is not None:
        raise UnsupportedError("A diagnosis counts every row once. Diagnose parties without weight=.")
    pairs = whole_number("pairs", pairs, least=2, example="Pass for instance pairs=2000.")
    within = positive_number("epsilon", epsilon, example="Pass for instance epsilon=0.1.")
    view = UseFrame("train", task.scaling, None, None, None)
    tables = {party.name: view.of(party.table) for party in parties}
    found = diagnose_tables(task, tables, coreset, pairs, within, validation.seed_number(seed))
    for concern in found.concerns:
        warnings.warn(concern, AssumptionWarning, stacklevel=2)
    return found
