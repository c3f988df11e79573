"""The demo: three organisations learn from 325,973 flights without pooling them.

Each has a file of its own, with text and gaps, and prepares its columns itself; they find the flights that all of them
know without telling the server one. Coresets of a few sizes against uniform samples of the same sizes and against all
rows, over many seeds. The cost of every model is counted on all rows by a referee that, unlike anyone in a real
federation, sees everything.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from colonnade.data.parties import Party
from colonnade.demo.flights import KEY, LABEL, PREPARE
from colonnade.demo.results import ALL_ROWS, CORESET, UNIFORM, Result
from colonnade.federation import Federation
from colonnade.kernels.arrays import Floats
from colonnade.kernels.kmeans import nearest_centers
from colonnade.kernels.linear import weighted_triangle
from colonnade.run import Run
from colonnade.sampling import AllRows, AnySampler, ImportanceSampling, UniformSampling
from colonnade.tasks import KMeans, Regression

if TYPE_CHECKING:
    import pandas as pd

SAMPLERS: dict[str, Callable[[int], AnySampler]] = {UNIFORM: UniformSampling, CORESET: ImportanceSampling}


@dataclass(frozen=True)
class DemoPlan:
    """How much to run."""

    sizes: tuple[int, ...] = (500, 1000, 2000, 4000)
    regression_seeds: int = 50
    clustering_seeds: int = 10

    @property
    def n_runs(self) -> int:
        """How many models will be learned."""
        return 2 + len(SAMPLERS) * len(self.sizes) * (self.regression_seeds + self.clustering_seeds)


@dataclass(frozen=True)
class Case:
    """A task, the parties, aligned, and the referee's cost a row of a model on all rows that they have in common."""

    name: str
    task: Any
    federation: Federation
    cost: Callable[[Any], float]
    n_seeds: int


def cases(tables: "Mapping[str, pd.DataFrame]", files: Mapping[str, Path], plan: DemoPlan) -> Iterator[Case]:
    """Set up the two tasks of the demo: predict the arrival delay; cluster the flights."""
    labels = {"airline": LABEL}
    parties = [
        Party(name, path, key=KEY, label=labels.get(name), prepare=PREPARE[name]) for name, path in files.items()
    ]
    federation = Federation(parties, align="aided")
    features, label = _pooled(tables, federation)
    yield Case("regression", Regression(), federation, _regression_cost(features, label), plan.regression_seeds)
    # Four starts instead of ten: on all rows they take most of the demo's time.
    task = KMeans(n_clusters=8, n_starts=4)
    yield Case("clustering", task, federation, _clustering_cost(features), plan.clustering_seeds)


def run_demo(case: Case, sizes: tuple[int, ...], first_seed: int) -> Iterator[tuple[Result, Run[Any]]]:
    """Learn on all rows, then on coresets and uniform samples of each size, with as many seeds as the case has."""
    federation = case.federation
    best, run = _one(case, federation, ALL_ROWS, AllRows(), first_seed)
    yield best, run
    # The parties keep their scores, so the first coreset pays for all: every coreset is charged for it.
    scoring = federation.coreset(case.task, ImportanceSampling(1), seed=first_seed).seconds
    for size in sizes:
        for method, sampler in SAMPLERS.items():
            extra = scoring if method == CORESET else 0.0
            for seed in range(first_seed, first_seed + case.n_seeds):
                result, run = _one(case, federation, method, sampler(size), seed)
                yield replace(result, excess=result.cost / best.cost - 1.0, seconds=result.seconds + extra), run


def _one(case: Case, federation: Federation, method: str, sampler: AnySampler, seed: int) -> tuple[Result, Run[Any]]:
    run = federation.fit(case.task, sampler=sampler, seed=seed)
    cost, ledger = case.cost(run.model), run.ledger
    return Result(case.name, method, len(run.coreset), seed, cost, 0.0, ledger.units, ledger.bytes, run.seconds), run


def _pooled(tables: "Mapping[str, pd.DataFrame]", federation: Federation) -> tuple[Floats, Floats]:
    """Join what all have, as the referee does, who sees everything, and prepare it as the parties did."""
    import pandas as pd

    frames = [tables[name][list(rules.columns)] for name, rules in PREPARE.items()]
    pooled = pd.concat([*frames, tables["airline"][LABEL]], axis=1, join="inner")
    # Any model carries the preparation: it is the same for all.
    model = federation.fit(Regression(), sampler=UniformSampling(1000)).model
    return model.to_sklearn()[:-1].transform(pooled), pooled[LABEL].to_numpy()


def _regression_cost(features: Floats, labels: Floats) -> Callable[[Any], float]:
    n = len(features)
    joined = np.column_stack([features, np.ones(n), -labels])
    triangle = weighted_triangle(joined, np.ones(n), np.zeros(joined.shape[1]))
    return lambda model: float(np.sum((triangle @ [*model.coef_, model.intercept_, 1.0]) ** 2)) / n


def _clustering_cost(features: Floats) -> Callable[[Any], float]:
    return lambda model: float(nearest_centers(features, model.cluster_centers_)[1].mean())
