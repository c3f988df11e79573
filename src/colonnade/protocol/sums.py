"""Sums over rows that a party is to tell: of enough rows, and not nearly those of an earlier sum."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from colonnade.errors import InputError, PolicyRefusedError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.possible import each_once
from colonnade.kernels.selections import CountedRows
from colonnade.messages import Reveals
from colonnade.protocol.memory import (
    DistancesNote,
    Note,
    SumNote,
    counted_note,
    is_same_sum,
    rows_apart,
    sum_note,
    weights_by_row,
)
from colonnade.protocol.session import PartyData, PartyState

# What sums are called whose numbers include products with others' columns.
GRAM = "the Gram matrix of fold"
# Of weights that are added up, and divided by.
ROUNDING, TINY = 1e-9, 1e-300
# How many numbers are told for a value of a row, and how much of it is by any difference of sums.
HALF = 0.5
# Of weights that are nearly a combination of others: what is left is below the rounding of the sums.
DEPENDENT = 1e-14
# Of squares of weights that are far from such a combination.
APART = 1e-6
# So many weights, of rows in all sums, are looked at together.
BLOCK_WEIGHTS = 1 << 20
# Rows and weights of one sum; all rows that count are not listed.
Group = tuple[Rows, Floats] | CountedRows


def check_sums(
    state: PartyState,
    data: PartyData,
    what: str,
    groups: Sequence[Group],
    n_columns: int,
    n_numbers: int,
    least: int,
    of_each: int = 1,
) -> PartyState:
    """Require sums that hide the rows they are over, also beside sums that were told before, and remember them.

    As `check_hidden`; so many numbers of a sum are `of_each` value of a row.
    """
    check_hidden(data, what, groups, n_columns, n_numbers, least)
    if data.policy.least_rows == 1:
        return state
    n_rows, numbers = _n_numbered(data), -(-n_numbers // len(groups))
    named = f"{what} {data.preparation}".rstrip()  # of columns prepared otherwise it is another sum
    notes = tuple(_note(named, group, data, n_rows, numbers, of_each) for group in groups)
    earlier = [note for note in data.memory.notes() if isinstance(note, SumNote)]
    _compare(notes, earlier, data, what)
    told = [*{*notes, *earlier}]
    _count(told, data, what)
    _combine(told, data, what)
    check_geometry((*state.notes, *notes), data)
    return replace(state, notes=(*state.notes, *notes))


def _note(what: str, group: Group, data: PartyData, n_rows: int, numbers: int, of_each: int) -> SumNote:
    if isinstance(group, CountedRows):
        if data.table.row_numbers is None:
            return counted_note(what, group, numbers, of_each)
        group = listed(group)
    return sum_note(what, numbered(data, group[0]), group[1], n_rows, numbers, of_each)


def listed(rows: CountedRows) -> tuple[Rows, Floats]:
    """List rows that count, and how much."""
    return rows.ids, rows.weights


def numbered(data: PartyData, rows: Rows) -> Rows:
    """Give what the party knows rows by: positions are others after another alignment."""
    return rows if data.table.row_numbers is None else data.table.row_numbers[rows]


def _n_numbered(data: PartyData) -> int:
    numbers = data.table.row_numbers
    return data.table.n_rows if numbers is None else int(numbers.max(initial=0)) + 1


def check_view(
    state: PartyState, data: PartyData, what: str, n_columns: int, n_numbers: int, of_each: int = 1
) -> PartyState:
    """Require the same of sums over all rows that count, as the run looks at the table."""
    if data.policy.least_rows == 1 or not n_columns:
        return state
    rows = CountedRows(data.table.n_rows, data.table.row_weights)
    return check_sums(state, data, what, [rows], n_columns, n_numbers, least=1, of_each=of_each)


def check_geometry(notes: Iterable[Note], data: PartyData) -> None:
    """Where features are never shown, require few sums of rows whose distances to each other were told, in any run.

    Distances fix rows up to a rotation. Means that the server finds among the rows, and how much columns vary, fix that
    as well: a Gram matrix all of it but for signs. Half as many numbers a column as there are columns do not.
    """
    remembered = {*notes, *data.memory.notes()}
    columns = min((note.columns for note in remembered if isinstance(note, DistancesNote)), default=None)
    if columns is None or Reveals.FEATURES not in data.policy.never:
        return
    n_features, sums = max(len(data.table.feature_names), 1), [n for n in remembered if isinstance(n, SumNote)]
    told = sum(columns if note.what.startswith(GRAM) else note.numbers / n_features for note in sums)
    if told > HALF * columns:
        raise PolicyRefusedError(
            "its owner's policy never reveals features, and it tells distances of rows to each other: from these and "
            f"{told:.3g} numbers a column in sums, centres among them, in all runs together, rows could be worked out. "
            f"Of {columns} columns, {HALF * columns:g} is the most.",
            party=data.name,
        )


def check_hidden(
    data: PartyData, what: str, groups: Sequence[Group], n_columns: int, n_numbers: int, least: int
) -> None:
    """Require sums that hide the rows they are over.

    Parameters
    ----------
    what : str
        What the sums are, for the error.
    groups : sequence of (rows, weights)
        What each sum is over; or all rows that count, alone.
    n_columns : int
        How many of the party's columns are summed.
    n_numbers : int
        How many numbers are told in all.
    least : int
        The fewest rows, effectively, that a sum may be over.
    """
    for number, group in enumerate(groups):
        effective = effective_rows(group)
        if effective <= n_columns or effective < least:
            raise InputError(
                f"its {n_columns} columns of {effective:.3g} rows (effectively, in {what} {number}) would nearly show "
                f"the rows: a sum hides them only if there are more rows than columns, and at least {least}. Use a "
                "larger size."
            )
        if effective < data.policy.least_rows * (1 - ROUNDING):
            raise PolicyRefusedError(
                f"its owner's policy asks for sums over {data.policy.least_rows} rows at least; {what} {number} is "
                f"over {effective:.3g}, copies and rows of little weight apart. Use a larger size, or fewer parts.",
                party=data.name,
            )
    n_values = n_columns * _n_distinct(groups)
    if 2 * n_numbers > n_values:
        raise InputError(
            f"{what} would tell {n_numbers:,} numbers made of {n_values:,} values, and half as many is the most: more "
            "would nearly show the rows. Use a larger size, or fewer parts."
        )


def _n_distinct(groups: Sequence[Group]) -> int:
    """Count the rows that are in any sum."""
    if isinstance(groups[0], CountedRows):
        return len(groups[0])
    return len(each_once(np.concatenate([group[0] for group in groups if not isinstance(group, CountedRows)])))


def effective_rows(group: Group) -> float:
    """Count distinct rows, those of little weight less: (sum of weights)^2 / sum of their squares."""
    if isinstance(group, CountedRows):
        total, squares = group.weight, group.squared_weight
    else:
        by_row = _by_row(*group)
        total, squares = float(by_row.sum()), float(by_row @ by_row)
    return float(total**2 / max(squares, TINY))


def alike_by(total: float, largest: float) -> int:
    """Count rows as if all weighed what the heaviest does, from the weight of all and of that one."""
    return int(total / max(largest, TINY) * (1 + ROUNDING))


def _by_row(rows: Rows, weights: Floats) -> Floats:
    """Add up the weights of copies of a row."""
    if not len(rows):
        return np.zeros(1)
    rises = rows[1:] != rows[:-1]
    if not (rows[1:] >= rows[:-1]).all():
        return np.asarray(np.bincount(np.unique(rows, return_inverse=True)[1], weights=weights), np.float64)
    # Rows ascend nearly always: copies stand side by side, and nothing need be sorted.
    return np.asarray(np.bincount(np.concatenate([[0], np.cumsum(rises)]), weights=weights), np.float64)


def _count(told: Sequence[SumNote], data: PartyData, what: str) -> None:
    """Require that all sums there ever were tell fewer numbers than the table has values, by the owner's factor.

    As many sums over rows that the server chooses, or draws, as there are rows are equations that fix them all.
    """
    if (share := data.policy.sums_in_all) is None:
        return
    n_columns = len(data.table.feature_names) + (data.table.label_name is not None)
    n_numbers, most = sum(note.numbers for note in told), int(share * data.table.n_rows * n_columns)
    if n_numbers > most:
        raise PolicyRefusedError(
            f"with {what} it would have told {n_numbers:,} numbers about many rows in all, and its owner's policy ends "
            f"at {most:,}, {share:g} for each of its values (sums_in_all): as many as values would be equations enough "
            "to work these out. Learn on an earlier coreset again, whose sums count once.",
            party=data.name,
        )


def _combine(told: Sequence[SumNote], data: PartyData, what: str) -> None:
    """Require that all sums there ever were, added and subtracted, do not tell single rows, and few not too often.

    One alone tells a row that has a tenth of the weight, where ten thousand others have the rest: their mean hardly
    varies, and is known from other sums.
    """
    numbers, share = told_of_a_row(told, max(_n_numbered(data), *(8 * len(note.rows) for note in told)))
    if numbers > HALF * (1 + ROUNDING):
        raise PolicyRefusedError(
            f"with {what} it would have told {numbers:.3g} numbers for a value of a single row, by its part in sums, "
            f"and its owner's policy ends at {HALF:g}: more would be equations enough to work it out. Use other rows.",
            party=data.name,
        )
    if share > HALF * (1 + ROUNDING):
        raise PolicyRefusedError(
            f"{what} and the sums that it has told before, added and subtracted, would tell {share:.3g} of a single "
            f"row, and its owner's policy ends at {HALF:g}. Draw other rows, or use the same with the same weights.",
            party=data.name,
        )


def _compare(notes: Sequence[SumNote], earlier: Sequence[SumNote], data: PartyData, what: str) -> None:
    least = data.policy.least_rows
    for note in notes:
        for other in earlier:
            apart = rows_apart(note, other)
            if (apart and apart < least) or (not apart and not is_same_sum(note, other)):
                how = f"{apart} rows apart from" if apart else "over the same rows, with other weights, as"
                raise PolicyRefusedError(
                    f"its owner's policy asks for sums that are {least} rows apart; {what} would be {how} a sum that "
                    "it has told before, and the two together tell of single rows. Draw other rows, or use the same "
                    "with the same weights.",
                    party=data.name,
                )


def told_of_a_row(told: Sequence[SumNote], n_rows: int) -> tuple[float, float]:
    """Tell how many numbers sums tell for a value of a row, and how much of it by combining them; of the worst row.

    A number is of each row by the row's part in the weight. By combining sums, a row is told up to its leverage among
    their weights: of all combinations that have it once, the one that has least of the others has so much of these that
    their squares add up to one over the leverage, less one.
    """
    counted: dict[tuple[bytes, bytes], int] = defaultdict(int)
    for note in told:
        counted[note.rows, note.weights] += note.of_each
    sums, counts = [*{(note.rows, note.weights): note for note in told}.values()], np.array([*counted.values()])
    numbers, products = 0.0, np.zeros((len(sums), len(sums)))
    for parts in _parts(sums, n_rows):
        numbers = max(numbers, float((counts @ parts).max(initial=0.0)))
        products += parts @ parts.T
    onto = _onto_bases(sums, n_rows, products)
    shares = (np.square(onto @ parts).sum(axis=0).max(initial=0.0) for parts in _parts(sums, n_rows))
    return numbers, float(max(shares))


def _onto_bases(sums: Sequence[SumNote], n_rows: int, products: Floats) -> Floats:
    """Lead from rows' parts in sums to coordinates in an orthonormal basis of the sums' weights; shape (r, n_sums).

    `products` are those of the weights. Of weights that nearly depend on each other they have too few digits.
    """
    norms = np.sqrt(np.diag(products))
    squares, directions = np.linalg.eigh(products / np.outer(norms, norms))
    if squares[0] > APART * squares[-1]:
        return np.asarray((directions / np.sqrt(squares)).T / norms)
    triangle = np.empty((0, len(sums)))
    for parts in _parts(sums, n_rows):
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle, parts.T / norms]), mode="r"))
    _, sizes, rows = np.linalg.svd(triangle)
    (known,) = np.nonzero(sizes > DEPENDENT * sizes[0])
    return np.asarray(rows[known] / sizes[known, np.newaxis] / norms)


def _parts(sums: Sequence[SumNote], n_rows: int) -> Iterator[Floats]:
    """Yield which part of each sum's weight rows have, block by block of rows that are in any; shape (n_sums, b)."""
    size = 8 * max(1, BLOCK_WEIGHTS // (8 * max(len(sums), 1)))
    for blocks in zip(*(weights_by_row(note, n_rows, size) for note in sums), strict=True):
        parts = np.stack(blocks)
        yield parts[:, parts.any(axis=0)]
