"""What is learned: models in the data's own units, with the names of their columns."""

import msgspec
import numpy as np

from colonnade.contracts import Roster
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.tasks.penalty_path import RegularisationPath


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
    """

    cluster_centers_: Floats
    feature_names_in_: tuple[str, ...]
    scale_: Floats | None = None
    parts_: dict[str, int] = {}

    def __post_init__(self) -> None:
        centers = self.cluster_centers_
        if centers.ndim != 2 or centers.shape[1] != len(self.feature_names_in_) or not np.isfinite(centers).all():
            raise InputError(
                "A k-means model needs centres with one finite number a feature. Check where it comes from."
            )


AnyModel = LinearModel | KMeansModel


def widths(roster: Roster) -> dict[str, int]:
    """Count each party's features."""
    return {card.name: card.n_features for card in roster.cards}
