"""Scripts and handlers of the diagnostics' messages, fed by hand with what no honest side sends."""

from typing import Any

import numpy as np
import pytest

from colonnade.contracts import JobView, PartyCard, Roster
from colonnade.data.tables import read_table
from colonnade.diagnostics import HANDLERS
from colonnade.diagnostics.findings import moved_centers
from colonnade.diagnostics.moved_distances import AskMovedDistances, MovedDistances, moved_distances
from colonnade.diagnostics.pair_distances import AskPairDistances, PairDistances, pair_distances
from colonnade.diagnostics.row_distances import AskRowDistances, Pool, RowDistances, row_distances
from colonnade.diagnostics.whitened_rows import AskWhitenedRows, WhitenedRows, whitened_rows
from colonnade.errors import RemoteProtocolError
from colonnade.messages import sendable_floats, sendable_rows
from colonnade.protocol.hello import HANDLERS as HELLO
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import PartySession
from colonnade.sampling.selecting import HANDLERS as SHARED
from colonnade.sampling.selecting import UseRows

ROSTER = Roster((PartyCard("a", 9, ("x", "z"), None), PartyCard("b", 9, ("v",), "y")))
A = sendable_floats(np.full((4, 2), 0.1))
B = sendable_floats(np.full((4, 2), 0.1))
LABEL = sendable_floats(np.full(4, 0.1))
ROWS = np.arange(4)


def send(script: Any, replies: dict[str, Any]) -> Any:
    next(script)
    try:
        script.send(replies)
    except StopIteration as end:
        return end.value
    raise AssertionError("one round only")


def test_whitened_rows_are_joined_with_the_label_last() -> None:
    label = sendable_floats(np.arange(4.0) / 10)
    replies = {"a": WhitenedRows(A, None), "b": WhitenedRows(B, label)}
    found = send(whitened_rows(ROSTER, ROWS, fit_intercept=True), replies)
    assert found.values.shape == (4, 5)
    assert found.label == 4
    np.testing.assert_array_equal(found.values[:, 4], np.arange(4.0) / 10)


@pytest.mark.parametrize(
    ("features", "label", "message"),
    [
        (np.ones((4, 3)), LABEL, "shape"),
        (np.ones((3, 2)), LABEL, "shape"),
        (np.ones(4), LABEL, "shape"),
        (np.full((4, 2), np.nan), LABEL, "NaN"),
        (np.ones((4, 2)), LABEL, "longer rows than an orthonormal basis has"),
        (np.full((4, 2), 0.1), np.ones(4), "longer rows than an orthonormal basis has"),
        (np.ones((4, 2)), None, "label's coordinate"),
        (np.ones((4, 2)), np.ones(3), "shape"),
        (np.ones((4, 2)), np.full(4, np.inf), "NaN, infinity"),
    ],
)
def test_whitened_rows_that_no_honest_party_sends(features: Any, label: Any, message: str) -> None:
    bad = WhitenedRows(sendable_floats(features), None if label is None else sendable_floats(label))
    with pytest.raises(RemoteProtocolError, match=f"'b' sent a WhitenedRows with .*{message}"):
        send(whitened_rows(ROSTER, ROWS, fit_intercept=True), {"a": WhitenedRows(A, None), "b": bad})


def test_without_an_intercept_the_label_party_has_one_direction_less() -> None:
    with pytest.raises(RemoteProtocolError, match="shape"):
        send(
            whitened_rows(ROSTER, ROWS, fit_intercept=False),
            {"a": WhitenedRows(A, None), "b": WhitenedRows(B, LABEL)},
        )


@pytest.mark.parametrize("values", [np.ones(2), np.full(3, -1.0), np.full(3, np.nan)])
def test_pair_distances_that_no_honest_party_sends(values: Any) -> None:
    good, bad = PairDistances(sendable_floats(np.ones(3))), PairDistances(sendable_floats(values))
    with pytest.raises(RemoteProtocolError, match="'b' sent a PairDistances"):
        send(pair_distances(ROSTER, 3, 0), {"a": good, "b": bad})


@pytest.mark.parametrize(
    "values",
    [
        np.ones((4, 1)),
        np.full((4, 2), -1.0),
        [[0.0, 1.0], [2.0, 0.0], [1.0, 4.0], [1.0, 4.0]],  # not as far there as back
        [[1.0, 1.0], [1.0, 1.0], [1.0, 4.0], [1.0, 4.0]],  # far from itself
        [[0.0, 1.0], [1.0, 0.0], [1.0, 3.0], [1.0, 4.0]],  # not on a line
    ],
)
def test_row_distances_that_no_honest_party_sends(values: Any) -> None:
    good = RowDistances(sendable_floats([[0.0, 1.0], [1.0, 0.0], [1.0, 4.0], [9.0, 4.0]]))
    bad = RowDistances(sendable_floats(values))
    pool = Pool(np.array([0, 1]), 2, seed=5)
    assert send(row_distances(ROSTER, ROWS, pool), {"a": good, "b": good})[3].tolist() == [18.0, 8.0]
    with pytest.raises(RemoteProtocolError, match="'b' sent a RowDistances"):
        send(row_distances(ROSTER, ROWS, pool), {"a": good, "b": bad})


def session(n_rows: int = 9) -> PartySession:
    rng = np.random.default_rng(0)
    table = read_table("b", rng.normal(size=(n_rows, 2)), label=rng.normal(size=n_rows))
    opened = PartySession(table, (*HELLO, *SHARED, *HANDLERS), Policy(level="open"))
    opened.answer(Hello(WIRE_VERSION))
    return opened


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (AskPairDistances(10, 5), "a count of 10 rows, outside 0..9"),
        (AskPairDistances(-1, 5), "a count of -1"),
        (AskPairDistances(3, -5), "the negative seed"),
        (AskWhitenedRows(fit_intercept=True), "not legal at step"),
        (AskRowDistances(2, 5), "not legal at step"),
        (AskMovedDistances(sendable_floats([[1.0, 2.0]]), None, 5), "not legal at step"),
    ],
)
def test_a_party_refuses_what_no_honest_server_asks(request_: Any, why: str) -> None:
    party = session()
    if isinstance(request_, AskPairDistances):
        party.answer(UseRows(sendable_rows([0])))
    reply = party.answer(request_)
    assert isinstance(reply, Refused)
    assert why in reply.reason


def test_a_party_refuses_pairs_of_one_row_and_no_rows_as_centres() -> None:
    single = session(1)
    single.answer(UseRows(sendable_rows([0])))
    alone = single.answer(AskPairDistances(1, 5))
    assert isinstance(alone, Refused)
    assert "pairs need two rows" in alone.reason
    party = session()
    party.answer(UseRows(sendable_rows([1, 4])))
    for request, why in (
        (AskRowDistances(-1, 5), "a count of -1"),
        (AskRowDistances(2, -5), "the negative seed"),
        (AskRowDistances(0, 5), "are none"),
        (AskMovedDistances(sendable_floats([[1.0]]), None, 5), "shape"),
        (AskMovedDistances(sendable_floats(np.empty((0, 2))), None, 5), "no centres"),
        (AskMovedDistances(sendable_floats([[1.0, 1.0]]), None, -5), "the negative seed"),
    ):
        refused = party.answer(request)
        assert isinstance(refused, Refused)
        assert why in refused.reason


def test_whitened_rows_of_all_rows_are_orthonormal_and_the_label_is_apart() -> None:
    party = session()
    party.answer(UseRows(sendable_rows(np.arange(9))))
    reply = party.answer(AskWhitenedRows(fit_intercept=True))
    assert isinstance(reply, WhitenedRows)
    assert reply.label is not None
    U = np.column_stack([reply.features, reply.label])
    np.testing.assert_allclose(U.T @ U, np.eye(4), atol=1e-12)
    assert [str(kind) for kind in reply.reveals()] == ["features", "labels"]


def test_rows_that_serve_as_centres_stay_the_same_when_others_are_selected() -> None:
    party, first, then = session(), np.array([0, 3, 3, 7]), np.arange(9)
    pool = Pool.of(first, 2, 5)
    assert set(pool.rows) < {0, 3, 7}
    for rows in (first, then):
        party.answer(UseRows(sendable_rows(rows)))
        reply = party.answer(AskRowDistances(2, 5))
        assert isinstance(reply, RowDistances)
        assert set(rows[(reply.values == 0).any(axis=1)]) == set(pool.rows)


def test_parties_move_centres_alike_and_say_how_far_their_rows_are() -> None:
    centers = np.random.default_rng(1).normal(size=(3, 3))
    parts = {"a": (None, sendable_floats(centers[:, :2]), None), "b": (None, sendable_floats(centers[:, 2:]), None)}
    values = np.random.default_rng(2).normal(size=(4, 3))
    moved = moved_centers(centers, np.random.default_rng(5)).reshape(-1, 3)
    replies = {
        party: MovedDistances(sendable_floats(np.square(values[:, np.newaxis, here] - moved[:, here]).sum(axis=2)))
        for party, here in (("a", slice(0, 2)), ("b", slice(2, 3)))
    }
    found = send(moved_distances(ROSTER, 4, parts, JobView(), 5), replies)
    np.testing.assert_allclose(found, np.square(values[:, np.newaxis] - moved).sum(axis=2))
    for bad in (np.ones((4, 8)), np.full((4, 9), -1.0), np.eye(4, 9)):
        with pytest.raises(RemoteProtocolError, match="'b' sent a MovedDistances"):
            send(
                moved_distances(ROSTER, 4, parts, JobView(), 5),
                {"a": replies["a"], "b": MovedDistances(sendable_floats(bad))},
            )


def test_a_party_moves_the_centres_it_is_sent() -> None:
    party = session()
    party.answer(UseRows(sendable_rows(np.arange(9))))
    centers = np.array([[1.0, 2.0], [-1.0, 0.5]])
    reply = party.answer(AskMovedDistances(sendable_floats(centers), None, 5))
    assert isinstance(reply, MovedDistances)
    moved = moved_centers(centers, np.random.default_rng(5)).reshape(-1, 2)
    rows = np.random.default_rng(0).normal(size=(9, 2))
    np.testing.assert_allclose(reply.values, np.square(rows[:, np.newaxis] - moved).sum(axis=2))
