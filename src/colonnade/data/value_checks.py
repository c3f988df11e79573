"""What must hold of a party's values before anything is computed of them, and what to say where it does not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.options import LARGEST
from colonnade.preparation.reading import FIRST_INEXACT_INTEGER

# Squares of larger or smaller values leave float64's range (about 1e-308 to 1e308), with room to sum them.
SMALLEST_MAGNITUDE = 1 / LARGEST


def check_columns(
    party: str,
    names: Sequence[str],
    most: Floats,
    column: Callable[[int], Floats],
    integers: Sequence[bool] | None = None,
) -> None:
    """Require numbers in range, from the largest in size of each column; a column is read only where it is wrong."""
    for place, (name, largest) in enumerate(zip(names, most, strict=True)):
        where = f"Party {party!r}, column {name!r}"
        if not np.isfinite(largest):
            raise InputError(f"{where}: {_not_finite(column(place))}")
        if integers is not None and integers[place] and largest >= FIRST_INEXACT_INTEGER:
            raise InputError(f"{where}: {_inexact(column(place))}")
        if largest > LARGEST or 0.0 < largest < SMALLEST_MAGNITUDE:
            raise InputError(f"{where}: {_out_of_range(column(place))}")


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

    def end(self, names: Sequence[str], most: Floats, column: Callable[[int], Floats]) -> None:
        """Require that all rows are right, from the largest in size of each column."""
        check_columns(self.party, names, most, column, self.integers)
        self.is_done = True


def check_row_weights(party: str, weights: Floats) -> None:
    """Require weights that are finite, non-negative, not all zero."""
    where = f"Party {party!r}, row weights"
    if not np.isfinite(weights).all():
        raise InputError(f"{where}: {_not_finite(weights)}")
    if weights.min() < 0 or not SMALLEST_MAGNITUDE <= weights.max() <= LARGEST:
        raise InputError(
            f"{where}: they lie between {weights.min():g} and {weights.max():g}; they must be from 0 to "
            f"{LARGEST:g}, and the largest {SMALLEST_MAGNITUDE:g} or more. Correct the column, or leave out "
            "weight=."
        )


def _not_finite(column: Floats) -> str:
    missing = np.isnan(column)
    bad = missing if missing.any() else np.isinf(column)
    kind = "missing (null or NaN)" if missing.any() else "infinite"
    row = bad.argmax()
    return (
        f"{bad.sum()} of {column.size} values are {kind}, the first in row {row} (rows count from 0): "
        f"{column[row]}. Replace them by numbers, or drop these rows from every party alike, "
        "so that rows stay aligned."
    )


def _inexact(column: Floats) -> str:
    # The value itself is not shown: it is likely somebody's id.
    return (
        f"the integer in row {_largest_row(column)} (rows count from 0) is 2^53 or more in size, and float64 "
        "cannot tell it from its neighbours. If it is an id, name it as key= or drop it; if not, rescale it."
    )


def _out_of_range(column: Floats) -> str:
    row = _largest_row(column)
    return (
        f"its largest value in size is {column[row]:g} in row {row} (rows count from 0); beyond "
        f"{LARGEST:g} or below {SMALLEST_MAGNITUDE:g} squares leave float64's range. "
        "Correct the value, or rescale the column."
    )


def _largest_row(column: Floats) -> int:
    return int(np.abs(column).argmax())
