"""A linear model in the data's own units: how it is applied through the parties, kept and shown."""

from functools import partial
from typing import Any, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from colonnade.cells import html_table
from colonnade.contracts import ModelPart, Report, Roster, Rounding, Script
from colonnade.errors import InputError
from colonnade.evaluation.linear import linear_predictions, linear_residuals
from colonnade.evaluation.masked.server import AppliedModel, deliver_masked, masked_losses
from colonnade.evaluation.reports import RegressionReport, all_losses, regression_report, residual_losses
from colonnade.evaluation.rounding import SummedParts
from colonnade.kernels.arrays import Floats
from colonnade.kernels.selections import Piece, Selection
from colonnade.ledger import aligned
from colonnade.messages import sendable_floats
from colonnade.protocol.fingerprints import Tables
from colonnade.storage import AnyPath, Folder, write_folder
from colonnade.tasks import to_sklearn
from colonnade.tasks.model_columns import check_parts, check_scale, columns_of, matrix, own_names, references
from colonnade.tasks.model_files import MODEL, SCALE, ModelRecord, check_columns_of_file, load_as, pack
from colonnade.tasks.penalty_path import RegularisationPath
from colonnade.tasks.to_onnx import models as to_onnx

COEFFICIENT = "coefficient"  # its column in model.arrow
HEAD = ("feature", "coefficient")


class LinearRecord(ModelRecord, kw_only=True, tag_field="kind", tag="linear"):
    """What `model.json` says of a linear model."""

    intercept: float
    path: RegularisationPath | None


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
    learned_from_ : Tables or None
        The fingerprints of the tables it was learned from: `Federation.evaluate` compares them. They change with the
        data, and tell nothing else.

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
    learned_from_: Tables | None = None

    needs_label: ClassVar[bool] = True
    record: ClassVar[type[msgspec.Struct]] = LinearRecord
    report: ClassVar[type[Report]] = RegressionReport

    def __post_init__(self) -> None:
        if self.coef_.shape != (len(self.feature_names_in_),) or not np.isfinite([*self.coef_, self.intercept_]).all():
            raise InputError("A linear model needs one finite coefficient a feature. Check where it comes from.")
        check_scale(self.scale_, len(self.feature_names_in_))
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
            learned_from_=None if self.learned_from_ is None else self.learned_from_.of(party),
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

    def parts(self, roster: Roster) -> dict[str, ModelPart]:
        """Give each party its coefficients."""
        return {party: (sendable_floats(self.coef_[here]), None, None) for party, here in roster.parts.items()}

    def predictions(self, roster: Roster, selected: Selection, rounding: Rounding | None) -> Script[Floats]:
        """Predict the selected rows through the parties."""
        found = np.empty(len(selected))

        def use(piece: Piece, parts: SummedParts) -> None:
            np.add(parts.values, self.intercept_, out=found[piece.chosen])

        yield from linear_predictions(roster, selected, self.coef_, use, rounding)
        return found

    def delivery(self, roster: Roster, selected: Selection, to: str) -> Script[None]:
        """Let one party learn predictions of the selected rows, and nobody else."""
        return deliver_masked(roster, selected, self._applied(to))

    def evaluation(
        self, roster: Roster, selected: Selection, rounding: Rounding | None, *, sampled: bool
    ) -> Script[RegressionReport]:
        """Compare predictions of the selected rows with their labels."""
        losses = []

        def use(piece: Piece, parts: SummedParts) -> None:
            residuals = np.add(parts.values, self.intercept_, out=parts.values)
            losses.append(residual_losses(residuals, piece.weights, parts.variance, with_deviation=sampled))

        of_all = yield from linear_residuals(
            roster, selected, self.coef_, use, by_weight=not sampled, rounding=rounding
        )
        report = regression_report(all_losses(losses), of_all.label_spread, sampled=sampled)
        return report if rounding is None else replace(report, rounded_by=of_all.bound)

    def evaluation_by(self, roster: Roster, selected: Selection, by: str, *, sampled: bool) -> Script[RegressionReport]:
        """Let one party compare them: the server learns sums only."""
        applied = self._applied(by, evaluating=True, by_weight=not sampled)
        losses, spread, error = yield from masked_losses(roster, selected, applied)
        return replace(regression_report(losses, spread, sampled=sampled), rounded_by=error)

    def _applied(self, to: str, *, evaluating: bool = False, by_weight: bool = False) -> AppliedModel:
        return AppliedModel(self.coef_, None, None, self.intercept_, to, evaluating, by_weight)

    def table(self) -> str:
        """Lay out the coefficients, and how a penalty was chosen, for people."""
        table = aligned([HEAD, *self._cells()], numbers={1}) + references(self)
        return table if self.path is None else f"{table}\n\n{self.path}"

    def _repr_html_(self) -> str:
        return html_table("Linear model", HEAD, self._cells(), {1}, filter(None, [references(self).strip()]))

    def _cells(self) -> list[tuple[str, str]]:
        named = [("(intercept)", self.intercept_), *zip(own_names(self), self.coef_, strict=True)]
        return [(name, f"{value:.6g}") for name, value in named]

    def to_sklearn(self) -> Any:
        """Make a fitted `sklearn.linear_model.LinearRegression` that predicts the same.

        Where parties of one process prepared their columns, it is a pipeline, of frames with the columns as they came.
        """
        return to_sklearn.behind_preparation(partial(to_sklearn.linear_regression, self.coef_, self.intercept_), self)

    def to_onnx(self) -> Any:
        """Make an `onnx.ModelProto` that predicts the same.

        It has one input a column, of float64; where parties of one process prepared their columns, these as they came.

        Returns
        -------
        onnx.ModelProto
            Its output is `prediction`, (rows,). Those of all `part`, and the intercept, add up to the whole's.

        Examples
        --------
        >>> import numpy as np, onnx, colonnade as cn
        >>> model = cn.LinearModel(np.array([1.0, 2.0]), 0.5, ("distance", "wind"))
        >>> graph = model.to_onnx().graph  # onnx.save(model.to_onnx(), "delay.onnx") keeps it
        >>> [each.name for each in graph.input], [each.name for each in graph.output]
        (['distance', 'wind'], ['prediction'])
        """
        return to_onnx.linear(self)

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
        return write_folder(path, MODEL, self.files())

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
        return load_as(cls, path)

    def files(self) -> dict[str, bytes]:
        """Write the model as the files that keep it, a folder's or part of a run's."""
        record = LinearRecord(
            parts=self.parts_, learned_from=self.learned_from_, intercept=self.intercept_, path=self.path
        )
        return pack(record, self.feature_names_in_, {COEFFICIENT: self.coef_}, self.scale_)

    @classmethod
    def restored(cls, record: LinearRecord, features: tuple[str, ...], numbers: dict[str, Floats]) -> "LinearModel":
        """Make the model of what `files` wrote."""
        scale = numbers.pop(SCALE, None)
        check_columns_of_file(numbers, [COEFFICIENT])
        told = (record.path, record.parts, scale, record.learned_from)
        return cls(numbers[COEFFICIENT], record.intercept, features, *told)
