"""What must hold of a party's values before anything is computed of them, and what to say where it does not."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from colonnade.data.held_columns import AnyColumn
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.options import LARGEST
from colonnade.preparation.reading import FIRST_INEXACT_INTEGER

# Squares of larger or smaller values leave float64's range (about 1e-308 to 1e308), with room to sum them.
SMALLEST_MAGNITUDE = 1 / LARGEST
# Reads a column anew, piece by piece: it may not fit into memory.
Read: TypeAlias = Callable[[], Iterable[AnyColumn]]


def check_columns(
    party: str,
    names: Sequence[str],
    most: Floats,
    column: Callable[[int], Iterable[AnyColumn]],
    integers: Sequence[bool] | None = None,
) -> None:
    """Require numbers in range, from the largest in size of each column; a column is read only where it is wrong."""
    for place, (name, largest) in enumerate(zip(names, most, strict=True)):
        where = f"Party {party!r}, column {name!r}"
        if not np.isfinite(largest):
            raise InputError(f"{where}: {_not_finite(partial(column, place))}")
        if integers is not None and integers[place] and largest >= FIRST_INEXACT_INTEGER:
            raise InputError(f"{where}: {_inexact(partial(column, place))}")
        if largest > LARGEST or 0.0 < largest < SMALLEST_MAGNITUDE:
            raise InputError(f"{where}: {_out_of_range(partial(column, place))}")


@dataclass(eq=False)
class ValueCheck:
    """What is to be required of the columns of a party's table, once: where it was, nobody looks again."""

    party: str
    integers: Sequence[bool]
    is_done: bool = False

    @property
    def limits(self) -> Floats:
        """How large a value of each column may be in size."""
        return np.where(self.integers, np.nextafter(FIRST_INEXACT_INTEGER, 0.0), LARGEST)

    def end(self, names: Sequence[str], most: Floats, column: Callable[[int], Iterable[AnyColumn]]) -> None:
        """Require that all rows are right, from the largest in size of each column."""
        check_columns(self.party, names, most, column, self.integers)
        self.is_done = True


def check_row_weights(party: str, weights: Floats) -> None:
    """Require weights that are finite, non-negative, not all zero."""
    where = f"Party {party!r}, row weights"
    if not np.isfinite(weights).all():
        raise InputError(f"{where}: {_not_finite(lambda: [weights])}")
    if weights.min() < 0 or not SMALLEST_MAGNITUDE <= weights.max() <= LARGEST:
        raise InputError(
            f"{where}: they lie between {weights.min():g} and {weights.max():g}; they must be from 0 to "
            f"{LARGEST:g}, and the largest {SMALLEST_MAGNITUDE:g} or more. Correct the column, or leave out "
            "weight=."
        )


def _not_finite(read: Read) -> str:
    kind, (bad, row, value, n_rows) = "missing (null or NaN)", _those(read, np.isnan)
    if not bad:
        kind, (bad, row, value, n_rows) = "infinite", _those(read, np.isinf)
    return (
        f"{bad} of {n_rows} values are {kind}, the first in row {row} (rows count from 0): "
        f"{value}. Replace them by numbers, or drop these rows from every party alike, "
        "so that rows stay aligned."
    )


def _those(read: Read, are_bad: Callable[[AnyColumn], AnyColumn]) -> tuple[int, int, float, int]:
    """Count bad values; give the row of the first, that value, and how many rows there are."""
    n_bad, row, value, at = 0, 0, 0.0, 0
    for piece in read():
        bad = are_bad(piece)
        if not n_bad and bad.any():
            place = int(bad.argmax())
            row, value = at + place, float(piece[place])
        n_bad, at = n_bad + int(bad.sum()), at + len(piece)
    return n_bad, row, value, at


def _inexact(read: Read) -> str:
    # The value itself is not shown: it is likely somebody's id.
    return (
        f"the integer in row {_largest(read)[0]} (rows count from 0) is 2^53 or more in size, and float64 "
        "cannot tell it from its neighbours. If it is an id, name it as key= or drop it; if not, rescale it."
    )


def _out_of_range(read: Read) -> str:
    row, value = _largest(read)
    return (
        f"its largest value in size is {value:g} in row {row} (rows count from 0); beyond "
        f"{LARGEST:g} or below {SMALLEST_MAGNITUDE:g} squares leave float64's range. "
        "Correct the value, or rescale the column."
    )


def _largest(read: Read) -> tuple[int, float]:
    """Find the first row with the largest value in size, and that value."""
    row, value, at = 0, 0.0, 0
    for piece in read():
        place = int(np.abs(piece).argmax()) if len(piece) else 0
        if len(piece) and abs(piece[place]) > abs(value):
            row, value = at + place, float(piece[place])
        at += len(piece)
    return row, value
