"""How often certificates are right on real houses, and what tampering they find. The full study is a benchmark."""

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels.arrays import Floats

STUDY = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "certificate.py"))
House = tuple[Floats, Floats]


def coverage(data: House, solver: Any, seeds: int) -> dict[str, float]:
    found: dict[str, float] = STUDY["coverage"](data, [9, 9], cn.Regression(), 600, solver, seeds, evenly=True)
    return found


@pytest.mark.slow
def test_interval_and_bound_hold_in_nineteen_of_twenty_runs(kc_house: House) -> None:
    """Of 200 seeds. Over 400 it is 96.8 and 98.8 %: below 91 % or above 99.5 % come once in 100 of 95 and 97 %."""
    found = coverage(kc_house, cn.Central(), 200)
    assert 0.91 <= found["interval holds"] <= 0.995
    assert found["bound holds"] >= 0.91
    assert found["relative bound holds"] >= 0.91
    assert found["coreset doubted"] <= 0.04
    assert found["draws doubted"] <= 0.04
    assert found["even audit: interval holds"] < 0.88, "79 % over 1,000 seeds: what a certificate must do better than"
    assert found["interval length / cost"] < 0.25
    assert found["relative bound"] < 0.06


@pytest.mark.slow
def test_with_rounded_rows_the_bound_holds_too(kc_house: House) -> None:
    """Of 100 seeds. Over 400 each bound given held, none was given in 13, and intervals held in 94.8 %."""
    found = coverage(kc_house, cn.CompactCentral(), 100)
    assert found["bound holds"] >= 0.95
    assert found["interval holds"] >= 0.88


@pytest.mark.slow
@pytest.mark.parametrize("table", ["ratios", "tails"])
def test_intervals_hold_where_tails_are_heavy(table: str) -> None:
    """Of 150 seeds. Of exact intervals fewer than 90 % hold in one of 100 sets of seeds, above 99.3 % in one of 250."""
    found = STUDY[table](Path(), 150)
    assert 0.90 <= found["interval holds"] <= 0.993
    assert found["bound holds"] >= 0.90
    assert found["draws doubted"] <= 0.04
    assert found["coreset doubted"] <= 0.04


@pytest.mark.slow
@pytest.mark.parametrize("job", ["defaults", "rare-defaults", "spruce", "dear", "dear-compact"])
def test_intervals_and_bounds_of_classes_hold(job: str, data_folder: Path) -> None:
    """Of 300 seeds. Over 400 and more, intervals held in 95 to 97 %, bounds in 99 % at least.

    Of 95 % fewer than 90 % come once in 8,000 sets of seeds; of 97 %, more than 99.5 % come once in 900.
    """
    found = STUDY["JOBS"][job](data_folder, 300)
    assert 0.90 <= found["interval holds"] <= 0.995
    assert found["bound holds"] >= 0.93
    assert found["no bound"] <= 0.06
    assert found["draws doubted"] <= 0.04
    assert found["coreset doubted"] <= 0.05


@pytest.mark.parametrize("draws", ["stratified", "distinct"])
def test_rows_that_are_certain_do_not_widen_an_interval(draws: Any) -> None:
    """Of 60 audits of three models at least 52 hold: fewer come once in 200 of exact ones. A few rows weigh much."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 6))
    X[:20] *= np.geomspace(30, 300, 20)[:, np.newaxis]
    y = X @ rng.normal(size=6) + rng.normal(size=4000) * (1 + 0.1 * np.abs(X[:, 0]))
    federation = cn.Federation(cn.split_columns(X, y, [3, 3]))
    held, lengths = [], []
    for number in range(3):
        run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(400, draws=draws), seed=number)
        cost = federation.evaluate(run.model).cost
        for seed in range(20):
            found = federation.certify(run, rows=400, seed=seed)
            low, high = found.cost_interval
            held.append(low <= cost <= high)
            lengths.append((high - low) / cost)
            assert found.draws_p > 1e-4
    assert sum(held) >= 52
    assert np.mean(lengths) < 0.35, "0.22; with draws that are independent 0.52"


@pytest.mark.parametrize(("party", "too"), [("party1", False), ("party2", True)])
def test_a_party_that_does_not_draw_by_its_scores_is_found(kc_house: House, party: str, too: bool) -> None:
    """Every time of 100 in the study; here five times, in the coreset alone or in the audit too."""
    parties = cn.split_columns(*kc_house, [9, 9])
    honest = cn.Federation(parties)
    bent = cn.Federation(parties, transport=lambda sessions: STUDY["DishonestTransport"](sessions, party))
    for seed in range(5):
        run = bent.fit(cn.Regression(), sampler=cn.ImportanceSampling(600), seed=seed)
        found = (bent if too else honest).certify(run, seed=seed)
        assert found.draws_p < 0.01
        assert not found.trusted


def test_labels_that_were_not_the_true_ones_are_found(kc_house: House) -> None:
    """Ten percent too large in the coreset: found every time of 100 in the study, by the gradient alone."""
    features, labels = kc_house
    honest, bent = (cn.Federation(cn.split_columns(features, y, [9, 9])) for y in (labels, 1.1 * labels))
    for seed in range(5):
        run = bent.fit(cn.Regression(), sampler=cn.ImportanceSampling(600), seed=seed)
        found = honest.certify(replace(run, tables=None), seed=seed)  # who lies does not tell that they are others
        assert found.gradient_p is not None
        assert found.gradient_p < 0.01 <= found.draws_p


def test_intervals_of_clusterings_hold(kc_house: House) -> None:
    """Of 100 audits of two models at least 89 hold: fewer than that come once in 150 of exact intervals."""
    features = (kc_house[0] - kc_house[0].mean(axis=0)) / kc_house[0].std(axis=0)
    federation = cn.Federation(cn.split_columns(features, None, [9, 9]))
    held = []
    for number in range(2):
        task = cn.KMeans(n_clusters=5, n_starts=2)
        run = federation.fit(task, sampler=cn.ImportanceSampling(600), seed=number)
        cost = federation.evaluate(run.model).cost
        for seed in range(50):
            low, high = federation.certify(run, seed=seed).cost_interval
            held.append(low <= cost <= high)
    assert np.mean(held) >= 0.89
