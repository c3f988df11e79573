"""A journal: an append-only file of checksummed records that survives the death of its process at any byte.

What was written is with the operating system when `append` returns, so killing the process loses nothing; the last
record may be torn, and is then dropped. It is not forced to the disk: a machine that loses its power may lose the run,
which then has to be started anew, but never gets a wrong one. Only its owner can read the file: it holds whatever was
disclosed.
"""

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from colonnade.errors import TransportError

MAGIC = b"colonnade journal 1\n"
HEAD = struct.Struct("<QI")  # length of the record, checksum of length and record
PRIVATE = 0o600


class Journal:
    """An open journal.

    Parameters
    ----------
    path : Path
        The file. A new one is made where there is none; a torn last record is cut off.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from colonnade.transports.journal import Journal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Journal(pathlib.Path(folder) / "a.journal").append(b"first")
    ...     [bytes(record) for record in Journal(pathlib.Path(folder) / "a.journal").records()]
    [b'first']
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        whole = _whole_bytes(path) if path.exists() else 0
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE)
        os.ftruncate(self._file, whole)
        if not whole:
            _write(self._file, MAGIC)

    def append(self, record: bytes) -> None:
        """Write one record at the end."""
        head = HEAD.pack(len(record), _checksum(record))
        if len(record) < 1 << 16:
            _write(self._file, head + record)
        else:  # a large one is not copied for the sake of its head
            _write(self._file, head)
            _write(self._file, record)

    def records(self) -> Iterator[bytes]:
        """Read all records from the first."""
        return (record for record, _ in _scan(self.path))

    def compact(self, records: Iterable[bytes]) -> None:
        """Put other records in the place of all: the whole of them, or the old ones."""
        fresh = self.path.with_suffix(".fresh")
        fresh.unlink(missing_ok=True)
        replacement = Journal(fresh)
        for record in records:
            replacement.append(record)
        os.close(self._file)
        fresh.rename(self.path)
        self._file = replacement._file

    def close(self) -> None:
        """Close the file; it stays."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def remove(self) -> None:
        """Close the file and remove it."""
        self.close()
        self.path.unlink(missing_ok=True)


def _scan(path: Path) -> Iterator[tuple[bytes, int]]:
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
            length, checksum = HEAD.unpack(head)
            end = start + HEAD.size + length
            if end > size:
                return
            record = file.read(length)
            if checksum != _checksum(record):
                if end < size:  # not the last one: no torn write does that
                    raise _damaged(path, start)
                return
            yield record, end


def _whole_bytes(path: Path) -> int:
    ends = [len(MAGIC) if path.stat().st_size >= len(MAGIC) else 0]
    ends.extend(end for _, end in _scan(path))
    return ends[-1]


def _damaged(path: Path, position: int) -> TransportError:
    return TransportError(
        f"The journal {path} is damaged at byte {position}: its run cannot be resumed. Remove the file and run again."
    )


def _checksum(record: bytes) -> int:
    return zlib.crc32(record, zlib.crc32(len(record).to_bytes(8, "little")))


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
