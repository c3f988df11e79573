"""A party's side of the stream, where a run waits for the owner and something breaks meanwhile."""

import queue
import threading
from typing import Any

import pytest

from colonnade.transports.endpoints import PartyEndpoint
from colonnade.transports.envelopes import Answer, Ask, EncodedEnvelope, RunEnd, encode

party = pytest.importorskip("colonnade.transports.grpc.party", reason="gRPC is not here: pip install 'colonnade[grpc]'")
ASK = Ask("fit-1", 1, b"sheet")


class WaitingDesk:
    """A desk with one run that waits until it is told otherwise."""

    def __init__(self) -> None:
        self.open_runs: tuple[str, ...] = ("fit-1",)
        self.waits, self.trouble = True, False

    def is_waiting(self, _run: str) -> bool:
        if self.trouble:
            raise OSError(28, "No space left on device")
        return self.waits

    def answer(self, ask: Ask) -> Answer | None:
        return None if self.waits else Answer(ask.run, ask.number, b"accepted")

    def after_sending(self) -> None:
        """Do nothing."""

    def end(self, _end: RunEnd) -> None:
        self.open_runs = ()


class Line:
    """A party with such a desk, waiting in a thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(party, "OWNER_SECONDS", 0.001)
        self.desk = WaitingDesk()
        self.party: Any = party.GrpcParty(
            PartyEndpoint("bank", "127.0.0.1:1"), self.desk, lambda *_, **__: None, lambda _: None
        )
        self.party._call = self
        self.outgoing: queue.SimpleQueue[EncodedEnvelope | None] = queue.SimpleQueue()
        self.hung_up, self.cancelled = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.party._wait, args=(ASK, self.outgoing, self.hung_up), daemon=True)
        self.thread.start()

    def cancel(self) -> None:
        self.cancelled.set()

    def ended(self) -> bool:
        self.thread.join(10)
        return not self.thread.is_alive()


def test_it_answers_once_the_owner_has_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line(monkeypatch)
    assert line.outgoing.empty()
    line.desk.waits = False
    assert line.ended()
    assert line.outgoing.get_nowait() == encode(Answer("fit-1", 1, b"accepted"))


@pytest.mark.parametrize("how", ["the run ends", "the line breaks"])
def test_it_waits_no_longer_than_the_run_and_the_line(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    line = Line(monkeypatch)
    if how == "the run ends":
        line.party._end(RunEnd("fit-1", "failed", "the server gave up"))
    else:
        line.hung_up.set()
    assert line.ended()
    assert line.outgoing.empty()


def test_what_breaks_meanwhile_ends_the_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line(monkeypatch)
    line.desk.trouble = True
    assert line.ended()
    assert line.cancelled.is_set()
    assert isinstance(line.party._failure, OSError)
