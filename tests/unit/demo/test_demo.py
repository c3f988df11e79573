import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from colonnade.demo import report
from colonnade.demo.comparison import Case, DemoPlan, cases, run_demo
from colonnade.demo.flights import KEY, load_flights, write_tables
from colonnade.demo.lateness import in_words, learn_lateness
from colonnade.demo.results import Cell, Result, cells, read_results

PLAN = DemoPlan(sizes=(200, 400), regression_seeds=3, clustering_seeds=2)


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    # About 5,400 flights over the whole year that all have, and more that not all have.
    return {name: table[table.index % 60 == 0] for name, table in load_flights().items()}


@pytest.fixture(scope="module")
def files(tables: dict[str, pd.DataFrame], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tables, tmp_path_factory.mktemp("flights"))


@pytest.fixture(scope="module")
def both(tables: dict[str, pd.DataFrame], files: dict[str, Path]) -> list[Case]:
    return list(cases(tables, files, PLAN))


@pytest.fixture(scope="module")
def results(both: list[Case]) -> list[Result]:
    return [result for case in both for result, _ in run_demo(case, PLAN.sizes, first_seed=0)]


def test_the_organisations_find_the_flights_that_all_have(tables: dict[str, pd.DataFrame], both: list[Case]) -> None:
    airline, weather, registry = tables.values()
    for case in both:
        report = case.federation.alignment
        assert report is not None
        assert (report.mode, report.matched) == ("aided", len(airline.merge(weather, on=KEY).merge(registry, on=KEY)))
        assert [each.rows for each in report.parties.values()] == [len(table) for table in tables.values()]
        assert all(each.unmatched > 0 for each in report.parties.values()), "each has flights that another lacks"


@pytest.mark.filterwarnings("ignore:.*wind_speed")  # of few flights, only some that are held out lack it
def test_lateness_is_told_with_an_interval_and_standard_errors(files: dict[str, Path]) -> None:
    runs = learn_lateness(files, seed=0)
    assert [len(run.coreset) for run in runs] == [4000, 2000, 1000]
    assert runs[0].findings.certificate is not None
    assert all(run.findings.all_rows == runs[0].findings.all_rows is not None for run in runs)
    held_out = runs[0].findings.evaluation
    assert held_out.auc is not None
    assert held_out.auc_interval is not None
    low, high = held_out.auc_interval
    assert 0.7 < low < held_out.auc < high < 1
    words = in_words(runs[0])
    for expected in ("AUC 0.", "dep_delay", "std.", "weather", "held out"):
        assert expected in words
    assert "dest=" not in words


def test_files_have_the_key_and_no_number_of_the_row(tables: dict[str, pd.DataFrame], files: dict[str, Path]) -> None:
    for name, table in tables.items():
        read = pd.read_csv(files[name], low_memory=False)
        assert list(read.columns) == list(table.columns)
        numbers = table.select_dtypes("number").columns
        assert np.array_equal(read[numbers], table[numbers], equal_nan=True), "to the last bit"


def test_categories_gaps_and_scales_are_prepared_at_the_parties(both: list[Case]) -> None:
    names = next(run_demo(both[0], (), first_seed=0))[1].model.feature_names_in_
    made = {"carrier#1", "dest#1", "month#11", "pressure#1", "year#1", "engine#1"}
    assert made < set(names)
    assert not {"carrier", "dest", "month", "tailnum", "air_time"} & set(names)


def test_every_model_is_there_once(results: list[Result]) -> None:
    assert len(results) == PLAN.n_runs
    assert len({(r.task, r.method, r.size, r.seed) for r in results}) == PLAN.n_runs


def test_the_referee_counts_the_cost_on_all_rows(both: list[Case]) -> None:
    regression, clustering = both
    result, run = next(run_demo(regression, (), first_seed=0))
    assert result.cost == pytest.approx(regression.federation.evaluate(run.model).mse)
    result, run = next(run_demo(clustering, (), first_seed=0))
    assert result.cost == pytest.approx(clustering.federation.evaluate(run.model).cost / result.size)


def test_nothing_beats_least_squares_on_all_rows(results: list[Result]) -> None:
    assert all(r.excess > 0 for r in results if r.task == "regression" and r.method != "all rows")


def test_a_coreset_sends_a_small_part_of_the_rows(results: list[Result]) -> None:
    everything = next(r for r in results if r.method == "all rows")
    coreset = next(r for r in results if r.method == "coreset")
    assert coreset.bytes < 0.1 * everything.bytes


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
