"""What reaches the server while records are matched: recorded, and searched for keys."""

import hashlib
from collections.abc import Iterator
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
import pandas as pd
import pytest

import colonnade as cn
from alignment_trial import LABEL
from colonnade.alignment.aided import Pseudonyms
from colonnade.alignment.clear import KeysInClear
from colonnade.alignment.curve import Points
from colonnade.alignment.settling import TellMatches
from colonnade.alignment.shared_secret import Aligning
from colonnade.catalogue import codec
from colonnade.disclosure import MEANINGS
from colonnade.kernels.ristretto import hashed_to_points
from colonnade.messages import Reveals
from secure_trial import Recording, forms_of

N = 64
NAMES = [f" Person-{number:04}@Example.org" for number in range(N)]
WIDTH = {"aided": 16, "curve": 32}


def tables(seed: int = 0) -> dict[str, pd.DataFrame]:
    """Half of the rows at both; nothing else than keys has as many bytes."""
    rng = np.random.default_rng(seed)
    first, second = NAMES[: 3 * N // 4], NAMES[N // 4 :]
    return {
        "bank": pd.DataFrame({"id": first, "x": rng.normal(size=len(first)), LABEL: rng.normal(size=len(first))}),
        "shop": pd.DataFrame({"id": second, "x": rng.normal(size=len(second))}),
    }


def aligned(mode: Any, frames: dict[str, pd.DataFrame]) -> tuple[Recording, cn.Federation]:
    wire = Recording()
    parties = [
        cn.Party(name, table, key="id", label=LABEL if LABEL in table else None) for name, table in frames.items()
    ]
    return wire, cn.Federation(parties, align=mode, transport=wire)


def hashes(text: bytes) -> Iterator[bytes]:
    """Hash as somebody might who compares plain hashes."""
    for name in ("sha256", "sha1", "md5", "sha512", "blake2s", "blake2b", "sha3_256"):
        yield hashlib.new(name, text).digest()
    for size in (8, 16, 32, 64):
        yield hashlib.blake2b(text, digest_size=size).digest()
        yield hashlib.blake2b(text, digest_size=size, key=bytes(32)).digest()


def guesses(frames: dict[str, pd.DataFrame]) -> Iterator[bytes]:
    """Write keys, and columns of keys, as they must not travel: as they are, and hashes, with lengths or not."""
    for frame in frames.values():
        raw = [name.encode() for name in frame["id"]]
        normal = [name.strip().lower() for name in raw]
        for text in (*raw, *normal, b"".join(normal), b"".join(raw)):
            prefixed = len(text).to_bytes(8, "little") + text
            for each in (text, prefixed):
                yield each
                for digest in hashes(each):
                    yield digest[:16]
                    yield digest.hex()[:16].encode()
                yield hashed_to_points(hashlib.sha512(each).digest())
    for party in (cn.Party(name, frame[["id", "x"]], key="id") for name, frame in frames.items()):
        assert party.table.keys is not None
        yield party.table.keys.values.digest()


@pytest.mark.parametrize("mode", ["aided", "curve"])
def test_no_key_and_no_plain_hash_of_one_reaches_the_server(mode: str) -> None:
    wire, _ = aligned(mode, tables())
    heard = b"\n".join(wire.received + wire.sent)
    assert len(heard) > 2 * 48 * WIDTH[mode]
    assert not [text for text in guesses(tables()) if text in heard]


def test_the_search_finds_keys_in_the_clear() -> None:
    wire, _ = aligned("clear", tables())
    heard = b"\n".join(wire.received)
    assert sum(name.strip().lower().encode() in heard for name in NAMES) == N


def test_a_digest_of_a_column_of_keys_is_told_only_where_rows_are_not_aligned() -> None:
    same = {name: table.assign(id=NAMES[: len(table)]) for name, table in tables().items()}
    digests = [text for text in guesses(same) if len(text) == 32][-1:]
    exact, aided = (b"\n".join(aligned(mode, same)[0].received) for mode in ("exact", "aided"))
    assert digests[0] in exact
    assert digests[0] not in aided


def tokens(wire: Recording, width: int) -> list[bytes]:
    lists = [
        message.tokens if isinstance(message, Pseudonyms) else message.points
        for message in wire.replies()
        if isinstance(message, Pseudonyms | Points)
    ]
    return [listed[start : start + width] for listed in lists for start in range(0, len(listed), width)]


@pytest.mark.parametrize("mode", ["aided", "curve"])
def test_no_token_is_in_two_alignments(mode: str) -> None:
    """Also of the same federation's parties, by the same sheet."""
    frames = tables()
    found = [tokens(aligned(mode, frames)[0], WIDTH[mode]) for _ in range(3)]
    assert all(len(each) >= 2 * 48 for each in found)
    assert not any(set(first) & set(second) for first, second in [*pairwise(found), (found[0], found[2])])


def test_a_list_is_multiplied_in_the_order_it_came_in_and_no_point_is_told_twice() -> None:
    wire, federation = aligned("curve", tables())
    own = [message for message in wire.replies() if isinstance(message, Points)]
    every = tokens(wire, 32)
    # Both lists at the end have the common rows: the only points that are told twice.
    assert federation.alignment is not None
    assert len(every) - len(set(every)) == federation.alignment.matched == N // 2
    assert len(own) == 4


def common_of(frames: dict[str, pd.DataFrame]) -> pd.Series:
    return frames["bank"]["id"].isin(frames["shop"]["id"])


@pytest.mark.parametrize("mode", ["clear", "aided", "curve"])
def test_the_order_of_a_list_tells_nothing_of_the_tables_order(mode: str) -> None:
    """The common rows are the last ones of the bank's table; in its list they are anywhere.

    Of 48 places, 32 of them common, the first 16 have few common ones: none in the order of the table; at random fewer
    than 3 happen with a probability of 2e-6 an alignment, which is the rate of false alarms (twice that with the other
    end of the list).
    """
    frames = tables()
    assert not common_of(frames)[:16].any()
    wire, _ = aligned(mode, frames)
    marks = tell_matches(wire)[48]
    false_alarm = sum(comb(32, k) * comb(16, 16 - k) for k in range(3)) / comb(48, 16)
    assert false_alarm < 2e-6
    assert marks[:16].sum() >= 3
    assert marks[-16:].sum() >= 3
    assert marks.sum() == 32


def tell_matches(wire: Recording) -> dict[int, Any]:
    asked = [message for data in wire.sent if isinstance(message := codec().decode(data), TellMatches)]
    return {len(message.common): message.common for message in asked}


def test_two_lists_of_one_table_are_in_different_orders() -> None:
    """Told in the clear, the same keys are in the same order with a probability of 1 / 48!."""
    orders = [
        [message.text for message in aligned("clear", tables())[0].replies() if isinstance(message, KeysInClear)]
        for _ in range(2)
    ]
    assert orders[0] != orders[1]
    assert sorted(orders[0][0]) == sorted(orders[1][0])


@pytest.mark.parametrize(
    ("mode", "told"),
    [("clear", {Reveals.KEYS}), ("aided", {Reveals.MATCHES}), ("curve", {Reveals.MATCHES})],
)
def test_the_ledger_says_what_was_told(mode: str, told: set[Reveals]) -> None:
    wire, _ = aligned(mode, tables())
    revealed = {kind for message in wire.replies() for kind in message.reveals()}
    assert revealed & {Reveals.KEYS, Reveals.MATCHES} == told
    assert MEANINGS.keys() >= revealed - {Reveals.NOTHING}


def test_secrets_and_keys_are_in_no_repr() -> None:
    wire, _ = aligned("curve", tables())
    session = wire.sessions["bank"]
    shown = repr(session._data) + repr(session.state) + repr(session._data.table)
    for name in NAMES:
        assert name.strip().lower() not in shown.lower()


def test_the_shared_secret_does_not_travel() -> None:
    """Nor in any form of it; a party that opened it has it in memory alone."""
    seen: list[bytes] = []

    class Spying(Recording):
        def exchange(self, outbox: Any) -> Any:
            inbox = super().exchange(outbox)
            for session in self.sessions.values():
                kept = session.state.secret
                if isinstance(kept, Aligning) and kept.shared:
                    seen.extend((kept.shared, kept.ordering))
            return inbox

    wire = Spying()
    parties = [
        cn.Party(name, table, key="id", label=LABEL if LABEL in table else None) for name, table in tables().items()
    ]
    cn.Federation(parties, align="aided", transport=wire)
    heard = b"\n".join(wire.received + wire.sent)
    assert len(set(seen)) == 2, "both parties have the same two"
    assert not [secret for secret in set(seen) for form in forms_of(secret) if form in heard]
