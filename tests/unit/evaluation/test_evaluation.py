"""Evaluation and prediction through the parties, against the same arithmetic in one place."""

from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.contracts import PartyCard, Roster
from colonnade.evaluation.clustering import PartialDistances, nearest_center_distances
from colonnade.evaluation.linear import PartialPredictions, linear_residuals
from colonnade.evaluation.reports import ClusteringReport, RegressionReport
from colonnade.kernels.arrays import Floats
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
    return federation().fit(cn.Regression(), sampler=cn.ImportanceSampling(size=100)).model


@pytest.fixture
def clusters() -> cn.KMeansModel:
    return federation().fit(cn.KMeans(4), sampler=cn.ImportanceSampling(size=100)).model


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


def test_evaluating_shows_no_labels_or_features(linear: cn.LinearModel) -> None:
    shared = federation()
    shared.evaluate(linear)
    shown = shared.ledger.disclosures()
    assert shown["party1", "server"] == ("schema", "predictions")
    assert shown["party3", "server"] == ("schema", "predictions", "labels"), "their spread, one number"


def test_over_the_wire_it_is_the_same(linear: cn.LinearModel, clusters: cn.KMeansModel) -> None:
    for model in (linear, clusters):
        np.testing.assert_array_equal(federation().predict(model), federation(transport=Loopback).predict(model))
        assert federation().evaluate(model) == federation(transport=Loopback).evaluate(model)


def test_a_policy_can_keep_predictions(linear: cn.LinearModel) -> None:
    parties = cn.split_columns(X, Y, [2, 2, 1])
    parties[0].policy = cn.Policy(never=["predictions"])
    with pytest.raises(cn.PolicyRefusedError, match="'party1' did not answer AskPartialPredictions"):
        cn.Federation(parties).predict(linear)


# Bad input


def test_a_model_of_other_columns(linear: cn.LinearModel) -> None:
    other = cn.Federation([cn.Party("party1", X[:, :2]), cn.Party("bank", X[:, 2:], label=Y)])
    with pytest.raises(cn.InputError, match="it has party2_0, party2_1, party3_0 that they lack, and lacks bank_0"):
        other.predict(linear)
    turned = cn.Federation(cn.split_columns(X, Y, [2, 2, 1])[::-1])
    with pytest.raises(cn.InputError, match="or their columns stand in another order"):
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
    script = linear_residuals(ROSTER, 3, np.ones(2), by_weight=True)
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
    script = nearest_center_distances(ROSTER, 3, np.ones((2, 2)), None)
    next(script)
    with pytest.raises(cn.RemoteProtocolError, match="'weather' sent a PartialDistances with"):
        script.send(
            {"airline": PartialDistances(np.ones((3, 2))), "weather": PartialDistances(sendable_floats(values))}
        )
