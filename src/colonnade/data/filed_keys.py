"""Keys of tables that stay in their files: read when they are asked for, and held only while records are matched."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from colonnade.contracts import Keys
from colonnade.data.filed_columns import FileColumns
from colonnade.data.keys import Duplicates, check_duplicates, key_texts, read_keys, rows_left_out
from colonnade.kernels.arrays import Rows
from colonnade.kernels.key_texts import KeyTexts, Words, digest_of, hashes_of, with_lengths

# Hashes of keys that are compared at once, 128 MB of them; those of more keys in several passes.
MOST_HASHES = 1 << 24


@dataclass(eq=False)
class FiledKeys:
    """The keys of rows that take part, in row order.

    Whoever takes some of them is likely to take others: from then on they are in memory, until they are let go.
    """

    read: Callable[[], Iterator[Any]] = field(repr=False)
    n_rows: int
    left_out: Rows = field(repr=False)
    _held: KeyTexts | None = field(default=None, init=False, repr=False)

    def __len__(self) -> int:
        return self.n_rows - len(self.left_out)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._pieces():
            yield from chunk.to_pylist()

    @property
    def chunks(self) -> Any:
        """All of them, a `pyarrow.ChunkedArray` of large_binary."""
        return self._texts().chunks

    def take(self, places: Rows) -> KeyTexts:
        """Take some, in this order."""
        return self._texts().take(places)

    def digest(self) -> bytes:
        """SHA-256 over, for each key, its length in bytes (8 bytes, little endian) and the key."""
        return digest_of(self._pieces())

    def let_go(self) -> None:
        """Hold them no longer."""
        self._held = None

    def _texts(self) -> KeyTexts:
        import pyarrow as pa

        if self._held is None:
            self._held = KeyTexts(pa.chunked_array(list(self._pieces()), pa.large_binary()))
        return self._held

    def _pieces(self) -> Iterator[Any]:
        if self._held is not None:
            yield from self._held.chunks.chunks
            return
        first = 0
        for chunk in self.read():
            here = self.left_out[(self.left_out >= first) & (self.left_out < first + len(chunk))] - first
            first += len(chunk)
            if len(here) < len(chunk):
                yield chunk.take(np.delete(np.arange(len(chunk)), here)) if len(here) else chunk


def any_keys(party: str, names: Sequence[str], table: Any, duplicates: Duplicates) -> Keys:
    """Read the key columns of a `pyarrow.Table`, or of files, and require one key of its own for each row."""
    if isinstance(table, FileColumns):
        return read_filed_keys(party, names, table.select(names), duplicates)[0]
    return read_keys(party, names, table, duplicates)


def read_filed_keys(
    party: str, names: Sequence[str], columns: FileColumns, duplicates: Duplicates
) -> tuple[Keys, bytes]:
    """Read the key columns of files, and require one key of its own for each row; give their digest, too."""
    check_duplicates(party, duplicates)
    read = partial(_read, party, tuple(names), columns)
    whole = FiledKeys(read, columns.num_rows, np.arange(0))
    if _ascend(columns):
        return Keys(tuple(names), whole, columns.num_rows, whole.left_out, columns), whole.digest()
    found, twice = _digest_and_twice(read, columns.num_rows)
    repeats = _repeats(read, twice) if len(twice) else np.arange(0)
    left_out = rows_left_out(party, names, columns.num_rows, repeats, duplicates, whole)
    whole.let_go()
    used = FiledKeys(read, columns.num_rows, left_out) if len(left_out) else whole
    return Keys(tuple(names), used, columns.num_rows, left_out, columns), used.digest() if len(left_out) else found


def _read(party: str, names: tuple[str, ...], columns: FileColumns) -> Iterator[Any]:
    return key_texts(party, names, columns.batches(names))


def _ascend(columns: FileColumns) -> bool:
    """Tell whether keys are one column of integers, each larger than that before it, as running numbers are."""
    import pyarrow as pa

    if columns.schema.names[1:] or not pa.types.is_integer(columns.schema.types[0]):
        return False
    last = None
    for piece in columns.pieces(columns.schema.names[0]):
        numbers = piece.to_numpy(zero_copy_only=False)
        if piece.null_count or not (numbers[1:] > numbers[:-1]).all() or (last is not None and numbers[0] <= last):
            return False
        last = numbers[-1] if len(numbers) else last
    return True


def _digest_and_twice(read: Callable[[], Iterator[Any]], n_rows: int) -> tuple[bytes, Words]:
    """Compute the digest of all keys, and the hashes that two of them have, by passes over parts of all hashes."""
    n_parts = -(-n_rows // MOST_HASHES) or 1
    digest, found = hashlib.sha256(), []
    for part in range(n_parts):
        hashes = _Hashes(n_parts, part)
        for chunk in read():
            hashes.add(hashes_of(chunk))
            if part == 0:
                digest.update(with_lengths(chunk))
        found.append(hashes.twice())
    return digest.digest(), np.concatenate(found)


class _Hashes:
    """Some of all hashes: one part of so many. Once there are too many, each is kept once."""

    def __init__(self, n_parts: int, part: int) -> None:
        self._n_parts, self._part = np.uint64(n_parts), np.uint64(part)
        self._kept: list[Words] = [np.empty(0, np.uint64)]
        self._twice: list[Words] = []
        self._n_kept = 0

    def add(self, hashes: Words) -> None:
        """Take those that are of this part."""
        own = hashes[hashes % self._n_parts == self._part]
        self._kept.append(own)
        self._n_kept += len(own)
        if self._n_kept > 2 * MOST_HASHES:
            self._sort()

    def twice(self) -> Words:
        """Give those that were added more than once."""
        self._sort()
        return np.unique(np.concatenate(self._twice))

    def _sort(self) -> None:
        ordered = np.sort(np.concatenate(self._kept))
        again = ordered[1:] == ordered[:-1]
        self._twice.append(np.unique(ordered[1:][again]))
        self._kept = [ordered[:1], ordered[1:][~again]]
        self._n_kept = len(ordered) - int(again.sum())


def _repeats(read: Callable[[], Iterator[Any]], twice: Words) -> Rows:
    """List the rows that have the key of an earlier row: their hashes are known."""
    first: dict[bytes, int] = {}
    repeats: list[int] = []
    start = 0
    for chunk in read():
        alike = np.flatnonzero(np.isin(hashes_of(chunk), twice))
        for row, key in zip((alike + start).tolist(), chunk.take(alike).to_pylist(), strict=True):
            if first.setdefault(key, row) != row:
                repeats.append(row)
        start += len(chunk)
    return np.array(repeats, np.int64)
