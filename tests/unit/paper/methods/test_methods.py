"""Every method as written is the library's own run, bit for bit; the authors' draws are what they are said to be."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import colonnade as cn
from colonnade.paper.data_sets.data_set import DataSet
from colonnade.paper.design import Draw, Part
from colonnade.paper.drawing import drawn
from colonnade.paper.formulas import printed_units
from colonnade.paper.methods import METHODS
from colonnade.paper.methods.saga import _fused, _sent_in
from colonnade.paper.problem import Problem
from colonnade.paper.variants import AS_RUN, AS_WRITTEN, REASONS, Variant

RIDGE = Part("ridge", cn.Regression(l2=0.1), "made up", (2, 2, 1), ("Central", "SAGA"), (40,), cost="test")
CLUSTERS = Part("k-means", cn.KMeans(n_clusters=3), "made up", (2, 2, 1), ("Kmeans++", "DistDim"), (40,))


def data(n_rows: int = 300) -> DataSet:
    rng = np.random.default_rng(0)
    features = rng.standard_t(4, size=(n_rows, 5)) + 2 * rng.integers(3, size=(n_rows, 1))
    labels = 2000 + features @ [1.0, 2.0, -1.0, 0.0, 0.5] + rng.normal(size=n_rows)
    return DataSet("made up", features, labels, int(0.9 * n_rows))


@pytest.fixture(scope="module")
def ridge() -> Problem:
    return Problem(RIDGE, data())


@pytest.fixture(scope="module")
def clusters() -> Problem:
    return Problem(CLUSTERS, data())


SOLVERS: list[tuple[str, Any]] = [
    ("Central", cn.Central()),
    ("SAGA", cn.Saga()),
    ("Kmeans++", cn.Central()),
    ("DistDim", cn.DistDim()),
]
SAMPLERS: list[tuple[Any, Any]] = [
    ("C-", cn.ImportanceSampling(40, draws="independent")),
    ("U-", cn.UniformSampling(40, draws="independent")),
    ("", cn.AllRows()),
]


@pytest.mark.parametrize(("prefix", "sampler"), SAMPLERS)
@pytest.mark.parametrize(("name", "solver"), SOLVERS)
def test_as_written_is_what_the_federation_does(
    name: str, solver: Any, prefix: Any, sampler: Any, request: pytest.FixtureRequest
) -> None:
    problem: Problem = request.getfixturevalue("ridge" if name in ("Central", "SAGA") else "clusters")
    outcome = METHODS[name].learn(problem, AS_WRITTEN, Draw(prefix, 40), 5)
    run = problem.federation.fit(problem.part.learn, sampler=sampler, solver=solver, seed=5)
    values = "coef_" if name in ("Central", "SAGA") else "cluster_centers_"
    assert np.array_equal(getattr(outcome.model, values), getattr(run.model, values))
    assert (outcome.units, outcome.bytes) == (run.ledger.units, run.ledger.bytes)
    steps = sum(entry.kind == "AskProgress" for entry in run.ledger) // 3
    assert (outcome.epochs or 0) == steps


@pytest.mark.parametrize("which", ["ridge", "clusters"])
def test_offline_draws_follow_the_protocol_s_law(which: str, request: pytest.FixtureRequest) -> None:
    """Same scores, same weights, and rows as often: a chi-squared test that fails by chance once in 1,000 seeds."""
    problem: Problem = request.getfixturevalue(which)
    scores = problem.scores(AS_WRITTEN)
    played = problem.federation.coreset(
        problem.part.learn, cn.ImportanceSampling(5000, draws="independent"), seed=1
    ).coreset
    offline = drawn(problem, AS_WRITTEN, Draw("C-", 5000), seed=1)
    for coreset in (played, offline):
        np.testing.assert_allclose(coreset.weights, scores.sum() / (5000 * scores[coreset.rows]), rtol=1e-9)
        counts = np.bincount(coreset.rows, minlength=problem.n_rows)
        assert chisquare(counts, 5000 * scores / scores.sum()).pvalue > 1e-3
        assert coreset.total_weight == problem.n_rows


def test_uniform_draws_as_written_weigh_n_over_m(ridge: Problem) -> None:
    coreset = drawn(ridge, AS_WRITTEN, Draw("U-", 30), seed=0)
    np.testing.assert_allclose(coreset.weights, ridge.n_rows / 30)


def test_the_authors_drew_each_row_once_and_rescaled(ridge: Problem) -> None:
    scores = ridge.scores(AS_RUN)
    coreset = drawn(ridge, AS_RUN, Draw("C-", 100), seed=0)
    assert len(np.unique(coreset.rows)) == 100
    assert coreset.weights.sum() == pytest.approx(10 * 100)
    products = coreset.weights * scores[coreset.rows]
    np.testing.assert_allclose(products, products[0])
    assert coreset.total_weight == ridge.n_rows, "the ridge penalty stays 0.1 n"
    np.testing.assert_allclose(drawn(ridge, AS_RUN, Draw("U-", 100), seed=0).weights, 1.0)


def test_a_lasso_s_penalty_is_relative_to_the_weights_as_run() -> None:
    problem = Problem(replace(RIDGE, learn=cn.Regression(l1=2.0)), data())
    coreset = drawn(problem, AS_RUN, Draw("C-", 100), seed=0)
    assert coreset.total_weight == pytest.approx(coreset.weights.sum())


def test_each_switch_of_the_regression_scores(ridge: Problem) -> None:
    n, written = ridge.n_rows, ridge.scores(AS_WRITTEN)
    once = ridge.scores(replace(AS_WRITTEN, share_each=False))
    np.testing.assert_allclose(written - once, 2 / n)
    assert ridge.scores(replace(AS_WRITTEN, intercept_scored=False)).sum() == pytest.approx(written.sum() - 1)


def test_each_factor_of_the_clustering_scores(clusters: Problem) -> None:
    """Totals over three parties: the first two terms sum to 1 each, the third to k."""
    for (own, of_cluster, of_size), total in [((1, 0, 0), 3), ((0, 1, 0), 3), ((0, 0, 1), 9), ((2, 4, 4), 54)]:
        variant = replace(AS_WRITTEN, clustering_terms=(float(own), float(of_cluster), float(of_size)))
        assert clusters.scores(variant).sum() == pytest.approx(total)


def test_every_switch_has_a_reason() -> None:
    assert set(REASONS) == {field.name for field in fields(Variant)} - {"name"}
    assert AS_WRITTEN.by_protocol
    assert not AS_RUN.by_protocol


# scikit-learn's SAGA takes no account of weights in its step size: on so few rows the coreset's would throw it off.
@pytest.mark.parametrize(("name", "prefix"), [("Central", "C-"), ("Central", "U-"), ("SAGA", "U-")])
def test_as_run_learns_and_is_charged_with_the_protocol(ridge: Problem, name: str, prefix: Any) -> None:
    draw = Draw(prefix, 40)
    outcome = METHODS[name].learn(ridge, AS_RUN, draw, 1)
    drawing = ridge.federation.coreset(RIDGE.learn, draw.sampler()).ledger
    rows_and_labels = 40 * 6
    if name == "Central":
        assert outcome.units == drawing.units + rows_and_labels
    else:
        assert outcome.epochs is not None
        assert outcome.units > 2 * 40 * 3 * outcome.epochs
    assert 0.5 < ridge.cost(outcome.model) < 10


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("scale", [True, False])
def test_the_fused_form_gives_the_same_bits_and_counts_the_same_messages(batch: int, scale: bool) -> None:
    task, solver = cn.Regression(l2=0.1, l1=0.4), cn.Saga(batch, tolerance=1e-3, scale=scale)
    problem = Problem(replace(RIDGE, learn=task), data())
    coreset = problem.federation.coreset(task, cn.ImportanceSampling(size=50)).coreset
    run = problem.federation.fit(task, coreset=coreset, solver=solver, seed=4)
    model, totals = _fused(problem, solver, coreset, 4)
    assert isinstance(model, cn.LinearModel)
    np.testing.assert_array_equal(model.coef_, run.model.coef_)
    assert model.intercept_ == run.model.intercept_
    assert totals == run.ledger.by_phase()["solving"]


def test_the_fused_form_has_no_bits(ridge: Problem) -> None:
    coreset = drawn(ridge, AS_RUN, Draw("C-", 40), seed=1)
    with pytest.raises(cn.UnsupportedError, match="not with 16 bits"):
        _fused(ridge, cn.Saga(bits=16), coreset, 0)


def test_epochs_are_counted_from_messages(ridge: Problem) -> None:
    coreset = drawn(ridge, AS_RUN, Draw("C-", 40), seed=1)
    played = _fused(ridge, cn.Saga(batch=1, tolerance=0.0, max_epochs=5), coreset, 0)[1]
    counted = _sent_in(ridge, coreset, 5)
    assert (counted.messages, counted.units) == (played.messages, played.units)
    assert counted.bytes == pytest.approx(played.bytes, rel=0.001)


def test_the_referee_counts_test_and_training_costs() -> None:
    made = data()
    model = cn.LinearModel(np.array([1.0, 2.0, -1.0, 0.0, 0.4]), 1999.0, ("a", "b", "c", "d", "e"))

    def error(features: Any, labels: Any) -> float:
        return float(np.mean((features @ model.coef_ + model.intercept_ - labels) ** 2))

    assert Problem(RIDGE, made).cost(model) == pytest.approx(error(*made.test))
    trained = replace(RIDGE, learn=cn.Regression(l2=0.1, l1=2.0), cost="train")
    penalty = 0.1 * np.sum(model.coef_**2) + 2.0 * np.abs(model.coef_).sum()
    assert Problem(trained, made).cost(model) == pytest.approx(error(*made.train) + penalty)


@pytest.mark.parametrize(
    ("solver", "draw", "printed"),
    [
        ("Central", Draw("", 463_715), 4.2e7),
        ("Central", Draw("C-", 1000), 9.9e4),
        ("Central", Draw("U-", 1000), 9.3e4),
        ("Central", Draw("C-", 6000), 5.9e5),
        ("DistDim", Draw("", 515_345), 1.5e6),
        ("DistDim", Draw("C-", 1000), 1.3e4),
        ("DistDim", Draw("U-", 6000), 3.7e4),
    ],
)
def test_the_formulas_give_the_printed_communication(solver: str, draw: Draw, printed: float) -> None:
    learn = cn.KMeans(n_clusters=10) if solver == "DistDim" else cn.Regression()
    part = Part("any", learn, "any", (30, 30, 30), (solver,))
    assert float(f"{printed_units(part, solver, draw, None):.1e}") == printed


def test_the_formula_of_saga_counts_its_epochs() -> None:
    part = Part("any", cn.Regression(), "any", (30, 30, 30), ("SAGA",))
    assert float(f"{printed_units(part, 'SAGA', Draw('C-', 1000), 7632):.1e}") == 6.9e7
