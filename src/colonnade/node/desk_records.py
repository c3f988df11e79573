"""What a party's journal holds of a run: each request with its reply, or with the reply's checksum."""

import hashlib
import zlib
from collections.abc import Iterator

import msgspec

from colonnade.errors import LocalProtocolError
from colonnade.node.journal import Journal
from colonnade.transports.envelopes import Ask


# A record keeps the tag that it had in the first journals: a party reads its unfinished runs again after an update.
class OpeningRecord(msgspec.Struct, array_like=True, tag="Begun"):
    """The first record: what no other run of this party has."""

    run_nonce: bytes


class AnswerRecord(msgspec.Struct, array_like=True, tag="Answered"):
    """A request and its reply; a large reply is only in memory, and is made again after a restart."""

    number: int
    request: bytes
    reply: bytes | None


class ChecksumRecord(msgspec.Struct, array_like=True, tag="Checked"):
    """The checksum of a reply that is not kept, or no longer."""

    number: int
    checksum: int


Record = OpeningRecord | AnswerRecord | ChecksumRecord
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


def read_records(journal: Journal) -> Iterator[Record]:
    """Read a journal from its first record."""
    try:
        for encoded, _ in journal.records():
            yield _decoder.decode(encoded)
    except msgspec.ValidationError as error:
        raise LocalProtocolError("its journal of this run was begun by another version of Colonnade.") from error


def write_record(journal: Journal, record: Record, *, durable: bool = False) -> None:
    """Append a record."""
    journal.append(msgspec.msgpack.encode(record), durable=durable)


def checksum_record(number: int, reply: bytes) -> ChecksumRecord:
    """Give the record that takes a reply's place."""
    return ChecksumRecord(number, zlib.crc32(reply))


def is_same_reply(reply: bytes, record: Record) -> bool:
    """Tell whether a reply that was made again is what the journal has of it."""
    if isinstance(record, ChecksumRecord):
        return record.checksum == zlib.crc32(reply)
    return not isinstance(record, AnswerRecord) or record.reply in (None, reply)


def compacted_records(journal: Journal, first: int) -> Iterator[bytes]:
    """Keep what rebuilds the state, and replies from this number on."""
    for record in read_records(journal):
        if isinstance(record, AnswerRecord) and record.reply is not None and record.number < first:
            yield msgspec.msgpack.encode(AnswerRecord(record.number, record.request, None))
            yield msgspec.msgpack.encode(checksum_record(record.number, record.reply))
        else:
            yield msgspec.msgpack.encode(record)


def earlier_reply(journal: Journal, number: int, request: bytes) -> bytes | None:
    """Find the reply to a request of this phase that comes again: a server whose machine lost its power is behind."""
    for record in read_records(journal):
        if isinstance(record, AnswerRecord) and record.number == number and record.request == request:
            return record.reply
    return None


def request_digest(run_nonce: bytes, ask: Ask) -> str:
    """Know a request by its run, which a server cannot have twice, whatever name it gives it."""
    return hashlib.sha256(run_nonce + ask.number.to_bytes(8) + ask.payload).hexdigest()
