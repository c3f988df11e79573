"""What a party's journal holds of a run: what it is for, each request with its reply, or with the reply's checksum."""

import zlib
from collections.abc import Iterator

import msgspec

from colonnade.node.journal import Journal
from colonnade.protocol.asked import Asked


class Opened(msgspec.Struct, array_like=True, tag=True):
    """The first record."""

    asked: Asked | None


class Answered(msgspec.Struct, array_like=True, tag=True):
    """A request and its reply; a large reply is only in memory, and is made again after a restart."""

    number: int
    request: bytes
    reply: bytes | None


class Checked(msgspec.Struct, array_like=True, tag=True):
    """The checksum of a reply that is not kept, or no longer."""

    number: int
    checksum: int


Entry = Opened | Answered | Checked
_decoder: msgspec.msgpack.Decoder[Entry] = msgspec.msgpack.Decoder(Entry)


def entries(journal: Journal) -> Iterator[Entry]:
    """Read a journal from its first record."""
    return (_decoder.decode(record) for record, _ in journal.records())


def write(journal: Journal, entry: Entry) -> None:
    """Append a record."""
    journal.append(msgspec.msgpack.encode(entry))


def checked(number: int, reply: bytes) -> Checked:
    """Give the record that takes a reply's place."""
    return Checked(number, zlib.crc32(reply))


def is_as_before(reply: bytes, entry: Entry) -> bool:
    """Tell whether a reply that was made again is what the journal has of it."""
    if isinstance(entry, Checked):
        return entry.checksum == zlib.crc32(reply)
    return not isinstance(entry, Answered) or entry.reply in (None, reply)


def compacted(journal: Journal, last: int) -> Iterator[bytes]:
    """Keep what rebuilds the state, and only the last reply."""
    for entry in entries(journal):
        if isinstance(entry, Answered) and entry.reply is not None and entry.number != last:
            yield msgspec.msgpack.encode(Answered(entry.number, entry.request, None))
            yield msgspec.msgpack.encode(checked(entry.number, entry.reply))
        else:
            yield msgspec.msgpack.encode(entry)


def earlier_reply(journal: Journal, number: int, request: bytes) -> bytes | None:
    """Find the reply to a request of this phase that comes again: a server whose machine lost its power is behind."""
    for entry in entries(journal):
        if isinstance(entry, Answered) and entry.number == number and entry.request == request:
            return entry.reply
    return None
