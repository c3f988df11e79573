"""Bytes from anyone: codec, envelopes and a party's session answer them or say no, and never break or grow.

Ten million in the slow form, some tens of thousands always. Half are golden messages with a few bytes changed, cut or
doubled; the others are such as msgpack decodes to something of a wrong shape.
"""

import gc
import random
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec, party_session
from colonnade.errors import RemoteProtocolError
from colonnade.messages import Message
from colonnade.privacy.identities import identities_here
from colonnade.protocol.hello import WIRE_VERSION
from colonnade.transports.envelopes import (
    Answer,
    Ask,
    Goodbye,
    Join,
    RunEnd,
    Welcome,
    encode_in_one_piece,
    from_party,
    from_server,
)

GOLDEN = Path(__file__).parents[1] / "golden" / f"wire_v{WIRE_VERSION}.txt"
MESSAGES = [bytes.fromhex(line.rpartition(": ")[2]) for line in GOLDEN.read_text().splitlines()]
ENVELOPES = [
    encode_in_one_piece(each)
    for each in (
        Join(2, ("fit-0123",)),
        Answer("fit-0123", 3, MESSAGES[0]),
        Answer("fit-0123", 3, b"", 1 << 21),
        Ask("fit-0123", 3, MESSAGES[1]),
        Welcome("bank"),
        RunEnd("fit-0123", "done", ""),
        Goodbye("failed", "a reason", 4),
    )
]
SEEDS = [*MESSAGES, *ENVELOPES]
# Small enough that what is decoded is small, and each answer quick.
TABLE = np.random.default_rng(0).normal(size=(12, 2))
KEPT = 2_000_000


def changed(rng: random.Random) -> bytes:
    """Change a golden message: bytes, its end, or a part that is there twice."""
    data = bytearray(rng.choice(SEEDS))
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(data))
        end = rng.randint(at, len(data))
        match rng.randrange(4):
            case 0 if at < len(data):
                data[at] = rng.randrange(256)
            case 1:
                del data[at:end]
            case 2:
                data[at:at] = data[at:end]
            case _:
                data[at:end] = rng.randbytes(min(end - at, 8))
    return bytes(data)


NAMES = [msgspec.msgpack.decode(seed)[0] for seed in SEEDS]
ODD: list[object] = [None, True, -1, 0, 2**63, 2**64 - 1, 0.0, -0.0, 1e308, float("nan"), float("inf"), "", "a" * 40]
ODD += [b"", b"\xff" * 40, [], {}, [[]], {"a": 1}, [None] * 9, msgspec.msgpack.Ext(1, b"\x00\x01\x02")]


def shaped(rng: random.Random) -> bytes:
    """Make a message of a known kind with fields of any type."""
    return msgspec.msgpack.encode([rng.choice(NAMES), *rng.choices(ODD, k=rng.randrange(8))])


def inputs(seed: int, count: int) -> Iterator[bytes]:
    rng = random.Random(seed)  # noqa: S311  # no secret
    for number in range(count):
        yield changed(rng) if number % 2 else shaped(rng)


def decoded() -> Callable[[bytes], object]:
    known = codec()
    return lambda data: known.decode(data, party="x")


def answered() -> Callable[[bytes], object]:
    """Let a session answer what decodes, in the middle of a run and before any."""
    people = identities_here({"a": None, "b": None}, lambda size: bytes(size))
    party, known = cn.Party("a", TABLE[:, :1], label=TABLE[:, 1]), codec()
    opened = party_session(party.table, cn.Policy(), people["a"])

    def answer(data: bytes) -> object:
        request = known.decode(data, party="x")
        for session in (opened.greeted(b"n"), party_session(party.table, cn.Policy(), people["a"])):
            reply = session.answer(request)
            assert isinstance(reply, Message)
            known.encode(reply)
        return reply

    return answer


READERS: dict[str, Callable[[], Callable[[bytes], object]]] = {
    "codec": decoded,
    "session": answered,
    "envelopes of a party": lambda: lambda data: list(from_party(iter([data, data]), "x", 1 << 22)),
    "envelopes of the server": lambda: lambda data: list(from_server(iter([data, data]), 1 << 22)),
}


def read_all(read: Callable[[bytes], object], seed: int, count: int) -> int:
    """Read many; give how many were something. Whatever else than our own error is raised ends the test."""
    something = 0
    for data in inputs(seed, count):
        try:
            read(data)
        except RemoteProtocolError:
            continue
        something += 1
    return something


@pytest.mark.parametrize("reader", READERS)
def test_nothing_breaks_on_any_bytes(reader: str) -> None:
    read_all(READERS[reader](), 0, 10_000)


def test_memory_stays_flat() -> None:
    """What was read is forgotten: four thousand more leave next to nothing behind."""
    readers = [make() for make in READERS.values()]
    for read in readers:
        read_all(read, 1, 600)
    tracemalloc.start()
    try:
        for read in readers:
            read_all(read, 2, 300)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for read in readers:
            read_all(read, 3, 1_000)
        gc.collect()
        after, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < KEPT / 4
    assert most - before < 32 * KEPT, "nor is much taken in between"


SHARES = {"codec": 500_000, "session": 100_000, "envelopes of a party": 200_000, "envelopes of the server": 200_000}


@pytest.mark.slow(sampled=False)
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("reader", SHARES)
def test_nothing_breaks_on_ten_million(reader: str, part: int) -> None:
    read_all(READERS[reader](), 100 + part, SHARES[reader])
