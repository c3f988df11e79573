"""What a FLARE site answers, and to whom."""

from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec, party_session
from colonnade.node.allowance import Allowance, DayLimits
from colonnade.node.desk import PartyDesk
from colonnade.node.log import EventLog
from colonnade.node.state_folder import StateFolder
from colonnade.protocol.hello import WIRE_VERSION, Card, Hello
from colonnade.protocol.policy import Policy
from colonnade.transports.endpoints import PartyEndpoint
from colonnade.transports.envelopes import (
    ENVELOPE_VERSION,
    Answer,
    Ask,
    FromParty,
    Goodbye,
    Join,
    RunEnd,
    Welcome,
    encode_in_one_piece,
    from_party,
)

flare = pytest.importorskip(
    "colonnade.transports.flare", reason="NVIDIA FLARE is not here: pip install 'colonnade[flare]'"
)
ASK = Ask("hello-1", 1, codec().encode(Hello(WIRE_VERSION)))


@pytest.fixture
def party(tmp_path: Path) -> object:
    table, folder = cn.Party("bank", np.eye(4)).table, StateFolder(tmp_path / "state")
    desk = PartyDesk(
        party_session(table, Policy(level="open")),
        codec(),
        allowance=Allowance(folder.path / "spent.json", "server", DayLimits(), None),
        folder=folder,
        log=EventLog(None),
    )
    return flare.FlareParty(PartyEndpoint("bank", "flare", max_message_bytes=2048), desk)


def answer(party: object, envelope: Ask | Welcome) -> FromParty:
    return next(from_party(iter([party.take(encode_in_one_piece(envelope), "server")]), "bank", 2048))  # type: ignore[attr-defined]


def test_it_joins_answers_once_repeats_and_forgets(party: object) -> None:
    assert answer(party, Welcome("bank")) == Join(ENVELOPE_VERSION, ())
    first = answer(party, ASK)
    assert isinstance(first, Answer)
    assert isinstance(codec().decode(first.payload), Card)
    assert answer(party, ASK) == first, "FLARE may call again what it takes for lost"
    assert answer(party, Welcome("bank")) == Join(ENVELOPE_VERSION, ("hello-1",))
    assert party.take(encode_in_one_piece(RunEnd("hello-1", "done", "")), "server") == b""  # type: ignore[attr-defined]
    assert answer(party, Welcome("bank")) == Join(ENVELOPE_VERSION, ())
    assert party.take(encode_in_one_piece(Goodbye("done", "", 0)), "server") == b""  # type: ignore[attr-defined]


@pytest.mark.parametrize("caller", ["telephone", "Server", ""])
def test_only_the_server_is_answered(party: object, caller: str) -> None:
    with pytest.raises(cn.PolicyRefusedError, match="answers the server, not"):
        party.take(encode_in_one_piece(ASK), caller)  # type: ignore[attr-defined]


@pytest.mark.parametrize("data", [b"", b"stray", "text", None, b"x" * (1 << 21)])
def test_stray_bytes_are_refused(party: object, data: object) -> None:
    with pytest.raises(cn.RemoteProtocolError):
        party.take(data, "server")  # type: ignore[attr-defined]


def test_a_call_waits_for_the_owner(party: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """FLARE's own call stays open: the server waits for as long as `answer_seconds` says."""
    desk, looks = party._desk, iter([True, True, False])  # type: ignore[attr-defined]
    monkeypatch.setattr(flare, "PAUSE", 0.001)
    monkeypatch.setattr(desk, "is_waiting", lambda _run: next(looks))
    assert isinstance(answer(party, ASK), Answer)
    assert list(looks) == []
