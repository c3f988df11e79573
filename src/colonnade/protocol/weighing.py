"""Weights of drawn rows that a server tells a party: as the draw has them, or within what the party's scores allow.

A party cannot know all parties' scores, and so not the weights: they are 1 over these, up to one factor. But it knows
its own, and that no score of another is below the row's part of all weight, or above what every rule keeps to.
"""

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.ledger import SERVER
from colonnade.messages import Message
from colonnade.protocol import checks
from colonnade.protocol.session import PartyData, PartyState

# No rule's score of a row exceeds this: leverages are 2 at most, scores for clusters 4, and rounding less than doubles.
MOST_SCORE = 8.0
ROUNDING = 1e-6


def check_weights(state: PartyState, request: Message, weights: Floats | None, data: PartyData) -> None:
    """Require weights, shape (m,), or None where they are all the same, that an honest server could have."""
    if state.weighing == "given":
        return
    rows, table = state.selected(), data.table
    told = np.ones(len(rows)) if weights is None else weights
    counts = np.ones(len(rows)) if table.row_weights is None else table.row_weights[rows]
    low, high = _range(state, counts, data)
    # Up to one factor: there is one for all rows, or the weights are not of this draw.
    with np.errstate(divide="ignore"):
        if (told <= 0).any() or (low / told).max() > (high / told).min() * (1 + ROUNDING):
            raise checks.wrong(
                SERVER, request, "weights that rows drawn as agreed, by this party's scores, cannot have"
            )


def _range(state: PartyState, counts: Floats, data: PartyData) -> tuple[Floats, Floats]:
    """Bound the weights up to one factor, from what each row counts; shape (m,) both."""
    if state.weighing == "evenly":
        return np.ones(len(counts)), np.ones(len(counts))
    if state.weighing == "all":
        return counts, counts
    scores, others = data.scores(state.rule), len(data.known().parties) - 1
    own, share, row_weights = scores[state.selected()], state.even_share, data.table.row_weights
    part = counts / (data.table.n_rows if row_weights is None else row_weights.sum())
    if share == 0:  # the total of all scores is the factor
        return counts / (own + others * MOST_SCORE), counts / (own + others * part)
    least_total = float(scores.sum()) + others
    highest = (1 - share) * (own + others * MOST_SCORE) / least_total + share * part
    return counts / highest, counts / (share * part)
