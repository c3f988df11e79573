"""Rows in a file of our own, where their source cannot be read by block: written once, read as often as one likes.

Each block is one run of bytes, column after column, so that reading it is one call. The file has no name, and only
this process has it: nobody else can open it, and nothing of it is left when the process ends, however it does.
"""

import os
import platform
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, Self

import numpy as np

from colonnade import disk
from colonnade.data.held_columns import DOUBLE, AnyColumn, Kind
from colonnade.errors import EngineError, InputError, LocalProtocolError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import BLOCK_ROWS, Block, n_blocks_of

# Rows that are put into another order are held up to this, and go to the disk sorted by where they belong.
HELD_BYTES = 1 << 25


class PrivateFile:
    """A file without a name, in the folder for such (`TMPDIR`); it goes when nobody holds it any more."""

    def __init__(self, where: str) -> None:
        self._where = where
        try:
            # Mode 0600, and removed from its folder at once: no other user, and no later process, can open it. Not in
            # another folder than the owner named, as Python would have it.
            folder = os.environ.get("TMPDIR")
            file = tempfile.TemporaryFile(buffering=0, prefix="colonnade-", dir=folder)  # noqa: SIM115  # see finalize
        except OSError as error:
            self._no_room(error)
        self._file = file.fileno()
        self._let_go = weakref.finalize(self, file.close)
        self.size = 0

    def write(self, content: AnyColumn, start: int | None = None) -> None:
        """Write to its end, or in place of what begins there; where that fails, all of it goes."""
        try:
            os.lseek(self._file, self.size if start is None else start, os.SEEK_SET)
            disk.write(self._file, content.data.cast("B"))
        except OSError as error:
            self._let_go()
            self._no_room(error)
        self.size += content.nbytes if start is None else 0

    def read(self, start: int, into: AnyColumn) -> None:
        """Read as many bytes as there is room for."""
        view = into.data.cast("B")
        while view:
            found = os.preadv(self._file, [view], start)
            if not found:
                raise InputError(f"{self._where} was written to a file of its own, and that is cut off. Start again.")
            view, start = view[found:], start + found

    def _no_room(self, error: OSError) -> NoReturn:
        raise InputError(
            f"{self._where} is too large to be held in memory, and cannot be written to the folder "
            f"{_folder()!r} ({error.strerror or type(error).__name__}). Make room there, or name another folder by the "
            "environment variable TMPDIR."
        ) from error


def _folder() -> str:
    try:
        return os.environ.get("TMPDIR") or tempfile.gettempdir()
    except OSError:
        return ""


class PrivateRows:
    """Rows in a file of this process alone, block by block; `where` names them in errors."""

    where: str
    n_rows: int

    def __reduce__(self) -> NoReturn:
        raise EngineError(
            f"{self.where} is in a file of one process on the machine {platform.node()!r}, and cannot be sent to "
            "another. Write its numbers to Parquet files that all machines see."
        )

    def pieces(self, numbers: Sequence[int] | None = None) -> Iterator[list[int]]:
        """Give single blocks: each is read apart from the others."""
        for number in range(n_blocks_of(self.n_rows)) if numbers is None else numbers:
            yield [number]

    def check_unchanged(self) -> None:
        """Do nothing: nobody else can open the file."""

    def seen_from_here(self) -> Self:
        """Give the same rows: they never are on another machine."""
        return self


class SpooledRows(PrivateRows):
    """Rows of float64 in a file of this process alone, which `Spool` and `OrderedSpool` write.

    A column may be kept as float32; blocks are float64.
    """

    def __init__(self, where: str, columns: Sequence[str], kinds: Sequence[Kind], n_rows: int, file: Any) -> None:
        self.where = where
        self.columns = tuple(columns)
        self.n_rows = n_rows
        self._kinds = tuple(kinds)
        self._file = file

    def blocks(self, numbers: Sequence[int] | None = None, *, n_threads: int = 1) -> Iterator[Block]:  # noqa: ARG002
        """Read each block, or those with these numbers: bytes as they are, for which one thread is enough."""
        for number in range(n_blocks_of(self.n_rows)) if numbers is None else numbers:
            yield Block(number, self._read(number))

    def _read(self, number: int) -> Floats:
        start = number * BLOCK_ROWS
        length = min(BLOCK_ROWS, self.n_rows - start)
        values = np.empty((length, len(self.columns)), order="F")
        place = start * sum(kind.itemsize for kind in self._kinds)
        if all(kind == DOUBLE for kind in self._kinds):
            self._file.read(place, values.T)
            return values
        for column, kind in zip(values.T, self._kinds, strict=True):
            kept = column if kind == DOUBLE else np.empty(length, kind)
            self._file.read(place, kept)
            column[:] = kept
            place += kept.nbytes
        return values

    def column(self, name: str) -> Iterator[AnyColumn]:
        """Read one column of all rows, block by block."""
        return (part for _, part in self._parts(name))

    def change_column(self, name: str, change: Callable[[AnyColumn], AnyColumn]) -> None:
        """Write other values in place of a column's, block by block, before anybody else reads them."""
        for start, part in self._parts(name):
            part[:] = change(part)
            self._file.write(part, start)

    def _parts(self, name: str) -> Iterator[tuple[int, AnyColumn]]:
        """Read a column, block by block, each with its place in the file."""
        place = self.columns.index(name)
        row_bytes, before = (sum(each.itemsize for each in kinds) for kinds in (self._kinds, self._kinds[:place]))
        for first in range(0, self.n_rows, BLOCK_ROWS):
            part = np.empty(min(BLOCK_ROWS, self.n_rows - first), self._kinds[place])
            start = first * row_bytes + len(part) * before
            self._file.read(start, part)
            yield start, part


class Spool:
    """Writes rows, in the order in which they come.

    Parameters
    ----------
    where : str
        What the rows are, for errors: "Party 'bank': its table".
    columns : sequence of str
        Names.
    kinds : sequence of dtype, optional
        Of each column float64 or float32; float64 all if left out.
    """

    def __init__(self, where: str, columns: Sequence[str], kinds: Sequence[Kind] | None = None) -> None:
        self._where = where
        self._columns = tuple(columns)
        self._kinds = tuple(kinds or [DOUBLE] * len(self._columns))
        self._file = PrivateFile(where)
        self._block = [np.empty(BLOCK_ROWS, kind) for kind in self._kinds]
        self._n_waiting = 0
        self._n_written = 0

    @property
    def n_rows(self) -> int:
        """How many rows have come so far."""
        return self._n_written + self._n_waiting

    def append(self, columns: Sequence[AnyColumn]) -> None:
        """Take more rows: their columns, of one length, which is any."""
        n_new, taken = len(columns[0]), 0
        while taken < n_new:
            some = min(BLOCK_ROWS - self._n_waiting, n_new - taken)
            for kept, column in zip(self._block, columns, strict=True):
                kept[self._n_waiting : self._n_waiting + some] = column[taken : taken + some]
            taken += some
            self._n_waiting += some
            if self._n_waiting == BLOCK_ROWS:
                self._write()

    def _write(self) -> None:
        for kept in self._block:
            self._file.write(kept[: self._n_waiting])
        self._n_written += self._n_waiting
        self._n_waiting = 0

    def close(self) -> SpooledRows:
        """Write what is left, and give all rows to be read."""
        self._write()
        return SpooledRows(self._where, self._columns, self._kinds, self._n_written, self._file)


class OrderedSpool:
    """Writes rows each of which has its place, 0 to n_rows - 1, in whatever order they come; parameters as of `Spool`.

    They are sorted twice: as they come, some at a time, and then for some blocks at a time. So little of them is held,
    and nothing is read or written here and there.
    """

    def __init__(self, where: str, columns: Sequence[str], n_rows: int, kinds: Sequence[Kind] | None = None) -> None:
        self._spool = Spool(where, columns, kinds)
        kinds = tuple(kinds or [DOUBLE] * len(columns))
        self._record = np.dtype([("place", np.int64), *((f"{i}", kind) for i, kind in enumerate(kinds))])
        self._n_rows = n_rows
        self._log = PrivateFile(where)
        self._held: list[AnyColumn] = []
        # Of each run in the log: where it begins, and its places, of rows that begin a bundle.
        self._runs: list[tuple[int, Rows]] = []
        self._bundle_rows = BLOCK_ROWS * max(HELD_BYTES // (BLOCK_ROWS * self._record.itemsize), 1)

    def write(self, places: Rows, columns: Sequence[AnyColumn]) -> None:
        """Take more rows: where each belongs, and their columns."""
        records = np.empty(len(places), self._record)
        records["place"] = places
        for number, column in enumerate(columns):
            records[f"{number}"] = column
        self._held.append(records)
        if sum(each.nbytes for each in self._held) >= HELD_BYTES:
            self._log_held()

    def _log_held(self) -> None:
        records = np.concatenate(self._held)
        self._held.clear()
        records = records[np.argsort(records["place"])]
        firsts = np.arange(0, self._n_rows + self._bundle_rows, self._bundle_rows)
        self._runs.append((self._log.size, np.searchsorted(records["place"], firsts)))
        self._log.write(records.view(np.uint8))

    def close(self) -> SpooledRows:
        """Write all rows in their order, and give them to be read."""
        if self._held:
            self._log_held()
        for number, first in enumerate(range(0, self._n_rows, self._bundle_rows)):
            bundle = self._bundle(number)
            if not np.array_equal(bundle["place"], np.arange(first, min(first + self._bundle_rows, self._n_rows))):
                raise LocalProtocolError("Rows that are put in order must each be written once.")
            self._spool.append([bundle[name] for name in self._record.names[1:]])  # type: ignore[index]  # it has names
        return self._spool.close()

    def _bundle(self, number: int) -> AnyColumn:
        """Read the rows of some blocks, in their order."""
        parts = []
        for start, ends in self._runs:
            part = np.empty(ends[number + 1] - ends[number], self._record)
            self._log.read(start + int(ends[number]) * self._record.itemsize, part.view(np.uint8))
            parts.append(part)
        found = np.concatenate(parts) if parts else np.empty(0, self._record)
        return found[np.argsort(found["place"])]
