"""Sums over rows that a party is to tell: of enough rows, and not nearly those of an earlier sum."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from colonnade.errors import InputError, PolicyRefusedError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.protocol.memory import SumNote, rows_apart, sum_note
from colonnade.protocol.session import PartyData, PartyState

# Of weights that are added up, and divided by.
ROUNDING, TINY = 1e-9, 1e-300
# Rows and weights of one sum.
Group = tuple[Rows, Floats]


def check_sums(
    state: PartyState, data: PartyData, what: str, groups: Sequence[Group], n_columns: int, n_numbers: int, least: int
) -> PartyState:
    """Require sums that hide the rows they are over, also beside sums that were told before, and remember them."""
    check_hidden(data, what, groups, n_columns, n_numbers, least)
    if data.policy.least_rows == 1:
        return state
    n_rows, numbers = data.table.n_rows, -(-n_numbers // len(groups))
    notes = tuple(sum_note(what, rows, weights, n_rows, numbers) for rows, weights in groups)
    _compare(notes, data, what)
    _count(notes, data, what)
    return replace(state, notes=(*state.notes, *notes))


def check_hidden(
    data: PartyData, what: str, groups: Sequence[Group], n_columns: int, n_numbers: int, least: int
) -> None:
    """Require sums that hide the rows they are over.

    Parameters
    ----------
    what : str
        What the sums are, for the error.
    groups : sequence of (rows, weights)
        What each sum is over.
    n_columns : int
        How many of the party's columns are summed.
    n_numbers : int
        How many numbers are told in all.
    least : int
        The fewest rows, effectively, that a sum may be over.
    """
    for number, (rows, weights) in enumerate(groups):
        effective, alike = effective_rows(rows, weights), rows_alike(rows, weights)
        if effective <= n_columns or effective < least:
            raise InputError(
                f"its {n_columns} columns of {effective:.3g} rows (effectively, in {what} {number}) would nearly show "
                f"the rows: a sum hides them only if there are more rows than columns, and at least {least}. Use a "
                "larger size."
            )
        if alike < data.policy.least_rows:
            raise PolicyRefusedError(
                f"its owner's policy asks for sums over {data.policy.least_rows} rows at least, none of which has more "
                f"than its share of the weight; {what} {number} is over {alike}. Use a larger size, or fewer parts.",
                party=data.name,
            )
    n_values = n_columns * len(np.unique(np.concatenate([rows for rows, _ in groups])))
    if 2 * n_numbers > n_values:
        raise InputError(
            f"{what} would tell {n_numbers:,} numbers made of {n_values:,} values, and half as many is the most: more "
            "would nearly show the rows. Use a larger size, or fewer parts."
        )


def effective_rows(rows: Rows, weights: Floats) -> float:
    """Count distinct rows, those of little weight less: (sum of weights)^2 / sum of their squares."""
    total = _by_row(rows, weights)
    return float(total.sum() ** 2 / max(float(total @ total), TINY))


def rows_alike(rows: Rows, weights: Floats) -> int:
    """Count distinct rows as if all weighed what the heaviest does: its part of a sum is one over that, at most.

    A row that has a third of the weight is told to a fifth of its column's spread by a mean of a hundred rows, which
    are effectively nine.
    """
    total = _by_row(rows, weights)
    return int(total.sum() / max(float(total.max()), TINY) * (1 + ROUNDING))


def _by_row(rows: Rows, weights: Floats) -> Floats:
    """Add up the weights of copies of a row."""
    if not len(rows):
        return np.zeros(1)
    return np.asarray(np.bincount(np.unique(rows, return_inverse=True)[1], weights=weights), np.float64)


def _count(notes: Sequence[SumNote], data: PartyData, what: str) -> None:
    """Require that all sums there ever were tell half as many numbers as the table has values, at most.

    As many sums over rows that the server chooses, or draws, as there are rows are equations that fix them all.
    """
    n_columns = len(data.table.feature_names) + (data.table.label_name is not None)
    told = {*notes, *(note for note in data.memory.notes() if isinstance(note, SumNote))}
    n_numbers, most = sum(note.numbers for note in told), data.table.n_rows * n_columns // 2
    if n_numbers > most:
        raise PolicyRefusedError(
            f"with {what} it would have told {n_numbers:,} numbers about many rows in all, and its owner's policy ends "
            f"at {most:,}, half of its values: more would be equations enough to work out its rows. Learn "
            "on an earlier coreset again, whose sums count once.",
            party=data.name,
        )


def _compare(notes: Sequence[SumNote], data: PartyData, what: str) -> None:
    least = data.policy.least_rows
    earlier = [note for note in data.memory.notes() if isinstance(note, SumNote)]
    for note in notes:
        for other in earlier:
            apart = rows_apart(note, other)
            if (apart and apart < least) or (not apart and note.weights != other.weights):
                how = f"{apart} rows apart from" if apart else "over the same rows, with other weights, as"
                raise PolicyRefusedError(
                    f"its owner's policy asks for sums that are {least} rows apart; {what} would be {how} a sum that "
                    "it has told before, and the two together tell of single rows. Draw other rows, or use the same "
                    "with the same weights.",
                    party=data.name,
                )
