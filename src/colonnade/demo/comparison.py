"""The demo: three organisations learn from 238,864 flights without pooling them.

Coresets of a few sizes against uniform samples of the same sizes and against all rows, over many seeds. The cost of
every model is counted on all rows by a referee that, unlike anyone in a real federation, sees everything.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

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
    """A task, its parties, and the referee's cost a row of a model on all rows."""

    name: str
    task: Any
    parties: list[Party]
    cost: Callable[[Any], float]
    n_seeds: int


def cases(flights: FlightData, plan: DemoPlan) -> list[Case]:
    """Set up the two tasks of the demo: predict the arrival delay; cluster the flights."""
    features = {"airline": flights.airline.drop(columns=flights.label), "weather": flights.weather}
    features["registry"] = flights.registry
    # Each organisation scales its own columns: clustering compares columns, and minutes are not miles.
    scaled = {name: _scaled(frame) for name, frame in features.items()}
    labelled = [
        Party("airline", flights.airline, label=flights.label),
        Party("weather", flights.weather),
        Party("registry", flights.registry),
    ]
    labels = flights.airline[flights.label].to_numpy()
    return [
        Case("regression", Regression(), labelled, _regression_cost(_pooled(features), labels), plan.regression_seeds),
        Case(
            "clustering",
            KMeans(n_clusters=8),
            [Party(name, frame) for name, frame in scaled.items()],
            _clustering_cost(_pooled(scaled)),
            plan.clustering_seeds,
        ),
    ]


def run_demo(case: Case, sizes: tuple[int, ...], first_seed: int) -> Iterator[tuple[Result, Run[Any]]]:
    """Learn on all rows, then on coresets and uniform samples of each size, with as many seeds as the case has."""
    federation = Federation(case.parties)
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


def _scaled(frame: Any) -> Any:
    """Give mean 0 and standard deviation 1 to the columns that are not 0/1."""
    numeric = [column for column in frame.columns if not frame[column].isin((0.0, 1.0)).all()]
    return frame.assign(
        **{column: (frame[column] - frame[column].mean()) / frame[column].std(ddof=0) for column in numeric}
    )


def _pooled(frames: dict[str, Any]) -> Floats:
    return np.column_stack([frame.to_numpy() for frame in frames.values()])


def _regression_cost(features: Floats, labels: Floats) -> Callable[[Any], float]:
    n = len(features)
    joined = np.column_stack([features, np.ones(n), -labels])
    triangle = weighted_triangle(joined, np.ones(n), np.zeros(joined.shape[1]))
    return lambda model: float(np.sum((triangle @ [*model.coef_, model.intercept_, 1.0]) ** 2)) / n


def _clustering_cost(features: Floats) -> Callable[[Any], float]:
    return lambda model: float(nearest_centers(features, model.cluster_centers_)[1].mean())
