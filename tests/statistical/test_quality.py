"""What coresets gain on real data, with fixed seeds: the tests cannot fail by chance, only by a change."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.kernels.kmeans import nearest_centers

SEEDS = range(20)


@pytest.fixture(scope="module")
def houses(kc_house: tuple[Floats, Floats]) -> Callable[[Any], list[float]]:
    """Give the excess of least squares on KC House, features 1-9 / 10-18, over the fit of all rows."""
    X, y = kc_house
    federation = cn.Federation(cn.split_columns(X, y, [9, 9]))
    joined = np.column_stack([X, np.ones(len(X)), -y])
    triangle = np.asarray(np.linalg.qr(joined, mode="r"))

    def cost(model: cn.LinearModel) -> float:
        return float(np.sum((triangle @ [*model.coef_, model.intercept_, 1.0]) ** 2))

    best = cost(federation.fit(cn.Regression(), sampler=cn.AllRows()).model)

    def excesses(sampler: Any) -> list[float]:
        return [cost(federation.fit(cn.Regression(), sampler=sampler, seed=seed).model) / best - 1 for seed in SEEDS]

    return excesses


@pytest.mark.parametrize(("size", "mean"), [(100, 0.25), (200, 0.12), (600, 0.04)])
def test_least_squares_on_kc_house(houses: Callable[[Any], list[float]], size: int, mean: float) -> None:
    """Mean excess over 20 seeds, and no run above 1.

    With fresh seeds at size 100 the mean is 0.18 with a standard error of 0.02, and one run in 20,000 is above 1; none
    was at the larger sizes.
    """
    excesses = houses(cn.ImportanceSampling(size=size))
    assert np.mean(excesses) <= mean
    assert np.max(excesses) <= 1


@pytest.mark.parametrize("size", [200, 400, 600])
def test_importance_beats_uniform_on_kc_house(houses: Callable[[Any], list[float]], size: int) -> None:
    ours, uniform = houses(cn.ImportanceSampling(size=size)), houses(cn.UniformSampling(size=size))
    assert np.mean(ours) < 0.5 * np.mean(uniform)
    assert np.max(ours) < 0.5 * np.max(uniform)


@pytest.mark.parametrize("size", [100, 200])
def test_importance_beats_uniform_on_imbalanced_clusters(size: int) -> None:
    """Six clusters, sizes 1 : 100; mean cost over 20 seeds."""
    rng = np.random.default_rng(0)
    middles, sizes = 10 * rng.normal(size=(6, 6)), [20_000] * 3 + [200] * 3
    X = np.concatenate([middle + rng.normal(size=(n, 6)) for middle, n in zip(middles, sizes, strict=True)])
    federation = cn.Federation(cn.split_columns(X, None, [3, 3]))

    def mean_cost(sampler: Any) -> float:
        models = (federation.fit(cn.KMeans(6), sampler=sampler, seed=seed).model for seed in SEEDS)
        return float(np.mean([federation.evaluate(model).cost for model in models]))

    best = federation.evaluate(federation.fit(cn.KMeans(6), sampler=cn.AllRows()).model).cost
    ours, uniform = mean_cost(cn.ImportanceSampling(size)), mean_cost(cn.UniformSampling(size))
    assert ours - best < 0.7 * (uniform - best)


# Covertype, ten columns standardised, dealt in turn to three parties, 15 clusters.

BEST_ON_COVERTYPE = 5.1335  # a row: the best of five fits of all rows, each from one start; tested below


@pytest.fixture(scope="module")
def covertype(data_folder: Path) -> tuple[cn.Federation, Callable[[cn.KMeansModel], float]]:
    """Give the federation, and what a model costs a row of all rows."""
    import pyarrow.parquet as pq

    table = pq.read_table(data_folder / "covtype.parquet")
    X = np.column_stack([table.column(i).to_numpy().astype(np.float64) for i in range(54)])
    X[:, :10] = (X[:, :10] - X[:, :10].mean(axis=0)) / X[:, :10].std(axis=0)
    X = np.asfortranarray(np.hstack([X[:, party::3] for party in range(3)]))
    parties = [cn.Party(f"party{i}", part) for i, part in enumerate(np.split(X, 3, axis=1))]
    return cn.Federation(parties), lambda model: nearest_centers(X, model.cluster_centers_)[1].mean()


@pytest.mark.slow(sampled=False)
@pytest.mark.parametrize("n_seeds", [3, 10])
def test_a_coreset_on_covertype(
    covertype: tuple[cn.Federation, Callable[[cn.KMeansModel], float]], n_seeds: int
) -> None:
    """Mean cost over the seeds, with ten starts each, within 1.5 % of the best fit of all rows; it is 0.6 % above."""
    federation, cost = covertype
    sampler = cn.ImportanceSampling(size=6_000)
    costs = [cost(federation.fit(cn.KMeans(15), sampler=sampler, seed=seed).model) for seed in range(n_seeds)]
    assert np.mean(costs) <= 1.015 * BEST_ON_COVERTYPE


@pytest.mark.slow(sampled=False)
def test_the_best_fit_of_covertype(covertype: tuple[cn.Federation, Callable[[cn.KMeansModel], float]]) -> None:
    """The number that the bar above stands on, made anew: minutes."""
    federation, cost = covertype
    task = cn.KMeans(15, n_starts=1)
    costs = [cost(federation.fit(task, sampler=cn.AllRows(), seed=seed).model) for seed in range(5)]
    assert min(costs) == pytest.approx(BEST_ON_COVERTYPE, rel=1e-4)
