"""The paper's numbers, again: as run they are the authors', as written they are better. Seeds are fixed.

What may differ and why: the twin stands in for YearPredictionMSD, made of 7,000 of its rows, so levels are off by a few
per cent (the full ridge fit's test error is 89.3, not 90.4; k-means costs 71.0, not 71.7, its rows being more alike).
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from colonnade.paper.data_sets import loader
from colonnade.paper.experiments import EXPERIMENTS
from colonnade.paper.runner import Settings
from colonnade.paper.runner import run as play
from colonnade.paper.store import Store
from colonnade.paper.trials import cells
from colonnade.paper.variants import AS_RUN, AS_WRITTEN
from command import run

Cells = dict[tuple[str, int], dict[str, Any]]
SIZES = (1000, 6000)


def by_place(cells: list[dict[str, Any]]) -> Cells:
    return {(cell["method"], cell["size"]): cell for cell in cells}


def reproduce(data_folder: Path, out: Path, *arguments: str) -> Cells:
    done = run("reproduce", *arguments, "--json", "--out", str(out), COLONNADE_DATA=str(data_folder))
    assert done.returncode == 0, done.stderr
    return by_place(json.loads(done.stdout))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reproduced")


def ridge_is_as_printed(ran: Cells, written: Cells) -> None:
    """Ten repeats: the standard errors are below 0.7 at 1000 rows and 0.15 at 6000; 4 % is 4."""
    assert {cell["data"] for cell in [*ran.values(), *written.values()]} == {"twin of YearPredictionMSD"}
    for size in SIZES:
        for method in ("C-Central", "U-Central"):
            cell = ran[method, size]
            assert cell["mean"] == pytest.approx(cell["printed"], rel=0.04)
        ours, theirs = written["C-Central", size], ran["C-Central", size]
        error = np.sqrt((ours["std"] ** 2 + theirs["std"] ** 2) / ours["repeats"])
        assert ours["mean"] <= theirs["mean"] + 2 * error
        assert ran["C-Central", size]["mean"] < ran["U-Central", size]["mean"]
        assert written["C-Central", size]["mean"] < written["U-Central", size]["mean"]
    # The penalty's scale: as run it counts 46 times as much after uniform draws as on all rows.
    ours, theirs = written["U-Central", 1000], ran["U-Central", 1000]
    error = np.sqrt((ours["std"] ** 2 + theirs["std"] ** 2) / ours["repeats"])
    assert ours["mean"] < theirs["mean"] - 3 * error


@pytest.mark.slow
def test_ridge_as_run_is_as_printed_and_as_written_is_better(data_folder: Path, out: Path) -> None:
    """Without SAGA, which takes most of the command's time; first in this file, so that the sample has it."""
    whole = EXPERIMENTS["table1-regression"]
    central = replace(whole, parts=tuple(replace(part, methods=("Central",)) for part in whole.parts))
    load, store = loader(data_folder), Store(out / "results.jsonl")
    trials = (list(play(central, Settings(variant, quick=True), load, store)) for variant in (AS_RUN, AS_WRITTEN))
    ridge_is_as_printed(*(by_place([msgspec.to_builtins(cell) for cell in cells(found)]) for found in trials))


@pytest.mark.slow
def test_ridge_by_the_command_with_saga(data_folder: Path, out: Path) -> None:
    ran = reproduce(data_folder, out, "table1-regression", "--quick", "--variant", "as-run")
    written = reproduce(data_folder, out, "table1-regression", "--quick")
    ridge_is_as_printed(ran, written)
    assert ran["C-SAGA", 1000]["mean"] > ran["C-Central", 1000]["mean"], "stopped before it converged"
    assert written["C-SAGA", 1000]["mean"] == pytest.approx(written["C-Central", 1000]["mean"], rel=0.03)


@pytest.mark.slow
def test_kc_house_in_full_as_run(data_folder: Path, out: Path) -> None:
    found = reproduce(data_folder, out, "kc-house", "--variant", "as-run")
    assert found["Central", 21_613]["mean"] == pytest.approx(4.04669e10, rel=1e-5)
    # Theirs ends in worse optima now and then; scikit-learn confirms the best known, which our search mostly finds.
    assert 0.999 * 11.2741 < found["Kmeans++", 21_613]["mean"] < 1.01 * 11.405
    for size in range(100, 601, 100):
        for method in ("C-Kmeans++", "U-Kmeans++", "C-SAGA", "U-SAGA"):
            cell = found[method, size]
            pooled = np.sqrt((cell["std"] ** 2 + cell["stored_std"] ** 2) / 2)
            assert abs(cell["mean"] - cell["stored_mean"]) < 3 * pooled, (method, size)
        # The stored costs blow up for want of a rank-safe solver; ours stay near that of all rows.
        assert found["C-Central", size]["mean"] < 1.25 * 4.04669e10 < found["C-Central", size]["stored_mean"] * 1.2


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["as-run", "as-written"])
def test_k_means_is_within_four_per_cent(variant: str, data_folder: Path, out: Path) -> None:
    found = reproduce(data_folder, out, "table1-clustering", "--quick", "--variant", variant)
    assert {cell["data"] for cell in found.values()} == {"twin of YearPredictionMSD, one row in 5"}
    for (method, _), cell in found.items():
        if "Kmeans++" in method:
            assert cell["mean"] == pytest.approx(cell["printed"], rel=0.04), method
    few, many = SIZES
    for solver, size in (("Kmeans++", few), ("Kmeans++", many), ("DistDim", few)):
        assert found[f"C-{solver}", size]["mean"] < found[f"U-{solver}", size]["mean"]
    # At 6000 rows five repeats do not tell DistDim's draws apart; the 20 kept ones do (test_reproduction_page.py).
    # Here a coreset must not stand out as the worse: false alarm below 1 % were both the same (Student's t, 8 degrees).
    ours, even = found["C-DistDim", many], found["U-DistDim", many]
    error = np.sqrt((ours["std"] ** 2 + even["std"] ** 2) / (ours["repeats"] - 1))
    assert ours["mean"] < even["mean"] + 3 * error
