"""Tables that are too large to be held, and cannot be read by block: read once, and put into a spool as they come."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.data.filling import check_rows, held_as, is_filled, largest, numbers_of, pieces
from colonnade.data.held_columns import DOUBLE
from colonnade.data.marks import read_marks
from colonnade.data.slips import Slip
from colonnade.data.spool import Spool, SpooledRows
from colonnade.data.spooled_columns import ColumnSpool, SpooledColumns
from colonnade.data.text_labels import LabelWords, is_words
from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags, Floats


@dataclass(frozen=True, eq=False)
class Spooled:
    """A table that was read.

    Attributes
    ----------
    largest : (n_columns,) array
        The largest value in size of each column, NaN where one is missing.
    label_levels : tuple of str, or None
        Where the label is text.
    slips : list of Slip
        Columns that are no numbers: where there is one, there is no table.
    unmarked : InputError or None
        What is wrong with the column of rows to hold out.
    others : SpooledColumns or None
        Keys, and columns to be prepared; none where there are slips.
    """

    n_rows: int
    rows: SpooledRows
    largest: Floats
    label_levels: tuple[str, ...] | None
    weights: Floats | None
    held_out: Flags | None
    slips: list[Slip]
    unmarked: InputError | None
    others: SpooledColumns | None


class _Reader:
    """Takes record batches, and does with each column what its role asks for."""

    def __init__(self, party: str, schema: Any, columns: Sequence[str], roles: dict[str, str]) -> None:
        named = {role: name for name, role in roles.items()}
        self._party = party
        self._columns = list(columns)
        self._label, self._weight, self._split = (named.get(role) for role in ("label", "weight", "split"))
        self._words = None
        if self._label is not None and is_words(schema.field(self._label).type):
            self._words = LabelWords(party, self._label)
        numbers = [*columns, *([self._weight] if self._weight else [])]
        self._slips = {name: Slip(schema.field(name)) for name in numbers if not is_filled(schema.field(name).type)}
        self._is_wrong = bool(self._slips.keys() - ({self._label} if self._words else set()))
        kinds = [held_as(schema.field(name).type) for name in columns]
        self._spool = Spool(_where(party), columns, kinds)
        others = [field for field in schema if field.name not in {*numbers, self._split}]
        self._others = ColumnSpool(_where(party), others) if others else None
        self._largest = np.zeros(len(columns))
        self._weights: list[Floats] = []
        self._marks: list[Flags] = []
        self._unmarked: InputError | None = None
        self.n_rows = 0

    def take(self, batch: Any) -> None:
        """Read the next rows."""
        for name, slip in self._slips.items():
            slip.look(batch[name], self.n_rows)
        for piece in pieces(batch):
            if not self._is_wrong:
                self._write(piece)
            elif self._words is not None:  # whether they are a label is told beside what is wrong
                self._words.numbered(piece[self._label])
            if self._weight and self._weight not in self._slips:
                self._weights.append(numbers_of(piece[self._weight], DOUBLE))
            if self._split and not self._unmarked:
                self._mark(piece[self._split])
            self.n_rows += piece.num_rows

    def _write(self, piece: Any) -> None:
        if self._columns:
            self._spool.append([self._numbers(piece, *each) for each in enumerate(self._columns)])
        if self._others is not None:
            self._others.append(piece)

    def _numbers(self, piece: Any, place: int, name: str) -> npt.NDArray[Any]:
        if name == self._label and self._words is not None:
            return self._words.numbered(piece[name])
        numbers: npt.NDArray[Any] = numbers_of(piece[name], held_as(piece[name].type))
        self._largest[place] = np.maximum(self._largest[place], largest(numbers))
        return numbers

    def _mark(self, column: Any) -> None:
        try:
            self._marks.append(read_marks(self._party, column.to_numpy(zero_copy_only=False), self.n_rows))
        except InputError as error:  # told of after what is wrong with others, as of a table in memory
            self._unmarked = error

    def read(self) -> Spooled:
        """Give all that was read."""
        places, levels = (None, None) if self._words is None else self._words.ordered()
        slips = [slip for name, slip in self._slips.items() if not (levels and name == self._label)]
        rows = self._spool.close() if self._columns else SpooledRows(_where(self._party), (), (), self.n_rows, None)
        if places is not None and self._label is not None and not slips:
            rows.change_column(self._label, lambda codes: places[codes.astype(np.int64)])
        return Spooled(
            self.n_rows,
            rows,
            self._largest,
            levels,
            np.concatenate(self._weights) if self._weights else None,
            np.concatenate(self._marks) if self._marks and not self._unmarked else None,
            slips,
            self._unmarked,
            None if self._others is None or slips else self._others.close(rows),
        )


def spooled(party: str, batches: Any, n_rows: int | None, columns: Sequence[str], roles: dict[str, str]) -> Spooled:
    """Read a `pyarrow.RecordBatchReader`, these columns as numbers; it says how many rows there are, or None."""
    reader = _Reader(party, batches.schema, columns, roles)
    for batch in batches:
        reader.take(batch)
        if n_rows is not None:
            check_rows(party, reader.n_rows, n_rows, is_last=False)
    if n_rows is not None:
        check_rows(party, reader.n_rows, n_rows, is_last=True)
    return reader.read()


def spooled_columns(party: str, batches: Any) -> SpooledColumns:
    """Read a `pyarrow.RecordBatchReader`, and keep its columns as they came."""
    spool, n_rows = ColumnSpool(_where(party), list(batches.schema)), 0
    for batch in batches:
        for piece in pieces(batch):
            spool.append(piece)
        n_rows += batch.num_rows
    return spool.close(SpooledRows(_where(party), (), (), n_rows, None))


def _where(party: str) -> str:
    return f"Party {party!r}: its table"
