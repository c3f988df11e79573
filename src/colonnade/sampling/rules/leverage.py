"""Algorithm 2 at a party: leverage of its own columns, and of the label where it holds it."""

import msgspec

from colonnade.contracts import PartyCard, ScoreBounds, Table
from colonnade.kernels.leverage import regression_scores
from colonnade.kernels.per_row import PerRow


class LeverageScores(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """Scores for regression.

    Parameters
    ----------
    fit_intercept : bool
        Whether the model has an intercept: the label party then counts a column of ones among its own.
    """

    fit_intercept: bool

    def scores(self, table: Table) -> PerRow:
        """Compute g^(j), positive: the squared row norms of an orthonormal basis of the columns, plus 1/n (lines 2-3).

        The label's column counts as one of the party's (Assumption 4.1).
        """
        holds_label = table.label_name is not None
        return regression_scores(table, constant=self.fit_intercept and holds_label)

    def bounds(self, card: PartyCard, n_counted: int) -> ScoreBounds:
        """Bound a leverage by 1 and their sum by the rank; a row's part of the weight by 1, and so their sum.

        At the label party the label counts as a column, and the intercept's column of ones.
        """
        at_label = 0 if card.label_name is None else 1 + self.fit_intercept
        return ScoreBounds(2.0, min(card.n_features + at_label, n_counted) + 1.0, whole=True)
