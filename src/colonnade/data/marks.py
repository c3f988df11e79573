"""Columns that say which rows to hold out."""

from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.data.filling import PIECE_ROWS
from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags


def read_marks(party: str, column: npt.NDArray[Any], first_row: int = 0) -> Flags:
    """Read which rows, from this one on, to hold out: 1 and 0, true and false, or the words test and train."""
    marks = np.empty(len(column), np.bool_)
    for start in range(0, len(column), PIECE_ROWS):
        some = slice(start, start + PIECE_ROWS)
        marks[some] = _marks_of(party, column[some], first_row + start)
    return marks


def read_marks_of_chunks(party: str, column: Any) -> Flags:
    """Read likewise a `pyarrow.ChunkedArray`; of words there is a Python object each, and so of few rows at a time."""
    marks, at = np.empty(len(column), np.bool_), 0
    for chunk in column.chunks:
        for start in range(0, len(chunk), PIECE_ROWS):
            piece = chunk.slice(start, PIECE_ROWS)
            marks[at : at + len(piece)] = _marks_of(party, piece.to_numpy(zero_copy_only=False), at)
            at += len(piece)
    return marks


def _marks_of(party: str, column: npt.NDArray[Any], first_row: int) -> Flags:
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
