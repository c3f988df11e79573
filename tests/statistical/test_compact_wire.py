"""Rounded rows on real houses, whose parties are exactly collinear: square feet above and below ground add up."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.kernels.rounding_noise import RoundedColumns
from colonnade.paper.data_sets.year_twin import year_twin

PAPER: dict[str, Any] = {"draws": "independent"}  # Algorithm 1 to the letter
OURS: dict[str, Any] = {"round_scores": 0.2}


def excesses(federation: cn.Federation, task: Any, sampler: Any, solver: Any, n_seeds: int) -> tuple[Floats, int]:
    """Give the excess of each seed, and the most bytes that one sent."""
    best = cost(federation, task, federation.fit(task, sampler=cn.AllRows()).model)
    runs = [federation.fit(task, sampler=sampler, solver=solver, seed=seed) for seed in range(n_seeds)]
    found = np.array([cost(federation, task, run.model) / best - 1 for run in runs])
    return found, max(run.ledger.bytes for run in runs)


def cost(federation: cn.Federation, task: Any, model: Any) -> float:
    return float(federation.evaluate(model).cost_per_row + task.l2 * model.coef_ @ model.coef_)


def test_a_fifteenth_of_the_papers_excess_at_its_bytes(kc_house: tuple[Floats, Floats]) -> None:
    """The mean of 12 seeds is 1/20 to 1/60; above 1/15 would be more than five standard errors off."""
    federation, task = cn.Federation(cn.split_columns(*kc_house, [9, 9])), cn.Regression()
    paper, _ = excesses(federation, task, cn.ImportanceSampling(100, **PAPER), cn.Central(), 12)
    ours, sent = excesses(federation, task, cn.ImportanceSampling(1520, **OURS), cn.CompactCentral(0.5), 12)
    assert sent <= 8 * (2 + 3 * 100 * 2 + 100 * 19) == 20_016
    assert ours.mean() < paper.mean() / 15


@pytest.mark.slow
@pytest.mark.parametrize(("size", "step"), [(200, 1.0), (600, 0.5), (1500, 0.5), (1500, 1.5), (6000, 1.0)])
def test_the_correction_is_never_worse_than_none(
    kc_house: tuple[Floats, Floats], monkeypatch: pytest.MonkeyPatch, size: int, step: float
) -> None:
    """The same seeds with and without: differences scatter by less than 1 % of the excess. 3 % are allowed."""
    federation, sampler = cn.Federation(cn.split_columns(*kc_house, [9, 9])), cn.ImportanceSampling(size, **OURS)
    corrected, _ = excesses(federation, cn.Regression(), sampler, cn.CompactCentral(step), 12)
    monkeypatch.setattr(RoundedColumns, "worthwhile_share", lambda *_: 0.0)
    plain, _ = excesses(federation, cn.Regression(), sampler, cn.CompactCentral(step), 12)
    assert corrected.mean() < 1.03 * plain.mean()


@pytest.mark.slow
def test_the_correction_takes_away_most_of_what_rounding_adds(
    kc_house: tuple[Floats, Floats], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where that is mostly bias. Over 180 seeds 29 % stay; of 60 seeds more than 40 % stay once in 10^4."""
    federation, sampler = cn.Federation(cn.split_columns(*kc_house, [9, 9])), cn.ImportanceSampling(6000, **OURS)
    fine, _ = excesses(federation, cn.Regression(), sampler, cn.CompactCentral(0.02), 60)
    corrected, _ = excesses(federation, cn.Regression(), sampler, cn.CompactCentral(1.0), 60)
    monkeypatch.setattr(RoundedColumns, "worthwhile_share", lambda *_: 0.0)
    plain, _ = excesses(federation, cn.Regression(), sampler, cn.CompactCentral(1.0), 60)
    assert (corrected - fine).mean() < 0.4 * (plain - fine).mean()


@pytest.mark.slow
def test_a_fifteenth_of_it_on_the_twin(data_folder: Path) -> None:
    """463,715 rows. The mean of 20 seeds is about 1/27, and a seed scatters by a fifth of its excess."""
    features, labels = year_twin(data_folder / "year_msd_sample7000.parquet").train
    federation, task = cn.Federation(cn.split_columns(features, labels, [30, 30, 30])), cn.Regression(l2=0.1)
    paper, _ = excesses(federation, task, cn.ImportanceSampling(1000, **PAPER), cn.Central(), 3)
    ours, sent = excesses(federation, task, cn.ImportanceSampling(16_500, **OURS), cn.CompactCentral(0.55), 3)
    assert sent <= 8 * (3 + 3 * 1000 * 3 + 1000 * 90) == 792_024
    assert ours.mean() < paper.mean() / 15
