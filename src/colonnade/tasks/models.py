"""What is learned: models in the data's own units, with the names of their columns."""

from typing import Any, TypeAlias, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from colonnade.contracts import Roster
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.kmeans import nearest_centers
from colonnade.storage import AnyPath, Folder, reading, write_folder
from colonnade.tasks import to_sklearn
from colonnade.tasks.model_columns import check_parts, columns_of, given_names, matrix
from colonnade.tasks.model_files import LINES, MODEL, KMeansRecord, LinearRecord, pack, unpack
from colonnade.tasks.penalty_path import RegularisationPath

M = TypeVar("M")
COEFFICIENT, CENTRE, SCALE = "coefficient", "centre_", "scale"  # columns of model.arrow


class LinearModel(msgspec.Struct, frozen=True, tag_field="kind", tag="linear", eq=False):
    """Coefficients in the order of the parties' columns.

    Parameters
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        One a feature, in the data's own units.
    intercept_ : float
        Zero where none was fitted.
    feature_names_in_ : tuple of str
        The features' names, in the same order.
    path : RegularisationPath or None
        Where a penalty was chosen by cross-validation: what was tried, and the choice.
    parts_ : dict of str to int
        How many of the features each party holds, in their order.
    scale_ : ndarray of float64, shape (n_features,), or None
        Where columns were standardised: their standard deviations. The penalty is on ``coef_ * scale_``.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> model = cn.LinearModel(np.array([1.0, 2.0, 3.0]), 0.5, ("distance", "wind", "rain"),
    ...                        parts_={"airline": 1, "weather": 2})
    >>> weather = model.part("weather")
    >>> weather.feature_names_in_, weather.predict([[10.0, 0.0]]).tolist()
    (('wind', 'rain'), [20.0])
    """

    coef_: Floats
    intercept_: float
    feature_names_in_: tuple[str, ...]
    path: RegularisationPath | None = None
    parts_: dict[str, int] = {}
    scale_: Floats | None = None

    def __post_init__(self) -> None:
        if self.coef_.shape != (len(self.feature_names_in_),) or not np.isfinite([*self.coef_, self.intercept_]).all():
            raise InputError("A linear model needs one finite coefficient a feature. Check where it comes from.")
        _check_scale(self.scale_, len(self.feature_names_in_))
        check_parts(self.parts_, len(self.feature_names_in_))

    def part(self, party: str) -> "LinearModel":
        """Take one party's share, without the intercept: all shares' predictions and the intercept add up to the whole.

        Parameters
        ----------
        party : str
            Its name.

        Returns
        -------
        LinearModel
            With that party's columns only.
        """
        here = columns_of(self.parts_, party)
        return LinearModel(
            self.coef_[here].copy(),
            0.0,
            self.feature_names_in_[here],
            parts_={party: self.parts_[party]},
            scale_=None if self.scale_ is None else self.scale_[here].copy(),
        )

    def predict(self, X: npt.ArrayLike) -> Floats:
        """Predict rows that are all in one place.

        Parameters
        ----------
        X : array_like or table, shape (n_rows, n_features)
            The model's columns, in its order.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            Predictions.
        """
        predictions: Floats = matrix(X, self.feature_names_in_) @ self.coef_ + self.intercept_
        return predictions

    def to_sklearn(self) -> Any:
        """Make a fitted `sklearn.linear_model.LinearRegression` that predicts the same."""
        return to_sklearn.linear_regression(
            self.coef_, self.intercept_, given_names(self.parts_, self.feature_names_in_)
        )

    def save(self, path: AnyPath) -> Folder:
        """Write the model to a folder of `model.json` and `model.arrow`, whole or not at all.

        Parameters
        ----------
        path : str or path-like
            A new or empty folder, or one that holds a model, which is replaced.

        Returns
        -------
        Path
            The folder.
        """
        return write_folder(path, MODEL, model_files(self))

    @classmethod
    def load(cls, path: AnyPath) -> "LinearModel":
        """Read what `save` wrote, or the model of a saved run.

        Parameters
        ----------
        path : str or path-like
            The folder.

        Returns
        -------
        LinearModel
            Equal to the one saved.
        """
        return _load(cls, path)


class KMeansModel(msgspec.Struct, frozen=True, tag_field="kind", tag="kmeans", eq=False):
    """Cluster centres in the order of the parties' columns.

    Parameters
    ----------
    cluster_centers_ : ndarray of float64, shape (n_clusters, n_features)
        One row a centre, in the data's own units.
    feature_names_in_ : tuple of str
        The features' names, in the order of the columns.
    scale_ : ndarray of float64, shape (n_features,), or None
        Where columns were standardised: distances are measured in these units, one a feature.
    parts_ : dict of str to int
        How many of the features each party holds, in their order.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> model = cn.KMeansModel(np.array([[0.0, 0.0], [9.0, 9.0]]), ("distance", "wind"))
    >>> model.predict([[8.0, 7.0], [1.0, 2.0]]).tolist()
    [1, 0]
    """

    cluster_centers_: Floats
    feature_names_in_: tuple[str, ...]
    scale_: Floats | None = None
    parts_: dict[str, int] = {}

    def __post_init__(self) -> None:
        centers, n_features = self.cluster_centers_, len(self.feature_names_in_)
        if centers.ndim != 2 or not len(centers) or centers.shape[1] != n_features or not np.isfinite(centers).all():
            raise InputError(
                "A k-means model needs centres with one finite number a feature. Check where it comes from."
            )
        _check_scale(self.scale_, n_features)
        check_parts(self.parts_, n_features)

    def part(self, party: str) -> "KMeansModel":
        """Take one party's columns of the centres: squared distances add up over the parties.

        Parameters
        ----------
        party : str
            Its name.

        Returns
        -------
        KMeansModel
            With that party's columns only.
        """
        here = columns_of(self.parts_, party)
        scale = None if self.scale_ is None else self.scale_[here].copy()
        centers = self.cluster_centers_[:, here].copy()
        return KMeansModel(centers, self.feature_names_in_[here], scale, {party: self.parts_[party]})

    def predict(self, X: npt.ArrayLike) -> Rows:
        """Find the nearest centre of rows that are all in one place.

        Parameters
        ----------
        X : array_like or table, shape (n_rows, n_features)
            The model's columns, in its order and in the data's own units.

        Returns
        -------
        ndarray of int64, shape (n_rows,)
            The index of each row's nearest centre, the lowest among equals.
        """
        scale = 1.0 if self.scale_ is None else self.scale_
        return nearest_centers(matrix(X, self.feature_names_in_) / scale, self.cluster_centers_ / scale)[0]

    def to_sklearn(self) -> Any:
        """Make a fitted `sklearn.cluster.KMeans` that predicts the same, behind a `StandardScaler` if there is a scale.

        It has neither `labels_` nor `inertia_`, because a model does not have the rows they are of. A row as near to
        two centres as rounding can tell may go to either.
        """
        return to_sklearn.kmeans(self.cluster_centers_, self.scale_, given_names(self.parts_, self.feature_names_in_))

    def save(self, path: AnyPath) -> Folder:
        """Write the model to a folder, as `LinearModel.save` does."""
        return write_folder(path, MODEL, model_files(self))

    @classmethod
    def load(cls, path: AnyPath) -> "KMeansModel":
        """Read what `save` wrote, or the model of a saved run."""
        return _load(cls, path)


AnyModel: TypeAlias = LinearModel | KMeansModel


def model_files(model: AnyModel) -> dict[str, bytes]:
    """Write a model as the files that keep it, a folder's or part of a run's."""
    if isinstance(model, LinearModel):
        linear = LinearRecord(parts=model.parts_, intercept=model.intercept_, path=model.path)
        return pack(linear, model.feature_names_in_, {COEFFICIENT: _floats(model.coef_), **_scale_column(model)})
    numbers = {f"{CENTRE}{i}": _floats(center) for i, center in enumerate(model.cluster_centers_)}
    numbers |= _scale_column(model)
    return pack(KMeansRecord(parts=model.parts_), model.feature_names_in_, numbers)


def load_model(path: AnyPath) -> AnyModel:
    """Read a model of either kind from its folder, or from that of a run.

    Parameters
    ----------
    path : str or path-like
        What `model.save` or `run.save` wrote.

    Returns
    -------
    LinearModel or KMeansModel
        Equal to the one saved.
    """
    with reading(path, MODEL) as folder:
        return read_model(folder)


def read_model(folder: Folder) -> AnyModel:
    """Do the work of `load_model` where errors of reading are already looked after."""
    record, features, numbers = unpack(folder)
    scale = numbers.pop(SCALE, None)
    expected = [COEFFICIENT] if isinstance(record, LinearRecord) else [f"{CENTRE}{i}" for i in range(len(numbers))]
    if list(numbers) != expected or not numbers:
        raise ValueError(f"{LINES} has the columns {list(numbers)}, which are not those of such a model")
    values = list(numbers.values())
    if isinstance(record, LinearRecord):
        return LinearModel(values[0], record.intercept, features, record.path, record.parts, scale)
    return KMeansModel(np.array(values), features, scale, record.parts)


def _check_scale(scale: Floats | None, n_features: int) -> None:
    if scale is not None and not (scale.shape == (n_features,) and np.isfinite(scale).all() and (scale > 0).all()):
        raise InputError("A model's scale needs one positive number a feature. Check where it comes from.")


def _scale_column(model: AnyModel) -> dict[str, Floats]:
    return {} if model.scale_ is None else {SCALE: _floats(model.scale_)}


def _floats(values: npt.ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _load(kind: type[M], path: AnyPath) -> M:
    model = load_model(path)
    if not isinstance(model, kind):
        found = type(model).__name__
        raise InputError(f"{path} holds a {found}, not a {kind.__name__}. Read it with {found}.load.")
    return model


def widths(roster: Roster) -> dict[str, int]:
    """Count each party's features."""
    return {card.name: card.n_features for card in roster.cards}
