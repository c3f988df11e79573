"""The demo: three organisations learn from 238,864 flights without pooling them.

Each has a file of its own; they find the flights that all of them know without telling the server one. Coresets of a
few sizes against uniform samples of the same sizes and against all rows, over many seeds. The cost of every model is
counted on all rows by a referee that, unlike anyone in a real federation, sees everything.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from colonnade.data.parties import Party
from colonnade.demo.flights import FlightData
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

    sizes: tuple[int, ...] = (250, 500, 1000, 2000, 4000)
    regression_seeds: int = 100
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


def cases(flights: FlightData, files: Mapping[str, Path], plan: DemoPlan) -> Iterator[Case]:
    """Set up the two tasks of the demo: predict the arrival delay; cluster the flights."""
    key, label = list(flights.key), flights.label
    labelled = [Party(name, path, key=key, label=label if name == "airline" else None) for name, path in files.items()]
    aligned = Federation(labelled, align="aided")
    features = _pooled({name: frame.drop(columns=key) for name, frame in flights.tables().items()})
    cost = _regression_cost(features.drop(columns=label).to_numpy(), features[label].to_numpy())
    yield Case("regression", Regression(), aligned, cost, plan.regression_seeds)
    # Each organisation scales its own columns: clustering compares columns, and minutes are not miles.
    scaled = {name: scaled_columns(frame, key) for name, frame in flights.tables().items()}
    scaled["airline"] = scaled["airline"].drop(columns=label)
    aligned = Federation([Party(name, frame, key=key) for name, frame in scaled.items()], align="aided")
    cost = _clustering_cost(_pooled({name: frame.drop(columns=key) for name, frame in scaled.items()}).to_numpy())
    yield Case("clustering", KMeans(n_clusters=8), aligned, cost, plan.clustering_seeds)


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


def scaled_columns(frame: "pd.DataFrame", key: Sequence[str]) -> "pd.DataFrame":
    """Give mean 0 and standard deviation 1 to the columns that are no key and not 0/1."""
    columns = [column for column in frame.columns if column not in key]
    numeric = [column for column in columns if not frame[column].isin((0.0, 1.0)).all()]
    return frame.assign(
        **{column: (frame[column] - frame[column].mean()) / frame[column].std(ddof=0) for column in numeric}
    )


def _pooled(frames: "Mapping[str, pd.DataFrame]") -> "pd.DataFrame":
    """Join what all have, as the referee does, who sees everything."""
    import pandas as pd

    return pd.concat(frames.values(), axis=1, join="inner")


def _regression_cost(features: Floats, labels: Floats) -> Callable[[Any], float]:
    n = len(features)
    joined = np.column_stack([features, np.ones(n), -labels])
    triangle = weighted_triangle(joined, np.ones(n), np.zeros(joined.shape[1]))
    return lambda model: float(np.sum((triangle @ [*model.coef_, model.intercept_, 1.0]) ** 2)) / n


def _clustering_cost(features: Floats) -> Callable[[Any], float]:
    return lambda model: float(nearest_centers(features, model.cluster_centers_)[1].mean())
