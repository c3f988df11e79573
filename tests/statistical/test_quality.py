"""What coresets gain on real data, with fixed seeds: the tests cannot fail by chance, only by a change."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels.arrays import Floats

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
