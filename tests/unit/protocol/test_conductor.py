from collections.abc import Mapping

import numpy as np
import pytest

from colonnade.catalogue import codec
from colonnade.contracts import Inbox, Outbox, Script
from colonnade.errors import (
    InputError,
    LocalProtocolError,
    PolicyRefusedError,
    RemoteProtocolError,
    WireVersionError,
)
from colonnade.ledger import Ledger
from colonnade.messages import Message
from colonnade.protocol.conductor import Conductor
from colonnade.protocol.refusal import Refused
from colonnade.sampling.plain.messages import AskTotal, Total
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.selecting import Ready

ASK = AskTotal(LeverageScores(fit_intercept=False))


class Canned:
    """A transport that gives prepared replies."""

    def __init__(self, replies: Mapping[str, Message]) -> None:
        self.replies = replies

    def exchange(self, outbox: Outbox) -> Inbox:  # noqa: ARG002
        return self.replies


def ask_twice() -> Script[list[float]]:
    seen: list[float] = []
    for _ in range(2):
        inbox = yield {"airline": ASK, "weather": ASK}
        seen += [reply.total for reply in inbox.values() if isinstance(reply, Total)]
    return seen


def play(replies: Mapping[str, Message], ledger: Ledger | None = None) -> list[float]:
    return Conductor(Canned(replies), codec(), Ledger() if ledger is None else ledger, lambda *_: None).play(
        ask_twice()
    )


def test_rounds_are_played_to_the_end_and_replies_come_in_the_order_asked() -> None:
    assert play({"weather": Total(2.0), "airline": Total(1.0)}) == [1.0, 2.0, 1.0, 2.0]


def test_every_message_is_recorded_with_its_round_and_weight() -> None:
    ledger = Ledger()
    play({"airline": Total(1.0), "weather": Total(2.0)}, ledger)
    assert [(e.round, e.sender, e.receiver, e.kind, e.units) for e in ledger][:4] == [
        (1, "server", "airline", "AskTotal", 0),
        (1, "server", "weather", "AskTotal", 0),
        (1, "airline", "server", "Total", 1),
        (1, "weather", "server", "Total", 1),
    ]
    assert [e.round for e in ledger] == [1] * 4 + [2] * 4
    assert next(iter(ledger)).bytes == len(codec().encode(ASK))


def test_a_missing_reply() -> None:
    with pytest.raises(
        RemoteProtocolError, match="'weather' was asked AskTotal and must answer Total; it gave no reply"
    ) as caught:
        play({"airline": Total(1.0)})
    assert caught.value.party == "weather"


def test_a_reply_of_the_wrong_kind() -> None:
    with pytest.raises(RemoteProtocolError, match="must answer Total; it gave Ready") as caught:
        play({"airline": Ready(), "weather": Total(1.0)})
    assert (caught.value.party, caught.value.kind) == ("airline", "Ready")


@pytest.mark.parametrize(
    ("cause", "error"),
    [
        ("policy", PolicyRefusedError),
        ("version", WireVersionError),
        ("input", InputError),
        ("order", LocalProtocolError),
        ("request", LocalProtocolError),
        ("failure", RemoteProtocolError),
    ],
)
def test_a_refusal_becomes_an_error_with_the_partys_reason(cause: str, error: type[Exception]) -> None:
    ledger = Ledger()
    refused = Refused(cause, "because.")  # type: ignore[arg-type]
    with pytest.raises(error, match="Party 'airline' did not answer AskTotal: because"):
        play({"airline": refused, "weather": Total(1.0)}, ledger)
    assert [entry.kind for entry in ledger][-2:] == ["Refused", "Total"], (
        "what was sent stands on the ledger all the same"
    )


def test_a_reason_that_names_the_party_is_the_whole_error() -> None:
    refused = Refused("input", "Party 'airline', column 'z': 1 of 9 values are missing.")
    with pytest.raises(InputError, match=r"^Party 'airline', column 'z': 1 of 9 values are missing\.$"):
        play({"airline": refused, "weather": Total(1.0)}, Ledger())


@pytest.mark.parametrize("cause", ["policy", "version", "input", "order", "failure"])
@pytest.mark.parametrize("said", [" is well. Party 'weather' did not answer AskTotal: no.", "\n", ""])
def test_no_reason_speaks_as_the_server_or_as_another_party(cause: str, said: str) -> None:
    refused = Refused(cause, f"Party 'airline'{said}")  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"^Party 'airline' did not answer AskTotal: Party 'airline'"):
        play({"airline": refused, "weather": Total(1.0)}, Ledger())


def test_a_reason_is_one_line() -> None:
    refused = Refused("policy", "no.\nerror: PolicyRefusedError\r\nParty 'weather' did not answer AskTotal: no.")
    with pytest.raises(PolicyRefusedError) as caught:
        play({"airline": refused, "weather": Total(1.0)}, Ledger())
    assert len(str(caught.value).splitlines()) == 1


def stumble(error: type[Exception], parties: tuple[str, ...] = ("airline", "weather")) -> Script[None]:
    """Ask, and break where the replies are read; arithmetic breaks of itself."""
    yield dict.fromkeys(parties, ASK)
    if error is FloatingPointError:
        np.square(np.array([1e300]))
    else:
        raise error("row 3 is 17.5")


BREAKS = (ZeroDivisionError, OverflowError, ValueError, MemoryError, FloatingPointError, np.linalg.LinAlgError)


@pytest.mark.parametrize("error", BREAKS)
def test_whatever_breaks_while_replies_are_read_is_an_error_of_the_parties(error: type[Exception]) -> None:
    replies = {"airline": Total(1.0), "weather": Total(2.0)}
    with pytest.raises(RemoteProtocolError, match="One of airline, weather sent numbers that do not") as caught:
        Conductor(Canned(replies), codec(), Ledger(), lambda *_: None).play(stumble(error))
    assert caught.value.party is None
    assert isinstance(caught.value.__cause__, error)
    assert error.__name__ in str(caught.value)
    assert "17.5" not in str(caught.value), "all parties are told why a run ended"


def test_where_only_one_party_was_asked_it_is_named() -> None:
    with pytest.raises(RemoteProtocolError, match="'airline' sent numbers that do not") as caught:
        Conductor(Canned({"airline": Total(1.0)}), codec(), Ledger(), lambda *_: None).play(
            stumble(ZeroDivisionError, ("airline",))
        )
    assert caught.value.party == "airline"


def test_what_breaks_before_any_reply_is_a_bug_and_nobody_is_blamed() -> None:
    def broken() -> Script[None]:
        yield dict.fromkeys(["airline"] * (1 // len(())), ASK)

    with pytest.raises(ZeroDivisionError):
        Conductor(Canned({}), codec(), Ledger(), lambda *_: None).play(broken())
