import tracemalloc
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from colonnade.catalogue import codec, kinds
from colonnade.errors import InputError, RemoteProtocolError
from colonnade.evaluation.clustering import PartialDistances
from colonnade.evaluation.linear import PartialPredictions
from colonnade.evaluation.rounding import RoundedParts
from colonnade.kernels.arrays import Rows
from colonnade.kernels.row_ids import encode_row_ids
from colonnade.messages import Message, sendable_flags, sendable_floats, sendable_rows
from colonnade.protocol import codec as codec_module
from colonnade.protocol.codec import Codec
from colonnade.protocol.viewing import Split
from colonnade.sampling.plain.messages import AskScores, DrawnRows, Scores, Total
from colonnade.sampling.selecting import UseRows
from colonnade.signing import SignedRows
from colonnade.solvers.central import Columns
from strategies import MESSAGES, any_message

CODEC = codec()


def survives_the_wire(message: Message) -> None:
    data = CODEC.encode(message)
    again = CODEC.decode(data)
    assert type(again) is type(message)
    assert CODEC.encode(again) == data
    for name in message.__struct_fields__:
        before, after = getattr(message, name), getattr(again, name)
        if isinstance(before, np.ndarray):
            assert after.dtype == before.dtype
            assert after.shape == before.shape
            assert after.tobytes() == before.tobytes(), "bit for bit, NaN payloads and signed zeros included"
            assert after.flags.aligned
            assert after.flags.c_contiguous
            assert not after.flags.writeable


# Lengths at which MessagePack's headers change: 1, 2, 4, 8 and 16 bytes have their own, 2^8 and 2^16 longer ones.
EDGES = [0, 1, 2, 3, 4, 15, 16, 30, 31, 32, 33, 255, 256, 257, 1983, 1984, 1985, 8190, 8191, 8192, 8193, 65535, 65536]


@pytest.mark.parametrize("length", [*EDGES, 524_222, 524_223, 524_224, 524_288])
def test_a_message_is_as_large_as_measured(length: int) -> None:
    vector, marks = sendable_floats(np.ones(length)), sendable_flags(np.ones(length, bool))
    rows = sendable_rows(np.arange(length)), sendable_rows(np.arange(length) % 7), sendable_rows([-1] * length)
    messages = [
        PartialPredictions(vector, None),
        PartialDistances(vector.reshape(length, 1)),
        PartialDistances(vector.reshape(1, length)),
        Split(marks, bytes(length % 300)),
        RoundedParts(length, vector, bytes(length), 1.0),
        *map(UseRows, rows),
    ]
    assert CODEC.sizes(messages) == [len(CODEC.encode(each)) for each in messages]


def test_a_message_that_is_too_large_is_refused_unmade() -> None:
    small, message = Codec(kinds(), max_bytes=100), PartialPredictions(sendable_floats(np.ones(20)), None)
    for measure in (lambda each: small.sizes([each]), small.encode):
        with pytest.raises(InputError, match=r"would take 184 bytes; the limit is 100"):
            measure(message)


@given(any_message)
def test_round_trip(message: Message) -> None:
    survives_the_wire(message)


@pytest.mark.parametrize("kind", sorted(MESSAGES, key=str), ids=lambda kind: kind.__name__)
@settings(max_examples=10)
@given(data=st.data())
def test_round_trip_of_every_kind(kind: type[Message], data: st.DataObject) -> None:
    message = data.draw(MESSAGES[kind])
    assert type(message) is kind
    assert CODEC.sizes([message, message]) == 2 * [len(CODEC.encode(message))]
    survives_the_wire(message)


def decodes_or_refuses(data: bytes) -> None:
    try:
        message = CODEC.decode(data, party="airline")
    except RemoteProtocolError:
        return
    assert type(message) in kinds()


@given(st.binary(max_size=200))
@example(b"")
@example(b"\x91" * 100_000)  # nested deeper than the stack
@example(b"\x92\xa5Total\xc0")
@example(b"\x93\xa9DrawnRows\xc7\x07\x02abcdefg\xc4\x00")  # seven bytes are no int64
@example(b"\x93\xa9DrawnRows\xc7\x08\x01abcdefgh\xc4\x00")  # floats where row ids belong
@example(b"\x93\xa9DrawnRows\xc7\x08\x63abcdefgh\xc4\x00")  # no such array code
@example(b"\x93\xa7Columns\xc7\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xc0")  # 2^64 numbers in eight bytes
@example(b"\x93\xa7Columns\xc7\x03\x03abc\xc0")
@example(b"\x93\xa9DrawnRows\xdd\xff\xff\xff\xff")  # a list of 2^32 - 1
@example(b"\x92\xa5Total\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00")  # NaN decodes; the script refuses it
def test_any_bytes_give_a_message_or_a_remote_protocol_error(data: bytes) -> None:
    decodes_or_refuses(data)


@given(any_message, st.data())
def test_damaged_messages_give_a_message_or_a_remote_protocol_error(message: Message, data: st.DataObject) -> None:
    encoded = bytearray(CODEC.encode(message))
    position = data.draw(st.integers(0, len(encoded) - 1))
    if data.draw(st.booleans()):
        encoded[position] = data.draw(st.integers(0, 255))
    else:
        del encoded[position:]
    decodes_or_refuses(bytes(encoded))


@given(
    st.recursive(
        st.none() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_any_messagepack_value_gives_a_message_or_a_remote_protocol_error(value: object) -> None:
    decodes_or_refuses(msgspec.msgpack.encode(value))


HUGE_CLAIMS = [
    b"\x93\xa9DrawnRows\xc7\x07\x05\xff\xff\xff\x7f\x00\x00\x80\xc4\x00",  # 2^28 rows in one byte of gaps
    b"\x93\xa9DrawnRows\xc7\x0c\x05\x02\x00\x3e\xff\xff\xff\xff\xff\xff\xff\xff\x80\xc4\x00",  # a gap of 2^63
    b"\x93\xa9DrawnRows\xc7\x06\x06\xff\xff\xff\x7f\x01\x80\xc4\x00",  # 2^28 numbers in one byte
    b"\x93\xa9DrawnRows\xc7\x05\x06\xff\xff\xff\x7f\x00\xc4\x00",  # 2^28 numbers of no bits
    b"\x93\xa9DrawnRows\xdd\x7f\xff\xff\xff",
    b"\x93\xa9DrawnRows\xdf\x7f\xff\xff\xff",
    b"\x93\xa9DrawnRows\xc9\x7f\xff\xff\xff\x02",
    b"\x93\xa7Columns\xc7\x08\x03\xff\xff\xff\x7f\xff\xff\xff\x7f\xc0",
    b"\x96\xa4Card\x01\x05\xdd\x7f\xff\xff\xff\xc0\xc0",
    b"\xdd\x7f\xff\xff\xff",
    b"\xdb\x7f\xff\xff\xff",
]


@pytest.mark.parametrize("data", HUGE_CLAIMS)
def test_a_small_message_never_allocates_much(data: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(RemoteProtocolError):
        CODEC.decode(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize(
    "rows",
    [
        np.arange(100_000),
        np.full(100_000, 7),
        np.arange(0, 2**40, 2**24),
        np.arange(100_000) % 2,
        np.arange(9**5) % 999,
    ],
)
def test_decoding_allocates_in_proportion_to_the_bytes(rows: Any) -> None:
    data = CODEC.encode(DrawnRows(sendable_rows(rows), b"signature"))
    tracemalloc.start()
    CODEC.decode(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 260 * len(data) + 10_000


def test_what_a_party_drew_is_coded_once_however_many_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    coded: list[Rows] = []

    def counted(rows: Rows) -> bytes:
        coded.append(rows)
        return encode_row_ids(rows)

    monkeypatch.setattr(codec_module, "encode_row_ids", counted)
    draws = [SignedRows(f"party{i}", sendable_rows([i, i + 5]), bytes(64)) for i in range(10)]
    for each in draws:
        others = tuple(other for other in draws if other is not each)
        CODEC.encode(AskScores(20, others, 0.0, 1))
    assert len(coded) == 10
    changing = np.array([3, 4])
    before = CODEC.encode(DrawnRows(changing, bytes(64)))
    changing[1] = 5
    assert CODEC.encode(DrawnRows(changing, bytes(64))) != before


def test_both_directions_have_a_size_cap() -> None:
    small = Codec(kinds(), max_bytes=100)
    message = Scores(sendable_floats(np.arange(1000)))
    with pytest.raises(InputError, match=r"8,012 bytes; the limit is 100\. Ask for fewer rows"):
        small.encode(message)
    with pytest.raises(RemoteProtocolError, match="the limit is 100"):
        small.decode(CODEC.encode(message))


def test_an_error_quotes_no_more_than_a_few_words_of_the_peers() -> None:
    """Its text goes to logs and terminals: a message of a gigabyte with a kind of that length would be there."""
    for fields in (["x" * 100_000], ["Refused", "x" * 100_000, "no"]):
        with pytest.raises(RemoteProtocolError) as error:
            codec().decode(msgspec.msgpack.encode(fields))
        assert len(str(error.value)) < 500


def test_extra_fields_are_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="not a Colonnade message"):
        CODEC.decode(msgspec.msgpack.encode(["Total", 1.0, "more"]))


def test_a_kind_outside_the_set_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="not a Colonnade message"):
        Codec({Total}).decode(CODEC.encode(DrawnRows(sendable_rows([1]), b"")))


def test_an_array_without_a_wire_form_is_a_bug_that_shows() -> None:
    with pytest.raises(NotImplementedError, match="no wire form"):
        CODEC.encode(Columns(sendable_floats(np.ones((2, 2, 2))), None))
