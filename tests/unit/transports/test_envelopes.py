from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import colonnade as cn
from colonnade.protocol.asked import Asked
from colonnade.transports import envelopes
from colonnade.transports.envelopes import (
    FRAME_BYTES,
    LARGE,
    Answer,
    Ask,
    Ended,
    FromParty,
    FromServer,
    Goodbye,
    Join,
    Welcome,
    from_party,
    from_server,
    seal,
    whole,
)

MAX = 1 << 30
ASKED = Asked("fit", "regression", None, "saga", "0" * 64)
RUNS = st.from_regex(r"[a-z0-9-]{1,64}", fullmatch=True)
NUMBERS = st.integers(1, 1 << 40)
TO_SERVER: st.SearchStrategy[FromParty] = st.one_of(
    st.builds(Join, st.integers(0, 9), st.lists(RUNS, max_size=4).map(tuple)),
    st.builds(Answer, RUNS, NUMBERS, st.binary(max_size=100)),
)
TO_PARTY: st.SearchStrategy[FromServer] = st.one_of(
    st.builds(Welcome, st.text(max_size=9)),
    st.builds(Ask, RUNS, NUMBERS, st.sampled_from([None, ASKED]), st.binary(max_size=100)),
    st.builds(Ended, RUNS, st.sampled_from(["done", "failed"]), st.text(max_size=50)),
    st.builds(Goodbye, st.sampled_from(["done", "failed"]), st.text(max_size=50), st.integers(0, 255)),
)


@given(st.lists(TO_SERVER, max_size=4), st.lists(TO_PARTY, max_size=4))
def test_what_is_sealed_is_opened_again(ours: list[FromParty], theirs: list[FromServer]) -> None:
    assert list(from_party((frame for each in ours for frame in seal(each).frames()), "bank", MAX)) == ours
    assert list(from_server((frame for each in theirs for frame in seal(each).frames()), MAX)) == theirs


@given(TO_SERVER, TO_PARTY)
def test_what_travels_in_one_piece_is_opened_again(ours: FromParty, theirs: FromServer) -> None:
    assert list(from_party(iter([whole(ours)]), "bank", MAX)) == [ours]
    assert list(from_server(iter([whole(theirs)]), MAX)) == [theirs]


@given(st.lists(st.binary(max_size=60), max_size=3))
def test_any_bytes_are_an_envelope_or_an_error(frames: list[bytes]) -> None:
    for opened in (from_party(iter(frames), "bank", 1000), from_server(iter(frames), 1000)):
        with suppress(cn.RemoteProtocolError):
            assert all(isinstance(envelope, FromParty | FromServer) for envelope in opened)


@pytest.mark.parametrize("room", [LARGE, 64 * LARGE])
@pytest.mark.parametrize("size", [LARGE - 1, LARGE, LARGE + 1, 3 * LARGE, 7 * LARGE + 5])
def test_large_payloads_travel_in_pieces(size: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envelopes, "ROOM", room)
    payload = bytes(range(256)) * (size // 256 + 1)
    answer = Answer("fit-1", 7, payload[:size])
    frames = list(seal(answer).frames())
    assert max(map(len, frames)) <= FRAME_BYTES
    assert list(from_party(iter(frames), "bank", MAX)) == [answer]


def test_no_more_is_taken_than_is_allowed_or_was_announced() -> None:
    head, *pieces = seal(Answer("fit-1", 7, bytes(2 * LARGE))).frames()
    for frames, most, message in (
        ([head, *pieces], 2 * LARGE - 1, "announced 2,097,152 bytes; the limit is 2,097,151"),
        ([head, *pieces[:1]], MAX, "in the middle of a message"),
        ([head, *pieces[:1], pieces[1] + b"x"], MAX, "sent more than the 2,097,152 bytes"),
    ):
        with pytest.raises(cn.RemoteProtocolError, match=message):
            list(from_party(iter(frames), "bank", most))


@pytest.mark.parametrize("run", ["", "../x", "A", "a/b", "a" * 65, "a.b"])
def test_a_run_cannot_name_a_path(run: str) -> None:
    with pytest.raises(cn.RemoteProtocolError, match="are no envelope"):
        list(from_server(seal(Ended(run, "done", "")).frames(), MAX))
