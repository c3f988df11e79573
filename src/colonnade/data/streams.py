"""A party's table that stays in its Parquet files: in memory are the rows that are being worked on, and a few more.

Every pass reads the files from first row to last, and cuts them into the same blocks, however their writers grouped
rows. Files that change between two passes are no table any more.
"""

import platform
from collections.abc import Collection, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from colonnade.contracts import Alignment, Keys
from colonnade.data.arrow_files import check_same, naming
from colonnade.data.engines import Engine, Threads
from colonnade.data.filed_columns import prepared_blocks
from colonnade.data.plain_types import plain_types
from colonnade.data.spool import OrderedSpool, SpooledRows
from colonnade.data.unprepared import Unprepared
from colonnade.data.value_checks import check_columns
from colonnade.errors import EngineError, InputError, LocalProtocolError
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.kernels.blocks import BLOCK_ROWS, Block, Work, n_blocks_of
from colonnade.kernels.per_row import PerRow
from colonnade.kernels.row_blocks import taken
from colonnade.preparation.preparation import Preparation

R = TypeVar("R")

# Rows that are decoded at once: eight blocks.
BATCH_ROWS = 8 * BLOCK_ROWS
# Rows that another machine reads for one task, or more: sending it takes milliseconds, as the work on one block may.
PIECE_ROWS = 16 * BLOCK_ROWS
# Of a file, read in pieces: whole groups of rows may be large.
BUFFER_BYTES = 1 << 20
# Of a file, stopped within it: as many jobs as read it in turn, window by window.
MOST_STOPPED = 4
_STOPPING = Lock()


class Look(NamedTuple):
    """What a file is like: its size, when it changed last, and which file it is."""

    size: int
    nanoseconds: int
    number: int

    @property
    def on_any_machine(self) -> tuple[int, int]:
        """What of it is the same wherever the storage is mounted: size and second."""
        return self.size, self.nanoseconds // 1_000_000_000


@dataclass(frozen=True)
class RowGroup:
    """Consecutive rows, `first` to `end`, which are this group of one of the files."""

    file: Path
    number: int
    first: int
    end: int


@dataclass(frozen=True, eq=False)
class ParquetRows:
    """Columns of Parquet files, in the order given, as float64; `where` names them in errors.

    `seen` is what the files were like when they were opened: size, time of the last change, and which file it is. Where
    there is a preparation, columns are those that it makes, and the label, and blocks are made by it.
    """

    where: str
    files: tuple[Path, ...]
    columns: tuple[str, ...]
    groups: tuple[RowGroup, ...] = field(repr=False)
    seen: tuple[Look, ...] = field(repr=False)
    preparation: Preparation | None = field(default=None, repr=False)
    # Readers that have stopped before a block, by its number: who reads on does not begin its group of rows again.
    _stopped: dict[int, Iterator[Block]] = field(default_factory=dict, init=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return ParquetRows, (self.where, self.files, self.columns, self.groups, self.seen, self.preparation)

    @property
    def n_rows(self) -> int:
        """How many rows all files have."""
        return self.groups[-1].end if self.groups else 0

    def blocks(self, numbers: Sequence[int] | None = None) -> Iterator[Block]:
        """Read each block, or those with these numbers, and no group of rows that has none of them."""
        n_blocks = n_blocks_of(self.n_rows)
        self.check_unchanged()
        if isinstance(numbers, range) and numbers.step == 1 and len(numbers) < n_blocks:
            with _STOPPING:
                reader = self._stopped.pop(numbers.start, None) or self._read(range(numbers.start, n_blocks))
            yield from islice(reader, len(numbers))
            if numbers.stop < n_blocks:
                self._stop(numbers.stop, reader)
        else:
            yield from self._read(range(n_blocks) if numbers is None else frozenset(numbers))
        # What was read of files that were being written is nothing: nobody is given the end of it.
        self.check_unchanged()

    def _stop(self, number: int, reader: Iterator[Block]) -> None:
        with _STOPPING:
            while len(self._stopped) >= MOST_STOPPED:
                self._stopped.pop(next(iter(self._stopped)))
            self._stopped[number] = reader

    def _read(self, wanted: Collection[int]) -> Iterator[Block]:
        if self.preparation is not None:
            yield from prepared_blocks(self, self.preparation, wanted)
            return
        parts: dict[int, Floats] = {}
        for first, columns in self._batches(wanted):
            end = first + len(columns[0])
            for number in range(first // BLOCK_ROWS, (end - 1) // BLOCK_ROWS + 1):
                if number not in wanted:
                    continue
                start = number * BLOCK_ROWS
                length = min(BLOCK_ROWS, self.n_rows - start)
                values = parts.setdefault(number, np.empty((length, len(columns)), order="F"))
                low, high = max(first, start), min(end, start + length)
                for place, column in enumerate(columns):
                    values[low - start : high - start, place] = column[low - first : high - first]
                if high == start + length:
                    yield Block(number, parts.pop(number))

    def pieces(self, numbers: Sequence[int] | None = None) -> Iterator[list[int]]:
        """Cut all blocks, or these, into runs that begin in other groups of rows, of `PIECE_ROWS` rows or more.

        Where groups end with blocks, none is read twice; elsewhere the first rows of a group are.
        """
        ends = np.array([group.end for group in self.groups])
        wanted = np.arange(n_blocks_of(self.n_rows)) if numbers is None else np.asarray(numbers, np.int64)
        places = np.searchsorted(ends, wanted * BLOCK_ROWS, side="right")
        piece: list[int] = []
        n_read = 0
        for place, run in groupby(zip(places, wanted.tolist(), strict=True), key=itemgetter(0)):
            blocks = [number for _, number in run]
            piece += blocks
            n_read += max(self.groups[place].end - self.groups[place].first, len(blocks) * BLOCK_ROWS)
            if n_read >= PIECE_ROWS:
                yield piece
                piece, n_read = [], 0
        if piece:
            yield piece

    def _batches(self, wanted: Collection[int]) -> Iterator[tuple[int, list[Floats]]]:
        """Read the groups of rows that have wanted blocks: the first row of each batch, and its columns as numbers."""
        for first, batch in self._arrow_batches(self.columns, wanted):
            yield first, [_numbers(batch.column(name)) for name in self.columns]

    def arrow_batches(self, columns: Sequence[str], wanted: Collection[int]) -> Iterator[tuple[int, Any]]:
        """Read columns as they stand, of the groups of rows that have wanted blocks; the first row of each batch."""
        import pyarrow as pa

        for first, batch in self._arrow_batches(columns, wanted):
            reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
            yield first, plain_types(self.where, reader).read_next_batch()

    def plain_schema(self, columns: Sequence[str]) -> Any:
        """Give the names and types of columns as `arrow_batches` reads them."""
        import pyarrow as pa
        from pyarrow import parquet

        with self._reading(self.files[0]):
            schema = parquet.read_schema(self.files[0])
        fields = pa.schema([schema.field(name) for name in columns])
        return plain_types(self.where, fields.empty_table().to_reader()).schema

    def _arrow_batches(self, columns: Sequence[str], wanted: Collection[int]) -> Iterator[tuple[int, Any]]:
        from pyarrow import parquet

        names = list(columns)
        end = (max(wanted, default=-1) + 1) * BLOCK_ROWS
        needed = (group for group in self.groups if _has_any(group, wanted))
        for path, groups in groupby(needed, key=attrgetter("file")):
            with self._reading(path), parquet.ParquetFile(path, buffer_size=BUFFER_BYTES) as file:
                for group in groups:
                    first = group.first
                    for batch in file.iter_batches(BATCH_ROWS, [group.number], names):
                        yield first, batch.select(names)  # a dot in a name stands for a nested column, too
                        first += batch.num_rows
                        if end <= first < group.end:  # what is left of the group is of no wanted block
                            return
                    if first != group.end:
                        raise self._changed()

    @contextmanager
    def _reading(self, path: Path) -> Iterator[None]:
        try:
            with naming(self.where, path):
                yield
        except InputError:
            self.check_unchanged()  # which is why it cannot be read
            raise

    def check_unchanged(self) -> None:
        """Refuse files that are not as they were when they were opened."""
        try:
            seen = tuple(map(_look, self.files))
        except OSError:
            raise self._changed() from None
        if seen != self.seen:
            raise self._changed()

    def seen_from_here(self) -> "ParquetRows":
        """Give the same rows as this machine sees them: its storage may number files, and round times, otherwise.

        Sizes are the same, and the seconds of the last changes. While this machine reads, nothing may change at all.
        """
        try:
            seen = tuple(map(_look, self.files))
        except OSError as error:
            raise EngineError(
                f"{self.where} cannot be read on the machine {platform.node()!r}: {error.strerror or error}. Let all "
                "machines of the cluster see the files by the same paths."
            ) from None
        if [each.on_any_machine for each in seen] != [each.on_any_machine for each in self.seen]:
            raise self._changed()
        return replace(self, seen=seen)

    def _changed(self) -> InputError:
        return InputError(
            f"{self.where} changed while it was in use: what was computed from it before is of another table. Write "
            "new data to a new file, and start the party again."
        )


def open_rows(where: str, files: Sequence[Path], columns: Sequence[str]) -> ParquetRows:
    """Open Parquet files of one schema, with columns that are numbers."""
    from pyarrow import parquet

    files = [path.absolute() for path in files]  # other machines stand in other folders
    seen, groups, n_rows, schema = tuple(map(_look, files)), [], 0, None
    for path in files:
        with naming(where, path), parquet.ParquetFile(path) as file:
            schema = schema or file.schema_arrow
            check_same(where, files[0], schema, path, file.schema_arrow)
            for number in range(file.metadata.num_row_groups):
                end = n_rows + file.metadata.row_group(number).num_rows
                groups.append(RowGroup(path, number, n_rows, end))
                n_rows = end
    return ParquetRows(where, tuple(files), tuple(columns), tuple(groups), seen)


def _has_any(group: RowGroup, wanted: Container[int]) -> bool:
    numbers = range(group.first // BLOCK_ROWS, (max(group.end, group.first + 1) - 1) // BLOCK_ROWS + 1)
    return group.end > group.first and any(number in wanted for number in numbers)


def _look(path: Path) -> Look:
    found = path.stat()
    return Look(found.st_size, found.st_mtime_ns, found.st_ino)


def _numbers(column: Any) -> Floats:
    import pyarrow as pa

    numbers: Floats = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)  # a null becomes NaN
    return numbers


@dataclass(frozen=True, eq=False)
class StreamedTable:
    """A party's table in files; `read_table` makes it of those that are large. Its rows are read anew in each pass.

    Weights and marks of rows to hold out are kept in memory.
    """

    rows: ParquetRows | SpooledRows
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
    label_levels: tuple[str, ...] | None = field(default=None, init=False)
    row_weights: PerRow | None = field(default=None, init=False)

    @property
    def n_rows(self) -> int:
        """How many rows the table has."""
        return self.rows.n_rows

    def map(self, work: Work[R], numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block, by the engine."""
        return self.engine.map(work, self.rows, numbers)

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
        return replace(
            whole,
            rows=in_order(whole.rows, rows),
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
        if whole.preparing is None or self.preparing is None or not isinstance(whole.rows, ParquetRows):
            raise LocalProtocolError("These columns are numbers already.")
        # Of the whole table, so that no choice of common rows decides whether it goes.
        preparation, largest, notes = whole.preparing.looked_through(fitted)
        rows = replace(whole.rows, columns=(*preparation.names, *whole.rows.columns), preparation=preparation)
        table = replace(whole, rows=rows, feature_names=preparation.names, preparing=None, notes=notes)
        check_columns(whole.preparing.party, preparation.names, largest, table.column)
        if self.places is None:
            return table
        return replace(
            self, rows=in_order(rows, self.places), feature_names=preparation.names, preparing=None, notes=notes
        )

    def column(self, place: int) -> Floats:
        """Read one column whole, to say what is wrong with it."""
        return np.concatenate(list(self.map(partial(_column, place))))


def in_order(readable: ParquetRows | SpooledRows, rows: Rows) -> SpooledRows:
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


def _column(place: int, block: Block) -> Floats:
    return block.values[:, place].copy()
