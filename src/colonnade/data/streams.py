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

from colonnade.data.arrow_files import check_same, naming
from colonnade.data.engines import in_step, in_threads, one_by_one
from colonnade.data.filed_columns import prepared_blocks
from colonnade.data.filling import largest, numbers_of
from colonnade.data.held_columns import DOUBLE, AnyColumn
from colonnade.data.plain_types import plain_types
from colonnade.errors import EngineError, InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS, Block, n_blocks_of
from colonnade.preparation.preparation import Preparation
from colonnade.protocol.hello import MAX_ROWS

R = TypeVar("R")

# Blocks that are decoded at once, at most: fewer where their numbers would take more bytes than this.
BATCH_BLOCKS, BATCH_BYTES = 8, 1 << 25
# Rows that another machine reads for one task, or more: sending it takes milliseconds, as the work on one block may.
PIECE_ROWS = 16 * BLOCK_ROWS
# Of a column in a file, read in pieces: whole groups of rows may be large.
BUFFER_BYTES = 1 << 18
# Of a file, stopped within it: as many jobs as read it in turn, window by window.
MOST_STOPPED = 4
_STOPPING = Lock()


class Look(NamedTuple):
    """What a file is like: its size, when it was written last, and which file it is.

    `changed` is when the system last noted a change of it: who writes may set the other time back, but not this one.
    """

    size: int
    written: int
    number: int
    changed: int

    @property
    def on_any_machine(self) -> tuple[int, int]:
        """What of it is the same wherever the storage is mounted: size and second."""
        return self.size, self.written // 1_000_000_000

    def since(self, before: "Look") -> str:
        """Say what became of the file since another look at it."""
        if self.number != before.number:
            return "is another file now"
        if self.size != before.size:
            return "has another size now"
        if self.written != before.written:
            return "was written again or touched"
        return "was written again and given its old time, or its permissions or links were changed"


@dataclass(frozen=True)
class RowGroup:
    """Consecutive rows, `first` to `end`, which are this group of one of the files."""

    file: Path
    number: int
    first: int
    end: int


@dataclass(frozen=True)
class Run:
    """Groups of a file that follow each other, small ones perhaps: rows `first` to `end`, and no wanted ones beyond."""

    file: Path
    groups: list[int]
    first: int
    end: int
    end_of_groups: int


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a file, to be read column by column.

    `parts` says where they go: into which array, and which of them; `whole` are the blocks that are whole then.
    """

    file: Path
    columns: list[Iterator[Any]]
    n_rows: int
    parts: list[tuple[Floats, slice]] = field(default_factory=list)
    whole: list[Block] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class ParquetRows:
    """Columns of Parquet files, in the order given, as float64; `where` names them in errors.

    `seen` is what the files were like when they were opened. Where there is a preparation, columns are those that it
    makes, and the label, and blocks are made by it.
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

    def blocks(self, numbers: Sequence[int] | None = None, *, n_threads: int = 1) -> Iterator[Block]:
        """Read each block, or those with these numbers, and no group of rows that has none of them.

        More threads than one decode ahead of who asks, each of them some of the columns.
        """
        n_blocks = n_blocks_of(self.n_rows)
        self.check_unchanged()
        if isinstance(numbers, range) and numbers.step == 1 and len(numbers) < n_blocks:
            with _STOPPING:
                reader = self._stopped.pop(numbers.start, None)
            reader = reader or self._read(range(numbers.start, n_blocks), n_threads)
            yield from islice(reader, len(numbers))
            if numbers.stop < n_blocks:
                self._stop(numbers.stop, reader)
        else:
            yield from self._read(range(n_blocks) if numbers is None else frozenset(numbers), n_threads)
        # What was read of files that were being written is nothing: nobody is given the end of it.
        self.check_unchanged()

    def read_into(self, columns: Sequence[AnyColumn]) -> Floats:
        """Read all rows into columns, (n_rows,) each, and give each one's largest value in size.

        One column after another, as many at once as there are cores: so no more of them are being decoded.
        """
        from pyarrow import parquet

        self.check_unchanged()
        most, named = np.zeros(len(columns)), list(zip(self.columns, columns, strict=True))
        for path, numbered in groupby(self.groups, key=attrgetter("file")):
            groups = list(numbered)
            rows = slice(groups[0].first, groups[-1].end)
            with self._reading(path), parquet.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
                most = np.maximum(most, list(in_threads(partial(self._read_column, path, file, rows), named)))
        self.check_unchanged()
        return most

    def _read_column(self, path: Path, file: Any, rows: slice, named: tuple[str, AnyColumn]) -> float:
        """Decode a column of a file into its place in a longer one, and look at it while it is in the cache."""
        name, values, start, most = named[0], named[1][rows], 0, 0.0
        for batch in file.iter_batches(BATCH_BLOCKS * BLOCK_ROWS, columns=[name], use_threads=False):
            numbers, end = numbers_of(batch.column(name), values.dtype), start + batch.num_rows
            if end > len(values) or end == start:
                break
            values[start:end] = numbers
            most, start = np.maximum(most, largest(numbers)), end
        if start != len(values):
            raise self._changed(path)
        return float(most)

    def _stop(self, number: int, reader: Iterator[Block]) -> None:
        with _STOPPING:
            while len(self._stopped) >= MOST_STOPPED:
                self._stopped.pop(next(iter(self._stopped)))
            self._stopped[number] = reader

    def _read(self, wanted: Collection[int], n_threads: int) -> Iterator[Block]:
        if self.preparation is not None:
            yield from prepared_blocks(self, self.preparation, wanted)
            return
        shares = np.array_split(np.arange(len(self.columns)), min(n_threads, len(self.columns)))
        steps = (
            (batch.whole, [partial(self._fill, batch, share.tolist()) for share in shares])
            for batch in self._batches(wanted)
        )
        for whole in in_step(steps) if n_threads > 1 else one_by_one(steps):
            yield from whole

    def _batches(self, wanted: Collection[int]) -> Iterator[Batch]:
        """Open the files that have wanted blocks, and make room for their rows.

        A block may begin in one batch, and end in another. Columns are read apart from each other, as many rows of each
        as stay in the cache until they are where they belong.
        """
        from pyarrow import parquet

        begun: dict[int, Floats] = {}
        n_rows, names = self._n_rows_at_once, self.columns
        runs = _runs([group for group in self.groups if _has_any(group, wanted)], wanted)
        for path, of_file in groupby(runs, key=attrgetter("file")):
            with self._reading(path), parquet.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
                for run in of_file:
                    columns = [file.iter_batches(n_rows, run.groups, [name], use_threads=False) for name in names]
                    for first in range(run.first, run.end, n_rows):
                        batch = Batch(path, columns, min(n_rows, run.end_of_groups - first))
                        self._make_room(batch, wanted, slice(first, min(first + n_rows, run.end)), begun)
                        yield batch

    def _make_room(self, batch: Batch, wanted: Container[int], read: slice, begun: dict[int, Floats]) -> None:
        """Find a place for those of these rows that are of wanted blocks."""
        for number in range(read.start // BLOCK_ROWS, (read.stop - 1) // BLOCK_ROWS + 1):
            if number not in wanted:
                continue
            start, stop = number * BLOCK_ROWS, min((number + 1) * BLOCK_ROWS, self.n_rows)
            values = begun.pop(number, None)
            if values is None:
                values = self._empty(stop - start)
            low, high = max(read.start, start), min(read.stop, stop)
            batch.parts.append((values[low - start : high - start], slice(low - read.start, high - read.start)))
            if high < stop:
                begun[number] = values
            else:
                batch.whole.append(Block(number, values))

    def _fill(self, batch: Batch, places: list[int]) -> None:
        """Decode some columns of a batch, and put them where they belong."""
        with self._reading(batch.file):
            for place in places:
                read = next(batch.columns[place], None)
                if read is None or read.num_rows != batch.n_rows:
                    raise self._changed(batch.file)
                numbers = numbers_of(read.column(self.columns[place]), DOUBLE)
                for values, rows in batch.parts:
                    values[:, place] = numbers[rows]

    def _empty(self, length: int) -> Floats:
        import pyarrow as pa

        # Of Arrow's memory, which it keeps from batch to batch: the system's costs as much time as decoding does.
        room = pa.allocate_buffer(8 * length * len(self.columns))
        return np.frombuffer(room).reshape((length, len(self.columns)), order="F")

    @property
    def _n_rows_at_once(self) -> int:
        block_bytes = 8 * len(self.columns) * BLOCK_ROWS
        return max(1, min(BATCH_BLOCKS, BATCH_BYTES // block_bytes)) * BLOCK_ROWS

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
                    for batch in file.iter_batches(BATCH_BLOCKS * BLOCK_ROWS, [group.number], names):
                        yield first, batch.select(names)  # a dot in a name stands for a nested column, too
                        first += batch.num_rows
                        if end <= first < group.end:  # what is left of the group is of no wanted block
                            return
                    if first != group.end:
                        raise self._changed(path)

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
        for path, before in zip(self.files, self.seen, strict=True):
            try:
                now = _look(path)
            except OSError as error:
                raise self._changed(path, f"cannot be read any more ({error.strerror})") from None
            if now != before:
                raise self._changed(path, now.since(before))

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
        for path, before, now in zip(self.files, self.seen, seen, strict=True):
            if now.on_any_machine != before.on_any_machine:
                raise self._changed(path, "looks otherwise from another machine of the cluster")
        return replace(self, seen=seen)

    def _changed(self, path: Path, how: str = "has other rows than it said") -> InputError:
        n_files = len(self.files)
        place = f" (file {self.files.index(path) + 1:,} of {n_files:,})" if n_files > 1 else ""
        # The whole path, which nobody but the owner is told: a name can say whose rows these are.
        return InputError(
            f"{self.where} changed while it was in use: {str(path)!r}{place} {how}. What was computed from it before "
            "is of another table. Write new data to a new file, and make a new Party of it, or start colonnade party "
            "again."
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
                if not n_rows <= end <= MAX_ROWS:
                    raise InputError(
                        f"{where}, {path.name!r} in it says that it has a group of {end - n_rows:,} rows, after "
                        f"{n_rows:,}: no table has that, or more than {MAX_ROWS:,} in all. Write the file again."
                    )
                groups.append(RowGroup(path, number, n_rows, end))
                n_rows = end
    return ParquetRows(where, tuple(files), tuple(columns), tuple(groups), seen)


def _runs(groups: Sequence[RowGroup], wanted: Collection[int]) -> Iterator[Run]:
    end = (max(wanted, default=-1) + 1) * BLOCK_ROWS  # what is left of a group there is of no wanted block
    for (path, _), numbered in groupby(enumerate(groups), key=lambda each: (each[1].file, each[1].number - each[0])):
        run = [group for _, group in numbered]
        yield Run(path, [group.number for group in run], run[0].first, min(run[-1].end, end), run[-1].end)


def _has_any(group: RowGroup, wanted: Container[int]) -> bool:
    numbers = range(group.first // BLOCK_ROWS, (max(group.end, group.first + 1) - 1) // BLOCK_ROWS + 1)
    return group.end > group.first and any(number in wanted for number in numbers)


def _look(path: Path) -> Look:
    found = path.stat()
    return Look(found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns)
