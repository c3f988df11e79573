"""How often intervals of coefficients hold: on real houses, the twin of songs, who will not pay. See coverage.jsonl."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels.arrays import Floats

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import coverage


def counted(name: str, folder: Path, arm: coverage.Arm, seeds: int) -> list[float]:
    table = coverage.TABLES[name](folder)
    found: list[float] = coverage.covered(table, arm, range(1000, 1000 + seeds), coverage.truth(table))["covered"]
    return found


@pytest.mark.parametrize("wire", ["floats", "rounded"])
@pytest.mark.parametrize("draws", ["stratified", "distinct"])
def test_intervals_of_houses_hold(data_folder: Path, draws: str, wire: str) -> None:
    """Of 40 seeds the mean of 17 coefficients is off by about 1 %: beyond 4 % it comes once in 10^4."""
    held = counted("houses", data_folder, coverage.Arm("table", draws, wire, 500), 40)
    assert 0.915 <= np.mean(held) <= 0.99
    assert min(held) >= 0.75


@pytest.mark.slow
@pytest.mark.parametrize("size", coverage.SIZES)
@pytest.mark.parametrize("wire", coverage.WIRES)
@pytest.mark.parametrize("draws", ["stratified", "distinct"])
@pytest.mark.parametrize("name", ["houses", "songs", "credit"])
def test_the_bars_hold(data_folder: Path, name: str, draws: str, wire: str, size: int) -> None:
    """Other seeds than the stored ones, whose means are 94.4 to 97.1 %; a mean is off by about 0.4 %.

    Half a percent beyond the bars is allowed, so that one of 300 is beyond it. Of a single coefficient that holds in
    93 % one in 10^4 is below 86 % of 200 seeds, or below 80 % of 100.
    """
    seeds = 100 if name == "songs" else 200
    held = counted(name, data_folder, coverage.Arm("table", draws, wire, size), seeds)
    # Rounded rows of credit default hold a little too often.
    assert 0.93 <= np.mean(held) <= (0.98 if (name, wire) == ("credit", "rounded") else 0.97)
    assert min(held) >= (0.80 if name == "songs" else 0.86)


@pytest.mark.slow
@pytest.mark.parametrize("size", coverage.SIZES)
@pytest.mark.parametrize("wire", coverage.WIRES)
def test_intervals_for_a_population_hold(data_folder: Path, wire: str, size: int) -> None:
    """Of 200 populations, as above."""
    held = counted("houses", data_folder, coverage.Arm("population", "stratified", wire, size), 200)
    assert 0.93 <= np.mean(held) <= 0.97
    assert min(held) >= 0.86


@pytest.mark.parametrize("solver", [cn.CompactCentral(0.5), cn.CompactCentral(0.2)])
def test_rounding_alone_varies_as_it_says(solver: Any) -> None:
    """All rows, rounded 60 times: mean squares of 6 coefficients are off by 7 %; beyond 30 % once in 10^4."""
    rng = np.random.default_rng(0)
    X: Floats = rng.normal(size=(3000, 6))
    federation = cn.Federation(cn.split_columns(X, X @ np.arange(6.0) + 3 * rng.normal(size=3000), [3, 3]))
    exact = federation.fit(cn.Regression(), sampler=cn.AllRows()).model.coef_
    squares = []
    for seed in range(60):
        run = federation.fit(cn.Regression(), sampler=cn.AllRows(), solver=solver, seed=seed)
        errors = [each.standard_error for each in run.summary("table").coefficients[1:]]
        squares.append(np.square((run.model.coef_ - exact) / np.array(errors, np.float64)))
    assert 0.7 <= np.mean(squares) <= 1.3
