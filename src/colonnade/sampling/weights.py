"""What drawn rows weigh: 1 over how often they were to be drawn (line 8 of Algorithm 1)."""

from dataclasses import dataclass

import numpy as np

from colonnade.contracts import Roster
from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.per_row import PerRow


@dataclass(frozen=True, eq=False)
class Design:
    """With which probability rows are drawn: q_i = (1 - s) g_i / G + s w_i / W.

    Parameters
    ----------
    row_weights : PerRow or None
        w, what each row counts, also in its scores; 1 if None.
    size : int
        m.
    even_share : float
        s.
    """

    roster: Roster
    row_weights: PerRow | None
    size: int
    even_share: float

    def counts(self, rows: Rows) -> Floats:
        """Say what rows count, shape (m,)."""
        return np.ones(len(rows)) if self.row_weights is None else self.row_weights[rows]

    def weigh(self, rows: Rows, scores: Floats, total: float, *, stratified: bool = False) -> Coreset:
        """Weigh the drawn rows S, shape (m,), by their scores g_i, summed over parties, and by G."""
        counts = self.counts(rows)
        all_weight = weight_of_all(self.roster, self.row_weights)
        weights = weights_of(scores, total, counts, all_weight, self.size, self.even_share)
        return Coreset(rows, weights, self.roster.n_rows, all_weight, total=total, stratified=stratified)

    def weigh_distinct(self, rows: Rows, logs: Floats, total: float) -> Coreset:
        """Weigh distinct rows by what they count over their chance, 1 - exp(-logs), shape (m,)."""
        all_weight = weight_of_all(self.roster, self.row_weights)
        return Coreset(
            rows, self.counts(rows) / -np.expm1(-logs), self.roster.n_rows, all_weight, total=total, distinct=True
        )


def weight_of_all(roster: Roster, row_weights: PerRow | None) -> float:
    """Add up what all rows count: W, the n that multiplies a penalty."""
    return float(roster.n_rows if row_weights is None else row_weights.sum())


def weights_of(
    scores: Floats, total: float, counts: Floats | float, all_weight: float, size: int, even_share: float
) -> Floats:
    """Weigh m drawn rows by w_i / (m q_i), from g_i, G, w_i, W, m and s.

    Where all rows count 1 and none is drawn evenly, that is G / (m g_i).
    """
    weights: Floats = total * counts / (size * ((1 - even_share) * scores + even_share * total * counts / all_weight))
    return weights
