"""A party's table that stays in files: its owner's, or one of this process; every pass reads its rows anew.

Values of the owner's files are looked at in the first pass over all of them, which reads them anyway; no row is worked
on before, but in that pass, and there no block with a wrong value.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np

from colonnade.contracts import Alignment, Keys
from colonnade.data.engines import Engine, Threads, Watched
from colonnade.data.filling import largest
from colonnade.data.spool import OrderedSpool, SpooledRows
from colonnade.data.spooled_columns import SpooledColumns
from colonnade.data.streams import ParquetRows
from colonnade.data.unprepared import Unprepared
from colonnade.data.value_checks import ValueCheck, check_columns
from colonnade.errors import InputError, LocalProtocolError
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.kernels.blocks import Block, Work, n_blocks_of, values_of
from colonnade.kernels.per_row import PerRow
from colonnade.kernels.row_blocks import taken

R = TypeVar("R")
AnyRows: TypeAlias = ParquetRows | SpooledRows | SpooledColumns


@dataclass(frozen=True, eq=False)
class StreamedTable:
    """A party's table in files; `read_table` makes it of those that are large. Its rows are read anew in each pass.

    They are in the owner's Parquet files, or in files of this process. Weights and marks of rows to hold out are kept
    in memory. `check` is what is still to be required of its values, if anything.
    """

    rows: AnyRows
    feature_names: tuple[str, ...]
    label_name: str | None = None
    weight_column: Floats | None = field(default=None, repr=False)
    split_column: Flags | None = field(default=None, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    engine: Engine = field(default_factory=Threads)
    key_digest: bytes | None = None
    keys: Keys | None = field(default=None, repr=False)
    preparing: Unprepared | None = field(default=None, repr=False)
    alignment: Alignment | None = None
    unaligned: "StreamedTable | None" = field(default=None, repr=False)
    places: Rows | None = field(default=None, repr=False)  # of its rows in the table as it was read
    row_numbers: Rows | None = field(default=None, repr=False)
    label_levels: tuple[str, ...] | None = None
    check: ValueCheck | None = field(default=None, repr=False)
    row_weights: PerRow | None = field(default=None, init=False)

    @property
    def n_rows(self) -> int:
        """How many rows the table has."""
        return self.rows.n_rows

    @property
    def said(self) -> str:
        """Say where its rows are."""
        return ", in its files" if isinstance(self.rows, ParquetRows) else ", in a file of its own"

    def map(self, work: Work[R], numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block, by the engine; rows that are wanted here need no way round by it."""
        engine = Threads() if work is values_of else self.engine
        if (check := self._unchecked) is None:
            return engine.map(work, self.rows, numbers)
        return self._looked_at(engine, work, check, range(n_blocks_of(self.n_rows)) if numbers is None else numbers)

    @property
    def _unchecked(self) -> ValueCheck | None:
        """What is still to be required of its values."""
        return None if self.check is None or self.check.is_done else self.check

    def watched(self, tell: Callable[[int, int], None]) -> "StreamedTable":
        """Have `tell` told how many blocks of each pass are done, and of how many."""
        return replace(self, engine=Watched(self.engine, tell))

    @property
    def labels(self) -> "StreamedTable":
        """Read the label alone where columns are apart from each other, and all were looked at."""
        rows = self.rows
        if self.label_name is None or self._unchecked or not isinstance(rows, ParquetRows):
            return self
        return replace(self, rows=replace(rows, columns=(self.label_name,), preparation=None), feature_names=())

    def look_through(self) -> None:
        """Read all values now, if nobody has yet: what is wrong with one is said before any work."""
        if (check := self._unchecked) is not None:
            for _ in self._looked_at(self.engine, _nothing, check, []):
                pass

    def _looked_at(self, engine: Engine, work: Work[R], check: ValueCheck, numbers: Sequence[int]) -> Iterator[R]:
        """Look at all blocks, and work on those asked for, up to a wrong one: which columns are wrong is known last."""
        most, limits = np.zeros(len(self.rows.columns)), check.limits
        asked = numbers if isinstance(numbers, range) else frozenset(numbers)  # a range is sent in few bytes
        blocks = engine.map(partial(_of_right, work, limits, asked), self.rows)
        for number, (found, done) in enumerate(blocks):
            most = np.maximum(most, found)
            if number in asked and (most <= limits).all():
                yield done  # type: ignore[misc]  # which was done
        check.end(self.rows.columns, most, self.column)

    def take(self, rows: Rows) -> Floats:
        """Read rows by ids, 0 to n_rows - 1, in any order, also repeatedly: shape (k, n_columns), C-contiguous."""
        values = np.empty((len(rows), len(self.rows.columns)))
        if len(rows):
            order = np.argsort(rows, kind="stable")
            values[order] = taken(self, rows[order])[0]
        return values

    def key_columns(self, rows: Rows) -> Any:
        """Read the key columns of rows as they came, a `pyarrow.Table`, or None where it has no key."""
        if self.keys is None:
            return None
        return self.keys.columns.take(rows if self.places is None else self.places[rows])

    def aligned(self, alignment: Alignment) -> "StreamedTable":
        """Write the rows that all parties have into a file of this process, in the common order."""
        whole = self.unaligned or self
        if whole.keys is None:
            raise InputError("A table without a key cannot be aligned. Name its key= column.")
        order = alignment.order()
        rows = whole.keys.rows[order]
        whole.keys.values.let_go()
        ordered, levels = whole._in_order(whole.rows, rows)
        return replace(
            whole,
            rows=ordered,
            label_levels=levels,
            engine=Threads(),  # no other machine sees that file
            key_digest=alignment.fingerprint,
            alignment=alignment,
            weight_column=None if whole.weight_column is None else whole.weight_column[rows],
            split_column=None if whole.split_column is None else whole.split_column[rows],
            preparing=None if whole.preparing is None else whole.preparing.take(rows),
            unaligned=whole,
            places=rows,
            row_numbers=rows if alignment.numbers is None else alignment.numbers[order],
        )

    def prepared(self, fitted: bytes) -> "StreamedTable":
        """Make numbers of the columns by what was fitted, to these rows or to others.

        That is done whenever rows are read; those in the common order are written again, prepared.
        """
        whole = self.unaligned or self
        if whole.preparing is None or self.preparing is None:
            raise LocalProtocolError("These columns are numbers already.")
        # Of the whole table, so that no choice of common rows decides whether it goes.
        preparation, largest, notes = whole.preparing.looked_through(fitted)
        filed = whole.preparing.columns.rows
        rows = replace(filed, columns=(*preparation.names, *whole.rows.columns), preparation=preparation)
        table = replace(whole, rows=rows, feature_names=preparation.names, preparing=None, notes=notes)
        check_columns(whole.preparing.party, preparation.names, largest, table.column)
        if self.places is None:
            return table
        ordered, _ = whole._in_order(rows, self.places)
        return replace(self, rows=ordered, feature_names=preparation.names, preparing=None, notes=notes)

    def _in_order(self, readable: AnyRows, rows: Rows) -> tuple[SpooledRows, tuple[str, ...] | None]:
        """Write its rows in this order, of a label that is text only the levels that are left, and name these."""
        ordered = in_order(readable, rows)
        if self.label_name is None or self.label_levels is None:
            return ordered, None
        codes = [np.unique(part) for part in ordered.column(self.label_name)]
        present = np.unique(np.concatenate([np.empty(0), *codes])).astype(np.int64)
        ordered.change_column(self.label_name, lambda codes: np.searchsorted(present, codes))
        return ordered, tuple(self.label_levels[place] for place in present.tolist())

    def column(self, place: int) -> Iterator[Floats]:
        """Read one column, block by block, to say what is wrong with it."""
        return self.engine.map(partial(_column, place), self.rows)


def in_order(readable: AnyRows, rows: Rows) -> SpooledRows:
    """Write rows of a table, each at most once, in this order."""
    readable.check_unchanged()
    if not readable.columns:
        return SpooledRows(readable.where, (), (), len(rows), None)
    places = np.full(readable.n_rows, -1)
    places[rows] = np.arange(len(rows))
    spool = OrderedSpool(readable.where, readable.columns, len(rows))
    for block in readable.blocks():
        own = places[block.rows]
        spool.write(own[own >= 0], list(block.values[own >= 0].T))
    return spool.close()


def _of_right(work: Work[R], limits: Floats, asked: Container[int], block: Block) -> tuple[Floats, R | None]:
    """Find the largest value in size of each column; work on the block if it is asked for, and has no wrong value."""
    most: Floats = largest(block.values)
    return most, work(block) if block.number in asked and (most <= limits).all() else None


def _nothing(_: Block) -> None:
    """Only look."""


def _column(place: int, block: Block) -> Floats:
    return block.values[:, place].copy()
