"""What wraps a message between machines: which run, which number; and who says that a run, or the server, is done.

Bytes may come from anyone: what decodes has every field of its type and within its bounds, anything else is a
`RemoteProtocolError`. The message itself stays bytes here.
"""

from typing import Annotated, Literal

import msgspec

from colonnade.contracts import Asked
from colonnade.errors import RemoteProtocolError

ENVELOPE_VERSION = 1
# Run ids name files at the other end, so they are letters, digits and dashes.
RunId = Annotated[str, msgspec.Meta(pattern="^[a-z0-9-]{1,64}$")]
Number = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Reason = Annotated[str, msgspec.Meta(max_length=2000)]
Status = Literal["done", "failed"]
# An envelope is so much heavier than what it holds, at most.
ENVELOPE_BYTES = 1 << 16


class Join(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """A party's first words: the version it speaks, and the runs it is in the middle of. Not its name."""

    version: int
    runs: Annotated[tuple[RunId, ...], msgspec.Meta(max_length=1000)]


class Answer(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """A party's reply to one request."""

    run: RunId
    number: Number
    payload: bytes


class Ask(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """One request. The first of a run says what the run is for."""

    run: RunId
    number: Number
    asked: Asked | None
    payload: bytes


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """The server's first words: the line is up, and this is who its certificate says the party is."""

    name: str


class Ended(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """A run is over: the same status and reason for all."""

    run: RunId
    status: Status
    reason: Reason


class Goodbye(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """The server closes: with what it had to do done, or not. `code` is its exit code."""

    status: Status
    reason: Reason
    code: Annotated[int, msgspec.Meta(ge=0, le=255)]


FromParty = Join | Answer
FromServer = Welcome | Ask | Ended | Goodbye

_encoder = msgspec.msgpack.Encoder()
_from_party: msgspec.msgpack.Decoder[FromParty] = msgspec.msgpack.Decoder(FromParty)
_from_server: msgspec.msgpack.Decoder[FromServer] = msgspec.msgpack.Decoder(FromServer)


def seal(envelope: FromParty | FromServer) -> bytes:
    """Turn an envelope into bytes."""
    return _encoder.encode(envelope)


def open_from_party(data: bytes, party: str) -> FromParty:
    """Read what a party sent."""
    try:
        return _from_party.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _stray(data, party, error) from error


def open_from_server(data: bytes) -> FromServer:
    """Read what the server sent."""
    try:
        return _from_server.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _stray(data, "the server", error) from error


def _stray(data: bytes, sender: str, error: Exception) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"{len(data):,} bytes from {sender} are no envelope: {error}. Check that both ends run compatible versions.",
        party=sender,
    )
