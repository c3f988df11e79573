"""Algorithm 3 at a party: how much each row matters to a local clustering."""

import msgspec
import numpy as np

from colonnade.contracts import PartyCard, ScoreBounds, Table
from colonnade.errors import InputError
from colonnade.kernels.clustering_scores import clustering_scores
from colonnade.kernels.local_kmeans import local_kmeans
from colonnade.kernels.per_row import PerRow
from colonnade.kernels.row_blocks import FirstColumns

# A party's scores must be the same in every round, after a restart, and for every run, so its local clustering is
# seeded by nothing that a run could change. Algorithm 3 holds for any local clustering.
LOCAL_SEED = 20_221_128


class ClusteringScores(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """Scores for k-means.

    Parameters
    ----------
    n_clusters : int
        k.
    """

    n_clusters: int

    def scores(self, table: Table) -> PerRow:
        """Compute g^(j), positive, by the three terms of line 10, from a local k-means of the features."""
        if not 1 <= self.n_clusters <= table.n_rows:
            raise InputError(
                f"n_clusters is {self.n_clusters} but there are {table.n_rows} rows. "
                f"Choose between 1 and {table.n_rows}."
            )
        features = FirstColumns(table, len(table.feature_names))
        centers = local_kmeans(features, self.n_clusters, np.random.default_rng(LOCAL_SEED))
        return clustering_scores(features, centers)

    def bounds(self, card: PartyCard, n_counted: int) -> ScoreBounds:  # noqa: ARG002  # columns do not matter
        """Bound the three terms of line 10 by 1, 1 and 2, and their sums by 1, 1 and 2 a cluster, whatever the columns.

        That is 4, and the paper's 2 α (k + 1) with α = 1; there are no more clusters with rows in them than rows count.
        """
        return ScoreBounds(4.0, 2.0 + 2.0 * min(self.n_clusters, n_counted), whole=True)
