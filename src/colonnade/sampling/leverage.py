"""Algorithm 2 at a party: leverage of its own columns, and of the label where it holds it."""

import msgspec

from colonnade.contracts import Table
from colonnade.kernels.arrays import Floats
from colonnade.kernels.leverage import regression_scores


class LeverageScores(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """Scores for regression.

    Parameters
    ----------
    fit_intercept : bool
        Whether the model has an intercept: the label party then counts a column of ones among its own.
    """

    fit_intercept: bool

    def scores(self, table: Table) -> Floats:
        """Compute g^(j): the squared row norms of an orthonormal basis of the columns, plus 1/n (lines 2-3).

        Parameters
        ----------
        table : Table
            The party's columns; the label's column counts as one (Assumption 4.1).

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            Positive scores.
        """
        holds_label = table.label_name is not None
        return regression_scores(table.blocks, constant=self.fit_intercept and holds_label, weights=table.row_weights)
