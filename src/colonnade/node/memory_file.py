"""What a party remembers from run to run, in a file of its state folder: forced to the disk before a reply leaves."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from colonnade.disk import sync_folder
from colonnade.errors import InputError, TransportError
from colonnade.node.journal import Journal, records_of
from colonnade.protocol.memory import Note

MEMORY = "memory.notes"
_decoder: msgspec.msgpack.Decoder[Note] = msgspec.msgpack.Decoder(Note)


def notes_in(path: Path) -> frozenset[Note]:
    """Read what a party remembers, while it may be running; what cannot be read is left out."""
    try:
        return frozenset(_decoder.decode(first) for first, _ in records_of(path))
    except (OSError, TransportError, msgspec.MsgspecError):
        return frozenset()


class KeptInFile:
    """A memory that outlives the process."""

    def __init__(self, path: Path) -> None:
        try:
            self._journal = Journal(path)
            self._notes: set[Note] = {_decoder.decode(first) for first, _ in self._journal.records()}
        except (TransportError, msgspec.MsgspecError) as error:
            raise InputError(
                f"{path} is damaged, and the party no longer knows what it has told: {error} Restore it from a copy; "
                "without it, servers could ask for sums that tell of single rows beside those that were told."
            ) from error
        sync_folder(path.parent)

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
