import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import colonnade as cn
from colonnade.catalogue import HANDLERS, party_session
from colonnade.contracts import ScoreBounds
from colonnade.data.tables import read_table
from colonnade.errors import RemoteProtocolError
from colonnade.evaluation.delivery import Deliver, Received
from colonnade.kernels.per_row import PerRow, ones
from colonnade.messages import Message, sendable_floats, sendable_rows
from colonnade.privacy.identities import identities_here
from colonnade.privacy.pair_keys import view_digest
from colonnade.protocol import checks
from colonnade.protocol.hello import WIRE_VERSION, Card, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import KEPT_RULES, NEW, PartySession, PartyState
from colonnade.protocol.viewing import AskRowWeights, AskSplit, Moments, RowWeights, Split, UseFrame
from colonnade.sampling.plain.messages import AskScores, AskTotal, DrawnRows, DrawRows, Draws, Scores, Total
from colonnade.sampling.rules.clustering import ClusteringScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.selecting import Ready, UseAllRows, UseRows, UseSharedDraw
from colonnade.sampling.size import MAX_SIZE
from colonnade.signing import SignedRows, draw_statement
from colonnade.solvers.central import AskColumns, Columns

N_ROWS = 12
RULE = LeverageScores(fit_intercept=True)
WEIGHTS = np.array([1.0, 0.0, 2.0] * 4)
PEOPLE = identities_here(["airline", "weather"], np.random.default_rng(0).bytes)


def open_session(policy: Policy | None = None, **roles: Any) -> PartySession:
    rng = np.random.default_rng(0)
    table = read_table("airline", rng.normal(size=(N_ROWS, 2)), label=rng.normal(size=N_ROWS), **roles)
    return party_session(table, policy or Policy(level="open"), PEOPLE["airline"])


def theirs(request: AskScores) -> tuple[SignedRows, ...]:
    """Give what the others signed, each of them."""
    assert isinstance(request.others, tuple)
    return request.others


def ask_scores(session: PartySession, rows: Any, size: int, signed_by: str = "weather") -> AskScores:
    """Ask for scores of the party's own rows and of these, which the other party drew and signed."""
    state, drawn = session.state, sendable_rows(rows)
    statement = draw_statement("weather", state.sheet, view_digest(state, session._data.seen(state.view)), drawn)
    return AskScores(size, (SignedRows("weather", drawn, PEOPLE[signed_by].sign(statement)),), 0, 0)


def refusal(session: PartySession, request: Message) -> Refused:
    before = session.state
    reply = session.answer(request)
    assert isinstance(reply, Refused)
    assert session.state is before, "a refused request leaves the state as it was"
    return reply


def test_the_whole_of_algorithm_1_at_one_party() -> None:
    session = open_session()
    assert isinstance(session.answer(Hello(WIRE_VERSION)), Card)
    total = session.answer(AskTotal(RULE))
    assert isinstance(total, Total)
    assert total.total == pytest.approx(5.0), "rank of two columns, y and the constant, plus one"
    drawn = session.answer(DrawRows(5, seed=1, draws=Draws.STRATIFIED))
    assert isinstance(drawn, DrawnRows)
    assert len(drawn.rows) == 5
    scores = session.answer(ask_scores(session, [], 5))
    assert isinstance(scores, Scores)
    columns = session.answer(AskColumns(with_label=True))
    assert isinstance(columns, Columns)
    assert columns.features.shape == (5, 2)
    assert columns.labels is not None


@pytest.mark.parametrize(
    "request_",
    [
        AskTotal(RULE),
        DrawRows(1, 0, Draws.INDEPENDENT),
        AskScores(0, (), 0, 0),
        UseAllRows(),
        AskColumns(with_label=True),
        AskSplit(0, N_ROWS),
        AskRowWeights(0, N_ROWS),
        UseFrame("train", "own", None, None, None),
        Deliver(sendable_floats([]), None, 0, 0),
    ],
    ids=lambda request: request.kind,
)
def test_nothing_is_answered_before_the_hello(request_: Message) -> None:
    assert refusal(open_session(), request_).cause == "order"


def test_out_of_order() -> None:
    session = open_session()
    session.answer(Hello(WIRE_VERSION))
    for request in (DrawRows(1, 0, Draws.INDEPENDENT), AskScores(0, (), 0, 0), AskColumns(with_label=False)):
        assert refusal(session, request).reason == (
            f"a {request.kind} is not legal at step 'greeted'. Follow the order of the phases."
        )


def drawn_session() -> PartySession:
    session = open_session()
    for request in (Hello(WIRE_VERSION), AskTotal(RULE), DrawRows(5, seed=1, draws=Draws.STRATIFIED)):
        session.answer(request)
    return session


def test_the_server_must_know_how_many_rows_were_drawn() -> None:
    session = drawn_session()
    assert "5 rows, where 6 were drawn" in refusal(session, ask_scores(session, [0], 5)).reason
    scores = session.answer(ask_scores(session, [0, 11], 7))
    assert isinstance(scores, Scores)
    assert len(scores.scores) == 7


def test_rows_that_another_party_did_not_sign_are_not_scored() -> None:
    """A server that could name rows would learn scores of rows of its choice."""
    session = drawn_session()
    for signer in ("airline", "server"):
        reply = refusal(session, ask_scores(session, [0, 11], 7, signed_by=signer))
        assert (reply.cause, "rows that 'weather' did not sign to have drawn in this job" in reply.reason) == (
            "request",
            True,
        )
    honest = ask_scores(session, [0, 11], 7)
    (signed,) = theirs(honest)
    for others in ((), (signed, signed), (SignedRows("airline", signed.rows, signed.signature),)):
        reply = refusal(session, AskScores(7, others, 0, 0))
        assert "draws of other parties than weather" in reply.reason
    changed = SignedRows("weather", sendable_rows([1, 11]), signed.signature)
    assert "did not sign" in refusal(session, AskScores(7, (changed,), 0, 0)).reason
    assert isinstance(session.answer(honest), Scores)


def test_a_draw_is_signed_for_the_view_it_was_made_in() -> None:
    """A signature of one view, or job, is worth nothing in another: its rows were drawn by other scores."""
    first, second = drawn_session(), open_session(weight=WEIGHTS)
    for request in (
        Hello(WIRE_VERSION),
        UseFrame("train", "own", None, None, None),
        AskTotal(RULE),
        DrawRows(5, seed=1, draws=Draws.STRATIFIED),
    ):
        assert not isinstance(second.answer(request), Refused)
    assert "did not sign" in refusal(second, ask_scores(first, [0, 11], 7)).reason
    assert isinstance(second.answer(ask_scores(second, [0, 11], 7)), Scores)


def test_even_rows_are_drawn_by_the_party_itself() -> None:
    """All sides draw them alike from the shared seed: none is named by the server."""
    session = drawn_session()
    own = session.state.selected()
    (signed,) = theirs(ask_scores(session, [], 5))
    assert "6 rows, where 5 were drawn" in refusal(session, AskScores(6, (signed,), 0, 0)).reason
    assert refusal(session, AskScores(5, (signed,), -1, 0)).cause == "request"
    assert isinstance(session.answer(AskScores(5, (signed,), 0, 0)), Scores)
    np.testing.assert_array_equal(session.state.selected(), own)


def test_without_an_identity_nothing_is_signed() -> None:
    rng = np.random.default_rng(0)
    session = party_session(read_table("airline", rng.normal(size=(N_ROWS, 2))), Policy(level="open"))
    for request in (Hello(WIRE_VERSION), AskTotal(RULE)):
        session.answer(request)
    reply = refusal(session, DrawRows(5, seed=1, draws=Draws.STRATIFIED))
    assert (reply.cause, "Give it an identity" in reply.reason) == ("input", True)


def test_a_reply_is_not_a_request() -> None:
    assert refusal(open_session(), Total(1.0)).cause == "request"


def test_another_wire_version() -> None:
    assert refusal(open_session(), Hello(WIRE_VERSION + 1)).cause == "version"


@pytest.mark.parametrize(
    "request_",
    [
        UseRows(sendable_rows([0, N_ROWS])),
        UseRows(sendable_rows([-1])),
        UseRows(sendable_rows([3, 1])),
        UseRows(sendable_rows([0, 2**63 - 1, -(2**63), -1, 5])),
        UseSharedDraw(MAX_SIZE + 1, seed=0, distinct=False),
        UseSharedDraw(-1, seed=0, distinct=False),
    ],
    ids=["too large", "negative", "not ascending", "wrapping around", "too many", "fewer than none"],
)
def test_hostile_rows_and_counts(request_: Message) -> None:
    session = open_session()
    session.answer(Hello(WIRE_VERSION))
    assert refusal(session, request_).cause == "request"


def test_a_negative_seed_is_refused_not_a_crash() -> None:
    session = open_session()
    session.answer(Hello(WIRE_VERSION))
    assert refusal(session, UseSharedDraw(2, seed=-5, distinct=False)).cause == "request"
    session.answer(AskTotal(RULE))
    assert refusal(session, DrawRows(2, seed=-5, draws=Draws.STRATIFIED)).cause == "request"


def test_more_clusters_than_rows_is_the_callers_error() -> None:
    session = open_session()
    session.answer(Hello(WIRE_VERSION))
    assert refusal(session, AskTotal(ClusteringScores(N_ROWS + 1))).cause == "input"


def test_the_policy_keeps_what_it_names_and_only_that() -> None:
    session = open_session(Policy(level="open", never=["labels"]))
    session.answer(Hello(WIRE_VERSION))
    session.answer(UseAllRows())
    assert refusal(session, AskColumns(with_label=True)).cause == "policy"
    assert isinstance(session.answer(AskColumns(with_label=False)), Columns)


def test_a_policy_names_known_things() -> None:
    with pytest.raises(cn.InputError, match=r"cannot name 'rows' in never\. Choose among: totals, row ids"):
        Policy(level="open", never=["rows"])
    assert Policy("features").never == Policy(["features"]).never


def test_scores_are_computed_once_a_rule() -> None:
    class Counting:
        calls = 0

        def scores(self, table: object) -> PerRow:  # noqa: ARG002
            Counting.calls += 1
            return ones(N_ROWS)

        def bounds(self, card: object, n_counted: int) -> ScoreBounds:  # noqa: ARG002
            return ScoreBounds(1.0, N_ROWS)

    session = open_session()
    counting = Counting()
    assert session._data.scores(counting) is session._data.scores(counting)
    assert Counting.calls == 1


def test_a_server_that_asks_for_ever_new_scores_fills_no_memory() -> None:
    session = open_session()
    session.answer(Hello(WIRE_VERSION))
    for k in range(1, N_ROWS):
        assert isinstance(session.answer(AskTotal(ClusteringScores(k))), Total)
    assert len(session._data._scores) <= KEPT_RULES


class LegalOrder(RuleBasedStateMachine):
    """Any sequence of requests: answered exactly when the design's order allows it, never a crash.

    A session is of one run: once a view was agreed on, rows that weigh nothing are never selected; before that, all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.session = open_session(weight=WEIGHTS, split=WEIGHTS > 1)
        self.step = NEW
        self.size: int | None = None
        self.viewed = False
        self.drawn = 0

    def ask(self, request: Message, *, legal: bool, reply: type[Message], then: str) -> Message:
        answer = self.session.answer(request)
        assert type(answer) is (reply if legal else Refused)
        self.step = then if legal else self.step
        return answer

    @rule()
    def hello(self) -> None:
        self.ask(Hello(WIRE_VERSION), legal=self.step in ("new", "greeted"), reply=Card, then="greeted")

    @rule()
    def split(self) -> None:
        self.ask(AskSplit(0, N_ROWS), legal=self.step != "new", reply=Split, then="greeted")

    @rule()
    def row_weights(self) -> None:
        self.ask(AskRowWeights(0, N_ROWS), legal=self.step != "new", reply=RowWeights, then="greeted")

    @rule(scaling=st.sampled_from(["own", "scaled", "standard"]))
    def view(self, scaling: Any) -> None:
        answer = self.ask(
            UseFrame("train", scaling, None, None, None), legal=self.step != "new", reply=Moments, then="greeted"
        )
        if isinstance(answer, Moments):
            self.viewed = True
            assert (answer.scale is not None) == (scaling != "own")

    @rule()
    def all_rows(self) -> None:
        legal = self.step != "new"
        self.ask(UseAllRows(), legal=legal, reply=Ready, then="selected")
        if legal:
            self.size = int(np.count_nonzero(WEIGHTS)) if self.viewed else N_ROWS
            assert len(self.session.state.selected()) == self.size

    @rule(size=st.integers(0, 5))
    def deliver(self, size: int) -> None:
        values = sendable_floats(np.ones(size))
        legal = self.step == "selected" and size == self.size
        stop = 0 if self.session.state.rows is None else self.session.state.n_places
        self.ask(Deliver(values, None, 0, stop), legal=legal, reply=Received, then="selected")

    @rule(intercept=st.booleans())
    def total(self, intercept: bool) -> None:
        self.ask(AskTotal(LeverageScores(intercept)), legal=self.step != "new", reply=Total, then="scored")

    @rule(count=st.integers(0, 5))
    def draw(self, count: int) -> None:
        legal = self.step == "scored"
        self.ask(DrawRows(count, seed=0, draws=Draws.STRATIFIED), legal=legal, reply=DrawnRows, then="drawn")
        self.drawn = count if legal else self.drawn

    @rule(size=st.integers(0, 5))
    def scores(self, size: int) -> None:
        legal = self.step == "drawn"
        request = ask_scores(self.session, range(size), size + self.drawn)
        self.ask(request, legal=legal, reply=Scores, then="selected")
        self.size = size + self.drawn if legal else self.size

    @rule(size=st.integers(0, 5))
    def share(self, size: int) -> None:
        legal = self.step != "new"
        self.ask(UseSharedDraw(size, seed=0, distinct=False), legal=legal, reply=Ready, then="selected")
        self.size = size if legal else self.size

    @rule(with_label=st.booleans())
    def columns(self, with_label: bool) -> None:
        answer = self.ask(AskColumns(with_label), legal=self.step == "selected", reply=Columns, then="selected")
        if isinstance(answer, Columns):
            assert answer.features.shape == (self.size, 2)
            assert (answer.labels is not None) == with_label

    @precondition(lambda self: self.step != NEW)
    @rule()
    def reply_as_request(self) -> None:
        assert isinstance(self.session.answer(Ready()), Refused)

    @invariant()
    def a_view_holds_for_the_whole_run(self) -> None:
        assert (self.session.state.view is not None) == self.viewed

    @invariant()
    def step_agrees(self) -> None:
        assert self.session.state.step == self.step


LegalOrder.TestCase.settings = settings(max_examples=50, stateful_step_count=20, deadline=None)
TestLegalOrder = LegalOrder.TestCase


def test_each_request_has_one_handler() -> None:
    requests = [handler.request for handler in HANDLERS]
    assert len(requests) == len(set(requests))
    assert all(request.reply is not None for request in requests)


@pytest.mark.parametrize(
    ("lists", "fits"),
    [
        ([], True),
        ([[]], True),
        ([[], [0, 0, 9], [3], [], [1, 2]], True),
        ([[0, 1], [5, 4]], False),
        ([[3, 2], []], False),
        ([[0], [-1, 2]], False),
        ([[0], [10]], False),
        ([[], [9, 10], [1]], False),
        ([[[0, 1]]], False),
    ],
)
def test_lists_of_rows_are_checked_together_as_each_alone(lists: list[Any], fits: bool) -> None:
    arrays, asked = [np.array(each, np.int64) for each in lists], AskTotal(RULE)
    try:
        for each in arrays:
            checks.row_ids("server", asked, each, 10)
        alone = True
    except RemoteProtocolError:
        alone = False
    assert alone is fits
    if fits:
        joined = checks.row_id_lists("server", asked, arrays, 10)
        np.testing.assert_array_equal(joined, [row for each in lists for row in each])
    else:
        with pytest.raises(RemoteProtocolError, match="do not ascend"):
            checks.row_id_lists("server", asked, arrays, 10)


def test_a_state_with_other_fields_is_as_if_made_anew() -> None:
    state = PartyState(step="drawn", even_share=0.25)
    other = state.but(step="selected", weighing="all")
    assert vars(other) == vars(dataclasses.replace(state, step="selected", weighing="all"))
    assert (state.step, state.weighing, type(other)) == ("drawn", "given", PartyState)
    with pytest.raises(dataclasses.FrozenInstanceError):
        other.step = "new"  # type: ignore[misc]
