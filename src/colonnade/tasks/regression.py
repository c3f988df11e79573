"""Linear regression with an l2 penalty (the paper's VRLR)."""

from typing import ClassVar

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import Roster, WeightedRows
from colonnade.errors import InputError, UnsupportedError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.linear import ridge
from colonnade.options import flag, non_negative_number
from colonnade.sampling.leverage import LeverageScores


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
    """

    coef_: Floats
    intercept_: float
    feature_names_in_: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.coef_.shape != (len(self.feature_names_in_),) or not np.isfinite([*self.coef_, self.intercept_]).all():
            raise InputError("A linear model needs one finite coefficient a feature. Check where it comes from.")


class Regression(msgspec.Struct, frozen=True, tag_field="kind", tag="regression", forbid_unknown_fields=True):
    """Minimise ``sum_i w_i (x_i.theta + theta_0 - y_i)^2 + n l2 |theta|^2``.

    Parameters
    ----------
    l2 : float
        The ridge penalty a row; n is the weight of all rows, so a penalty means the same at any coreset size.
        The intercept is not penalised.
    l1 : float
        The lasso penalty a row, likewise.
    fit_intercept : bool
        Whether there is an intercept.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 4))
    >>> y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.normal(size=1000)
    >>> federation = cn.Federation(cn.split_columns(X, y, [2, 2]))
    >>> run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=200))
    >>> bool(abs(run.model.coef_ - [1.0, -2.0, 0.5, 0.0]).max() < 0.1)
    True
    """

    l2: float = 0.0
    l1: float = 0.0
    fit_intercept: bool = True

    needs_label: ClassVar[bool] = True

    def __post_init__(self) -> None:
        force_setattr(self, "l2", non_negative_number("l2", self.l2, example="Pass for instance l2=0.1."))
        force_setattr(self, "l1", non_negative_number("l1", self.l1, example="Pass for instance l1=0.1."))
        force_setattr(self, "fit_intercept", flag("fit_intercept", self.fit_intercept))

    def check(self, roster: Roster) -> None:
        """Require a label and something to predict it from."""
        if roster.label_party is None:
            raise InputError(
                f"Regression needs a label, and none of {', '.join(roster.names)} holds one. "
                "Name it at one party: Party(name, data, label='column')."
            )
        if not roster.feature_names:
            raise InputError("Regression needs at least one feature column. Give a party some columns.")

    def score_rule(self) -> LeverageScores:
        """Score rows by leverage (Algorithm 2)."""
        return LeverageScores(self.fit_intercept)

    def fit_rows(self, rows: WeightedRows, roster: Roster, rng: np.random.Generator) -> LinearModel:  # noqa: ARG002
        """Solve least squares with the penalty, whatever the rank."""
        if rows.labels is None:
            raise InputError("Regression needs labels. Let the label party reveal them, or choose another solver.")
        if self.l1 > 0:
            raise UnsupportedError("Central does not take l1 yet. Pass l1=0.")
        penalty = rows.total_weight * self.l2
        coef, intercept = ridge(rows.features, rows.labels, rows.weights, penalty, fit_intercept=self.fit_intercept)
        return self.linear_model(coef, intercept, roster)

    def linear_model(self, coef: Floats, intercept: float, roster: Roster) -> LinearModel:
        """Name the coefficients."""
        return LinearModel(coef, intercept, roster.feature_names)
