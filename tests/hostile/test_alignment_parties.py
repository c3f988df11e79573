"""Parties that lie while records are matched, in one process: each is named, or nothing is kept."""

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

import colonnade as cn
from alignment_trial import frames, parties
from colonnade.alignment.aided import Pseudonyms
from colonnade.alignment.clear import KeysInClear
from colonnade.alignment.curve import Points, _statement
from colonnade.alignment.meeting import KeyCard
from colonnade.alignment.settling import AlignmentKept, Matched
from colonnade.alignment.shared_secret import DealtSecret, ShareKey, _own_key, aligning, this_alignment
from colonnade.catalogue import codec
from colonnade.kernels.ristretto import multiplied
from colonnade.messages import Message
from secure_trial import Wire

KEYS = [range(100), range(5, 105), range(2, 102)]


def lying(party: str, kind: type[Message], lie: Callable[[Any, Any], Message]) -> Wire:
    """Let a party say something else; it may sign it."""

    def meddle(sender: str, _receiver: str, data: bytes) -> bytes:
        message = codec().decode(data)
        return codec().encode(lie(message, wire.sessions[party])) if sender == party and type(message) is kind else data

    wire = Wire(meddle)
    return wire


def signed_points(session: Any, points: bytes) -> Points:
    """Sign other points than its own, as hop 0."""
    identity = session._data.identity
    return Points(points, identity.sign(_statement(session.state, identity.name, identity.name, 0, 0, points)))


def own_scalar(number: int) -> bytes:
    return number.to_bytes(32, "little")


IDENTITY = bytes(32)
NO_POINT = b"\xff" * 32


@pytest.mark.parametrize("liar", ["party0", "party1"])
@pytest.mark.parametrize(
    ("points", "why"),
    [
        (lambda own: IDENTITY + own[32:], "{liar!r} sent what is no point of the group"),
        (lambda own: own[:-32] + NO_POINT, "{liar!r} sent what is no point of the group"),
        (lambda own: (1).to_bytes(32, "little") + own[32:], "{liar!r} sent what is no point of the group"),
        (lambda own: own[:32] * (len(own) // 32), "'?{liar}'? .*a point twice"),
        (lambda own: own[:-32], "'{liar}'.* 3,168 bytes where 3,200 were asked for"),
        (lambda own: own + own[:32], "'{liar}'.* 3,232 bytes where 3,200 were asked for"),
        (lambda own: own[:-1], "'{liar}'.* 3,199 bytes where 3,200 were asked for"),
        (lambda _own: b"", "'{liar}'.* 0 bytes where 3,200 were asked for"),
    ],
)
def test_a_party_that_sends_no_points_is_named(liar: str, points: Callable[[bytes], bytes], why: str) -> None:
    wire = lying(liar, Points, lambda told, session: signed_points(session, points(told.points)))
    with pytest.raises(cn.ColonnadeError, match=why.format(liar=liar)):
        cn.Federation(parties(frames(KEYS)), align="curve", transport=wire)


def test_points_of_another_secret_match_nothing() -> None:
    """A party that multiplies its own list once more: it, and nobody else, has no common row. Nobody can tell who."""

    def lie(told: Any, session: Any) -> Message:
        return signed_points(session, multiplied(told.points, own_scalar(7)))

    with pytest.raises(cn.ColonnadeError, match=r"No key is at every party|did not sign"):
        cn.Federation(parties(frames(KEYS)), align="curve", transport=lying("party1", Points, lie))


@pytest.mark.parametrize(
    ("kind", "mode", "lie", "why"),
    [
        (Pseudonyms, "aided", lambda m: Pseudonyms(m.tokens[:-16]), "'party1'.* 1,584 bytes where 1,600"),
        (Pseudonyms, "aided", lambda m: Pseudonyms(m.tokens[:16] * 100), "'party1' listed a key twice"),
        (Pseudonyms, "aided", lambda _: Pseudonyms(secrets.token_bytes(1600)), "No key is at every party"),
        (KeysInClear, "clear", lambda m: replace(m, text=m.text[:-1]), "'party1'.*do not add up"),
        (KeysInClear, "clear", lambda m: replace(m, lengths=-m.lengths), "'party1'.*do not add up"),
        (KeysInClear, "clear", lambda m: replace(m, lengths=m.lengths[:5]), "'party1'"),
        (KeyCard, "aided", lambda m: replace(m, n_keys=0), "'party1'.* 0 keys of 100 rows"),
        (KeyCard, "aided", lambda m: replace(m, n_keys=101), "'party1'.* 101 keys of 100 rows"),
        (KeyCard, "aided", lambda m: replace(m, n_keys=2**40, n_rows=2**40), "'party1'.* keys of"),
        (
            KeyCard,
            "aided",
            lambda m: replace(m, party=replace(m.party, features=2**31)),
            "'party1'.* 2,147,483,648 columns",
        ),
        (ShareKey, "aided", lambda m: replace(m, key=bytes(32)), "'party1'"),
        (ShareKey, "aided", lambda m: replace(m, key=b""), "'party1'"),
        (ShareKey, "aided", lambda m: replace(m, signature=bytes(64)), "a key for 'party1' that 'party1' did not sign"),
        (Matched, "aided", lambda m: replace(m, digest=bytes(32)), "relayed a digest that 'party1' did not sign"),
        (Matched, "aided", lambda m: replace(m, digest=b""), "relayed a digest that 'party1' did not sign"),
        (DealtSecret, "aided", lambda _: DealtSecret((bytes(80), bytes(80))), "'party1'.* 2 sealed texts"),
        (AlignmentKept, "aided", lambda _: AlignmentKept(bytes(16)), "Parties kept different alignments"),
    ],
)
def test_a_party_that_lies_is_named_or_nothing_is_kept(
    kind: type[Message], mode: Any, lie: Callable[[Any], Message], why: str
) -> None:
    with pytest.raises(cn.ColonnadeError, match=why):
        cn.Federation(parties(frames(KEYS)), align=mode, transport=lying("party1", kind, lambda m, _: lie(m)))


def dealt(session: Any, texts: Sequence[bytes]) -> DealtSecret:
    """Seal a text to each other party."""
    state, secret = session.state, _own_key(session.state, session._data)
    keys, run = [each.key for each in aligning(state).keys], this_alignment(state)
    return DealtSecret(tuple(secret.encrypt_for(text, place, keys, run) for place, text in enumerate(texts, start=1)))


@pytest.mark.parametrize("mode", ["clear", "aided", "curve"])
def test_a_dealer_of_different_secrets_gets_no_alignment(mode: Any) -> None:
    """Hashes, or the order, of one secret at one party and of another at the next: what they sign differs."""

    wire = lying("party0", DealtSecret, lambda _, session: dealt(session, [secrets.token_bytes(64) for _ in "12"]))
    with pytest.raises(cn.ColonnadeError, match=r"No key is at every party|were told different common keys"):
        cn.Federation(parties(frames(KEYS)), align=mode, transport=wire)
    assert all(session.state.aligned is None for session in wire.sessions.values())


def test_a_dealer_of_a_short_secret_is_named() -> None:
    wire = lying("party0", DealtSecret, lambda _, session: dealt(session, [b"x", b"x"]))
    with pytest.raises(cn.ColonnadeError, match="'party0' dealt a secret of 1 bytes"):
        cn.Federation(parties(frames(KEYS)), align="aided", transport=wire)
