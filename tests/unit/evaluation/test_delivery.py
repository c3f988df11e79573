"""Predictions handed on to a party."""

from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import party_session
from colonnade.data.tables import read_table
from colonnade.evaluation.delivery import Deliver, Received
from colonnade.kernels.selections import CountedRows
from colonnade.messages import Message, sendable_floats, sendable_rows
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import PartySession
from colonnade.sampling.selecting import UseAllRows, UseRows
from colonnade.transports.loopback import Loopback

N = 50
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
Y = X @ [1.0, 2.0, 3.0, 4.0] + RNG.normal(size=N)
TASKS = [cn.Regression(), cn.KMeans(3), cn.KMeans(3, standardize=True)]


def federation(**options: Any) -> cn.Federation:
    return cn.Federation(cn.split_columns(X, Y, [2, 2]), **options)


@pytest.mark.parametrize("options", [{}, {"transport": Loopback}], ids=["in process", "loopback"])
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_the_party_holds_what_the_caller_gets(task: Any, options: Any) -> None:
    shared = federation(**options)
    model: Any = shared.fit(task, sampler=cn.AllRows()).model
    assert shared.received("party1") is None
    predictions = shared.predict(model, to="party1")
    delivery = shared.received("party1")
    assert delivery is not None
    np.testing.assert_array_equal(delivery.rows, np.arange(N))
    np.testing.assert_array_equal(delivery.predictions, predictions)
    assert delivery.predictions.dtype == (np.int64 if isinstance(task, cn.KMeans) else np.float64)
    assert isinstance(delivery.chosen, CountedRows), "all rows are listed for who asks only"
    assert shared.received("party2") is None, "nobody else is given them"


def test_given_rows_are_delivered_in_ascending_order() -> None:
    shared = federation()
    model = shared.fit(cn.Regression(), sampler=cn.AllRows()).model
    wanted = [40, 3, 3, 17]
    asked = shared.predict(model, rows=wanted, to="party2")
    delivery = shared.received("party2")
    assert delivery is not None
    np.testing.assert_array_equal(delivery.rows, [3, 3, 17, 40])
    np.testing.assert_array_equal(delivery.predictions, asked[[1, 2, 3, 0]])


def test_the_last_delivery_is_kept_through_other_jobs() -> None:
    shared = federation()
    model = shared.fit(cn.Regression(), sampler=cn.AllRows()).model
    shared.predict(model, rows=[1, 2], to="party1")
    shared.fit(cn.KMeans(2, standardize=True), sampler=cn.ImportanceSampling(size=20), split=cn.HoldOut(0.5))
    shared.predict(model, to="party2")
    delivery = shared.received("party1")
    assert delivery is not None
    np.testing.assert_array_equal(delivery.rows, [1, 2])
    shared.predict(model, rows=[7], to="party1")
    delivery = shared.received("party1")
    assert delivery is not None
    np.testing.assert_array_equal(delivery.rows, [7])


def test_the_ledger_says_who_was_told() -> None:
    shared = federation()
    model = shared.fit(cn.Regression(), sampler=cn.AllRows()).model
    position = len(shared.ledger)
    shared.predict(model, rows=[5, 6, 7], to="party1")
    sent = shared.ledger.since(position)
    last = [(e.kind, e.sender, e.receiver, e.units, e.reveals) for e in sent][-2:]
    assert last == [
        ("Deliver", "server", "party1", 3, ("predictions",)),
        ("Received", "party1", "server", 0, ()),
    ]
    assert "predictions" not in sent.disclosures()["server", "party2"]


@pytest.mark.parametrize("name", ["party3", "server", ""])
def test_an_unknown_party(name: str) -> None:
    shared = federation()
    model = shared.fit(cn.Regression(), sampler=cn.AllRows()).model
    before = len(shared.ledger)
    for ask in (lambda: shared.predict(model, to=name), lambda: shared.received(name)):
        with pytest.raises(cn.InputError, match=f"There is no party '{name}'. Choose among: party1, party2"):
            ask()
    assert len(shared.ledger) == before, "nothing was sent"


# Hostile requests


def session(*requests: Message) -> PartySession:
    opened = party_session(read_table("airline", np.eye(4)), Policy(level="open"))
    for request in (Hello(WIRE_VERSION), *requests):
        opened.answer(request)
    return opened


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (Deliver(None, None, 0, 4), "neither values nor clusters, or both"),
        (Deliver(sendable_floats(np.ones(4)), sendable_rows(np.ones(4)), 0, 4), "neither values nor clusters, or both"),
        (Deliver(sendable_floats(np.ones(3)), None, 0, 4), "shape"),
        (Deliver(sendable_floats(np.ones((4, 1))), None, 0, 4), "shape"),
        (Deliver(None, sendable_rows([0] * 5), 0, 4), "shape"),
    ],
)
def test_hostile_deliveries(request_: Deliver, reason: str) -> None:
    asked = session(UseAllRows())
    reply = asked.answer(request_)
    assert isinstance(reply, Refused)
    assert reply.cause == "request"
    assert reason in reply.reason
    assert asked.state.received is None


def test_only_once_rows_are_known() -> None:
    reply = session().answer(Deliver(sendable_floats([]), None, 0, 0))
    assert isinstance(reply, Refused)
    assert reply.cause == "order"
    asked = session(UseRows(sendable_rows([1, 3])))
    assert isinstance(asked.answer(Deliver(None, sendable_rows([0, 1]), 0, 2)), Received)
