from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import colonnade as cn
from colonnade.transports import envelopes
from colonnade.transports.envelopes import (
    LARGE,
    MAX_PIECE_BYTES,
    Answer,
    Ask,
    FromParty,
    FromServer,
    Goodbye,
    Join,
    OwnerAsked,
    RunEnd,
    Welcome,
    encode,
    encode_in_one_piece,
    from_party,
    from_server,
)

MAX = 1 << 30
RUNS = st.from_regex(r"[a-z0-9-]{1,64}", fullmatch=True)
NUMBERS = st.integers(1, 1 << 40)
TO_SERVER: st.SearchStrategy[FromParty] = st.one_of(
    st.builds(Join, st.integers(0, 9), st.lists(RUNS, max_size=4).map(tuple)),
    st.builds(Answer, RUNS, NUMBERS, st.binary(max_size=100)),
    st.builds(OwnerAsked, RUNS, NUMBERS),
)
TO_PARTY: st.SearchStrategy[FromServer] = st.one_of(
    st.builds(Welcome, st.text(max_size=9)),
    st.builds(Ask, RUNS, NUMBERS, st.binary(max_size=100)),
    st.builds(RunEnd, RUNS, st.sampled_from(["done", "failed"]), st.text(max_size=50)),
    st.builds(Goodbye, st.sampled_from(["done", "failed"]), st.text(max_size=50), st.integers(0, 255)),
)


@given(st.lists(TO_SERVER, max_size=4), st.lists(TO_PARTY, max_size=4))
def test_what_is_encoded_is_decoded_again(ours: list[FromParty], theirs: list[FromServer]) -> None:
    assert list(from_party((piece for each in ours for piece in encode(each).pieces()), "bank", MAX)) == ours
    assert list(from_server((piece for each in theirs for piece in encode(each).pieces()), MAX)) == theirs


@given(TO_SERVER, TO_PARTY)
def test_what_travels_in_one_piece_is_decoded_again(ours: FromParty, theirs: FromServer) -> None:
    assert list(from_party(iter([encode_in_one_piece(ours)]), "bank", MAX)) == [ours]
    assert list(from_server(iter([encode_in_one_piece(theirs)]), MAX)) == [theirs]


@given(st.lists(st.binary(max_size=60), max_size=3))
def test_any_bytes_are_an_envelope_or_an_error(pieces: list[bytes]) -> None:
    for decoded in (from_party(iter(pieces), "bank", 1000), from_server(iter(pieces), 1000)):
        with suppress(cn.RemoteProtocolError):
            assert all(isinstance(envelope, FromParty | FromServer) for envelope in decoded)


@pytest.mark.parametrize("room", [LARGE, 64 * LARGE])
@pytest.mark.parametrize("size", [LARGE - 1, LARGE, LARGE + 1, 3 * LARGE, 7 * LARGE + 5])
def test_large_payloads_travel_in_pieces(size: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envelopes, "ROOM", room)
    payload = bytes(range(256)) * (size // 256 + 1)
    answer = Answer("fit-1", 7, payload[:size])
    pieces = list(encode(answer).pieces())
    assert max(map(len, pieces)) <= MAX_PIECE_BYTES
    assert list(from_party(iter(pieces), "bank", MAX)) == [answer]


def test_no_more_is_taken_than_is_allowed_or_was_announced() -> None:
    head, *pieces = encode(Answer("fit-1", 7, bytes(2 * LARGE))).pieces()
    for sent, most, message in (
        ([head, *pieces], 2 * LARGE - 1, "announced 2,097,152 bytes; the limit is 2,097,151"),
        ([head, *pieces[:1]], MAX, "in the middle of a message"),
        ([head, *pieces[:1], pieces[1] + b"x"], MAX, "sent more than the 2,097,152 bytes"),
    ):
        with pytest.raises(cn.RemoteProtocolError, match=message):
            list(from_party(iter(sent), "bank", most))


@pytest.mark.parametrize("run", ["", "../x", "A", "a/b", "a" * 65, "a.b"])
def test_a_run_cannot_name_a_path(run: str) -> None:
    with pytest.raises(cn.RemoteProtocolError, match="are not an envelope"):
        list(from_server(encode(RunEnd(run, "done", "")).pieces(), MAX))


@pytest.mark.parametrize("run", ["fit-1\n", "fit\n1", "", "../fit", "Fit", "f" * 65])
def test_a_run_id_is_a_files_name_and_nothing_else(run: str) -> None:
    with pytest.raises(cn.RemoteProtocolError):
        list(from_server(encode(Ask(run, 1, b"")).pieces(), MAX))
