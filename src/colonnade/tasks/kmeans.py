"""K-means clustering (the paper's VKMC)."""

from typing import Any, ClassVar

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import JobView, Model, Roster, Scaling
from colonnade.coreset import WeightedRows
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.kmeans import nearest_centers
from colonnade.kernels.kmeans_search import weighted_kmeans
from colonnade.options import flag, whole_number
from colonnade.sampling.rules.clustering import ClusteringScores
from colonnade.tasks.kmeans_model import KMeansModel
from colonnade.tasks.model_columns import widths


class KMeans(msgspec.Struct, frozen=True, tag_field="kind", tag="kmeans", forbid_unknown_fields=True):
    """Minimise ``sum_i w_i min_c |x_i - c|^2`` over sets of k centres.

    Parameters
    ----------
    n_clusters : int
        k.
    n_starts : int
        How many k-means++ starts the server makes. With more than one it searches up to five times, until two end
        alike, each time on from the best of a fifth of them, with centres more and fewer in turn; with one, by Lloyd's
        iterations alone.
    standardize : bool
        Whether columns enter at mean 0 and standard deviation 1, as in the paper. The centres are in the columns' own
        units; distances are measured in deviations.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.repeat([[1.0, 1.0], [9.0, 1.0], [1.0, 9.0]], 50, axis=0)
    >>> federation = cn.Federation(cn.split_columns(X, None, [1, 1]))
    >>> run = federation.fit(cn.KMeans(n_clusters=3), sampler=cn.ImportanceSampling(size=60))
    >>> sorted(run.model.cluster_centers_.round(9).tolist())
    [[1.0, 1.0], [1.0, 9.0], [9.0, 1.0]]
    """

    n_clusters: int
    n_starts: int = 10
    standardize: bool = False

    needs_label: ClassVar[bool] = False
    model: ClassVar[type[Model[Any]]] = KMeansModel

    def __post_init__(self) -> None:
        for name in ("n_clusters", "n_starts"):
            force_setattr(self, name, whole_number(name, getattr(self, name), least=1, example="Pass for instance 10."))
        force_setattr(self, "standardize", flag("standardize", self.standardize))

    @property
    def scaling(self) -> Scaling:
        """In which units columns enter."""
        return "standard" if self.standardize else "own"

    def check(self, roster: Roster) -> None:
        """Require enough rows for the clusters, and something to cluster by."""
        if self.n_clusters > roster.n_rows:
            raise InputError(
                f"n_clusters is {self.n_clusters} but the parties hold {roster.n_rows} rows. Ask for fewer clusters."
            )
        if not roster.feature_names:
            raise InputError("KMeans needs at least one feature column. Give a party some columns.")

    def score_rule(self) -> ClusteringScores:
        """Score rows by what they matter to local clusterings (Algorithm 3)."""
        return ClusteringScores(self.n_clusters)

    def fit_rows(self, rows: WeightedRows, roster: Roster, rng: np.random.Generator) -> KMeansModel:
        """Search for the centres of least cost."""
        centers, _ = weighted_kmeans(rows.features, rows.weights, self.n_clusters, self.n_starts, rng)
        return self.clustering_model(centers, roster)

    def cost(
        self,
        model: KMeansModel,
        features: Floats,
        labels: Floats | None = None,  # noqa: ARG002  # a clustering has none
        weights: Floats | None = None,
        total_weight: float | None = None,  # noqa: ARG002  # nor a penalty
    ) -> float:
        """Compute the objective of a model on weighted rows.

        Parameters
        ----------
        model : KMeansModel
            Any.
        features : ndarray of float64, shape (m, n_features)
            Rows in the model's order of columns.
        labels, total_weight
            Not used: the signature is that of every task.
        weights : ndarray of float64, shape (m,), optional
            1 each if left out.

        Returns
        -------
        float
            ``sum_i w_i min_c |x_i - c|^2``.
        """
        scale = 1.0 if model.scale_ is None else model.scale_
        _, distances = nearest_centers(features / scale, model.cluster_centers_ / scale)
        return float(distances.sum() if weights is None else weights @ distances)

    def in_own_units(self, model: KMeansModel, view: JobView) -> KMeansModel:
        """Turn centres of standardised columns into those of the columns as they are."""
        if view.shift is None or view.scale is None:
            return model
        centers = model.cluster_centers_ * view.scale + view.shift
        return msgspec.structs.replace(model, cluster_centers_=centers, scale_=view.scale)

    def clustering_model(self, centers: Floats, roster: Roster) -> KMeansModel:
        """Name the columns of the centres."""
        return KMeansModel(centers, roster.feature_names, parts_=widths(roster))
