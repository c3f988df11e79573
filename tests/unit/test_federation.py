from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import colonnade as cn

RNG = np.random.default_rng(0)
FLIGHTS = pd.DataFrame({"distance": RNG.normal(size=60), "hour": RNG.normal(size=60), "delay": RNG.normal(size=60)})
WEATHER = pd.DataFrame({"temp": RNG.normal(size=60), "hour": RNG.normal(size=60)})


def federation() -> cn.Federation:
    return cn.Federation([cn.Party("airline", FLIGHTS, label="delay"), cn.Party("weather", WEATHER)])


@pytest.mark.parametrize(
    "convert",
    [lambda f: f, pl.from_pandas, pa.Table.from_pandas],
    ids=["pandas", "polars", "pyarrow"],
)
def test_named_columns_survive_into_the_model(convert: Any) -> None:
    parties = [cn.Party("airline", convert(FLIGHTS), label="delay"), cn.Party("weather", convert(WEATHER))]
    run = cn.Federation(parties).fit(cn.Regression(), sampler=cn.AllRows())
    assert run.model.feature_names_in_ == ("distance", "airline.hour", "temp", "weather.hour")
    X = np.column_stack([FLIGHTS[["distance", "hour"]], WEATHER, np.ones(60)])
    best = np.linalg.lstsq(X, FLIGHTS["delay"].to_numpy(), rcond=None)[0]
    np.testing.assert_allclose([*run.model.coef_, run.model.intercept_], best, rtol=1e-9)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_files_are_read_by_their_path(tmp_path: Path, suffix: str) -> None:
    FLIGHTS.to_parquet(tmp_path / "a.parquet")
    FLIGHTS.to_csv(tmp_path / "a.csv", index=False)
    run = cn.Federation([cn.Party("airline", tmp_path / f"a.{suffix}", label="delay")]).fit(
        cn.Regression(), sampler=cn.AllRows()
    )
    assert run.model.feature_names_in_ == ("distance", "hour")


@pytest.mark.parametrize("size", [1, 7, 500])
@pytest.mark.parametrize("n_parties", [1, 2, 5])
def test_algorithm_1_counts_the_papers_units(size: int, n_parties: int) -> None:
    parties = cn.split_columns(RNG.normal(size=(40, 5)), RNG.normal(size=40), [1] * (n_parties - 1) + [6 - n_parties])
    run = cn.Federation(parties).coreset(cn.Regression(), cn.ImportanceSampling(size=size))
    assert run.ledger.units == size + 2 * size * n_parties + 2 * n_parties
    in_a_round = 2 * n_parties
    assert [entry.round for entry in run.ledger] == [number for number in (1, 2, 3, 4) for _ in range(in_a_round)]
    assert run.ledger.by_phase()["opening"].units == 0, "the paper has no job sheet"


def test_central_adds_the_rows_it_fetches() -> None:
    run = federation().fit(cn.Regression(), sampler=cn.ImportanceSampling(size=30))
    assert run.ledger.by_phase()["solving"].units == 30 * (4 + 1)
    assert federation().fit(cn.KMeans(2), sampler=cn.UniformSampling(size=30)).ledger.units == 30 * 4


def test_the_ledger_names_every_disclosure() -> None:
    run = federation().fit(cn.Regression(), sampler=cn.ImportanceSampling(size=30))
    assert run.ledger.disclosures() == {
        ("airline", "server"): ("schema", "totals", "row ids", "scores", "features", "labels"),
        ("weather", "server"): ("schema", "totals", "row ids", "scores", "features"),
        ("server", "airline"): ("schema", "totals", "row ids", "model"),
        ("server", "weather"): ("schema", "totals", "row ids", "model"),
    }


def test_a_coreset_serves_many_models_without_new_sampling() -> None:
    shared = federation()
    first = shared.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(size=40), seed=4)
    again = shared.fit(cn.Regression(l2=0.1), coreset=first.coreset, seed=4)
    np.testing.assert_array_equal(again.model.coef_, first.model.coef_)
    assert again.ledger.by_phase()["sampling"].units == 40 * 2, "only the row ids are sent again"
    assert shared.fit(cn.Regression(l2=9.0), coreset=first.coreset).model.coef_.shape == (4,)


def test_a_coreset_drawn_for_another_task_comes_with_a_warning() -> None:
    shared = federation()
    for_regression = shared.coreset(cn.Regression(), cn.ImportanceSampling(size=40)).coreset
    with pytest.warns(cn.AssumptionWarning, match="drawn by LeverageScores; KMeans needs ClusteringScores"):
        shared.fit(cn.KMeans(3), coreset=for_regression)
    uniform = shared.coreset(cn.Regression(), cn.UniformSampling(size=40)).coreset
    shared.fit(cn.KMeans(3), coreset=uniform)  # evenly drawn rows favour no task: no warning


def test_the_solver_draws_the_same_however_the_coreset_came() -> None:
    shared = federation()
    first = shared.fit(cn.KMeans(3), sampler=cn.ImportanceSampling(size=40), seed=4)
    again = shared.fit(cn.KMeans(3), coreset=first.coreset, seed=4)
    np.testing.assert_array_equal(again.model.cluster_centers_, first.model.cluster_centers_)


def test_a_label_takes_no_part_in_clustering() -> None:
    mad = FLIGHTS.assign(delay=1e9 * FLIGHTS["delay"])
    parties = [cn.Party("airline", mad, label="delay"), cn.Party("weather", WEATHER)]
    ours = cn.Federation(parties).fit(cn.KMeans(3), sampler=cn.ImportanceSampling(size=40))
    theirs = federation().fit(cn.KMeans(3), sampler=cn.ImportanceSampling(size=40))
    np.testing.assert_array_equal(ours.model.cluster_centers_, theirs.model.cluster_centers_)


def test_a_party_may_hold_only_the_label() -> None:
    parties = [cn.Party("weather", WEATHER), cn.Party("bank", FLIGHTS[["delay"]], label="delay")]
    run = cn.Federation(parties).fit(cn.Regression(), sampler=cn.ImportanceSampling(size=500))
    assert run.model.coef_.shape == (2,)
    assert cn.Federation(parties).fit(cn.KMeans(2), sampler=cn.ImportanceSampling(size=50)).model is not None


def test_size_may_exceed_the_rows() -> None:
    run = federation().fit(cn.Regression(), sampler=cn.ImportanceSampling(size=1000))
    assert len(run.coreset) == 1000


@pytest.mark.parametrize("task", [cn.Regression(), cn.KMeans(2)], ids=["regression", "kmeans"])
def test_rounds_are_told_as_they_start(task: Any) -> None:
    seen: list[tuple[str, int]] = []
    parties = [cn.Party("airline", FLIGHTS, label="delay"), cn.Party("weather", WEATHER)]
    told = cn.Federation(parties, on_round=lambda phase, number: seen.append((phase, number)))
    told.fit(task, sampler=cn.ImportanceSampling(size=10))
    sampled = [("sampling", 2), ("sampling", 3), ("summing", 4)]
    assert seen == [("hello", 1), ("opening", 1), *sampled, ("solving", 5), ("telling", 6)]


def test_repr() -> None:
    assert repr(federation()) == "Federation(airline, weather; 60 rows, 4 features)"
    assert repr(cn.Party("airline", FLIGHTS, label="delay")) == "Party('airline', 60 rows, 2 features, label 'delay')"


# Bad input: one clear error each, and nothing half done.


def test_parties_with_different_row_counts() -> None:
    with pytest.raises(
        cn.AlignmentError, match=r"different numbers of rows: airline 60, weather 59\. Give every party"
    ):
        cn.Federation([cn.Party("airline", FLIGHTS, label="delay"), cn.Party("weather", WEATHER[:59])])


def test_parties_with_different_keys() -> None:
    ids = np.arange(60)
    airline = cn.Party("airline", FLIGHTS.assign(id=ids), label="delay", key="id")
    assert cn.Federation([airline, cn.Party("weather", WEATHER.assign(id=ids), key="id")]).roster.n_rows == 60
    with pytest.raises(cn.AlignmentError, match="key columns of airline, weather differ"):
        cn.Federation([airline, cn.Party("weather", WEATHER.assign(id=ids[::-1]), key="id")])


def test_no_label_party_or_two() -> None:
    unlabelled = cn.Federation([cn.Party("airline", FLIGHTS), cn.Party("weather", WEATHER)])
    with pytest.raises(cn.InputError, match=r"none of airline, weather holds one\. Name it at one party"):
        unlabelled.fit(cn.Regression(), sampler=cn.AllRows())
    with pytest.raises(cn.InputError, match="Two parties hold a label: airline 'delay', weather 'temp'"):
        cn.Federation([cn.Party("airline", FLIGHTS, label="delay"), cn.Party("weather", WEATHER, label="temp")])


def test_duplicate_reserved_and_empty_names() -> None:
    with pytest.raises(cn.InputError, match="Two parties are called 'weather'"):
        cn.Federation([cn.Party("weather", WEATHER), cn.Party("weather", WEATHER)])
    for name in ("server", "", "  "):
        with pytest.raises(cn.InputError, match="cannot be called"):
            cn.Party(name, WEATHER)
    with pytest.raises(cn.InputError, match="at least one party"):
        cn.Federation([])


def test_a_policy_is_a_policy() -> None:
    with pytest.raises(cn.InputError, match=r"Party 'weather': 'features' is not a policy\. Pass for instance Policy"):
        cn.Party("weather", WEATHER, policy="features")  # type: ignore[arg-type]


def test_errors_do_not_print_tables() -> None:
    with pytest.raises(cn.UnsupportedError) as caught:
        cn.Federation([("airline", np.full((50, 50), 123456.0))])  # type: ignore[list-item]
    assert len(str(caught.value)) < 200


def test_n_clusters_beyond_the_rows() -> None:
    with pytest.raises(cn.InputError, match="n_clusters is 61 but the parties hold 60 rows"):
        federation().fit(cn.KMeans(61), sampler=cn.AllRows())


def test_too_few_distinct_rows_in_the_coreset_is_the_solvers_error() -> None:
    shared = federation()
    with pytest.raises(cn.InputError, match="distinct"):
        shared.fit(cn.KMeans(5), sampler=cn.ImportanceSampling(size=3))
    assert shared.fit(cn.KMeans(5), sampler=cn.ImportanceSampling(size=50)).model is not None


def test_a_coreset_of_other_rows() -> None:
    other = cn.Coreset(np.array([0, 1]), np.array([1.0, 1.0]), n_rows=10, total_weight=10.0)
    with pytest.raises(cn.AlignmentError, match="made of 10 rows; these parties hold 60"):
        federation().fit(cn.Regression(), coreset=other)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sampler": cn.AllRows(), "coreset": cn.Coreset(np.array([0]), np.array([1.0]), n_rows=60, total_weight=60.0)},
    ],
)
def test_a_sampler_or_a_coreset(options: dict[str, Any]) -> None:
    with pytest.raises(cn.InputError, match="a sampler or a coreset, and not both"):
        federation().fit(cn.Regression(), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "regression"}, "'regression' is not a task. Pass one of: Regression | KMeans"),
        ({"sampler": 1000}, "1000 is not a sampler. Pass one of: ImportanceSampling | UniformSampling | AllRows"),
        ({"solver": "central"}, "'central' is not a solver. Pass one of: Central"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seed": 1.5}, "seed must be a whole number"),
    ],
)
def test_wrong_kinds_of_arguments(options: dict[str, Any], message: str) -> None:
    arguments = {"task": cn.Regression(), "sampler": cn.AllRows(), **options}
    with pytest.raises(cn.InputError, match=message):
        federation().fit(arguments.pop("task"), **arguments)


@pytest.mark.parametrize("sampler", [None, 100, cn.ImportanceSampling])
def test_a_coreset_needs_a_sampler(sampler: Any) -> None:
    with pytest.raises(cn.UnsupportedError, match="is not a sampler"):
        federation().coreset(cn.Regression(), sampler)


LARGER = cn.Coreset(np.arange(3), np.ones(3), n_rows=60, total_weight=60.0)
OTHER = cn.LinearModel(np.zeros(1), 0.0, ("income",))
BAD: dict[str, Any] = {
    "penalty below 0": lambda f: f.fit(cn.Regression(l1=-1.0), sampler=cn.AllRows()),
    "a penalty to choose, of a solver that cannot": lambda f: f.fit(
        cn.Regression(l2="cv"), sampler=cn.AllRows(), solver=cn.Saga()
    ),
    "a regression, of a solver that clusters": lambda f: f.fit(
        cn.Regression(l2=0.1, l1=0.1), sampler=cn.AllRows(), solver=cn.DistDim()
    ),
    "clusters, of a solver that does not": lambda f: f.fit(cn.KMeans(2), sampler=cn.AllRows(), solver=cn.Saga()),
    "a model of other columns": lambda f: f.predict(OTHER),
    "unknown rows": lambda f: f.predict(f.fit(cn.Regression(), sampler=cn.AllRows()).model, rows=[60]),
    "more clusters than distinct rows": lambda f: f.fit(cn.KMeans(4), coreset=LARGER),
    "more clusters than distinct rows, DistDim": lambda f: f.fit(cn.KMeans(4), coreset=LARGER, solver=cn.DistDim()),
    "more clusters than rows trained on": lambda f: f.fit(
        cn.KMeans(50, standardize=True), sampler=cn.AllRows(), split=cn.HoldOut(0.5)
    ),
    "weights all zero": lambda _: cn.Coreset(np.arange(3), np.zeros(3), n_rows=60, total_weight=60.0),
    "row weights all zero": lambda _: cn.Party("weather", WEATHER.assign(w=0), weight="w"),
    "fewer rows than folds": lambda f: f.fit(cn.Regression(l1="cv"), coreset=LARGER),
    "fewer rows than folds, standardised": lambda f: f.fit(cn.Regression(l2="cv", standardize=True), coreset=LARGER),
    "nothing left to train on": lambda f: f.fit(cn.Regression(), sampler=cn.AllRows(), split=cn.HoldOut(0.999)),
    "a split by nobody's column": lambda f: f.fit(cn.Regression(), sampler=cn.AllRows(), split=cn.SplitBy("airline")),
    "predictions for nobody": lambda f: f.predict(f.fit(cn.Regression(), sampler=cn.AllRows()).model, to="bank"),
}


@pytest.mark.parametrize("ask", BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_error_and_nothing_is_lost(ask: Any) -> None:
    shared = federation()
    with pytest.raises(cn.InputError) as caught:
        ask(shared)
    assert str(caught.value).endswith("."), "it ends with what to do"
    after, fresh = (
        f.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(size=20)) for f in (shared, federation())
    )
    np.testing.assert_array_equal(after.model.coef_, fresh.model.coef_)
    assert after.ledger == fresh.ledger


@pytest.mark.filterwarnings("ignore::colonnade.AssumptionWarning")
def test_a_job_after_a_refused_one_sends_what_it_would_have_sent_first() -> None:
    """Each run has sessions of its own: nothing is sent to take parties out of one that stopped half-way."""
    X = np.random.default_rng(0).normal(size=(300, 4))

    def federation() -> cn.Federation:
        parties = cn.split_columns(X, X @ np.ones(4), [2, 2])
        parties[1].policy = cn.Policy(level="open", least_rows=100)
        return cn.Federation(parties)

    refused, solver = federation(), cn.SecureGram(allow_two_parties=True)
    with pytest.raises(cn.PolicyRefusedError):
        refused.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=20), solver=solver)
    assert "solving" in refused.sent.by_phase(), "no sheet says how many of the rows are distinct"
    assert refused.sent.units > 0, "what a refused job sent before it stopped"
    task = cn.KMeans(n_clusters=2)
    found, first = refused.diagnose(task, pairs=50), federation().diagnose(task, pairs=50)
    assert (found.units, found.bytes, found.reveals) == (first.units, first.bytes, first.reveals)
    assert found.bytes == refused.sent.bytes


@pytest.mark.parametrize(
    "ways",
    [
        {"sampler": "importance"},
        {"sampler": cn.AllRows(), "solver": "central"},
        {"sampler": cn.AllRows(), "solver": None},
    ],
)
def test_a_wrong_kind_is_told_so_between_machines_too(ways: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    federation = cn.Federation(cn.split_columns(np.eye(6), np.arange(6.0), [3, 3]))
    monkeypatch.setattr(federation._runtime, "parties", None)  # as where they are on other machines
    with pytest.raises(cn.UnsupportedError, match=r"is not a (sampler|solver)"):
        federation.fit(cn.Regression(), **ways)


def test_a_warning_of_another_tasks_coreset_points_at_the_caller() -> None:
    federation = cn.Federation(cn.split_columns(np.random.default_rng(0).normal(size=(60, 4)), np.arange(60.0), [2, 2]))
    coreset = federation.coreset(cn.Regression(), cn.ImportanceSampling(size=30)).coreset
    with pytest.warns(cn.AssumptionWarning, match="no guarantee for it") as caught:
        federation.fit(cn.KMeans(n_clusters=2), coreset=coreset)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_disclosure_needs_a_sampler() -> None:
    federation = cn.Federation(cn.split_columns(np.eye(6), np.arange(6.0), [3, 3]))
    with pytest.raises(cn.UnsupportedError, match="None is not a sampler"):
        federation.disclosure(cn.Regression(), sampler=None)  # type: ignore[arg-type]
