"""K-means clustering (the paper's VKMC)."""

from typing import ClassVar

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import Roster, WeightedRows
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.kmeans import weighted_kmeans
from colonnade.options import whole_number
from colonnade.sampling.clustering import ClusteringScores
from colonnade.tasks.models import KMeansModel, widths


class KMeans(msgspec.Struct, frozen=True, tag_field="kind", tag="kmeans", forbid_unknown_fields=True):
    """Minimise ``sum_i w_i min_c |x_i - c|^2`` over sets of k centres.

    Parameters
    ----------
    n_clusters : int
        k.
    n_starts : int
        How many k-means++ starts the solver makes; the best is kept.

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

    needs_label: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("n_clusters", "n_starts"):
            force_setattr(self, name, whole_number(name, getattr(self, name), least=1, example="Pass for instance 10."))

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
        """Run Lloyd's algorithm from several k-means++ starts and keep the best."""
        centers, _ = weighted_kmeans(rows.features, rows.weights, self.n_clusters, self.n_starts, rng)
        return self.clustering_model(centers, roster)

    def clustering_model(self, centers: Floats, roster: Roster) -> KMeansModel:
        """Name the columns of the centres."""
        return KMeansModel(centers, roster.feature_names, parts_=widths(roster))
