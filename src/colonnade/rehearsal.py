"""Before the real thing: an exact diagnosis where all tables are at hand, and a pilot that tells what size to draw."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from colonnade.api import Federation
from colonnade.coreset import Coreset
from colonnade.data.parties import Party
from colonnade.diagnostics.in_one_place import diagnose_tables
from colonnade.diagnostics.over_parties import shown_to_server
from colonnade.diagnostics.pilot import Pilot, conclude, usual_sizes
from colonnade.diagnostics.records import Diagnosis
from colonnade.door import check_job, check_kind, check_parties, seed_number
from colonnade.errors import AssumptionWarning, InputError, UnsupportedError
from colonnade.options import positive_number, whole_number
from colonnade.protocol.framing import UseFrame
from colonnade.sampling import ImportanceSampling
from colonnade.solvers import AnySolver, Central
from colonnade.tasks import PaperTask


def diagnose(
    parties: Iterable[Party],
    task: PaperTask,
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
    task : Regression or KMeans
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
    parties = check_parties(parties)
    roster = Federation(parties).roster
    check_job(task, roster, coreset=coreset)
    if roster.weight_party is not None:
        raise UnsupportedError("A diagnosis counts every row once. Diagnose parties without weight=.")
    pairs = whole_number("pairs", pairs, least=2, example="Pass for instance pairs=2000.")
    within = positive_number("epsilon", epsilon, example="Pass for instance epsilon=0.1.")
    frame = UseFrame("train", task.scaling, None, None, None)
    tables = {party.name: frame.of(party.table) for party in parties}
    found = diagnose_tables(task, tables, coreset, pairs, within, seed_number(seed))
    for concern in found.concerns:
        warnings.warn(concern, AssumptionWarning, stacklevel=2)
    return found


def pilot(
    federation: Federation,
    task: PaperTask,
    *,
    target: float,
    sizes: Sequence[int] | None = None,
    repeats: int = 5,
    rows: int | None = 5000,
    uniform_share: float = 0.0,
    solver: AnySolver = Central(),  # noqa: B008  # frozen
    seed: int = 0,
) -> Pilot:
    """Find out what size this data needs: learn on a few small coresets, and see how their cost falls with the size.

    It costs and discloses what as many runs of `fit` and `evaluate` do.

    Parameters
    ----------
    federation : Federation
        The parties.
    task : Regression or KMeans
        What to learn.
    target : float
        The relative excess of cost, over that of a model of all rows, that is wanted on average: 0.02 is 2 %.
    sizes : sequence of int, optional
        Pilot sizes, two at least. If left out: 10, 20 and 40 rows a column for regression, 30, 60 and 120 a cluster for
        k-means.
    repeats : int
        How many coresets of each size.
    rows : int, optional
        On how many rows, drawn evenly, the same for all, models are evaluated; None for all rows.
    uniform_share : float
        Of the sampler.
    solver : Central, DistDim or Saga
        How to learn.
    seed : int
        Decides all draws.

    Returns
    -------
    Pilot
        The size and its uncertainty.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.random.default_rng(0).normal(size=(5000, 4))
    >>> y = X @ np.ones(4) + np.random.default_rng(1).normal(size=5000)
    >>> federation = cn.Federation(cn.split_columns(X, y, [2, 2]))
    >>> 100 < cn.pilot(federation, cn.Regression(), target=0.01).size < 2000
    True
    """
    check_kind("federation", federation, Federation)
    check_kind("task", task, PaperTask)
    target = positive_number("target", target, example="Pass for instance target=0.02, an excess of 2 %.")
    repeats = whole_number("repeats", repeats, least=2, example="Pass for instance repeats=5.")
    chosen = usual_sizes(task, len(federation.roster.feature_names)) if sizes is None else tuple(sizes)
    if len(set(chosen)) < 2:
        raise InputError(f"A pilot compares sizes, got {list(chosen)}. Pass two different ones or more.")
    position, seed = len(federation.ledger), seed_number(seed)
    plan = [(size, seed + repeat) for size in chosen for repeat in range(repeats)]
    costs = []
    for size, own_seed in plan:
        sampler = ImportanceSampling(size, uniform_share)
        model: Any = federation.fit(task, sampler=sampler, solver=solver, seed=own_seed).model
        costs.append(federation.evaluate(model, rows=rows, seed=seed).cost)
    found = conclude([size for size, _ in plan], costs, target, np.random.default_rng([seed, 3]))
    ledger = federation.ledger.since(position)
    return replace(found, units=ledger.units, bytes=ledger.bytes, reveals=shown_to_server(ledger))
