"""A model that gives chances of classes by a linear function: how it is applied through the parties, kept, shown."""

from functools import partial
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta
from msgspec.structs import replace

from colonnade.cells import MOST_COLUMNS, html_table
from colonnade.contracts import ModelPart, Report, Roster, Rounding, Script
from colonnade.errors import InputError
from colonnade.evaluation.classes.reports import ClassificationReport, classification_report
from colonnade.evaluation.classes.server import (
    AppliedClasses,
    Compared,
    class_losses,
    deliver_masked_classes,
    masked_class_losses,
)
from colonnade.evaluation.linear import linear_predictions
from colonnade.evaluation.rounding import SummedParts
from colonnade.kernels.arrays import Floats
from colonnade.kernels.class_predictions import ClassPredictions, class_chances
from colonnade.kernels.selections import Piece, Selection
from colonnade.ledger import aligned
from colonnade.messages import sendable_floats
from colonnade.protocol.classes import ClassName
from colonnade.protocol.fingerprints import Tables
from colonnade.storage import AnyPath, Folder, write_folder
from colonnade.tasks import to_sklearn
from colonnade.tasks.model_columns import check_parts, check_scale, columns_of, matrix, own_names, references
from colonnade.tasks.model_files import MODEL, SCALE, ModelRecord, check_columns_of_file, load_as, pack
from colonnade.tasks.penalty_path import RegularisationPath
from colonnade.tasks.to_onnx import models as to_onnx

COEFFICIENT = "coefficient"  # its column in model.arrow; of more classes than two, one each with its number


class ClassificationRecord(ModelRecord, kw_only=True, tag_field="kind", tag="classification"):
    """What `model.json` says of a classification."""

    intercepts: tuple[float, ...]
    classes: Annotated[tuple[ClassName, ...], Meta(min_length=2)]
    path: RegularisationPath | None


class ClassificationModel(msgspec.Struct, frozen=True, tag_field="kind", tag="classification", eq=False):
    """Coefficients of classes, in the order of the parties' columns.

    Parameters
    ----------
    coef_ : ndarray of float64, shape (1, n_features), or (n_classes, n_features) of more classes than two
        In the data's own units: ``exp(coef_[0])`` is what a unit of a feature multiplies the odds of the last class by.
    intercept_ : ndarray of float64, shape (1,) or (n_classes,)
        Zeros where none was fitted.
    classes_ : tuple of str or number
        The label's values, in the order of the columns of probabilities.
    feature_names_in_ : tuple of str
        The features' names, in the order of the coefficients.
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
    >>> model = cn.ClassificationModel(np.array([[1.0, 2.0]]), np.array([-3.0]), ("no", "yes"), ("distance", "wind"))
    >>> model.predict([[1.0, 1.0], [2.0, 2.0]]).tolist()
    ['no', 'yes']
    >>> model.predict_proba([[1.0, 1.0]]).tolist()
    [[0.5, 0.5]]
    """

    coef_: Floats
    intercept_: Floats
    classes_: tuple[ClassName, ...]
    feature_names_in_: tuple[str, ...]
    path: RegularisationPath | None = None
    parts_: dict[str, int] = {}
    scale_: Floats | None = None
    learned_from_: Tables | None = None

    needs_label: ClassVar[bool] = True
    record: ClassVar[type[msgspec.Struct]] = ClassificationRecord
    report: ClassVar[type[Report]] = ClassificationReport

    def __post_init__(self) -> None:
        lines, d = n_lines(self.classes_), len(self.feature_names_in_)
        shapes = (self.coef_.shape, self.intercept_.shape)
        if shapes != ((lines, d), (lines,)) or not (
            np.isfinite(self.coef_).all() and np.isfinite(self.intercept_).all()
        ):
            raise InputError(
                f"A classification of {len(self.classes_)} classes and {d} features needs {lines} x {d} finite "
                f"coefficients and {lines} intercepts, got shapes {shapes}. Check where it comes from."
            )
        check_scale(self.scale_, d)
        check_parts(self.parts_, d)

    def part(self, party: str) -> "ClassificationModel":
        """Take one party's share, without the intercept: all shares' logits and the intercept add up to the whole.

        Parameters
        ----------
        party : str
            Its name.

        Returns
        -------
        ClassificationModel
            With that party's columns only.
        """
        here = columns_of(self.parts_, party)
        return ClassificationModel(
            self.coef_[:, here].copy(),
            np.zeros_like(self.intercept_),
            self.classes_,
            self.feature_names_in_[here],
            parts_={party: self.parts_[party]},
            scale_=None if self.scale_ is None else self.scale_[here].copy(),
            learned_from_=None if self.learned_from_ is None else self.learned_from_.of(party),
        )

    def logits(self, features: Floats) -> Floats:
        """Compute f(x): of two classes the log of the odds of the last, shape (m,); of more, (m, n_classes)."""
        logits: Floats = features @ self._sent_coef().T + self._sent_intercepts()
        return logits

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Give chances of classes for rows that are all in one place.

        Parameters
        ----------
        X : array_like or table, shape (n_rows, n_features)
            The model's columns, in its order.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_classes)
            They add up to 1.
        """
        return class_chances(self.logits(matrix(X, self.feature_names_in_)))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Name the most likely class of rows that are all in one place.

        Parameters
        ----------
        X : array_like or table, shape (n_rows, n_features)
            The model's columns, in its order.

        Returns
        -------
        ndarray, shape (n_rows,)
            Of the label's values.
        """
        return ClassPredictions(self.predict_proba(X), self.classes_).classes

    def parts(self, roster: Roster) -> dict[str, ModelPart]:
        """Give each party its coefficients."""
        sent = self._sent_coef()
        return {party: (sendable_floats(sent[..., here]), None, None) for party, here in roster.parts.items()}

    def predictions(self, roster: Roster, selected: Selection, rounding: Rounding | None) -> Script[ClassPredictions]:
        """Give chances of classes for the selected rows, through the parties."""
        chances = np.empty((len(selected), len(self.classes_)))

        def use(piece: Piece, parts: SummedParts) -> None:
            logits = np.add(parts.values, self._sent_intercepts(), out=parts.values)
            class_chances(logits, out=chances[piece.chosen])

        yield from linear_predictions(roster, selected, self._sent_coef(), use, rounding)
        return ClassPredictions(chances, self.classes_)

    def delivery(self, roster: Roster, selected: Selection, to: str) -> Script[None]:
        """Let one party learn predictions of the selected rows, and nobody else."""
        return deliver_masked_classes(roster, selected, self._applied(), to)

    def evaluation(
        self, roster: Roster, selected: Selection, rounding: Rounding | None, *, sampled: bool
    ) -> Script[ClassificationReport]:
        """Compare predictions of the selected rows with their labels, at the label party."""
        found = yield from class_losses(roster, selected, self._applied(), rounding, by_weight=not sampled)
        report = self._report(found, len(selected), selected.weight, sampled=sampled)
        return report if rounding is None else replace(report, rounded_by=found.bound)

    def evaluation_by(
        self, roster: Roster, selected: Selection, by: str, *, sampled: bool
    ) -> Script[ClassificationReport]:
        """Let the label party compare them: the server learns sums only."""
        found = yield from masked_class_losses(roster, selected, self._applied(), by, by_weight=not sampled)
        return replace(self._report(found, len(selected), selected.weight, sampled=sampled), rounded_by=found.bound)

    def _applied(self) -> AppliedClasses:
        return AppliedClasses(self._sent_coef(), self.intercept_, self.classes_)

    def _report(self, found: Compared, n_rows: int, weight: float, *, sampled: bool) -> ClassificationReport:
        return classification_report(found.metrics, self.classes_, n_rows, weight, sampled=sampled)

    def _sent_coef(self) -> Floats:
        """Give the coefficients as they travel: of two classes one a feature, (d,); of more (n_classes, d)."""
        return self.coef_[0] if len(self.classes_) == 2 else self.coef_

    def _sent_intercepts(self) -> Floats:
        """Give what is added to logits likewise: of two classes a number; of more (n_classes,)."""
        return self.intercept_[0] if len(self.classes_) == 2 else self.intercept_

    def table(self) -> str:
        """Lay out the coefficients, and how a penalty was chosen, for people."""
        cells = self._cells()
        table = aligned(cells, numbers=range(1, len(cells[0]))) + references(self)
        return table if self.path is None else f"{table}\n\n{self.path}"

    def _repr_html_(self) -> str:
        head, *lines = (line[:MOST_COLUMNS] for line in self._cells())
        title = f"Classification of {len(self.classes_):,} classes"
        return html_table(title, head, lines, range(1, len(head)), filter(None, [references(self).strip()]))

    def _cells(self) -> list[tuple[str, ...]]:
        names = [str(self.classes_[-1])] if len(self.classes_) == 2 else list(map(str, self.classes_))
        lines = [("(intercept)", self.intercept_), *zip(own_names(self), self.coef_.T, strict=True)]
        return [("feature", *names), *((name, *(f"{value:.6g}" for value in values)) for name, values in lines)]

    def to_sklearn(self) -> Any:
        """Make a fitted `sklearn.linear_model.LogisticRegression` that predicts the same.

        Where parties of one process prepared their columns, it is a pipeline, of frames with the columns as they came.
        """
        make = partial(to_sklearn.logistic_regression, self.coef_, self.intercept_, self.classes_)
        return to_sklearn.behind_preparation(make, self)

    def to_onnx(self) -> Any:
        """Make an `onnx.ModelProto` that predicts the same.

        It has one input a column, of float64; where parties of one process prepared their columns, these as they came.

        Returns
        -------
        onnx.ModelProto
            Its outputs are `label`, (rows,), `probabilities`, (rows, n_classes), and `logits`: those of all `part`, and
            the intercept, add up to the whole's.

        Examples
        --------
        >>> import numpy as np, onnx, colonnade as cn
        >>> model = cn.ClassificationModel(np.array([[1.0, 2.0]]), np.array([-3.0]), ("no", "yes"), ("rain", "wind"))
        >>> [each.name for each in model.to_onnx().graph.output]
        ['label', 'probabilities', 'logits']
        """
        return to_onnx.classification(self)

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
    def load(cls, path: AnyPath) -> "ClassificationModel":
        """Read what `save` wrote, or the model of a saved run.

        Parameters
        ----------
        path : str or path-like
            The folder.

        Returns
        -------
        ClassificationModel
            Equal to the one saved.
        """
        return load_as(cls, path)

    def files(self) -> dict[str, bytes]:
        """Write the model as the files that keep it, a folder's or part of a run's."""
        record = ClassificationRecord(
            parts=self.parts_,
            learned_from=self.learned_from_,
            intercepts=tuple(self.intercept_.tolist()),
            classes=self.classes_,
            path=self.path,
        )
        columns = dict(zip(_columns_of_file(self.classes_), self.coef_, strict=True))
        return pack(record, self.feature_names_in_, columns, self.scale_)

    @classmethod
    def restored(
        cls, record: ClassificationRecord, features: tuple[str, ...], numbers: dict[str, Floats]
    ) -> "ClassificationModel":
        """Make the model of what `files` wrote."""
        scale, names = numbers.pop(SCALE, None), _columns_of_file(record.classes)
        check_columns_of_file(numbers, names)
        coef = np.array([numbers[name] for name in names])
        told = (record.path, record.parts, scale, record.learned_from)
        return cls(coef, np.array(record.intercepts), record.classes, features, *told)


def n_lines(classes: tuple[ClassName, ...]) -> int:
    """Say how many coefficients a feature has: of two classes one, of more as many as these."""
    return 1 if len(classes) == 2 else len(classes)


def _columns_of_file(classes: tuple[ClassName, ...]) -> list[str]:
    return [COEFFICIENT] if len(classes) == 2 else [f"{COEFFICIENT} {number}" for number in range(len(classes))]
