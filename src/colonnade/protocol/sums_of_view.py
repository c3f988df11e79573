"""Sums over all rows that count in a run's view, which come beside what is told of drawn rows."""

import numpy as np

from colonnade.protocol.session import PartyData, PartyState
from colonnade.protocol.sums import check_sums


def check_sums_of_view(state: PartyState, data: PartyData, what: str, *, n_columns: int, n_numbers: int) -> PartyState:
    """Require so many numbers about so many columns to hide the rows that count; remember that they were told.

    The same numbers about the same rows are told once, however often: `what` says what they are.
    """
    if data.policy.least_rows == 1 or not n_columns:
        return state
    table = data.table
    weights = np.ones(table.n_rows) if table.row_weights is None else table.row_weights
    rows = np.flatnonzero(weights)
    return check_sums(state, data, what, [(rows, weights[rows])], n_columns, n_numbers, least=1)
