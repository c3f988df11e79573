"""Gamma, tau and coresets recover with noise, as the theorems say."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.paper.smoothed import SmoothedPlan, smoothed
from colonnade.paper.smoothed_report import SmoothedResult, figure, read_smoothed, table

PLAN = SmoothedPlan(noises=(0.0, 1e-3, 1e-2, 0.1), repeats=2, pairs=4_000)


@pytest.fixture(scope="module")
def results() -> list[SmoothedResult]:
    return list(smoothed(PLAN, seed=0))


def of(results: list[SmoothedResult], noise: float, name: str) -> float:
    return float(np.median([getattr(result, name) for result in results if result.noise == noise]))


def test_without_noise_the_assumptions_and_the_coresets_fail(results: list[SmoothedResult]) -> None:
    assert of(results, 0.0, "gamma") < 0.02
    assert of(results, 0.0, "tau") == np.inf
    # A coreset without the one row of a direction says 0 of its cost: epsilon is 1, or more, but for rounding.
    assert of(results, 0.0, "regression_epsilon") >= 1.0 - 1e-9
    assert of(results, 0.0, "clustering_epsilon") >= 0.9


def test_gamma_grows_at_least_as_the_noise(results: list[SmoothedResult]) -> None:
    """Theorem B.2: gamma >= c r. The lemma's bound, through which it is proved, is below gamma throughout."""
    assert all(result.gamma >= 2 * result.noise for result in results)
    assert all(result.gamma_bound <= result.gamma * (1 + 1e-9) for result in results)
    assert of(results, 0.1, "gamma") > 20 * of(results, 1e-3, "gamma")


def test_tau_falls_as_the_square_of_the_noise(results: list[SmoothedResult]) -> None:
    """Theorem B.4: tau <= C (1/r² + d / log² n)."""
    assert all(result.tau <= result.tau_rate for result in results)
    assert of(results, 1e-3, "tau") / of(results, 1e-2, "tau") == pytest.approx(100, rel=0.3)


def test_the_coresets_recover_with_them(results: list[SmoothedResult]) -> None:
    assert of(results, 0.1, "regression_epsilon") < 0.5
    assert of(results, 0.1, "clustering_epsilon") < 0.1
    assert of(results, 0.1, "zeta") < 5 < of(results, 0.0, "zeta")


def test_a_noise_more_changes_no_other(results: list[SmoothedResult]) -> None:
    alone = SmoothedPlan(noises=(1e-2,), repeats=1, pairs=4_000)
    assert next(smoothed(alone, seed=0)) == next(result for result in results if result.noise == 1e-2)


def test_stored_results_come_back_and_become_a_table_and_a_figure(
    results: list[SmoothedResult], tmp_path: Path
) -> None:
    stored = tmp_path / "smoothed.jsonl"
    stored.write_bytes(b"".join(msgspec.json.encode(result) + b"\n" for result in results))
    again = read_smoothed(stored)
    assert again == results
    lines = table(again).splitlines()
    assert len(lines) == 2 + 4
    assert "inf" in lines[2]
    pytest.importorskip("matplotlib")
    figure(again, tmp_path / "smoothed.png")
    assert (tmp_path / "smoothed.png").stat().st_size > 10_000
    stored.write_text("nonsense")
    with pytest.raises(cn.InputError, match="is not a readable results file"):
        read_smoothed(stored)
