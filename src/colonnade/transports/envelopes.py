"""What wraps a message between machines: which run, which number; and who says that a run, or the server, is done.

Bytes may come from anyone: what decodes has every field of its type and within its bounds, anything else is a
`RemoteProtocolError`. The message itself stays bytes here.
"""

from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np

from colonnade.errors import RemoteProtocolError

ENVELOPE_VERSION = 2
# Run ids name files at the other end, so they are letters, digits and dashes, without a line's end.
RunId = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]{1,64}\Z")]
Number = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Reason = Annotated[str, msgspec.Meta(max_length=2000)]
Status = Literal["done", "failed"]
Size = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
# Payloads from this size on travel in pieces of it, so that one end copies and the other reads while the line is busy.
LARGE = 1 << 20
# No piece is heavier: of a large payload, or an envelope with a payload that is not large.
MAX_PIECE_BYTES = LARGE + (1 << 16)
# A large payload is given room for so many bytes at first.
ROOM = 64 << 20
E = TypeVar("E")


class Join(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """A party's first words: the version it speaks, and the runs it is in the middle of. Not its name."""

    version: int
    runs: Annotated[tuple[RunId, ...], msgspec.Meta(max_length=1000)]


class Answer(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """A party's reply to one request. Of a large one only the size is here; it follows in pieces."""

    run: RunId
    number: Number
    payload: bytes
    follows: Size = 0


class OwnerAsked(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """A request that the party's owner has to approve: its answer comes later."""

    run: RunId
    number: Number


class Ask(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """One request, large ones like answers."""

    run: RunId
    number: Number
    payload: bytes
    follows: Size = 0


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """The server's first words: the line is up, and this is who its certificate says the party is."""

    name: str


class RunEnd(msgspec.Struct, frozen=True, array_like=True, tag="Ended", forbid_unknown_fields=True):
    """A run is over: the same status and reason for all."""

    run: RunId
    status: Status
    reason: Reason


class Goodbye(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """The server closes: with what it had to do done, or not. `code` is its exit code."""

    status: Status
    reason: Reason
    code: Annotated[int, msgspec.Meta(ge=0, le=255)]


FromParty = Join | Answer | OwnerAsked
FromServer = Welcome | Ask | RunEnd | Goodbye

_encoder = msgspec.msgpack.Encoder()
_from_party: msgspec.msgpack.Decoder[FromParty] = msgspec.msgpack.Decoder(FromParty)
_from_server: msgspec.msgpack.Decoder[FromServer] = msgspec.msgpack.Decoder(FromServer)


class EncodedEnvelope(NamedTuple):
    """An envelope ready to be sent, as often as need be."""

    head: bytes
    payload: bytes = b""

    def pieces(self) -> Iterator[bytes]:
        """Give its bytes in the order they travel."""
        yield self.head
        for start in range(0, len(self.payload), LARGE):
            yield self.payload[start : start + LARGE]


def encode(envelope: FromParty | FromServer) -> EncodedEnvelope:
    """Turn an envelope into bytes that travel in pieces."""
    if isinstance(envelope, Ask | Answer) and len(envelope.payload) >= LARGE:
        head = msgspec.structs.replace(envelope, payload=b"", follows=len(envelope.payload))
        return EncodedEnvelope(_encoder.encode(head), envelope.payload)
    return EncodedEnvelope(_encoder.encode(envelope))


def encode_in_one_piece(envelope: FromParty | FromServer) -> bytes:
    """Turn an envelope into bytes, for platforms that cut large messages up themselves."""
    return _encoder.encode(envelope)


def from_party(pieces: Iterator[bytes], party: str, max_bytes: int) -> Iterator[FromParty]:
    """Read what a party sends, no payload larger than this."""
    return _decoded(pieces, _from_party, party, max_bytes)


def from_server(pieces: Iterator[bytes], max_bytes: int) -> Iterator[FromServer]:
    """Read what the server sends, no payload larger than this."""
    return _decoded(pieces, _from_server, "the server", max_bytes)


def _decoded(
    pieces: Iterator[bytes], decoder: "msgspec.msgpack.Decoder[E]", sender: str, max_bytes: int
) -> Iterator[E]:
    for data in pieces:
        try:
            envelope = decoder.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise _stray(data, sender, error) from error
        if isinstance(envelope, Ask | Answer) and envelope.follows:
            payload = _collected(pieces, envelope.follows, sender, max_bytes)
            envelope = msgspec.structs.replace(envelope, payload=payload, follows=0)
        yield envelope


def _collected(pieces: Iterator[bytes], size: int, sender: str, max_bytes: int) -> memoryview:
    if size > max_bytes:
        raise RemoteProtocolError(f"{sender} announced {size:,} bytes; the limit is {max_bytes:,}.", party=sender)
    # NumPy asks for memory in large pages. It grows with what really comes, not with what was announced.
    payload, filled = np.empty(min(size, ROOM), np.uint8), 0
    while filled < size:
        piece = next(pieces, b"") or _cut_off(sender)
        if filled + len(piece) > size:
            raise RemoteProtocolError(f"{sender} sent more than the {size:,} bytes it announced.", party=sender)
        if filled + len(piece) > len(payload):
            payload = np.concatenate([payload, np.empty(min(size - len(payload), len(payload)), np.uint8)])
        payload.data[filled : filled + len(piece)] = piece
        filled += len(piece)
    return payload.data


def _cut_off(sender: str) -> bytes:
    raise RemoteProtocolError(f"{sender} ended, or sent nothing, in the middle of a message.", party=sender)


def _stray(data: bytes, sender: str, error: Exception) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"{len(data):,} bytes from {sender} are not an envelope: {error}. "
        "Check that both ends run compatible versions.",
        party=sender,
    )
