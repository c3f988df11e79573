"""What a party remembers from run to run, in a file of its state folder: forced to the disk before a reply leaves."""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, get_args

import msgspec

from colonnade.node.journal import Journal
from colonnade.protocol.memory import Note

MEMORY = "memory.notes"


class KeptInFile:
    """A memory that outlives the process."""

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path)
        decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(reduce(or_, get_args(Note)))
        self._notes: set[Note] = {decoder.decode(first) for first, _ in self._journal.records()}

    def notes(self) -> frozenset[Note]:
        """Give all of it."""
        return frozenset(self._notes)

    def keep(self, notes: Iterable[Note]) -> None:
        """Remember more, and see that it is on the disk."""
        fresh = [note for note in dict.fromkeys(notes) if note not in self._notes]
        for note in fresh:
            self._journal.append(msgspec.msgpack.encode(note))
        if fresh:
            self._journal.sync()
            self._notes.update(fresh)

    def close(self) -> None:
        """Close the file; it stays."""
        self._journal.close()
