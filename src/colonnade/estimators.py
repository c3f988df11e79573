"""A scikit-learn face for one-process use: estimators that split the columns among parties and learn on a coreset.

Loaded only when asked for, because scikit-learn is heavy.
"""

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from colonnade.data.parties import split_columns
from colonnade.errors import InputError
from colonnade.federation import Federation
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.class_predictions import class_chances
from colonnade.kernels.kmeans import nearest_centers
from colonnade.run import Run
from colonnade.sampling import AllRows, AnySampler, ImportanceSampling
from colonnade.tasks import Classification, KMeans, Regression


class ColonnadeRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Linear regression on a coreset, as a scikit-learn estimator.

    Parameters
    ----------
    parties : sequence of int, optional
        How many columns each party holds; one party with all of them if left out.
    size : int, optional
        Rows of the coreset; all rows are used if left out.
    l2, l1 : float or "cv"
        The penalties a row, or which of them to choose by cross-validation on the coreset.
    fit_intercept : bool
        Whether there is an intercept.
    random_state : int, RandomState or None
        As everywhere in scikit-learn.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients.
    intercept_ : float
        Intercept.
    run_ : Run
        Everything else: coreset, ledger, diagnostics.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> y = X @ [1.0, 2.0, 3.0, 4.0]
    >>> estimator = cn.ColonnadeRegressor(parties=[2, 2], size=100, random_state=0).fit(X, y)
    >>> estimator.coef_.round(6).tolist(), estimator.run_.ledger.units
    ([1.0, 2.0, 3.0, 4.0], 1004)
    """

    def __init__(
        self,
        parties: Sequence[int] | None = None,
        size: int | None = None,
        l2: float | Literal["cv"] = 0.0,
        l1: float | Literal["cv"] = 0.0,
        fit_intercept: bool = True,
        random_state: Any = None,
    ) -> None:
        self.parties = parties
        self.size = size
        self.l2 = l2
        self.l1 = l1
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows and labels, each row as often as its weight says."""
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        task = Regression(l2=self.l2, l1=self.l1, fit_intercept=self.fit_intercept)
        self.run_: Run[Any] = _fit(self, task, X, y, sample_weight)
        self.coef_: Floats = self.run_.model.coef_
        self.intercept_: float = self.run_.model.intercept_
        return self

    def predict(self, X: Any) -> Floats:
        """Predict rows."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        predictions: Floats = X @ self.coef_ + self.intercept_
        return predictions


class ColonnadeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Logistic regression on a coreset, as a scikit-learn estimator.

    Parameters
    ----------
    parties : sequence of int, optional
        How many columns each party holds; one party with all of them if left out.
    size : int, optional
        Rows of the coreset; all rows are used if left out.
    l2, l1 : float or "cv"
        The penalties a row, or which of them to choose by cross-validation on the coreset. scikit-learn's C is
        ``1 / (2 n l2)`` for n rows.
    fit_intercept : bool
        Whether there is an intercept.
    random_state : int, RandomState or None
        As everywhere in scikit-learn.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The label's values.
    coef_ : ndarray of shape (1, n_features), or (n_classes, n_features) for more classes than two
        Coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    run_ : Run
        Everything else: coreset, ledger, diagnostics. Its model calls classes 0, 1, ...

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> late = np.where(X @ [1.0, 2.0, 3.0, 4.0] > 0, "yes", "no")
    >>> estimator = cn.ColonnadeClassifier(parties=[2, 2], size=200, random_state=0).fit(X, late)
    >>> estimator.predict(X[:2]).tolist() == late[:2].tolist(), bool(estimator.score(X, late) > 0.97)
    (True, True)
    """

    def __init__(
        self,
        parties: Sequence[int] | None = None,
        size: int | None = None,
        l2: float | Literal["cv"] = 1e-4,
        l1: float | Literal["cv"] = 0.0,
        fit_intercept: bool = True,
        random_state: Any = None,
    ) -> None:
        self.parties = parties
        self.size = size
        self.l2 = l2
        self.l1 = l1
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows and labels, each row as often as its weight says."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"Every label is {self.classes_[0]!r}: with one class there is nothing to tell apart. Pass labels of "
                "two classes or more."
            )
        task = Classification(l2=self.l2, l1=self.l1, fit_intercept=self.fit_intercept)
        self.run_: Run[Any] = _fit(self, task, X, codes.astype(np.float64), sample_weight)
        self.coef_: Floats = self.run_.model.coef_
        self.intercept_: Floats = self.run_.model.intercept_
        return self

    def decision_function(self, X: Any) -> Floats:
        """Compute logits: of two classes those of the last, shape (n_rows,); of more (n_rows, n_classes)."""
        check_is_fitted(self)
        logits: Floats = self.run_.model.logits(validate_data(self, X, reset=False, dtype=np.float64))
        return logits

    def predict_proba(self, X: Any) -> Floats:
        """Give chances of classes, shape (n_rows, n_classes)."""
        return class_chances(self.decision_function(X))

    def predict(self, X: Any) -> Any:
        """Name the most likely class of each row."""
        likely = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likely]


class ColonnadeKMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """K-means on a coreset, as a scikit-learn estimator.

    Parameters
    ----------
    n_clusters : int
        k.
    parties : sequence of int, optional
        How many columns each party holds; one party with all of them if left out.
    size : int, optional
        Rows of the coreset; all rows are used if left out.
    n_starts : int
        How many k-means++ starts are made; the best is kept.
    random_state : int, RandomState or None
        As everywhere in scikit-learn.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres.
    labels_ : ndarray of shape (n_rows,)
        Nearest centre of every row.
    inertia_ : float
        Sum of squared distances to it.
    run_ : Run
        Everything else: coreset, ledger, diagnostics.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.repeat([[1.0, 1.0], [9.0, 1.0], [1.0, 9.0]], 50, axis=0)
    >>> round(cn.ColonnadeKMeans(3, parties=[1, 1], size=60, random_state=0).fit(X).inertia_, 9)
    0.0
    """

    def __init__(
        self,
        n_clusters: int = 8,
        parties: Sequence[int] | None = None,
        size: int | None = None,
        n_starts: int = 10,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.parties = parties
        self.size = size
        self.n_starts = n_starts
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002  # scikit-learn's signature
        """Learn from rows."""
        X = validate_data(self, X, dtype=np.float64)
        task = KMeans(self.n_clusters, n_starts=self.n_starts)
        self.run_: Run[Any] = _fit(self, task, X, None)
        self.cluster_centers_: Floats = self.run_.model.cluster_centers_
        self.labels_, distances = nearest_centers(X, self.cluster_centers_)
        self.inertia_ = float(distances.sum())
        return self

    def predict(self, X: Any) -> Rows:
        """Find the nearest centre of every row."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return nearest_centers(X, self.cluster_centers_)[0]


def _fit(estimator: Any, task: Any, X: Floats, y: Floats | None, sample_weight: Any = None) -> Run[Any]:
    weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
    sampler: AnySampler = AllRows() if estimator.size is None else ImportanceSampling(estimator.size)
    widths = [X.shape[1]] if estimator.parties is None else estimator.parties
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    return Federation(split_columns(X, y, widths, weight=weight)).fit(task, sampler=sampler, seed=seed)
