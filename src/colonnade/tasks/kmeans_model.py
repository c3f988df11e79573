"""Cluster centres in the data's own units: how they are applied through the parties, kept and shown."""

from functools import partial
from typing import Any, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from colonnade.cells import MOST_COLUMNS, html_table
from colonnade.contracts import ModelPart, Report, Roster, Rounding, Script
from colonnade.errors import InputError
from colonnade.evaluation.clustering import nearest_center_distances
from colonnade.evaluation.masked.server import AppliedModel, deliver_masked, masked_losses
from colonnade.evaluation.reports import ClusteringReport, all_losses, clustering_report, distance_losses
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.kmeans import nearest_centers
from colonnade.kernels.selections import Piece, Selection
from colonnade.ledger import aligned
from colonnade.messages import sendable_floats
from colonnade.protocol.fingerprints import Tables
from colonnade.storage import AnyPath, Folder, write_folder
from colonnade.tasks import to_sklearn
from colonnade.tasks.model_columns import check_parts, check_scale, columns_of, matrix, own_names
from colonnade.tasks.model_files import MODEL, SCALE, ModelRecord, check_columns_of_file, load_as, pack
from colonnade.tasks.to_onnx import models as to_onnx

CENTRE = "centre_"  # the first part of their columns' names in model.arrow


class KMeansRecord(ModelRecord, kw_only=True, tag_field="kind", tag="kmeans"):
    """What `model.json` says of a k-means model."""


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
    learned_from_ : Tables or None
        The fingerprints of the tables it was learned from: `Federation.evaluate` compares them. They change with the
        data, and tell nothing else.

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
    learned_from_: Tables | None = None

    needs_label: ClassVar[bool] = False
    record: ClassVar[type[msgspec.Struct]] = KMeansRecord
    report: ClassVar[type[Report]] = ClusteringReport

    def __post_init__(self) -> None:
        centers, n_features = self.cluster_centers_, len(self.feature_names_in_)
        if centers.ndim != 2 or not len(centers) or centers.shape[1] != n_features or not np.isfinite(centers).all():
            raise InputError(
                "A k-means model needs centres with one finite number a feature. Check where it comes from."
            )
        check_scale(self.scale_, n_features)
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
        tables = None if self.learned_from_ is None else self.learned_from_.of(party)
        return KMeansModel(centers, self.feature_names_in_[here], scale, {party: self.parts_[party]}, tables)

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

    def parts(self, roster: Roster) -> dict[str, ModelPart]:
        """Give each party its columns of the centres, and of the units that distances are measured in."""
        return {
            party: (
                None,
                sendable_floats(self.cluster_centers_[:, here]),
                None if self.scale_ is None else sendable_floats(self.scale_[here]),
            )
            for party, here in roster.parts.items()
        }

    def predictions(self, roster: Roster, selected: Selection, rounding: Rounding | None) -> Script[Rows]:
        """Find the nearest centre of the selected rows through the parties."""
        found = np.empty(len(selected), np.int64)

        def use(piece: Piece, labels: Rows, _: Floats) -> None:
            found[piece.chosen] = labels

        yield from nearest_center_distances(roster, selected, *self._centers, use, rounding)
        return found

    def delivery(self, roster: Roster, selected: Selection, to: str) -> Script[None]:
        """Let one party learn the selected rows' nearest centres, and nobody else."""
        return deliver_masked(roster, selected, self._applied(to))

    def evaluation(
        self, roster: Roster, selected: Selection, rounding: Rounding | None, *, sampled: bool
    ) -> Script[ClusteringReport]:
        """Sum up the selected rows' distances to their nearest centres."""
        losses, k = [], len(self.cluster_centers_)

        def use(piece: Piece, labels: Rows, nearest: Floats) -> None:
            losses.append(distance_losses(labels, nearest, piece.weights, k, with_deviation=sampled))

        bound = yield from nearest_center_distances(roster, selected, *self._centers, use, rounding)
        report = clustering_report(all_losses(losses), sampled=sampled)
        return report if rounding is None else replace(report, rounded_by=bound)

    def evaluation_by(self, roster: Roster, selected: Selection, by: str, *, sampled: bool) -> Script[ClusteringReport]:
        """Let one party sum them up: the server learns sums only."""
        applied = self._applied(by, evaluating=True, by_weight=not sampled)
        losses, _, error = yield from masked_losses(roster, selected, applied)
        return replace(clustering_report(losses, sampled=sampled), rounded_by=error)

    @property
    def _centers(self) -> tuple[Floats, Floats | None]:
        return self.cluster_centers_, self.scale_

    def _applied(self, to: str, *, evaluating: bool = False, by_weight: bool = False) -> AppliedModel:
        return AppliedModel(None, self.cluster_centers_, self.scale_, 0.0, to, evaluating, by_weight)

    def table(self) -> str:
        """Lay out the centres, a column each, for people; their numbers are those of predictions."""
        cells = self._cells()
        return aligned(cells, numbers=range(1, len(cells[0])))

    def _repr_html_(self) -> str:
        head, *lines = (line[:MOST_COLUMNS] for line in self._cells())
        return html_table(f"{len(self.cluster_centers_):,} centres", head, lines, range(1, len(head)))

    def _cells(self) -> list[tuple[str, ...]]:
        header = ("feature", *(f"centre {number}" for number in range(len(self.cluster_centers_))))
        lines = [
            (name, *(f"{value:.4g}" for value in values))
            for name, values in zip(own_names(self), self.cluster_centers_.T, strict=True)
        ]
        return [header, *lines]

    def to_sklearn(self) -> Any:
        """Make a fitted `sklearn.cluster.KMeans` that predicts the same, behind a `StandardScaler` if there is a scale.

        It has neither `labels_` nor `inertia_`, because a model does not have the rows they are of. A row as near to
        two centres as rounding can tell may go to either. Of prepared columns it is a pipeline, as a `LinearModel`'s.
        """
        return to_sklearn.behind_preparation(partial(to_sklearn.kmeans, self.cluster_centers_, self.scale_), self)

    def to_onnx(self) -> Any:
        """Make an `onnx.ModelProto` that finds the same clusters.

        It has one input a column, of float64; where parties of one process prepared their columns, these as they came.

        Returns
        -------
        onnx.ModelProto
            Its outputs are `label`, (rows,), `distances` to the centres, (rows, n_clusters), and `squared_distances`:
            those of all `part` add up to the whole's.

        Examples
        --------
        >>> import numpy as np, onnx, colonnade as cn
        >>> model = cn.KMeansModel(np.array([[0.0, 0.0], [9.0, 9.0]]), ("distance", "wind"))
        >>> [each.name for each in model.to_onnx().graph.output]
        ['label', 'distances', 'squared_distances']
        """
        return to_onnx.kmeans(self)

    def save(self, path: AnyPath) -> Folder:
        """Write the model to a folder, as `LinearModel.save` does."""
        return write_folder(path, MODEL, self.files())

    @classmethod
    def load(cls, path: AnyPath) -> "KMeansModel":
        """Read what `save` wrote, or the model of a saved run."""
        return load_as(cls, path)

    def files(self) -> dict[str, bytes]:
        """Write the model as the files that keep it, a folder's or part of a run's."""
        numbers = {f"{CENTRE}{i}": center for i, center in enumerate(self.cluster_centers_)}
        return pack(
            KMeansRecord(parts=self.parts_, learned_from=self.learned_from_),
            self.feature_names_in_,
            numbers,
            self.scale_,
        )

    @classmethod
    def restored(cls, record: KMeansRecord, features: tuple[str, ...], numbers: dict[str, Floats]) -> "KMeansModel":
        """Make the model of what `files` wrote."""
        scale = numbers.pop(SCALE, None)
        check_columns_of_file(numbers, [f"{CENTRE}{i}" for i in range(len(numbers))])
        return cls(np.array(list(numbers.values())), features, scale, record.parts, record.learned_from)
