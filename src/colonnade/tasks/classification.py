"""Logistic regression with l2 and l1 penalties: yes/no labels, and softmax for more classes."""

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
from msgspec.structs import force_setattr, replace

from colonnade.contracts import Agreed, JobView, Model, Roster, Scaling, Script
from colonnade.coreset import WeightedRows
from colonnade.errors import InputError, RemoteProtocolError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.classes import MOST_CLASSES, class_codes
from colonnade.kernels.logistic import Separable, log_loss, solve_logistic
from colonnade.options import check_penalties, flag, listed
from colonnade.protocol.classes import ClassName, agree_on_classes, classes_route, label_values
from colonnade.routes import Route
from colonnade.sampling.rules.classes import ClassScores
from colonnade.tasks import penalties
from colonnade.tasks.class_path import choose_class_penalty
from colonnade.tasks.classification_model import ClassificationModel
from colonnade.tasks.model_columns import widths
from colonnade.tasks.penalty_path import RegularisationPath
from colonnade.tasks.regression import penalty_of


class Classification(msgspec.Struct, frozen=True, tag_field="kind", tag="classification", forbid_unknown_fields=True):
    """Minimise ``sum_i w_i log(1 + exp(-y_i f(x_i))) + n (l2 |theta|^2 + l1 |theta|_1)``, where y is -1 or 1.

    f is ``x.theta + theta_0``. More classes than two have a theta each (softmax): with `Central` and `CompactCentral`.

    Parameters
    ----------
    l2 : float or "cv"
        The ridge penalty a row; n is the weight of all rows, so a penalty means the same at any coreset size.
        scikit-learn's C is 1 / (2 n l2). The intercept is not penalised. "cv" chooses it by cross-validation on the
        coreset's rows.
    l1 : float or "cv"
        The lasso penalty a row, likewise. One of the two may be "cv".
    fit_intercept : bool
        Whether there is an intercept.
    standardize : bool
        Whether columns enter at mean 0 and standard deviation 1 (without an intercept only the latter), so that a
        penalty weighs on all of them alike. The model is in their own units.
    classes : sequence of str or number, optional
        The label's values in the order that the model has them: of two, the model gives chances of the last. If left
        out, as they sort.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 4))
    >>> late = np.where(X @ [1.0, -2.0, 0.5, 0.0] + rng.logistic(size=4000) > 0, "yes", "no")
    >>> federation = cn.Federation(cn.split_columns(X, late, [2, 2]))
    >>> run = federation.fit(cn.Classification(l2=1e-4), sampler=cn.ImportanceSampling(size=1000))
    >>> run.model.classes_, bool(abs(run.model.coef_[0] - [1.0, -2.0, 0.5, 0.0]).max() < 0.3)
    (('no', 'yes'), True)
    """

    l2: float | Literal["cv"] = 0.0
    l1: float | Literal["cv"] = 0.0
    fit_intercept: bool = True
    standardize: bool = False
    classes: tuple[ClassName, ...] | None = None

    needs_label: ClassVar[bool] = True
    model: ClassVar[type[Model[Any]]] = ClassificationModel

    def __post_init__(self) -> None:
        check_penalties(self)
        force_setattr(self, "fit_intercept", flag("fit_intercept", self.fit_intercept))
        force_setattr(self, "standardize", flag("standardize", self.standardize))
        if self.classes is not None:
            force_setattr(self, "classes", _checked_classes(self.classes))

    @property
    def scaling(self) -> Scaling:
        """In which units columns enter: where there is no intercept to take up means, they stay."""
        if not self.standardize:
            return "own"
        return "standard" if self.fit_intercept else "scaled"

    def check(self, roster: Roster) -> None:
        """Require a label and something to predict it from."""
        if roster.label_party is None or not roster.feature_names:
            raise penalties.nothing_to_learn("Classification", roster)

    def score_rule(self) -> ClassScores:
        """Score rows by leverage; where a sampler lets classes have their part, by that too."""
        return ClassScores(self.fit_intercept)

    def settled(self, roster: Roster, n_told: int) -> Script["Classification"]:
        """Ask the label party for its classes."""
        found = yield from agree_on_classes(roster, n_told)
        if len(found) < 2:
            raise InputError(
                f"Every label of party {roster.label_party!r} is {found[0]!r}: there is nothing to tell apart. A "
                "Classification needs two classes or more."
            )
        if self.classes is not None and set(self.classes) != set(found):
            raise InputError(
                f"The label of party {roster.label_party!r} has the classes {listed(list(map(repr, found)))}, and "
                f"classes= names {listed(list(map(repr, self.classes)))}. Name just the label's."
            )
        return self if self.classes is not None else replace(self, classes=found)

    def settling_route(self, agreed: Agreed, n_told: int) -> Route:
        """Expect it, at the label party."""
        return classes_route(agreed, n_told)

    def codes_of(self, labels: Floats) -> Rows:
        """Give the place of each label, as it travels, among the classes."""
        return class_codes(labels, self.label_values())

    def label_values(self) -> Floats:
        """Give the numbers that stand for the classes where labels travel, in the order of the classes."""
        return label_values(self.known_classes())

    def known_classes(self) -> tuple[ClassName, ...]:
        """Give the classes, which `settled` found."""
        if self.classes is None:
            raise InputError("The classes are not known. Pass them: Classification(classes=(0, 1)).")
        return self.classes

    def fit_rows(self, rows: WeightedRows, roster: Roster, rng: np.random.Generator) -> ClassificationModel:
        """Minimise the objective on rows in one place; choose a penalty first where that is asked."""
        if rows.labels is None:
            raise InputError("Classification needs labels. Let the label party reveal them, or choose another solver.")
        if not np.isin(rows.labels, self.label_values()).all():
            raise RemoteProtocolError(
                f"Party {roster.label_party!r} sent a label that is none of the classes that it named. The run was "
                "stopped; nothing of it was used. Ask its owner, and start again.",
                party=roster.label_party,
            )
        codes = self.codes_of(rows.labels)
        _check_all_there(codes, rows.weights, self.known_classes(), roster.label_party)
        path = self._path(rows, codes, rng)
        l2, l1 = self.penalties() if path is None else (path.chosen.l2, path.chosen.l1)
        n, n_classes = rows.total_weight, len(self.known_classes())
        try:
            coef, intercept = solve_logistic(
                rows.features, codes, rows.weights, n_classes, n * l2, n * l1, fit_intercept=self.fit_intercept
            )
        except Separable as error:
            raise InputError(
                "The classes of these rows are told apart without error, or one of them is in some direction, mostly "
                f"by {listed([repr(roster.feature_names[place]) for place in error.columns], 5)}: without a penalty "
                "there is no best model, since larger coefficients are always better. Give a penalty, for instance "
                "l2=1e-4, or more rows."
            ) from error
        return replace(self.class_model(coef, intercept, roster), path=path)

    def penalties(self) -> tuple[float, float]:
        """Give l2 and l1, both numbers."""
        if isinstance(self.l2, str) or isinstance(self.l1, str):
            raise penalties.not_chosen("Central and CompactCentral")
        return self.l2, self.l1

    def penalties_of(self, model: ClassificationModel) -> tuple[float, float]:
        """Give the l2 and l1 that a model was learned with, also where one was chosen."""
        return self.penalties() if model.path is None else (model.path.chosen.l2, model.path.chosen.l1)

    def cost(
        self,
        model: ClassificationModel,
        features: Floats,
        labels: Floats | None,
        weights: Floats | None = None,
        total_weight: float | None = None,
    ) -> float:
        """Compute the objective of a model on weighted rows: additive over rows, the penalty too.

        Parameters
        ----------
        model : ClassificationModel
            Any; where a penalty was chosen by cross-validation, it is the model's.
        features : ndarray of float64, shape (m, n_features)
            Rows in the model's order of columns.
        labels : ndarray of float64, shape (m,)
            Their labels: numbers, or the places of text in its order.
        weights : ndarray of float64, shape (m,), optional
            1 each if left out.
        total_weight : float, optional
            n, the weight of all rows that these stand for; the sum of the weights if left out.

        Returns
        -------
        float
            ``sum_i w_i log(1 + exp(-y_i f(x_i))) + n (l2 |theta|^2 + l1 |theta|_1)``.
        """
        if labels is None:
            raise InputError("The cost of a classification needs labels. Pass them.")
        w = np.ones(len(features)) if weights is None else weights
        codes = class_codes(labels, label_values(model.classes_))
        losses = log_loss(model.logits(features), codes)
        coef = model.coef_ if model.scale_ is None else model.coef_ * model.scale_
        n = float(w.sum()) if total_weight is None else total_weight
        return float(w @ losses) + n * penalty_of(coef, *self.penalties_of(model))

    def in_own_units(self, model: ClassificationModel, view: JobView) -> ClassificationModel:
        """Turn coefficients of standardised columns into those of the columns as they are."""
        if view.shift is None or view.scale is None:
            return model
        coef = model.coef_ / view.scale
        return replace(model, coef_=coef, intercept_=model.intercept_ - coef @ view.shift, scale_=view.scale)

    def class_model(self, coef: Floats, intercept: Floats, roster: Roster) -> ClassificationModel:
        """Name classes and coefficients: shapes (1, d) and (1,) for two classes, (K, d) and (K,) for more."""
        return ClassificationModel(coef, intercept, self.known_classes(), roster.feature_names, parts_=widths(roster))

    def _path(self, rows: WeightedRows, codes: Rows, rng: np.random.Generator) -> RegularisationPath | None:
        vary, fixed = penalties.varied(self.l2, self.l1)
        if vary is None:
            return None
        n_classes = len(self.known_classes())
        return choose_class_penalty(rows, codes, n_classes, vary, fixed, rng, fit_intercept=self.fit_intercept)


def _check_all_there(codes: Rows, weights: Floats, classes: tuple[ClassName, ...], party: str | None) -> None:
    counted = np.bincount(codes, weights, minlength=len(classes))
    if absent := [repr(classes[place]) for place in np.flatnonzero(counted == 0).tolist()]:
        raise InputError(
            f"No drawn row has the class {listed(absent)} in the label of party {party!r}, so nothing can be learned "
            "of it. Draw more rows, or by scores, which give each class its share: ImportanceSampling(size=...)."
        )


def _checked_classes(classes: Any) -> tuple[ClassName, ...]:
    named = tuple(classes) if isinstance(classes, Iterable) and not isinstance(classes, str) else ()
    kinds = {isinstance(each, str) for each in named}
    if not 2 <= len(set(named)) == len(named) <= MOST_CLASSES or len(kinds) > 1:
        raise InputError(
            f"classes must be 2 to {MOST_CLASSES} different values, all text or all numbers, got {classes!r}. Pass for "
            "instance ('no', 'yes'), or leave them out."
        )
    return tuple(each if isinstance(each, str) else _number(each) for each in named)


def _number(value: Any) -> int | float:
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"A class must be text or a number, got {value!r}. Pass for instance (0, 1).") from error
    if not np.isfinite(number):
        raise InputError(f"A class must be a finite number, got {value!r}. Pass for instance (0, 1).")
    return int(number) if number.is_integer() else number
