"""Plans on real data: bytes as predicted and never above the budget, excess near the mean of 20 seeds.

All seeds are fixed, so that a test that passes passes again. For other seeds of the pilot the ratios of planned to mean
excess were seen between 0.76 and 1.35 (regression); the bars are 1.5 and 2.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.kernels.kmeans import nearest_centers
from colonnade.paper.data_sets.year_twin import year_twin

SEEDS = range(20)


def check(
    federation: cn.Federation,
    task: Any,
    budget: int,
    cost: Callable[[Any], float],
    best: float,
    factor: float,
    off_by: float = 0.02,
    *,
    cautious: bool = False,
) -> cn.Plan:
    plan = federation.plan(task, budget_bytes=budget)
    runs: list[Any] = [federation.fit(task, plan=plan, seed=seed) for seed in SEEDS]
    sent = np.array([run.ledger.bytes for run in runs])
    off = np.abs(sent / plan.bytes - 1)
    assert sent.max() <= budget
    assert off.mean() < off_by
    assert off.max() < 1.5 * off_by
    excess = float(np.mean([cost(run.model) for run in runs])) / best - 1
    assert plan.excess is not None, "nothing is unclear"
    least = plan.excess.low if cautious else plan.excess.mean / factor
    assert least < excess < plan.excess.mean * factor
    return plan


def of_least_squares(federation: cn.Federation) -> tuple[Callable[[Any], float], float]:
    """Give the cost of a model on all rows, and that of the best."""

    def cost(model: Any) -> float:
        return float(federation.evaluate(model).cost)

    return cost, cost(federation.fit(cn.Regression(), sampler=cn.AllRows()).model)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [12_000, 30_000, 100_000])
def test_kc_house(kc_house: tuple[Floats, Floats], budget: int) -> None:
    """From 700 rows to 13,000. The excess of that many is put too high, at 1.4 times what comes as a rule.

    Of 24 pilots it was 0.97 to 2.3 times; two came below the plan's interval, none above.
    """
    federation = cn.Federation(cn.split_columns(*kc_house, [9, 9]))
    plan = check(federation, cn.Regression(), budget, *of_least_squares(federation), 1.5, cautious=budget == 100_000)
    assert isinstance(plan.sampler, cn.ImportanceSampling) or budget < 30_000, "few houses have most of the leverage"


def test_kc_house_at_the_papers_bytes(kc_house: tuple[Floats, Floats]) -> None:
    """A fast one of the same kind: what the pilot learns pays for itself, at 100 rows of the paper's wire."""
    federation = cn.Federation(cn.split_columns(*kc_house, [9, 9]))
    cost, best = of_least_squares(federation)
    plan = check(federation, cn.Regression(), 20_016, cost, best, 1.5)
    papers = cn.ImportanceSampling(100, draws="independent")
    paper = [cost(federation.fit(cn.Regression(), sampler=papers, seed=seed).model) / best - 1 for seed in SEEDS]
    assert plan.excess is not None
    assert plan.excess.mean < np.mean(paper) / 12


@pytest.mark.slow
@pytest.mark.parametrize("budget", [90_000, 150_000, 400_000])
def test_the_twin_of_year_prediction(data_folder: Path, budget: int) -> None:
    """240 to 13,000 rows of 463,715, with 1,518 moments to calibrate by."""
    features, labels = year_twin(data_folder / "year_msd_sample7000.parquet").train
    federation = cn.Federation(cn.split_columns(features, labels, [30, 30, 30]))
    task = cn.Regression(l2=0.1)
    columns = np.column_stack([features, labels])
    mean = columns.mean(axis=0)
    second = (columns - mean).T @ (columns - mean) / len(columns)

    def cost(model: Any) -> float:
        direction = np.append(model.coef_, -1.0)
        offset = float(mean @ direction) + model.intercept_
        return float(direction @ second @ direction + offset**2 + 0.1 * model.coef_ @ model.coef_)

    check(federation, task, budget, cost, cost(federation.fit(task, sampler=cn.AllRows()).model), 1.5)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [26_000, 90_000])
def test_covertype(data_folder: Path, budget: int) -> None:
    """K-means with 15 centres; the excess is over the best of five starts on all rows."""
    import pyarrow.parquet as pq

    table = pq.read_table(data_folder / "covtype.parquet")
    values = np.column_stack([table.column(i).to_numpy().astype(np.float64) for i in range(54)])
    values[:, :10] = (values[:, :10] - values[:, :10].mean(axis=0)) / values[:, :10].std(axis=0)
    values = values[:, np.concatenate([np.arange(first, 54, 3) for first in range(3)])]
    federation = cn.Federation(cn.split_columns(values, None, [18, 18, 18]))

    def cost(model: Any) -> float:
        return float(nearest_centers(values, model.cluster_centers_)[1].sum())

    starts = (federation.fit(cn.KMeans(15, n_starts=1), sampler=cn.AllRows(), seed=seed) for seed in range(5))
    check(federation, cn.KMeans(15), budget, cost, min(cost(run.model) for run in starts), 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [30_000, 60_000])
@pytest.mark.parametrize("table", ["houses", "defaults"])
def test_classes(kc_house: tuple[Floats, Floats], data_folder: Path, table: str, budget: int) -> None:
    """For other seeds of the pilot ratios were seen between 0.6 and 2: the bar is 2.

    Bytes are off by 3 % on credit default, whose columns of few values take fewer than a pilot tells.
    """
    if table == "houses":
        features, prices = kc_house
        labels, widths = (prices > np.median(prices)).astype(float), [9, 9]
    else:
        columns = pq.read_table(data_folder / "credit_default.parquet").columns[1:25]
        values = np.column_stack([column.to_numpy().astype(np.float64) for column in columns])
        features, labels, widths = values[:, :23], values[:, 23], [8, 8, 7]
    task = cn.Classification(l2=5e-5, standardize=True)
    federation = cn.Federation(cn.split_columns(features, labels, widths))

    def cost(model: Any) -> float:
        return task.cost(model, features, labels)

    best = cost(federation.fit(task, sampler=cn.AllRows()).model)
    check(federation, task, budget, cost, best, 2.0, off_by=0.04)
