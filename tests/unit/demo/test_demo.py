import io
from pathlib import Path

import numpy as np
import pytest

from colonnade.demo import report
from colonnade.demo.comparison import DemoPlan, cases, run_demo
from colonnade.demo.flights import FlightData, load_flights
from colonnade.demo.results import Cell, Result, cells, read_results
from colonnade.kernels.kmeans import nearest_centers

PLAN = DemoPlan(sizes=(200, 400), regression_seeds=3, clustering_seeds=2)


@pytest.fixture(scope="module")
def flights() -> FlightData:
    whole = load_flights()
    chosen = slice(0, None, 60)  # about 4,000 flights over the whole year
    return FlightData(whole.airline[chosen], whole.weather[chosen], whole.registry[chosen])


@pytest.fixture(scope="module")
def results(flights: FlightData) -> list[Result]:
    return [result for case in cases(flights, PLAN) for result, _ in run_demo(case, PLAN.sizes, first_seed=0)]


def test_every_model_is_there_once(results: list[Result]) -> None:
    assert len(results) == PLAN.n_runs
    assert len({(r.task, r.method, r.size, r.seed) for r in results}) == PLAN.n_runs


def test_the_referee_counts_the_cost_on_all_rows(flights: FlightData) -> None:
    regression, clustering = cases(flights, PLAN)
    features = [flights.airline.drop(columns="arr_delay"), flights.weather, flights.registry]
    X, y = np.column_stack(features), flights.airline["arr_delay"].to_numpy()
    result, run = next(run_demo(regression, (), first_seed=0))
    assert result.cost == pytest.approx(np.mean((X @ run.model.coef_ + run.model.intercept_ - y) ** 2))
    result, run = next(run_demo(clustering, (), first_seed=0))
    scaled = np.column_stack([party.table.values for party in clustering.parties])
    assert result.cost == pytest.approx(nearest_centers(scaled, run.model.cluster_centers_)[1].mean())


def test_nothing_beats_least_squares_on_all_rows(results: list[Result]) -> None:
    assert all(r.excess > 0 for r in results if r.task == "regression" and r.method != "all rows")


def test_a_coreset_sends_a_small_part_of_the_rows(results: list[Result]) -> None:
    everything = next(r for r in results if r.method == "all rows")
    coreset = next(r for r in results if r.method == "coreset")
    assert coreset.bytes < 0.1 * everything.bytes


def test_scaling_leaves_zero_one_columns_alone(flights: FlightData) -> None:
    _, clustering = cases(flights, PLAN)
    airline = clustering.parties[0].table
    scaled = dict(zip(airline.feature_names, airline.values.T, strict=True))
    assert scaled["dep_delay"].std() == pytest.approx(1.0)
    assert set(scaled["origin_JFK"]) == {0.0, 1.0}


def found() -> list[Cell]:
    line = Result("regression", "all rows", 4000, 0, 100.0, 0.0, 10**6, 8 * 10**6, 2.0)
    samples = [
        Result("regression", method, 1000, seed, 100 * (1 + excess), excess, 5000, 40_000, 0.5)
        for method, worst in (("uniform", 1.2), ("coreset", 0.06))
        for seed, excess in enumerate((0.04, worst))
    ]
    return cells([line, *samples])


def test_cells_show_the_worst_beside_the_mean() -> None:
    uniform = found()[1]
    assert (uniform.method, uniform.seeds) == ("uniform", 2)
    assert uniform.mean_excess == pytest.approx(0.62)
    assert uniform.worst_excess == 1.2


def test_the_conclusion_is_in_plain_words() -> None:
    assert report.conclusion(found()) == (
        "Learned on 1,000 of 4,000 flights, the coreset model's error is 5.0% above that of all rows on average and "
        "6.0% in the worst of 2 draws; a uniform sample's is 62.0% and 120.0%. "
        "The coreset sent 40 kB; all rows are 8.0 MB."
    )


def test_table_and_figure_come_from_stored_results(results: list[Result], tmp_path: Path) -> None:
    import msgspec
    from rich.console import Console

    stored = tmp_path / "results.jsonl"
    stored.write_bytes(b"".join(msgspec.json.encode(result) + b"\n" for result in results))
    summed = cells(read_results(stored))
    report.figure(summed, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(report.table(summed, "regression"))
    text = console.export_text()
    assert "…" not in text, "nothing is cut at 80 columns"
    assert "coreset" in text
