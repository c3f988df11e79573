"""Columns that say which rows to hold out."""

from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags


def read_marks(party: str, column: npt.NDArray[Any], first_row: int = 0) -> Flags:
    """Read which rows, from this one on, to hold out: 1 and 0, true and false, or the words test and train."""
    if column.dtype.kind in "biuf":
        marks, known = column == 1, (column == 1) | (column == 0)
    else:
        read = [1 if mark in (1, "test") else 0 if mark in (0, "train") else -1 for mark in column.tolist()]
        marks, known = np.array(read) == 1, np.array(read) >= 0
    if not known.all():
        row = int(known.argmin())
        raise InputError(
            f"Party {party!r}: the split column is {column[row]} in row {first_row + row} (rows count from 0). Write "
            "1, true or 'test' where a row is held out, and 0, false or 'train' elsewhere."
        )
    return np.asarray(marks, np.bool_)
