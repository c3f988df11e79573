"""Evaluation and prediction through the parties, against the same arithmetic in one place."""

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

import colonnade as cn
from colonnade.contracts import PartyCard, Roster
from colonnade.evaluation.clustering import PartialDistances, nearest_center_distances
from colonnade.evaluation.linear import PartialPredictions, linear_residuals
from colonnade.evaluation.reports import ClusteringReport, RegressionReport
from colonnade.kernels.arrays import Floats
from colonnade.kernels.selections import CountedRows
from colonnade.messages import sendable_floats
from colonnade.transports.loopback import Loopback

N = 400
RNG = np.random.default_rng(0)
X = RNG.standard_t(4, size=(N, 5)) + np.array([1e6, 0.0, 0.0, 0.0, 5.0])
Y = X[:, 1:] @ RNG.normal(size=4) + RNG.normal(size=N)


def federation(**options: Any) -> cn.Federation:
    return cn.Federation(cn.split_columns(X, Y, [2, 2, 1]), **options)


@pytest.fixture
def linear() -> cn.LinearModel:
    model = federation().fit(cn.Regression(), sampler=cn.ImportanceSampling(size=100)).model
    return msgspec.structs.replace(model, learned_from_=None)  # it is evaluated on other tables here


@pytest.fixture
def clusters() -> cn.KMeansModel:
    model = federation().fit(cn.KMeans(4), sampler=cn.ImportanceSampling(size=100)).model
    return msgspec.structs.replace(model, learned_from_=None)


def squared_distances(model: cn.KMeansModel) -> Floats:
    distances: Floats = np.square(X[:, None] - model.cluster_centers_[None]).sum(axis=2)
    return distances


def test_predictions_are_those_of_one_place(linear: cn.LinearModel, clusters: cn.KMeansModel) -> None:
    np.testing.assert_allclose(federation().predict(linear), X @ linear.coef_ + linear.intercept_, rtol=1e-9, atol=1e-6)
    np.testing.assert_array_equal(federation().predict(clusters), squared_distances(clusters).argmin(axis=1))


def test_given_rows_come_in_the_order_asked(linear: cn.LinearModel) -> None:
    rows = [7, 399, 0, 7]
    np.testing.assert_array_equal(federation().predict(linear, rows=rows), federation().predict(linear)[rows])


def test_reports_are_those_of_one_place(linear: cn.LinearModel, clusters: cn.KMeansModel) -> None:
    residuals = X @ linear.coef_ + linear.intercept_ - Y
    report = federation().evaluate(linear)
    assert isinstance(report, RegressionReport)
    assert report.n_evaluated == N
    assert report.cost == pytest.approx(np.sum(residuals**2), rel=1e-6)
    assert report.mse == pytest.approx(np.mean(residuals**2), rel=1e-6)
    assert report.mae == pytest.approx(np.mean(np.abs(residuals)), rel=1e-6)
    assert report.r2 == pytest.approx(1 - np.sum(residuals**2) / np.sum((Y - Y.mean()) ** 2), rel=1e-6)
    assert report.cost_interval is None
    nearest = squared_distances(clusters)
    found = federation().evaluate(clusters)
    assert isinstance(found, ClusteringReport)
    assert found.cost == pytest.approx(nearest.min(axis=1).sum(), rel=1e-9)
    assert found.cluster_sizes == tuple(np.bincount(nearest.argmin(axis=1), minlength=4).tolist())


def test_a_samples_interval_covers_the_cost(linear: cn.LinearModel) -> None:
    """The 95 % interval covers at least 85 % over 300 seeds; skewed losses cost a little.

    A binomial of 0.92 falls below 0.85 in 300 with probability 2e-5.
    """
    shared = federation()
    cost = shared.evaluate(linear).cost
    intervals = [shared.evaluate(linear, rows=100, seed=seed).cost_interval for seed in range(300)]
    covered = [low <= cost <= high for low, high in intervals if low is not None]  # type: ignore[misc]
    assert len(covered) == 300
    assert np.mean(covered) >= 0.85


def test_the_ledger_counts_what_travels(linear: cn.LinearModel, clusters: cn.KMeansModel) -> None:
    shared = federation()
    before = shared.ledger.units
    shared.evaluate(linear)
    assert shared.ledger.units - before == 5 + 3 * N + 1, "coefficients down, partial sums up, the labels' spread"
    before = shared.ledger.units
    shared.predict(clusters, rows=[1, 2])
    assert shared.ledger.units - before == 3 * 2 + 4 * 5 + 3 * 2 * 4, "row ids, centres, distances"


def test_evaluating_shows_parts_of_rows_which_count_as_features_and_no_labels(linear: cn.LinearModel) -> None:
    """Parts by as many models as there are columns are the columns."""
    shared = federation()
    shared.evaluate(linear)
    shown = shared.ledger.disclosures()
    assert shown["party1", "server"] == ("schema", "features")
    assert shown["party3", "server"] == ("schema", "features", "labels"), "their spread, one number"


def test_over_the_wire_it_is_the_same(linear: cn.LinearModel, clusters: cn.KMeansModel) -> None:
    for model in (linear, clusters):
        np.testing.assert_array_equal(federation().predict(model), federation(transport=Loopback).predict(model))
        assert federation().evaluate(model) == federation(transport=Loopback).evaluate(model)


def test_a_policy_can_keep_predictions(linear: cn.LinearModel) -> None:
    parties = cn.split_columns(X, Y, [2, 2, 1])
    parties[0].policy = cn.Policy(level="open", never=["predictions"])
    with pytest.raises(cn.PolicyRefusedError, match="'party1' did not answer AskPartialPredictions"):
        cn.Federation(parties).predict(linear)


# Rows with weights of their own, and rows held out

WEIGHTS = np.random.default_rng(5).integers(0, 5, size=N)
MARKED = np.arange(N) % 3 == 1


def weighing(**options: Any) -> cn.Federation:
    parties = [
        cn.Party("party1", X[:, :2], weight=WEIGHTS),
        cn.Party("party2", X[:, 2:4], split=MARKED),
        cn.Party("party3", X[:, 4:], label=Y),
    ]
    return cn.Federation(parties, **options)


@pytest.mark.parametrize("split", [None, cn.SplitBy("party2"), cn.HoldOut(0.4)], ids=str)
def test_weighted_metrics_are_scikit_learns(linear: cn.LinearModel, split: Any) -> None:
    shared = weighing()
    trained: Any = [] if split is None else shared.coreset(cn.Regression(), cn.AllRows(), split=split).coreset.rows
    rows = np.setdiff1d(np.flatnonzero(WEIGHTS), trained)
    report = shared.evaluate(linear, split=split)
    assert isinstance(report, RegressionReport)
    y, predicted, w = Y[rows], (X @ linear.coef_ + linear.intercept_)[rows], WEIGHTS[rows]
    assert report.n_evaluated == len(rows)
    assert report.cost == pytest.approx(w @ (predicted - y) ** 2, rel=1e-6)
    assert report.mse == pytest.approx(mean_squared_error(y, predicted, sample_weight=w), rel=1e-6)
    assert report.mae == pytest.approx(mean_absolute_error(y, predicted, sample_weight=w), rel=1e-6)
    assert report.r2 == pytest.approx(r2_score(y, predicted, sample_weight=w), rel=1e-6)


def test_weighted_clusters(clusters: cn.KMeansModel) -> None:
    distances = squared_distances(clusters)
    report = weighing().evaluate(clusters)
    assert isinstance(report, ClusteringReport)
    assert report.cost == pytest.approx(WEIGHTS @ distances.min(axis=1), rel=1e-9)
    assert report.cost_per_row == pytest.approx(np.average(distances.min(axis=1), weights=WEIGHTS), rel=1e-9)
    counted = distances.argmin(axis=1)[WEIGHTS > 0]
    assert report.cluster_sizes == tuple(np.bincount(counted, minlength=4).tolist()), "rows, whatever they weigh"


@pytest.mark.parametrize("split", [cn.SplitBy("party2"), cn.HoldOut(0.4), cn.HoldOut(0.4, seed=1)], ids=str)
def test_rows_are_trained_on_or_evaluated_never_both(split: Any) -> None:
    """A regression on the row number alone shows which rows were evaluated: its sum of squared labels."""
    numbers = np.arange(1.0, N + 1)
    shared = cn.Federation(
        [cn.Party("party1", np.ones((N, 1)), label=numbers), cn.Party("party2", np.ones((N, 1)), split=MARKED)]
    )
    run = shared.fit(cn.Regression(), sampler=cn.AllRows(), split=split)
    zero = cn.LinearModel(np.zeros(2), 0.0, run.model.feature_names_in_)
    report = shared.evaluate(zero, split=split)
    held_out = np.setdiff1d(np.arange(N), run.coreset.rows)
    assert report.n_evaluated == len(held_out) == N - len(run.coreset)
    assert report.cost == pytest.approx(np.sum(numbers[held_out] ** 2), rel=1e-12)
    assert shared.evaluate(zero).cost == pytest.approx(np.sum(numbers**2), rel=1e-12)
    assert run.split == split


def test_held_out_rows_tell_what_trained_ones_do_not() -> None:
    """Forty features that mean nothing: the fit flatters itself on its own rows."""
    rng = np.random.default_rng(3)
    shared = cn.Federation(cn.split_columns(rng.normal(size=(120, 40)), rng.normal(size=120), [20, 20]))
    split = cn.HoldOut(0.5)
    run = shared.fit(cn.Regression(), sampler=cn.AllRows(), split=split)
    held_out = shared.evaluate(run.model, split=split)
    assert isinstance(held_out, RegressionReport)
    assert held_out.mse > 2 * run.facts["cost"] / len(run.coreset)
    assert held_out.r2 is not None
    assert held_out.r2 < 0


def test_a_weighted_report_over_the_wire_is_the_same(linear: cn.LinearModel, clusters: cn.KMeansModel) -> None:
    for model in (linear, clusters):
        for options in ({"split": cn.SplitBy("party2")}, {"rows": 30}, {"rows": 30, "split": cn.HoldOut(0.1)}):
            ours, wired = (f.evaluate(model, **options) for f in (weighing(), weighing(transport=Loopback)))
            assert ours == wired


def test_predictions_are_of_all_rows_whatever_they_weigh(linear: cn.LinearModel) -> None:
    np.testing.assert_array_equal(weighing().predict(linear), federation().predict(linear))


# Bad input


def named(*columns: str) -> cn.Federation:
    """Make parties a, b, ... of columns of these names; the first has a label."""
    tables = [{name: X[:, i] for i, name in enumerate(each.split())} for each in columns]
    tables[0]["label"] = Y
    labels = {"a": "label"}
    return cn.Federation(
        [cn.Party(name, pa.table(table), label=labels.get(name)) for name, table in zip("ab", tables, strict=False)]
    )


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (
            ["age income", "calls data"],
            r"'b': where the model has 'data', the party has 'calls'\. Put .* data, calls\.",
        ),
        (["age", "data calls"], r"'a': where the model has 'income', the party has no more\. Use the columns"),
        (["age income sex", "data calls"], "'a': where the model has no more columns, the party has 'sex'"),
        (["age income", "data"], "'b': where the model has 'calls', the party has no more"),
        (["age income"], "'a': where the model has 'data', the party has no more"),
    ],
)
def test_a_model_of_other_columns_names_the_party_and_the_first_of_them(others: list[str], message: str) -> None:
    model = named("age income", "data calls").fit(cn.Regression(), sampler=cn.AllRows()).model
    with pytest.raises(cn.InputError, match=f"The model does not fit party {message}"):
        named(*others).evaluate(model)


def test_a_model_of_other_parties(linear: cn.LinearModel) -> None:
    other = cn.Federation([cn.Party("party1", X[:, :2]), cn.Party("bank", X[:, 2:], label=Y)])
    with pytest.raises(cn.InputError, match="party 'bank': where the model has 'party2_0', the party has 'bank_0'"):
        other.predict(linear)
    turned = cn.Federation(cn.split_columns(X, Y, [2, 2, 1])[::-1])
    with pytest.raises(cn.InputError, match="its parties in the order party1, party2, party3; these are in the order"):
        turned.evaluate(linear)


@pytest.mark.parametrize("rows", [[N], [-1], [], [0.5], [[1, 2]], "all", 5])
def test_unknown_rows(linear: cn.LinearModel, rows: Any) -> None:
    with pytest.raises(cn.InputError, match=r"There is no row|rows must be a list of row numbers"):
        federation().predict(linear, rows=rows)


def test_a_regression_without_labels_cannot_be_evaluated(linear: cn.LinearModel) -> None:
    unlabelled = cn.Federation(cn.split_columns(X, None, [2, 2, 1]))
    assert len(unlabelled.predict(linear)) == N
    with pytest.raises(cn.InputError, match="needs a label"):
        unlabelled.evaluate(linear)


def test_wrong_kinds(linear: cn.LinearModel) -> None:
    with pytest.raises(cn.UnsupportedError, match=r"is not a model\. Pass one of: LinearModel | KMeansModel"):
        federation().predict("model")  # type: ignore[arg-type]
    with pytest.raises(cn.InputError, match="size must be a whole number"):
        federation().evaluate(linear, rows=0)


# Hostile replies

ROSTER = Roster((PartyCard("airline", 9, ("x",), "y"), PartyCard("weather", 9, ("t",), None)))


@pytest.mark.parametrize(
    ("values", "spread", "message"),
    [
        (np.ones(2), 1.0, "shape"),
        (np.full(3, np.nan), 1.0, "NaN"),
        (np.ones(3), None, "a label's spread where none was due, or none"),
        (np.ones(3), -1.0, "negative"),
        (np.ones(3), np.inf, "NaN, infinity"),
    ],
)
def test_hostile_partial_predictions(values: Floats, spread: float | None, message: str) -> None:
    script = linear_residuals(ROSTER, CountedRows(3), np.ones(2), lambda *_: None, by_weight=True)
    next(script)
    with pytest.raises(cn.RemoteProtocolError, match=f"'airline' sent a PartialPredictions with .*{message}"):
        script.send(
            {
                "airline": PartialPredictions(sendable_floats(values), spread),
                "weather": PartialPredictions(sendable_floats(np.ones(3)), None),
            }
        )


@pytest.mark.parametrize("values", [np.ones((3, 1)), np.ones((2, 2)), np.full((3, 2), -1.0), np.full((3, 2), np.nan)])
def test_hostile_partial_distances(values: Floats) -> None:
    script = nearest_center_distances(ROSTER, CountedRows(3), np.ones((2, 2)), None, lambda *_: None)
    next(script)
    with pytest.raises(cn.RemoteProtocolError, match="'weather' sent a PartialDistances with"):
        script.send(
            {"airline": PartialDistances(np.ones((3, 2))), "weather": PartialDistances(sendable_floats(values))}
        )
