"""Row weights and rows to hold out, told window by window: the same views, and no window but those that are due."""

from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec, party_session
from colonnade.contracts import PartyCard, Roster
from colonnade.data.tables import read_table
from colonnade.kernels import selections
from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.messages import Message, sendable_flags, sendable_floats
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.protocol.viewing import (
    AskRowWeights,
    AskSplit,
    BringColumns,
    Moments,
    RowWeights,
    UseFrame,
    agree_on_view,
    view_route,
)
from colonnade.routes import Route
from colonnade.signing import SignedMarks, SignedWeights
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback
from harness import play
from secure_trial import Recording, Wire

N = 40_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0] + RNG.normal(size=N)
WEIGHTS = RNG.integers(0, 4, size=N).astype(float)
MARKED = RNG.random(N) < 0.3
FIRST, SECOND, THIRD = (0, BLOCK_ROWS), (BLOCK_ROWS, 2 * BLOCK_ROWS), (2 * BLOCK_ROWS, N)


def parties(**third: Any) -> list[cn.Party]:
    return [
        cn.Party("first", X[:, :2], weight=WEIGHTS),
        cn.Party("second", X[:, 2:3], split=MARKED),
        cn.Party("third", X[:, 3:], label=Y, **third),
    ]


def fitted(transport: Any) -> Any:
    federation = cn.Federation(parties(), transport=transport)
    task = cn.Regression(standardize=True)
    return federation.fit(task, sampler=cn.ImportanceSampling(500), split=cn.SplitBy("second"), seed=1)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a window of every block: three of these tables."""
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)


def test_windows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fitted(Loopback)
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    wire = Recording()
    for cut in (fitted(InProcess), fitted(Loopback), fitted(wire)):
        np.testing.assert_array_equal(cut.coreset.rows, whole.coreset.rows)
        np.testing.assert_array_equal(cut.model.coef_, whole.model.coef_)
    asked = [codec().decode(data) for data in wire.sent]
    assert sum(isinstance(each, AskSplit | AskRowWeights) for each in asked) == 6
    brought = [each for each in asked if isinstance(each, BringColumns)]
    assert len(brought) == 2 * 3, "two windows to each party; the last with what it is for"
    own = {(each.held_out is None, each.weights is None) for each in brought}
    assert own == {(False, True), (True, False), (False, False)}, "what a party told is not sent back to it"


@pytest.mark.usefixtures("small")
def test_the_server_holds_weights_once() -> None:
    """What it sends on are windows of the column that it counts by."""
    roster = Roster((PartyCard("first", N, ("a",), None, has_weights=True), PartyCard("third", N, ("b",), "y")))
    script = agree_on_view(roster, None, "train", "own")
    outbox, brought = next(script), list[SignedWeights | None]()
    while not isinstance(outbox.get("first"), UseFrame):
        if isinstance(ask := outbox.get("first"), AskRowWeights):
            outbox = script.send({"first": RowWeights(WEIGHTS[ask.window.places].copy(), b"")})
        else:
            outbox = script.send({"third": Moments(None, None)})
        brought += [each.weights for each in outbox.values() if isinstance(each, BringColumns)]
        brought += [each.weights for party, each in outbox.items() if isinstance(each, UseFrame) and party == "third"]
    with pytest.raises(StopIteration) as end:
        script.send({party: Moments(None, None) for party in outbox})
    counts = end.value.value.row_weights
    windows = [each.weights for each in brought if each is not None]
    np.testing.assert_array_equal(np.concatenate(windows), counts.values)
    assert all(np.shares_memory(window, counts.values) for window in windows)


# A hostile server

ROSTER = Roster(
    (
        PartyCard("first", N, ("a",), None, has_weights=True),
        PartyCard("second", N, ("b",), None, has_split=True),
        PartyCard("third", N, ("c",), "y"),
    )
)
BY = cn.SplitBy("second")


def marks(by: str = "second") -> SignedMarks:
    return SignedMarks(by, sendable_flags([True]), b"")


def weights(by: str = "first") -> SignedWeights:
    return SignedWeights(by, sendable_floats([1.0]), b"")


def after(route: Route | None, *requests: Message) -> Route | None:
    for request in requests:
        route = None if route is None else route.after(request)
    return route


@pytest.mark.parametrize(("party", "ask"), [("first", AskRowWeights), ("second", AskSplit)])
@pytest.mark.usefixtures("small")
def test_a_column_is_asked_for_once_a_window_and_in_order(party: str, ask: Any) -> None:
    route = view_route(BY, "train", "own", ROSTER, party)
    assert after(route, ask(*FIRST), ask(*SECOND), ask(*THIRD)) is not None
    for refused in (
        (ask(*SECOND),),
        (ask(0, N),),
        (ask(0, BLOCK_ROWS + 1),),
        (ask(*FIRST), ask(*FIRST)),
        (ask(*FIRST), ask(*THIRD)),
        (ask(*FIRST), ask(BLOCK_ROWS - 1, 2 * BLOCK_ROWS)),
        (ask(*FIRST), ask(*SECOND), ask(*THIRD), ask(*THIRD)),
    ):
        assert after(route, *refused) is None


@pytest.mark.usefixtures("small")
def test_columns_are_brought_once_a_window_and_in_order() -> None:
    route = view_route(BY, "train", "own", ROSTER, "third")
    frame = UseFrame("train", "own", BY, marks(), weights())
    first, second = (BringColumns(marks(), weights(), *ends) for ends in (FIRST, SECOND))
    assert after(route, first, second, frame) is not None
    for refused in (
        (frame,),
        (first, frame),
        (second,),
        (first, first),
        (first, second, second),
        (first, second, BringColumns(marks(), weights(), *THIRD)),
        (BringColumns(marks("third"), weights(), *FIRST),),
        (BringColumns(marks(), None, *FIRST),),
        (BringColumns(None, weights(), *FIRST),),
    ):
        assert after(route, *refused) is None


def meddled(kind: type[Message], change: Any, time: int = 1) -> Wire:
    """Change the request of this kind that the label party gets as so many-th."""
    seen = 0

    def meddle(_: str, receiver: str, data: bytes) -> bytes:
        nonlocal seen
        message = codec().decode(data)
        seen += type(message) is kind and receiver == "third"
        is_it = type(message) is kind and receiver == "third" and seen == time
        return codec().encode(change(message)) if is_it else data

    return Wire(meddle)


def heavier(message: BringColumns) -> BringColumns:
    told = message.weights
    assert told is not None
    changed = sendable_floats(np.where(np.arange(len(told.weights)) == 3, 1e9, told.weights))
    return msgspec.structs.replace(message, weights=msgspec.structs.replace(told, weights=changed))


@pytest.mark.usefixtures("small")
def test_a_window_that_its_party_did_not_sign_is_refused() -> None:
    with pytest.raises(cn.ColonnadeError, match="row weights that 'first' did not sign for this job"):
        fitted(meddled(BringColumns, heavier, 2))


@pytest.mark.usefixtures("small")
def test_a_window_in_the_place_of_another_is_refused() -> None:
    """Weights that a party signed, of other rows: a server that moves them chooses which rows count."""
    kept: list[BringColumns] = []

    def remember(message: BringColumns) -> BringColumns:
        kept.append(message)
        return message

    def repeat(message: BringColumns) -> BringColumns:
        return msgspec.structs.replace(message, weights=kept[0].weights, held_out=kept[0].held_out)

    seen = 0

    def either(message: BringColumns) -> BringColumns:
        nonlocal seen
        seen += 1
        return remember(message) if seen == 1 else repeat(message)

    def meddle(_: str, receiver: str, data: bytes) -> bytes:
        message = codec().decode(data)
        is_it = isinstance(message, BringColumns) and receiver == "third"
        return codec().encode(either(message)) if is_it else data  # type: ignore[arg-type]

    with pytest.raises(cn.ColonnadeError, match="rows to hold out that 'second' did not sign for this job"):
        fitted(Wire(meddle))


@pytest.mark.parametrize(("first", "stop"), [(-1, 9), (0, 5), (0, 11), (5, 10), (10, 10), (2**62, 2**62), (0, -1)])
def test_a_session_without_a_sheet_knows_windows_too(first: int, stop: int) -> None:
    table = read_table("a", np.arange(20.0).reshape(10, 2), weight=np.ones(10), split=np.arange(10) > 5)
    session = party_session(table, Policy(level="open"))
    session.answer(Hello(WIRE_VERSION))
    for bad in (AskSplit(first, stop), AskRowWeights(first, stop), BringColumns(None, None, first, stop)):
        reply = session.answer(codec().decode(codec().encode(bad)))
        assert isinstance(reply, Refused)
        assert "a window of rows" in reply.reason


def only_the_last() -> Any:
    """Ask for all weights, and bring one party the last window alone."""
    for ends in (FIRST, SECOND, THIRD):
        inbox = yield {"first": AskRowWeights(*ends)}
    told = inbox["first"]
    yield {"third": UseFrame("train", "own", None, None, SignedWeights("first", told.weights, told.signature))}


@pytest.mark.usefixtures("small")
def test_no_window_is_left_out_or_repeated() -> None:
    """A view of fewer windows than the table has would be of rows that the server chose."""
    repeated = meddled(BringColumns, lambda message: msgspec.structs.replace(message, first=FIRST[0], stop=FIRST[1]), 2)
    with pytest.raises(cn.ColonnadeError, match="the window from 16,384 on of 32,768 rows"):
        fitted(repeated)
    with pytest.raises(cn.ColonnadeError, match="rows from 32768 on, where 0 would be next"):
        play(cn.Federation(parties()), only_the_last())


@pytest.mark.usefixtures("small")
def test_weights_of_all_windows_count_against_the_owners_limit() -> None:
    """A window has 16,384 rows, and the owner lets 20,000 be told: weights of 40,000 are refused before the first."""
    capped = parties()
    capped[0].policy = cn.Policy(level="open", rows_a_request=20_000)
    federation = cn.Federation(capped)
    with pytest.raises(cn.PolicyRefusedError, match="limits a reply to 20,000 rows; this RowWeights has 40,000"):
        federation.coreset(cn.Regression(), cn.UniformSampling(10))
    assert "RowWeights" not in {entry.kind for entry in federation.ledger}
