"""`colonnade reproduce` as a user runs it."""

import json
import subprocess
from pathlib import Path

import pytest

from colonnade.paper.trials import read_trials
from command import run

FIELDS = {
    "experiment",
    "variant",
    "data",
    "method",
    "size",
    "repeats",
    "mean",
    "std",
    "stored_mean",
    "stored_std",
    "printed",
    "units",
    "bytes",
}


def reproduce(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run("reproduce", *arguments, COLONNADE_DATA=str(folder), COLUMNS="200")


@pytest.fixture(scope="module")
def quick(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    out = tmp_path_factory.mktemp("quick") / "deep" / "out"
    done = reproduce(data_folder, "kc-house", "--quick", "--repeats", "2", "--json", "--out", str(out))
    assert done.returncode == 0, done.stderr
    return out, done


def test_json_is_a_list_of_cells(quick: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    found = json.loads(quick[1].stdout)
    assert all(set(cell) >= FIELDS for cell in found)
    by_method = {(cell["method"], cell["size"]): cell for cell in found}
    central = by_method["Central", 21_613]
    assert central["mean"] == pytest.approx(central["stored_mean"], rel=1e-9)
    assert (central["experiment"], central["variant"], central["data"]) == ("kc-house", "as-written", "KC House")
    assert by_method["C-Kmeans++", 600]["repeats"] == 2
    assert by_method["C-Kmeans++", 600]["units"] == 600 + 2 * 600 * 2 + 2 * 2 + 600 * 18
    assert ("C-SAGA", 600) not in by_method, "a slow method only at the first size"


def test_everything_is_written_and_a_second_run_computes_nothing(
    quick: tuple[Path, subprocess.CompletedProcess[str]], data_folder: Path
) -> None:
    out, _ = quick
    stored = (out / "results.jsonl").read_bytes()
    again = reproduce(data_folder, "kc-house", "--quick", "--repeats", "2", "--out", str(out))
    assert again.returncode == 0, again.stderr
    assert (out / "results.jsonl").read_bytes() == stored
    assert "kc-house, plain, as-written; data: KC House" in again.stdout
    assert "not rank-safe" in again.stdout
    assert "KC House" in (out / "report.md").read_text()
    assert "data:image/png;base64" in (out / "report.html").read_text()
    assert len(list(out.glob("*.png"))) == 2
    assert {trial.data for trial in read_trials(out / "results.jsonl")} == {"KC House"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("table2",), 2, "table1-regression"),
        (("kc-house", "--variant", "as-told"), 2, "as-written, as-run"),
        (("kc-house", "--data", "nowhere"), 3, "--data FILE"),
        (("kc-house",), 3, "COLONNADE_DATA"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    done = reproduce(tmp_path, *arguments, "--out", str(tmp_path / "out"))
    assert done.returncode == code
    assert words in done.stderr


# The other quick runs are in tests/statistical/test_reproduction.py, which looks at their numbers.
@pytest.mark.slow(sampled=False)
@pytest.mark.parametrize("name", ["centres", "parties", "regularisers"])
def test_quick_runs_of_the_appendix(name: str, data_folder: Path, tmp_path: Path) -> None:
    done = reproduce(data_folder, name, "--quick", "--repeats", "1", "--json", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert all("twin of YearPredictionMSD" in cell["data"] for cell in found)
    assert all(cell["stored_mean"] for cell in found)
