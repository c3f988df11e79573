"""Audited logits, fed by hand with what no honest side sends."""

from typing import Any

import numpy as np
import pytest

from colonnade.contracts import PartyCard, Roster
from colonnade.data.tables import read_table
from colonnade.diagnostics import HANDLERS
from colonnade.diagnostics.audited_logits import AskAuditedLogits, AuditedLogits, audited_logits
from colonnade.errors import RemoteProtocolError
from colonnade.messages import Reveals, sendable_floats, sendable_rows
from colonnade.protocol.hello import HANDLERS as HELLO
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import PartySession
from colonnade.sampling.selecting import HANDLERS as SHARED
from colonnade.sampling.selecting import UseRows

ROSTER = Roster((PartyCard("a", 9, ("x", "z"), None), PartyCard("b", 9, ("v",), "y")))
ONE = sendable_floats([1.0])
MOMENTS: dict[str, Any] = {"size": 4, "low": ONE, "step": ONE, "codes": bytes(8), "mean": 0.5, "variance": 2.0}
PLAIN: dict[str, Any] = MOMENTS | {"classes": None, "share": None, "class_mean": None}
GOOD: dict[str, Any] = MOMENTS | {"classes": bytes([0b01010000]), "share": 0.4, "class_mean": 1.0}


def told(liar: str = "b", **change: Any) -> Any:
    script = audited_logits(ROSTER, np.arange(4), np.full(4, 1 / 9), np.ones(3), np.empty((0, 3)), 0)
    next(script)
    replies = {"a": PLAIN, "b": GOOD}
    replies[liar] = replies[liar] | change
    try:
        script.send({party: AuditedLogits(**reply) for party, reply in replies.items()})
    except StopIteration as end:
        return end.value
    raise AssertionError("one round only")


def test_parts_come_with_classes() -> None:
    parts, along, classes = told()
    assert list(parts) == ["a", "b"]
    assert along.shape == (0, 4)
    assert classes.codes.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert (classes.share, classes.mean) == (0.4, 1.0)


@pytest.mark.parametrize(
    ("liar", "change", "message"),
    [
        ("b", {"size": 5}, "5 rows"),
        ("b", {"codes": bytes(7)}, "7 bytes"),
        ("b", {"mean": 9.0}, "a mean of 9 and a variance of 2, belied by its own values"),
        ("b", {"classes": None}, "no classes"),
        ("b", {"share": None}, "no classes"),
        ("b", {"class_mean": None}, "no classes"),
        ("b", {"classes": bytes(2)}, "2 bytes do not hold 4 numbers"),
        ("b", {"classes": bytes([0b01010001])}, "bits after the last"),
        ("b", {"share": np.nan}, "NaN"),
        ("b", {"share": 0.0}, "a share of 0, belied"),
        ("b", {"share": 1.0}, "a share of 1, belied"),
        ("b", {"share": 0.05}, "a share of 0.05, belied by its own classes"),
        ("b", {"class_mean": np.inf}, "infinity"),
        ("b", {"class_mean": 3.0}, "a mean of 3 in a class, too far from that of all rows"),
        ("a", {"classes": bytes(1)}, "classes, which it does not have"),
        ("a", {"share": 0.5}, "classes, which it does not have"),
    ],
)
def test_what_no_honest_party_sends(liar: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"'{liar}' sent a AuditedLogits with .*{message}"):
        told(liar, **change)


def session(label: Any, *, name: str = "b") -> PartySession:
    values = np.arange(18.0).reshape(9, 2)
    opened = PartySession(read_table(name, values, label=label), (*HELLO, *SHARED, *HANDLERS), Policy(level="open"))
    opened.answer(Hello(WIRE_VERSION))
    opened.answer(UseRows(sendable_rows([0, 4, 4])))
    return opened


def test_a_party_tells_its_part_its_classes_and_moments_of_all_rows() -> None:
    label = np.array([3.0, 3.0, 7.0, 3.0, 7.0, 3.0, 3.0, 3.0, 7.0])
    reply = session(label).answer(AskAuditedLogits(sendable_floats([1.0, 2.0]), sendable_floats([[0.0, 1.0]]), seed=3))
    assert isinstance(reply, AuditedLogits)
    exact = np.arange(18.0).reshape(9, 2) @ [1.0, 2.0]
    assert (reply.mean, reply.variance) == pytest.approx((exact.mean(), exact.var()))
    assert reply.classes == bytes([0b01100000])
    assert (reply.share, reply.class_mean) == pytest.approx((1 / 3, exact[label == 7].mean()))
    assert reply.units() == 2 * 3 + 2 + 3 + 2
    assert reply.numbers_told(reply.units()) == {Reveals.FEATURES: 6, Reveals.MOMENTS: 2, Reveals.LABELS: 5}


def test_a_party_without_the_label_tells_no_classes() -> None:
    reply = session(None, name="a").answer(
        AskAuditedLogits(sendable_floats([1.0, 2.0]), sendable_floats(np.empty((0, 2))), 3)
    )
    assert isinstance(reply, AuditedLogits)
    assert Reveals.LABELS not in reply.reveals()


@pytest.mark.parametrize("label", [np.ones(9), np.arange(9.0) % 3])
def test_other_than_two_classes_are_refused(label: Any) -> None:
    ask = AskAuditedLogits(sendable_floats([1.0, 2.0]), sendable_floats(np.empty((0, 2))), 3)
    assert isinstance(session(label).answer(ask), Refused)
