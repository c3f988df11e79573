"""Scores for logistic regression: leverage in the features, and at the label's party each class its share.

That share is spread evenly over the rows of a class, so that a class of few rows has as much of it as one of many: the
loss of a model that misses the rare class lies in its rows alone. Such scores tell classes.
"""

from typing import Any

import msgspec

from colonnade.contracts import PartyCard, Roster, ScoreBounds, ScoreRule, Table
from colonnade.errors import InputError
from colonnade.kernels.class_scores import class_scores
from colonnade.kernels.classes import MOST_CLASSES
from colonnade.kernels.per_row import PerRow

# For each of all parties' columns, the part of classes; and, sharpened, that of classes and of residuals. Chosen on
# seven tables (of Covertype, KC House and YearPredictionMSD; 3 to 50 % positives), judged on credit default.
CLASS_PART, SHARPENED_PARTS = 2 / 3, (1 / 2, 1 / 2)
MOST_COLUMNS = 1 << 20


class ClassScores(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """Scores for classification.

    Parameters
    ----------
    fit_intercept : bool
        Whether the model has an intercept: every party then counts a column of ones among its own.
    n_columns : int
        d, of all parties: classes have 2 d / 3 together. 0 is blind to classes.
    sharpened : bool
        Whether residuals of the label party's own model have a part, too: d / 2, and classes d / 2.
    """

    fit_intercept: bool
    n_columns: int = 0
    sharpened: bool = False

    def _parts(self) -> tuple[float, float]:
        """Give what all rows have together: by class, and by residuals."""
        by_class, by_residuals = SHARPENED_PARTS if self.sharpened else (CLASS_PART, 0.0)
        return by_class * self.n_columns, by_residuals * self.n_columns

    def scores(self, table: Table) -> PerRow:
        """Compute g^(j), positive: leverage in the features and the constant; at the label party the class part too."""
        if not 0 <= self.n_columns <= MOST_COLUMNS:
            raise InputError(f"Classes cannot count as {self.n_columns} columns do. Use 0 to {MOST_COLUMNS}.")
        parts = (0.0, 0.0) if table.label_name is None else self._parts()
        found = class_scores(table, len(table.feature_names), *parts, constant=self.fit_intercept)
        if found is None:
            raise InputError(
                f"its label {table.label_name!r} has more than {MOST_CLASSES} different values, which are no classes. "
                "Name another label, or learn a Regression."
            )
        return found

    def bounds(self, card: PartyCard, n_counted: int) -> ScoreBounds:
        """Bound a leverage by 1 and their sum by the rank + 1; a row has no more than the parts that all have."""
        ranks = min(card.n_features, n_counted) + 1.0
        if card.label_name is None or not self.n_columns:
            return ScoreBounds(2.0, ranks, whole=True)
        part = sum(self._parts())
        return ScoreBounds(2.0 + part, ranks + part)


def class_rule(rule: ClassScores, roster: Roster, *, sharpened: bool = False) -> ClassScores:
    """Let classes have their part, from what all sides know."""
    return ClassScores(rule.fit_intercept, sum(card.n_features for card in roster.cards), sharpened)


def tells_classes(rule: ScoreRule | None) -> bool:
    """Tell whether scores by a rule, or by one made of it, tell classes."""
    inner: Any = getattr(rule, "rule", None)
    return (isinstance(rule, ClassScores) and rule.n_columns > 0) or (inner is not None and tells_classes(inner))
