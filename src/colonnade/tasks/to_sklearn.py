"""Models as fitted scikit-learn estimators, imported only here and only when asked for."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.preparation.preparation import Preparation
from colonnade.tasks.model_columns import columns_of, given_names, preparation_of

Names = tuple[str, ...] | None


def skops_types() -> list[str]:
    """Name the types of `to_sklearn` that skops does not know, to be passed to ``skops.io.load(..., trusted=...)``.

    They are what pipelines of prepared columns read these with; whoever changes a file of such a pipeline can make it
    predict otherwise, and nothing else. A file with any other type is refused.

    Returns
    -------
    list of str
        Their full names.

    Examples
    --------
    >>> import numpy as np, skops.io, colonnade as cn
    >>> model = cn.LinearModel(np.array([1.0, 2.0]), 0.5, ("distance", "wind"))
    >>> stored = skops.io.dumps(model.to_sklearn())  # skops.io.dump(model.to_sklearn(), "delay.skops") keeps it
    >>> skops.io.loads(stored, trusted=cn.skops_types()).intercept_
    0.5
    """
    steps = "colonnade.preparation.steps"
    return [f"{steps}.ColumnStep", f"{steps}.GivenNames", f"{steps}.level_name", "numpy.dtype"]


def linear_regression(coef: Floats, intercept: float, names: Names) -> Any:
    """Make a fitted LinearRegression; a table's columns must be called as `names` says, None for plain arrays."""
    _require_scikit_learn(len(coef))
    from sklearn.linear_model import LinearRegression

    estimator = LinearRegression(fit_intercept=bool(intercept))
    estimator.coef_, estimator.intercept_ = coef.copy(), float(intercept)
    return _named(estimator, len(coef), names)


def logistic_regression(coef: Floats, intercept: Floats, classes: tuple[Any, ...], names: Names) -> Any:
    """Make a fitted LogisticRegression of coefficients (1, d) or (K, d); `names` as in `linear_regression`."""
    n_features = coef.shape[1]
    _require_scikit_learn(n_features)
    from sklearn.linear_model import LogisticRegression

    estimator = LogisticRegression(fit_intercept=bool(intercept.any()))
    estimator.coef_, estimator.intercept_, estimator.classes_ = coef.copy(), intercept.copy(), np.array(classes)
    return _named(estimator, n_features, names)


def kmeans(centers: Floats, scale: Floats | None, names: Names) -> Any:
    """Make a fitted KMeans, behind a StandardScaler where columns were standardised.

    Centres are in the data's own units, `scale` is the units of distances; `names` as in `linear_regression`.
    """
    n_features = centers.shape[1]
    _require_scikit_learn(n_features)
    if scale is None:
        return _named(_fitted_kmeans(centers), n_features, names)
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # Shifting rows and centres alike changes no distance, so that no means are needed.
    scaler = StandardScaler(with_mean=False)
    scaler.scale_, scaler.var_ = scale.copy(), scale**2
    return make_pipeline(_named(scaler, n_features, names), _fitted_kmeans(centers / scale))


def behind_preparation(make: Callable[[Names], Any], model: Any) -> Any:
    """Put an estimator behind what made its columns of the parties' own, where that is known: in one process.

    `make` makes it, of columns with these names, or of plain arrays.
    """
    parts, names, tables = model.parts_, model.feature_names_in_, model.learned_from_
    if tables is None or not tables.preparations:
        return make(given_names(parts, names))
    from sklearn.pipeline import FeatureUnion, Pipeline

    own = {party: names[columns_of(parts, party)] for party in parts}
    prepared = {party: preparation_of(model, party) for party in parts if own[party]}
    _check_no_clash(own, prepared)
    steps = [(party, _columns(own[party], preparation)) for party, preparation in prepared.items()]
    return Pipeline([("prepare", FeatureUnion(steps)), ("model", make(None))])


def _check_no_clash(names: Mapping[str, tuple[str, ...]], prepared: Mapping[str, Preparation | None]) -> None:
    """Require that no column of a frame would have to be two parties' at once."""
    holders: dict[str, str] = {}
    for party, preparation in prepared.items():
        raw = names[party] if preparation is None else [each.column for each in preparation.columns]
        for column in raw:
            if holders.setdefault(column, party) != party:
                raise InputError(
                    f"{holders[column]!r} and {party!r} both have a column {column!r}, and a frame has room for one. "
                    "Rename it at one of them, and learn again; or predict through the federation."
                )


def _columns(names: tuple[str, ...], preparation: Preparation | None) -> Any:
    from colonnade.preparation.pipeline import column_transformer, columns_as_they_are

    return columns_as_they_are(names) if preparation is None else column_transformer(preparation)


def _fitted_kmeans(centers: Floats) -> Any:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    estimator = KMeans(len(centers), init=centers, n_init=1, max_iter=1)
    # Fitted to its own centres, because predict also needs what scikit-learn keeps to itself.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # raised where two centres are equal
        estimator.fit(centers)
    estimator.cluster_centers_ = centers.copy()  # without the rounding of that fit
    del estimator.labels_, estimator.inertia_  # of rows, which a model does not have
    return estimator


def _named(estimator: Any, n_features: int, names: Names) -> Any:
    estimator.n_features_in_ = n_features
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return estimator


def _require_scikit_learn(n_features: int) -> None:
    if not n_features:
        raise InputError("scikit-learn knows no model without features. Take the part of a party that has some.")
    try:
        import sklearn  # noqa: F401  # only to see whether it is there
    except ImportError as error:
        raise InputError(
            "to_sklearn needs scikit-learn, which is not installed. Install it with: pip install scikit-learn"
        ) from error
