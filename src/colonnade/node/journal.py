"""A journal: an append-only file of checksummed records that survives the death of its process at any byte.

What was written is with the operating system when `append` returns, so killing the process loses nothing; the last
record may be torn, and is then dropped. It is forced to the disk by `sync` and `compact`: by a party before an answer
that says anything leaves, by a server at the ends of phases, and its machine may lose the last records with
its power. Only its owner can read the file: it holds whatever was disclosed.
"""

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from colonnade import disk
from colonnade.disk import Buffer
from colonnade.errors import TransportError

PRIVATE = disk.PRIVATE
MAGIC = b"colonnade journal 1\n"
HEAD = struct.Struct("<QQI")  # length of the record, of its first part, and a checksum of all
# What is written before it takes the place of something; a kill may leave it behind.
FRESH = ".fresh"
# Below it copying the parts together costs less than writing them one by one.
SMALL = 1 << 16


class Journal:
    """An open journal: a new file where there is none; a torn last record is cut off."""

    def __init__(self, path: Path) -> None:
        self.path = path
        whole = _whole_bytes(path) if path.exists() else 0
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE)
        os.ftruncate(self._file, whole)
        if not whole:
            try:
                disk.write(self._file, MAGIC)
            except OSError:
                self.remove()
                raise

    def append(self, first: bytes, *rest: bytes, durable: bool = False) -> None:
        """Write one record at the end: its first part, and others that are kept apart from it and not copied.

        It is on the disk when this returns, if it is durable.
        """
        length = len(first) + sum(map(len, rest))
        head = HEAD.pack(length, len(first), _checksum(length, first, *rest))
        parts = [b"".join([head, first, *rest])] if length < SMALL else [head + first, *rest]
        before = os.fstat(self._file).st_size
        try:
            for part in parts:
                disk.write(self._file, part)
            if durable:
                disk.sync(self._file)
        except OSError:
            os.ftruncate(self._file, before)  # where the disk is full: the next record must not follow half of this one
            raise

    def sync(self) -> None:
        """Force what was appended to the disk."""
        disk.sync(self._file)

    def records(self) -> Iterator[tuple[memoryview, memoryview]]:
        """Read all records from the first: the first part of each, and all others in one."""
        return records_of(self.path)

    def compact(self, records: Iterable[bytes]) -> None:
        """Put other records in the place of all: the whole of them, or the old ones."""
        fresh = self.path.with_suffix(FRESH)
        fresh.unlink(missing_ok=True)
        replacement = Journal(fresh)
        try:
            for record in records:
                replacement.append(record)
            replacement.sync()
            disk.rename(fresh, self.path)
        except OSError:
            replacement.remove()
            raise
        os.close(self._file)
        self._file = replacement._file
        disk.sync_folder(self.path.parent)

    def close(self) -> None:
        """Close the file; it stays."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def remove(self) -> None:
        """Close the file and remove it."""
        self.close()
        disk.remove(self.path)


def records_of(path: Path) -> Iterator[tuple[memoryview, memoryview]]:
    """Read the records of a journal that another process may be writing to; nothing of it is changed."""
    return (record for record, _ in _scan(path))


def _scan(path: Path) -> Iterator[tuple[tuple[memoryview, memoryview], int]]:
    """Yield each whole record and where it ends."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        magic = file.read(len(MAGIC))
        if magic != MAGIC[: len(magic)]:
            raise _damaged(path, 0)
        while len(magic) == len(MAGIC):
            start = file.tell()
            head = file.read(HEAD.size)
            if len(head) < HEAD.size:
                return
            if not any(head):  # never written so: room that was made in the file before the power went
                return
            length, first, checksum = HEAD.unpack(head)
            end = start + HEAD.size + length
            if end > size:
                return
            record = memoryview(file.read(length))
            if checksum != _checksum(length, record[:first], record[first:]):
                if end < size:  # not the last one: no torn write does that
                    raise _damaged(path, start)
                return
            yield (record[:first], record[first:]), end


def _whole_bytes(path: Path) -> int:
    ends = [len(MAGIC) if path.stat().st_size >= len(MAGIC) else 0]
    ends.extend(end for _, end in _scan(path))
    return ends[-1]


def _damaged(path: Path, position: int) -> TransportError:
    return TransportError(
        f"The journal {path} is damaged at byte {position}: its run cannot be resumed. Remove the file and run again."
    )


def _checksum(length: int, first: Buffer, *rest: Buffer) -> int:
    checksum = zlib.crc32(length.to_bytes(8, "little"))
    checksum = zlib.crc32(len(memoryview(first)).to_bytes(8, "little"), checksum)
    for part in (first, *rest):
        checksum = zlib.crc32(part, checksum)
    return checksum
