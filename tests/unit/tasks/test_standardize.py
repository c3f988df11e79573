"""Standardised columns: scikit-learn's answer on scaled data, told in the columns' own units."""

from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import ElasticNet, LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.kernels.kmeans import nearest_centers

N = 300
RNG = np.random.default_rng(0)
UNITS = np.array([1.0, 1e3, 1e-3, 10.0, 1.0])
X = (RNG.standard_t(5, size=(N, 5)) + RNG.normal(size=(N, 1)) + [0.0, 5.0, -2.0, 100.0, 1.0]) * UNITS
Y = X @ ([1.0, -2.0, 0.0, 0.5, 3.0] / UNITS) + 7.0 + RNG.normal(size=N)
WEIGHTS = RNG.integers(0, 4, size=N).astype(np.float64)
MARKED = np.arange(N) % 5 == 0


def federation(features: Floats = X, labels: Floats = Y, weight: Any = None, split: Any = None) -> cn.Federation:
    return cn.Federation(
        [
            cn.Party("a", features[:, :2], label=labels),
            cn.Party("b", features[:, 2:4], weight=weight),
            cn.Party("c", features[:, 4:], split=split),
        ]
    )


def scale_of(model: Any) -> Floats:
    assert model.scale_ is not None
    scale: Floats = model.scale_
    return scale


def objective(scaled: Floats, y: Floats, task: cn.Regression, coef: Floats, intercept: float, weights: Any) -> float:
    penalty = weights.sum() * (task.l2 * coef @ coef + task.l1 * np.abs(coef).sum())  # type: ignore[operator]
    return float(weights @ (scaled @ coef + intercept - y) ** 2 + penalty)


def scikit_learns(task: cn.Regression, total: float) -> Any:
    l2, l1 = task.penalties()
    options: Any = {"fit_intercept": task.fit_intercept}
    if l1:
        alpha = l1 / 2 + l2
        last = ElasticNet(alpha=alpha, l1_ratio=l1 / 2 / alpha, tol=1e-12, max_iter=50_000, **options)
    else:
        last = Ridge(alpha=total * l2, solver="svd", **options) if l2 else LinearRegression(**options)
    return make_pipeline(StandardScaler(with_mean=task.fit_intercept), last)


PENALTIES: list[dict[str, Any]] = [{}, {"l2": 0.1}, {"l2": 10.0}, {"l1": 0.3}, {"l2": 0.05, "l1": 0.3}]
TASKS = [
    cn.Regression(**penalty, fit_intercept=intercept, standardize=True)
    for penalty in PENALTIES
    for intercept in (True, False)
]


@pytest.mark.parametrize("weights", [np.ones(N), WEIGHTS], ids=["all alike", "weighted"])
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_it_is_scikit_learns_pipeline(task: cn.Regression, weights: Any) -> None:
    """The objective within 1e-6 of the pipeline's, and the same coefficients in the columns' own units."""
    weighted = weights is WEIGHTS
    run = federation(weight=weights if weighted else None).fit(task, sampler=cn.AllRows())
    pipeline = scikit_learns(task, float(weights.sum()))
    last = pipeline.steps[-1][0]
    pipeline.fit(X, Y, **{f"{last}__sample_weight": weights, "standardscaler__sample_weight": weights})
    scaler, theirs = pipeline[0], pipeline[-1]
    scaled = scaler.transform(X)
    ours = (
        run.model.coef_ * scaler.scale_,
        run.model.intercept_ + float(run.model.coef_ @ (scaler.mean_ if task.fit_intercept else np.zeros(5))),
    )
    best = objective(scaled, Y, task, theirs.coef_, float(theirs.intercept_), weights)
    assert objective(scaled, Y, task, *ours, weights) == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(run.model.coef_ * scaler.scale_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(federation().predict(run.model), pipeline.predict(X), atol=1e-3)
    assert run.facts["cost"] == pytest.approx(best, rel=1e-6), "the cost in the run is that objective"
    np.testing.assert_allclose(scale_of(run.model), scaler.scale_, rtol=1e-12)


def test_kc_house(kc_house: tuple[Floats, Floats]) -> None:
    """Raw columns of real data: the lasso of the pipeline within 1e-6."""
    features, labels = kc_house
    task = cn.Regression(l1=1e4, standardize=True)
    shared = cn.Federation(cn.split_columns(features, labels, [9, 9]))
    model = shared.fit(task, sampler=cn.AllRows()).model
    pipeline = scikit_learns(task, float(len(labels))).fit(features, labels)
    scaled, weights = pipeline[0].transform(features), np.ones(len(labels))
    best = objective(scaled, labels, task, pipeline[-1].coef_, pipeline[-1].intercept_, weights)
    assert task.cost(model, features, labels) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["all alike", "weighted"])
def test_clusters_are_measured_in_deviations(weights: Any) -> None:
    """Given the same centres, cost and labels are those of scikit-learn on scaled data; and the centres are as good."""
    task = cn.KMeans(4, standardize=True)
    shared = federation(weight=weights)
    run = shared.fit(task, sampler=cn.AllRows())
    scaler = StandardScaler().fit(X, sample_weight=weights)
    scaled, centers = scaler.transform(X), scaler.transform(run.model.cluster_centers_)
    there = KMeans(4, init=centers, n_init=1, max_iter=1).fit(scaled, sample_weight=weights)
    labels, distances = nearest_centers(scaled, centers)
    cost = float(np.average(distances, weights=weights) * (N if weights is None else weights.sum()))
    assert run.facts["cost"] == pytest.approx(cost, rel=1e-6)
    assert there.inertia_ == pytest.approx(cost, rel=1e-4), "a further Lloyd step hardly moves them"
    np.testing.assert_array_equal(shared.predict(run.model), labels)
    np.testing.assert_array_equal(shared.predict(run.model), there.predict(scaled))
    report = shared.evaluate(run.model)
    assert report.cost == pytest.approx(cost, rel=1e-6), "an evaluation measures in standard units, too"
    best = KMeans(4, n_init=10, random_state=0).fit(scaled, sample_weight=weights).inertia_
    assert cost <= 1.02 * best, "the best of ten starts each; single starts scatter by some per cent"


def test_a_unit_that_changes_changes_nothing() -> None:
    """In own units the large column decides everything; in standard units it is one of five."""
    other = X * [1e3, 1.0, 1.0, 1.0, 1e-6]
    tasks: list[Any] = [cn.Regression(l2=0.1, l1=0.1, standardize=True), cn.KMeans(3, standardize=True)]
    for task in tasks:
        ours, theirs = federation(), federation(other)
        models = [f.fit(task, sampler=cn.AllRows(), seed=1).model for f in (ours, theirs)]
        np.testing.assert_allclose(ours.predict(models[0]), theirs.predict(models[1]), rtol=1e-6)
    plain = cn.KMeans(3)
    models = [f.fit(plain, sampler=cn.AllRows(), seed=1).model for f in (ours, theirs)]
    assert not np.array_equal(ours.predict(models[0]), theirs.predict(models[1]))


@pytest.mark.parametrize("sampler", [cn.AllRows(), cn.ImportanceSampling(size=100)], ids=str)
@pytest.mark.parametrize("split", [None, cn.SplitBy("c"), cn.HoldOut(0.2)], ids=str)
def test_moments_are_those_of_the_rows_that_count(split: Any, sampler: Any) -> None:
    """Held-out rows have no part in them, and the others by their weights; whichever of these rows are drawn."""
    shared = federation(weight=WEIGHTS, split=MARKED)
    train = shared.coreset(cn.Regression(), cn.AllRows(), split=split).coreset
    scaler = StandardScaler().fit(X[train.rows], sample_weight=train.weights)
    for task in (cn.Regression(standardize=True), cn.KMeans(3, standardize=True)):
        model: Any = shared.fit(task, sampler=sampler, split=split).model
        np.testing.assert_allclose(model.scale_, scaler.scale_, rtol=1e-9)


def test_constant_columns() -> None:
    """Also constant only where rows count, and only among those trained on; with a large offset that rounds."""
    constant = X.copy()
    constant[:, 1] = 1e6 + 0.1
    constant[:, 3] = np.where(MARKED, 5.0, 3.3)
    constant[WEIGHTS == 0, 2], constant[WEIGHTS > 0, 2] = 9.0, -0.7
    shared = federation(constant, weight=WEIGHTS, split=MARKED)
    for task in (
        cn.Regression(standardize=True),
        cn.Regression(l2=0.1, standardize=True),
        cn.Regression(l1=0.1, standardize=True, fit_intercept=False),
        cn.KMeans(3, standardize=True),
    ):
        for sampler in (cn.AllRows(), cn.ImportanceSampling(size=150)):
            model: Any = shared.fit(task, sampler=sampler, split=cn.SplitBy("c")).model
            np.testing.assert_array_equal(model.scale_[[1, 2, 3]], 1.0)
            assert np.isfinite(shared.predict(model)).all()
            if isinstance(task, cn.Regression) and task.fit_intercept:
                np.testing.assert_allclose(model.coef_[[1, 2, 3]], 0.0, atol=1e-8)


def test_a_party_with_nothing_but_the_label() -> None:
    shared = cn.Federation([cn.Party("a", X), cn.Party("bank", np.empty((N, 0)), label=Y)])
    model = shared.fit(cn.Regression(l2=0.1, standardize=True), sampler=cn.AllRows()).model
    there = federation().fit(cn.Regression(l2=0.1, standardize=True), sampler=cn.AllRows()).model
    np.testing.assert_allclose(model.coef_, there.coef_, rtol=1e-8)


@pytest.mark.parametrize("penalty", [{"l2": 0.1}, {"l1": 0.2}, {"l2": 0.05, "l1": 0.2}], ids=str)
@pytest.mark.parametrize(("intercept", "scale"), [(True, True), (True, False), (False, True)])
def test_saga_finds_what_central_finds(penalty: Any, intercept: bool, scale: bool) -> None:
    """Standardised columns need no scaling of Saga's own, but those that keep their means do."""
    task = cn.Regression(**penalty, fit_intercept=intercept, standardize=True)
    shared = federation(weight=WEIGHTS)
    solvers = (cn.Central(), cn.Saga(tolerance=1e-6, scale=scale))
    ours, theirs = (
        task.cost(shared.fit(task, sampler=cn.AllRows(), solver=solver).model, X, Y, WEIGHTS) for solver in solvers
    )
    assert theirs == pytest.approx(ours, rel=1e-4)


@pytest.mark.parametrize("sampler", [cn.AllRows(), cn.ImportanceSampling(size=200)], ids=str)
def test_distdim_clusters_in_deviations(sampler: Any) -> None:
    """Three far clusters in columns of very different units: found, where own units would find others."""
    middles = np.array([[0, 0, 0, 0, 0], [30, 0, 30, 0, 30], [0, 30, 0, 30, 0]])
    blobs = (middles[np.arange(N) % 3] + RNG.normal(size=(N, 5))) * UNITS
    shared = federation(blobs)
    model = shared.fit(cn.KMeans(3, standardize=True), sampler=sampler, solver=cn.DistDim()).model
    np.testing.assert_allclose(
        model.cluster_centers_[shared.predict(model)] / UNITS, middles[np.arange(N) % 3], atol=1.0
    )


@pytest.mark.parametrize("vary", ["l2", "l1"])
def test_cross_validation_chooses_in_standard_units(vary: str) -> None:
    """The same choice as on columns that were scaled beforehand, where the folds are the same."""
    task: Any = cn.Regression(**{vary: "cv"}, standardize=True)  # type: ignore[arg-type]
    plain: Any = cn.Regression(**{vary: "cv"})  # type: ignore[arg-type]
    ours = federation().fit(task, sampler=cn.AllRows(), seed=3)
    theirs = federation((X - X.mean(axis=0)) / X.std(axis=0)).fit(plain, sampler=cn.AllRows(), seed=3)
    assert ours.model.path is not None
    assert theirs.model.path is not None
    assert getattr(ours.model.path.chosen, vary) == pytest.approx(getattr(theirs.model.path.chosen, vary), rel=1e-6)
    np.testing.assert_allclose(ours.model.coef_ * X.std(axis=0), theirs.model.coef_, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("value", [1, "yes", None, 0.0])
def test_standardize_is_true_or_false(value: Any) -> None:
    with pytest.raises(cn.InputError, match="standardize must be True or False"):
        cn.Regression(standardize=value)
    with pytest.raises(cn.InputError, match="standardize must be True or False"):
        cn.KMeans(3, standardize=value)
