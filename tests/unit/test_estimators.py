"""The scikit-learn face passes scikit-learn's own checks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import colonnade as cn


# No check is excluded. Some are on fewer rows than columns.
@pytest.mark.filterwarnings("ignore:.* coefficients were learned on:colonnade.AssumptionWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        cn.ColonnadeRegressor(),
        cn.ColonnadeKMeans(),
        cn.ColonnadeRegressor(l2=0.1, l1=0.1),
        cn.ColonnadeClassifier(),
        cn.ColonnadeClassifier(l2=0.01, l1=0.001),
    ]
)
def test_scikit_learns_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def make_data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 5)) * [1, 10, 100, 1, 1]
    return X, X @ [3.0, 0.2, 0.01, 0.0, 1.0] + rng.normal(size=1500)


def test_all_rows_are_scikit_learns_ridge() -> None:
    X, y = make_data()
    ours = cn.ColonnadeRegressor(parties=[2, 3], l2=0.3).fit(X, y)
    theirs = Ridge(alpha=0.3 * len(X)).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
    assert ours.intercept_ == pytest.approx(theirs.intercept_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_rows_are_scikit_learns_logistic_regression(n_classes: int) -> None:
    X, y = make_data()
    X = X / X.std(axis=0)
    labels = np.array(["early", "late", "never"])[np.digitize(y, [0.0, 3.0][: n_classes - 1])]
    ours = cn.ColonnadeClassifier(parties=[2, 3], l2=0.01).fit(X, labels)
    theirs = LogisticRegression(C=1 / (2 * len(X) * 0.01), tol=1e-10, max_iter=10_000).fit(X, labels)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.decision_function(X).shape, theirs.decision_function(X).shape)
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    assert ours.score(X, labels) == pytest.approx(theirs.score(X, labels), abs=1e-3)


def test_classes_on_a_coreset_in_a_grid_search() -> None:
    X, y = make_data()
    pipeline = make_pipeline(StandardScaler(), cn.ColonnadeClassifier(parties=[2, 3], size=300, random_state=0))
    search = GridSearchCV(pipeline, {"colonnadeclassifier__l2": [1e-3, 100.0]}, cv=3, scoring="neg_log_loss")
    assert search.fit(X, y > 1.0).best_params_ == {"colonnadeclassifier__l2": 1e-3}
    assert len(search.best_estimator_[-1].run_.coreset) == 300


def test_in_a_pipeline_and_a_grid_search() -> None:
    X, y = make_data()
    pipeline = make_pipeline(StandardScaler(), cn.ColonnadeRegressor(parties=[2, 3], size=300, random_state=0))
    search = GridSearchCV(pipeline, {"colonnaderegressor__l2": [0.0, 100.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"colonnaderegressor__l2": 0.0}
    assert search.best_score_ > 0.8


def test_the_random_state_decides() -> None:
    X, y = make_data()
    first, again, other = (cn.ColonnadeRegressor([2, 3], 100, random_state=seed).fit(X, y).coef_ for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_clusters_on_a_coreset() -> None:
    X, _ = make_data()
    estimator = cn.ColonnadeKMeans(4, parties=[3, 2], size=400, random_state=0)
    labels = estimator.fit_predict(X)
    np.testing.assert_array_equal(labels, estimator.predict(X))
    assert len(estimator.run_.coreset) == 400
    assert estimator.inertia_ == pytest.approx(np.square(X - estimator.cluster_centers_[labels]).sum())


def test_bad_options_are_named() -> None:
    X, y = make_data()
    with pytest.raises(cn.InputError, match="add up to the columns of X"):
        cn.ColonnadeRegressor(parties=[2, 2]).fit(X, y)
    with pytest.raises(cn.InputError, match="size must be a whole number"):
        cn.ColonnadeRegressor(size=0).fit(X, y)
    with pytest.raises(AttributeError, match="no attribute 'ColonnadeForest'"):
        cn.ColonnadeForest  # noqa: B018
