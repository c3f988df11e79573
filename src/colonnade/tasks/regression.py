"""Linear regression with l2 and l1 penalties (the paper's VRLR)."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import JobView, Model, Roster, Scaling
from colonnade.coreset import WeightedRows
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.elastic_net import solve_elastic_net
from colonnade.kernels.folds import fold_seed
from colonnade.kernels.gram import Summary, merge
from colonnade.options import check_penalties, flag
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.tasks import penalties
from colonnade.tasks.linear_model import LinearModel
from colonnade.tasks.model_columns import widths
from colonnade.tasks.penalty_path import RegularisationPath, choose_penalty, choose_penalty_of_parts


class Regression(msgspec.Struct, frozen=True, tag_field="kind", tag="regression", forbid_unknown_fields=True):
    """Minimise ``sum_i w_i (x_i.theta + theta_0 - y_i)^2 + n (l2 |theta|^2 + l1 |theta|_1)``.

    Parameters
    ----------
    l2 : float or "cv"
        The ridge penalty a row; n is the weight of all rows, so a penalty means the same at any coreset size.
        The intercept is not penalised. "cv" chooses it by cross-validation on the coreset's rows.
    l1 : float or "cv"
        The lasso penalty a row, likewise. One of the two may be "cv".
    fit_intercept : bool
        Whether there is an intercept.
    standardize : bool
        Whether columns enter at mean 0 and standard deviation 1 (without an intercept only the latter), so that a
        penalty weighs on all of them alike. The model is in their own units.

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

    l2: float | Literal["cv"] = 0.0
    l1: float | Literal["cv"] = 0.0
    fit_intercept: bool = True
    standardize: bool = False

    needs_label: ClassVar[bool] = True
    model: ClassVar[type[Model[Any]]] = LinearModel

    def __post_init__(self) -> None:
        check_penalties(self)
        force_setattr(self, "fit_intercept", flag("fit_intercept", self.fit_intercept))
        force_setattr(self, "standardize", flag("standardize", self.standardize))

    @property
    def scaling(self) -> Scaling:
        """In which units columns enter: where there is no intercept to take up means, they stay."""
        if not self.standardize:
            return "own"
        return "standard" if self.fit_intercept else "scaled"

    def check(self, roster: Roster) -> None:
        """Require a label of numbers and something to predict it from."""
        if text := [card for card in roster.cards if card.label_is_text]:
            raise InputError(
                f"Regression needs a label of numbers, and {text[0].label_name!r} of party {text[0].name!r} is text. "
                "Learn a Classification, or make numbers of it."
            )
        if roster.label_party is None or not roster.feature_names:
            raise penalties.nothing_to_learn("Regression", roster)

    def score_rule(self) -> LeverageScores:
        """Score rows by leverage (Algorithm 2)."""
        return LeverageScores(self.fit_intercept)

    def fit_rows(self, rows: WeightedRows, roster: Roster, rng: np.random.Generator) -> LinearModel:
        """Solve least squares with the penalties, whatever the rank; choose one of them first where that is asked."""
        if rows.labels is None:
            raise InputError("Regression needs labels. Let the label party reveal them, or choose another solver.")
        path = self._path(rows, rows.labels, rng)
        l2, l1 = self.penalties() if path is None else (path.chosen.l2, path.chosen.l1)
        n, problem = rows.total_weight, rows.reduced(fit_intercept=self.fit_intercept)
        coef = solve_elastic_net(problem, n * l2, n * l1, np.zeros(rows.features.shape[1]))
        return self.linear_model(coef, problem.intercept(coef), roster, path)

    def fold_seed(self, rng: np.random.Generator) -> int | None:
        """Draw the seed of folds where a penalty is to be chosen; they are those of `fit_rows`."""
        return fold_seed(rng) if self.takes_folds else None

    @property
    def takes_folds(self) -> bool:
        """Whether a penalty is to be chosen."""
        return "cv" in (self.l2, self.l1)

    def fit_summaries(self, parts: Sequence[Summary], total_weight: float, roster: Roster) -> tuple[LinearModel, float]:
        """Solve the same where rows are known only in sum: as one part, or one a fold.

        Give the model, and its objective. `total_weight` is n, the weight of all rows that these stand for.
        """
        n, intercept = total_weight, self.fit_intercept
        vary, fixed = penalties.varied(self.l2, self.l1)
        path = None if vary is None else choose_penalty_of_parts(parts, n, vary, fixed, fit_intercept=intercept)
        l2, l1 = self.penalties() if path is None else (path.chosen.l2, path.chosen.l1)
        problem = merge(parts).problem(fit_intercept=intercept)
        coef = solve_elastic_net(problem, n * l2, n * l1, np.zeros(problem.lhs.shape[1]))
        cost = float(np.sum(np.square(problem.lhs @ coef - problem.rhs))) + n * penalty_of(coef, l2, l1)
        return self.linear_model(coef, problem.intercept(coef), roster, path), cost

    def penalties(self) -> tuple[float, float]:
        """Give l2 and l1, both numbers."""
        if isinstance(self.l2, str) or isinstance(self.l1, str):
            raise penalties.not_chosen("Central and SecureGram")
        return self.l2, self.l1

    def penalty(self, coef: Floats) -> float:
        """Compute l2 |theta|^2 + l1 |theta|_1."""
        return penalty_of(coef, *self.penalties())

    def penalties_of(self, model: LinearModel) -> tuple[float, float]:
        """Give the l2 and l1 that a model was learned with, also where one was chosen."""
        return self.penalties() if model.path is None else (model.path.chosen.l2, model.path.chosen.l1)

    def cost(
        self,
        model: LinearModel,
        features: Floats,
        labels: Floats | None,
        weights: Floats | None = None,
        total_weight: float | None = None,
    ) -> float:
        """Compute the objective of a model on weighted rows: additive over rows, the penalty too.

        Parameters
        ----------
        model : LinearModel
            Any; where a penalty was chosen by cross-validation, it is the model's.
        features : ndarray of float64, shape (m, n_features)
            Rows in the model's order of columns.
        labels : ndarray of float64, shape (m,)
            Their labels.
        weights : ndarray of float64, shape (m,), optional
            1 each if left out.
        total_weight : float, optional
            n, the weight of all rows that these stand for; the sum of the weights if left out.

        Returns
        -------
        float
            ``sum_i w_i (x_i.theta + theta_0 - y_i)^2 + n (l2 |theta|^2 + l1 |theta|_1)``.
        """
        if labels is None:
            raise InputError("The cost of a regression needs labels. Pass them.")
        w = np.ones(len(features)) if weights is None else weights
        residuals = features @ model.coef_ + model.intercept_ - labels
        l2, l1 = self.penalties_of(model)
        coef = model.coef_ if model.scale_ is None else model.coef_ * model.scale_
        n = float(w.sum()) if total_weight is None else total_weight
        return float(w @ residuals**2) + n * penalty_of(coef, l2, l1)

    def in_own_units(self, model: LinearModel, view: JobView) -> LinearModel:
        """Turn coefficients of standardised columns into those of the columns as they are."""
        if view.shift is None or view.scale is None:
            return model
        coef = model.coef_ / view.scale
        intercept = model.intercept_ - float(view.shift @ coef)
        return msgspec.structs.replace(model, coef_=coef, intercept_=intercept, scale_=view.scale)

    def _path(self, rows: WeightedRows, labels: Floats, rng: np.random.Generator) -> RegularisationPath | None:
        if "cv" not in (self.l2, self.l1):
            return None
        vary, fixed = penalties.varied(self.l2, self.l1)
        return (
            None if vary is None else choose_penalty(rows, labels, vary, fixed, rng, fit_intercept=self.fit_intercept)
        )

    def linear_model(
        self, coef: Floats, intercept: float, roster: Roster, path: RegularisationPath | None = None
    ) -> LinearModel:
        """Name the coefficients, and say how their penalty was chosen, if it was."""
        return LinearModel(coef, intercept, roster.feature_names, path, widths(roster))


def penalty_of(coef: Floats, l2: float, l1: float) -> float:
    """Compute l2 |theta|^2 + l1 |theta|_1."""
    return l2 * float(coef.ravel() @ coef.ravel()) + l1 * float(np.abs(coef).sum())
