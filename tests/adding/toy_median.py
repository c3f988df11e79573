# ruff: noqa: ARG002, ARG003  # the signatures are those of every model and task
"""A toy task: the weighted median of the label. All that a task, and its model, is made of."""

from typing import Any, ClassVar, NoReturn

import msgspec
import numpy as np
import numpy.typing as npt

from colonnade.contracts import JobView, Model, ModelPart, Report, Roster, Rounding, Scaling, Script
from colonnade.coreset import WeightedRows
from colonnade.errors import InputError, UnsupportedError
from colonnade.evaluation.linear import linear_residuals
from colonnade.evaluation.rounding import SummedParts
from colonnade.kernels.arrays import Floats
from colonnade.kernels.selections import Piece, Selection
from colonnade.messages import sendable_floats
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.storage import AnyPath, Folder, write_folder
from colonnade.tasks.model_columns import widths
from colonnade.tasks.model_files import MODEL, ModelRecord, pack


class MedianReport(msgspec.Struct, frozen=True):
    """How far labels are from the median."""

    n_evaluated: int
    cost: float

    def in_words(self) -> str:
        """Put the numbers that matter first into a few words."""
        return f"absolute errors of {self.cost:.6g}"


class MedianRecord(ModelRecord, kw_only=True, tag_field="kind", tag="median"):
    """What `model.json` says of a median."""

    value: float


class MedianModel(msgspec.Struct, frozen=True, tag_field="kind", tag="median"):
    """One number for all rows."""

    value: float
    feature_names_in_: tuple[str, ...]
    parts_: dict[str, int]

    needs_label: ClassVar[bool] = True
    record: ClassVar[type[msgspec.Struct]] = MedianRecord
    report: ClassVar[type[Report]] = MedianReport

    def parts(self, roster: Roster) -> dict[str, ModelPart]:
        """Give each party coefficients of zero: its columns do not matter."""
        return {card.name: (sendable_floats(np.zeros(card.n_features)), None, None) for card in roster.cards}

    def predictions(self, roster: Roster, selected: Selection, rounding: Rounding | None) -> Script[Floats]:
        """Predict without asking anybody."""
        yield from ()
        return np.full(len(selected), self.value)

    def evaluation(
        self, roster: Roster, selected: Selection, rounding: Rounding | None, *, sampled: bool
    ) -> Script[MedianReport]:
        """Let the label party tell how far its labels are from nothing, and compare."""
        no_coef, costs = np.zeros(len(self.feature_names_in_)), []

        def use(piece: Piece, parts: SummedParts) -> None:
            weights = np.ones(len(piece)) if piece.weights is None else piece.weights
            costs.append(float(weights @ np.abs(parts.values + self.value)))

        yield from linear_residuals(roster, selected, no_coef, use, by_weight=not sampled, rounding=rounding)
        return MedianReport(len(selected), sum(costs))

    def delivery(self, roster: Roster, selected: Selection, to: str) -> NoReturn:
        """Refuse."""
        raise UnsupportedError("A median is no secret. Use predict.")

    def evaluation_by(self, roster: Roster, selected: Selection, by: str, *, sampled: bool) -> NoReturn:
        """Refuse."""
        raise UnsupportedError("A median is not evaluated in secret. Leave out `by`.")

    def predict(self, X: npt.ArrayLike) -> Floats:
        """Predict rows in one place."""
        return np.full(len(np.asarray(X)), self.value)

    def table(self) -> str:
        """Lay it out for people."""
        return f"median  {self.value:.6g}"

    def files(self) -> dict[str, bytes]:
        """Write it as the files that keep it."""
        return pack(MedianRecord(parts=self.parts_, value=self.value), self.feature_names_in_, {}, None)

    @classmethod
    def restored(cls, record: MedianRecord, features: tuple[str, ...], numbers: dict[str, Floats]) -> "MedianModel":
        """Make it of what `files` wrote."""
        return cls(record.value, features, record.parts)

    def save(self, path: AnyPath) -> Folder:
        """Write it to a folder."""
        return write_folder(path, MODEL, self.files())


class Median(msgspec.Struct, frozen=True, tag_field="kind", tag="median", forbid_unknown_fields=True):
    """Minimise ``sum_i w_i |y_i - c|``."""

    needs_label: ClassVar[bool] = True
    model: ClassVar[type[Model[Any]]] = MedianModel

    @property
    def scaling(self) -> Scaling:
        """Leave columns as they are."""
        return "own"

    def check(self, roster: Roster) -> None:
        """Require a label."""
        if roster.label_party is None:
            raise InputError("A median needs a label. Name it at one party.")

    def score_rule(self) -> LeverageScores:
        """Score rows as for a regression."""
        return LeverageScores(fit_intercept=True)

    def fit_rows(self, rows: WeightedRows, roster: Roster, rng: np.random.Generator) -> MedianModel:
        """Find the label that half of the weight is below."""
        if rows.labels is None:
            raise InputError("A median needs labels. Let the label party reveal them.")
        order = np.argsort(rows.labels, kind="stable")
        below = np.cumsum(rows.weights[order])
        value = float(rows.labels[order][np.searchsorted(below, below[-1] / 2)])
        return MedianModel(value, roster.feature_names, widths(roster))

    def cost(
        self,
        model: MedianModel,
        features: Floats,
        labels: Floats | None,
        weights: Floats,
        total_weight: float,
    ) -> float:
        """Sum up absolute errors."""
        return float(weights @ np.abs(np.asarray(labels) - model.value))

    def in_own_units(self, model: MedianModel, view: JobView) -> MedianModel:
        """Change nothing: labels have no other units."""
        return model
