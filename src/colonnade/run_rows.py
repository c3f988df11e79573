"""Rows of a run that its files do not list: those that follow from what else they say."""

from typing import Any

from colonnade.contracts import Roster
from colonnade.kernels.selections import CountedRows
from colonnade.protocol.hello import MAX_ROWS
from colonnade.protocol.splits import AnySplit, SplitBy, held_out_by_seed
from colonnade.sampling import AllRows


def are_implied(sampler: Any, split: AnySplit | None, roster: Roster) -> bool:
    """Tell whether rows and weights follow from the record: all rows, or all that a seed does not hold out."""
    by_column = isinstance(split, SplitBy) or roster.weight_party is not None
    return sampler == AllRows() and not by_column


def implied_rows(n_rows: int, split: AnySplit | None, roster: Roster) -> CountedRows:
    """Give all rows that count, of a run that does not list them."""
    if isinstance(split, SplitBy) or roster.weight_party is not None:
        raise ValueError("no rows are listed, and a party's column says which rows count")
    weights = None if split is None else held_out_by_seed(n_rows, split, "train")
    if weights is not None and not weights.n_positive:
        raise ValueError("all of its rows are held out")
    return CountedRows(n_rows, weights)


def check_unlisted(n_rows: int, total_weight: float) -> None:
    """Require a number of rows that a table may have, and a weight; a list would be looked at by the coreset."""
    if not 1 <= n_rows <= MAX_ROWS:
        raise ValueError(f"it has {n_rows} rows, outside 1..{MAX_ROWS}")
    if not total_weight > 0:
        raise ValueError(f"all of its rows weigh {total_weight}")
