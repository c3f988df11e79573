"""The benchmark of plans' promises runs end to end, and its report finds each way in which a plan can break one."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
REPORT = runpy.run_path(str(BENCHMARKS / "promises_report.py"))
Line = dict[str, Any]


def line(**changed: Any) -> Line:
    """Give a plan that keeps every promise."""
    kept: Line = {"table": "houses", "half": "judged", "place": "paper", "budget": 20_016, "pilot": 0}
    kept |= {"planned": [0.0025, 0.002, 0.003], "one_run": [0.0025, 0.001, 0.005], "warnings": []}
    kept |= {"bytes": [19_900] * 4, "excess": [0.0023, 0.0025, 0.0027, 0.0025], "named": [7730], "less_works": False}
    kept |= {"best": {"excess": [0.0024] * 4}, "arms": {"paper": {"excess": [0.2] * 4}}}
    return kept | changed


def broken(*lines: Line) -> list[str]:
    return [verdict.bar for verdict in REPORT["verdicts"](list(lines)) if not verdict.holds]


def test_a_plan_that_keeps_its_promises_breaks_no_bar() -> None:
    assert len(REPORT["verdicts"]([line()])) >= 10
    assert broken(line()) == []
    assert REPORT["report"]([line()]) == 0


@pytest.mark.parametrize(
    ("changed", "bar"),
    [
        ({"planned": [0.001, 0.0005, 0.002]}, "the interval for the mean holds it in 90% of plans"),
        ({"one_run": [0.001, 0.0005, 0.00245]}, "the interval for a run holds it in 90% of runs"),
        ({"planned": [0.001, 0.0005, 0.0012]}, "without a warning no mean is more than twice above the interval"),
        ({"planned": None}, "where no number is given there is a warning"),
        ({"bytes": [19_900, 20_017]}, "no run is over budget"),
        ({"named": [7730, 7950]}, "the least budget that works is the one named"),
        ({"less_works": True}, "the least budget that works is the one named"),
        ({"best": {"excess": [0.0019] * 4}}, "at most 1.25 times the best fixed arm"),
        ({"arms": {"paper": {"excess": [0.002] * 4}}}, "never behind the paper's wire"),
        ({"excess": [0.0036] * 4}, "at the bytes of the paper's wire at most: houses 0.35 %, years-whole 0.24 %"),
        (
            {"table": "even-0.01", "place": "least", "planned": [0.001, 0.0005, 0.003]},
            "collinear parties: the mean is at most twice the planned, or no number",
        ),
    ],
)
def test_each_promise_can_be_broken(changed: Line, bar: str) -> None:
    assert bar in broken(line(**changed))
    assert REPORT["report"]([line(**changed)]) == 1


def test_an_error_breaks_a_bar_and_is_not_counted_among_plans() -> None:
    bare = {name: value for name, value in line().items() if name in ("table", "half", "place", "budget", "pilot")}
    assert broken(line(), {**bare, "error": "no"}) == ["every plan and run comes to its end"]


def test_no_number_and_a_warning_is_no_broken_promise() -> None:
    assert (
        broken(line(table="even-0.01", place="least", planned=None, one_run=None, warnings=["a direction is hidden"]))
        == []
    )


def test_a_plan_far_above_with_a_warning_still_misses_its_interval() -> None:
    assert broken(line(planned=[0.001, 0.0005, 0.0012], warnings=["heavy tails"])) == [
        "the interval for the mean holds it in 90% of plans"
    ]


@pytest.mark.slow
def test_a_tiny_run_measures_reports_and_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    out = tmp_path / "promises.jsonl"
    asked = [sys.executable, str(BENCHMARKS / "promises.py"), "--only", "even-0.5", "--rows", "2000", "--seeds", "2"]
    first = subprocess.run(
        [*asked, "--out", str(out)], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert "the interval for the mean holds it" in first.stdout, first.stderr
    text = out.read_text()
    lines = [json.loads(each) for each in text.splitlines()]
    assert [each["place"] for each in lines] == ["least", "middle", "upper", "all"]
    assert all(len(each["excess"]) == len(each["bytes"]) == 2 and min(each["excess"]) > 0 for each in lines)
    assert {"paper", "importance 0.5", "uniform", "uniform 0.3"} <= lines[2]["arms"].keys()
    arms = [(each["budget"], arm["bytes"]) for each in lines[:3] for arm in each["arms"].values() if "bytes" in arm]
    assert len(arms) >= 24
    assert all(max(sent) <= budget for budget, sent in arms)
    *kept, last = text.splitlines()
    out.write_text("\n".join([*kept, json.dumps({**json.loads(last), "error": "no"})]) + "\n")
    assert [each.get("error") for each in REPORT["read"](out)] == [None, None, None, "no"]
    again = subprocess.run(
        [*asked, "--out", str(out)], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert out.read_text().splitlines()[:3] == kept, "what was measured is not measured again"
    assert [each["excess"] for each in REPORT["read"](out)] == [each["excess"] for each in lines]
    assert "error" not in REPORT["read"](out)[3], "but what failed is"
    assert again.returncode == first.returncode


def test_the_excess_is_measured_from_all_rows_whatever_is_collinear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the sums of squares, with a whole group of dummies; a model of all rows has none."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    promises = runpy.run_path(str(BENCHMARKS / "promises.py"))
    trial = promises["Trial"].of(promises["load"]("rare-levels", Path(), 3000))
    table, task = trial.table, cn.Regression()

    def cost(model: Any) -> float:
        return float(np.square(table.features @ model.coef_ + model.intercept_ - table.labels).sum())

    best = trial.federation.fit(task, sampler=cn.AllRows()).model
    other = trial.federation.fit(task, sampler=cn.ImportanceSampling(300), seed=1).model
    assert 0 <= trial.excess(best) < 1e-12
    assert trial.excess(other) == pytest.approx(cost(other) / cost(best) - 1, rel=1e-6)


def test_the_excess_of_a_clustering_is_over_its_own_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit of all rows has none, whichever optimum it found; one with its centres in one place is worse than any."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    promises = runpy.run_path(str(BENCHMARKS / "promises.py"))
    features = np.random.default_rng(0).normal(size=(1500, 4))
    table = promises["Table"]("made up", features, None, (2, 2), cn.KMeans(n_clusters=4, n_starts=1), "chosen")
    trial = promises["Trial"].of(table)
    for seed in range(3):
        model = trial.federation.fit(table.task, sampler=cn.AllRows(), seed=seed).model
        assert trial.excess(model) == pytest.approx(0, abs=1e-4)
    few = trial.federation.fit(table.task, sampler=cn.UniformSampling(30), seed=1).model
    assert trial.excess(few) > 0.03
    few.cluster_centers_[:] = few.cluster_centers_[0]
    assert trial.excess(few) > 0.5
