"""Central with all rows, which come in windows where they fit no message: the same model, and no window but these."""

import tracemalloc
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import party_session
from colonnade.contracts import Agreed
from colonnade.data.tables import read_table
from colonnade.kernels import selections
from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.messages import Message, sendable_floats, sendable_rows
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.routes import Route
from colonnade.sampling.selecting import UseAllRows, UseRows
from colonnade.solvers import central
from colonnade.solvers.central import AskColumns, AskColumnWindow, Columns
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback
from computed_table import computed_federation

N = 40_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4)) + np.array([1e3, 0.0, 0.0, 5.0])
Y = X @ [1.0, -2.0, 0.5, 0.0] + RNG.normal(size=N)
WEIGHTS = RNG.integers(0, 4, size=N).astype(float)
MARKS = RNG.random(N) < 0.3


def federation(transport: Any = InProcess, *, weighted: bool = False) -> cn.Federation:
    return cn.Federation(
        [
            cn.Party("first", X[:, :2], weight=WEIGHTS if weighted else None),
            cn.Party("second", X[:, 2:3], split=MARKS),
            cn.Party("third", X[:, 3:], label=Y),
        ],
        transport=transport,
    )


@pytest.fixture
def small_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a message hold few numbers, and a window one block."""
    monkeypatch.setattr(central, "AT_ONCE", 60_000)
    monkeypatch.setattr("colonnade.protocol.windows.MAX_NUMBERS", 60_000)
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)


@pytest.mark.parametrize(
    ("task", "weighted", "split"),
    [
        (cn.Regression(l2=0.1), False, None),
        (cn.Regression(fit_intercept=False), True, cn.HoldOut(0.2)),
        (cn.Regression(standardize=True, l1=0.01), False, cn.SplitBy("second")),
        (cn.Regression(l2="cv"), False, cn.HoldOut(0.3)),
        (cn.KMeans(2, n_starts=1), True, None),
    ],
)
def test_windows_change_nothing_of_the_model(
    monkeypatch: pytest.MonkeyPatch, task: Any, weighted: bool, split: Any
) -> None:
    ways = {"sampler": cn.AllRows(), "solver": cn.Central(), "split": split}
    whole = federation(weighted=weighted).fit(task, **ways)
    monkeypatch.setattr(central, "AT_ONCE", 60_000)
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    for transport in (InProcess, Loopback):
        run = federation(transport, weighted=weighted).fit(task, **ways)
        found, expected = (each.model.files() for each in (run, whole))
        if isinstance(task, cn.Regression) and task.l2 != "cv":  # of which sums were added up in another order
            np.testing.assert_allclose(run.model.coef_, whole.model.coef_, rtol=1e-10, atol=1e-12)
            assert run.diagnostics == pytest.approx(whole.diagnostics, rel=1e-10)
        else:
            assert found == expected
            assert run.diagnostics == whole.diagnostics
        assert run.ledger.units == whole.ledger.units
        assert sum(entry.kind == "Columns" for entry in run.ledger) == 3 * sum(
            entry.kind == "Columns" for entry in whole.ledger
        )


@pytest.mark.usefixtures("small_messages")
def test_a_regression_of_windows_is_as_certain_as_of_all_rows_at_once() -> None:
    run = federation().fit(cn.Regression(), sampler=cn.AllRows(), solver=cn.Central())
    assert federation().certify(run).excess == 0
    with pytest.raises(cn.UnsupportedError, match='Use covariance="classical"'):
        run.summary()
    joined = np.column_stack([X, np.ones(N)])
    residuals = Y - joined @ np.linalg.lstsq(joined, Y)[0]
    classical = np.sqrt(np.diag(np.linalg.inv(joined.T @ joined)) * (residuals @ residuals) / (N - 5))
    errors = [each.standard_error for each in run.summary(covariance="classical").coefficients]
    np.testing.assert_allclose(np.roll(np.array(errors, float), -1), classical, rtol=1e-6)


def test_constant_and_dependent_columns_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What rounding leaves of them in one window is no direction of its own."""
    values = np.column_stack([X[:, :1], np.full(N, 1e6 / 3), X[:, :1] * 2])
    parties = cn.split_columns(values, Y, [1, 1, 1])
    whole = cn.Federation(parties).fit(cn.Regression(), sampler=cn.AllRows()).model
    monkeypatch.setattr(central, "AT_ONCE", 60_000)
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    model = cn.Federation(parties).fit(cn.Regression(), sampler=cn.AllRows()).model
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-8, atol=1e-12)
    assert model.coef_[1] == 0


@pytest.mark.usefixtures("small_messages")
def test_a_window_without_a_row_that_counts() -> None:
    marks = np.arange(N) < BLOCK_ROWS
    parties = [cn.Party("a", X[:, :2], split=marks), cn.Party("b", X[:, 2:], label=Y)]
    run = cn.Federation(parties).fit(cn.Regression(), sampler=cn.AllRows(), split=cn.SplitBy("a"))
    kept, labels = (each[BLOCK_ROWS:] - each[BLOCK_ROWS:].mean(axis=0) for each in (X, Y))
    np.testing.assert_allclose(run.model.coef_, np.linalg.lstsq(kept, labels)[0], rtol=1e-8)


@pytest.mark.usefixtures("small_messages")
def test_no_row_of_a_regression_is_kept() -> None:
    """Nor is any listed: a few windows at a time, however many rows there are."""
    peaks = []
    for n_rows in (1 << 16, 1 << 19, 1 << 20):
        large = computed_federation(n_rows)
        tracemalloc.start()
        run = large.fit(cn.Regression(l2=0.1), sampler=cn.AllRows(), solver=cn.Central())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert not {"rows", "weights"} & run.coreset.__dict__.keys()
    assert peaks[2] - peaks[1] < 1 << 19, "less than a byte a row"


@pytest.mark.usefixtures("small_messages")
def test_columns_that_vary_more_than_they_were_said_to() -> None:
    transport = type("Wild", (Meddled,), {"changes": {"features": sendable_floats(1e4 * np.ones((LEFT, 1)))}})
    with pytest.raises(cn.RemoteProtocolError, match="'third' sent a Columns with a column that varies more"):
        federation(transport).fit(cn.Regression(standardize=True), sampler=cn.AllRows(), solver=cn.Central())


@pytest.mark.usefixtures("small_messages")
def test_drawn_rows_do_not_come_in_windows() -> None:
    with pytest.raises(cn.InputError, match=r"40,000 rows do not fit one message, which has 20,000 of 3 numbers"):
        federation().fit(cn.Regression(), sampler=cn.UniformSampling(N), solver=cn.Central())


class Meddled(InProcess):
    """A party that changes its reply to the last window."""

    def exchange(self, outbox: Any) -> Any:
        inbox = dict(super().exchange(outbox))
        for party, request in outbox.items():
            if isinstance(request, AskColumnWindow) and request.stop == N and party == "third":
                inbox[party] = msgspec.structs.replace(inbox[party], **self.changes)
        return inbox

    changes: ClassVar[dict[str, Any]] = {}


LEFT = N % BLOCK_ROWS


@pytest.mark.usefixtures("small_messages")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": sendable_floats(np.ones((LEFT + 1, 1)))}, "shape"),
        ({"labels": sendable_floats(np.ones(LEFT - 1))}, "shape"),
        ({"labels": None}, "labels where none were due, or none where they were"),
        ({"features": sendable_floats(np.full((LEFT, 1), np.nan))}, "NaN"),
    ],
)
def test_a_window_that_no_honest_party_sends(changes: Any, message: str) -> None:
    transport = type("Changed", (Meddled,), {"changes": changes})
    with pytest.raises(cn.RemoteProtocolError, match=f"'third' sent a Columns with .*{message}"):
        federation(transport).fit(cn.Regression(), sampler=cn.AllRows(), solver=cn.Central())


def session(selection: Message, **policy: Any) -> Any:
    table = read_table("third", X[:, 3:], label=Y)
    opened = party_session(table, Policy(**({"level": "open"} | policy)))
    for request in (Hello(WIRE_VERSION), selection):
        opened.answer(request)
    return opened


FIRST = AskColumnWindow(with_label=True, first=0, stop=N, n_columns=2)


def test_a_window_has_the_rows_that_count_and_no_others() -> None:
    reply = session(UseAllRows()).answer(FIRST)
    assert isinstance(reply, Columns)
    np.testing.assert_array_equal(reply.features, X[:, 3:])
    np.testing.assert_array_equal(reply.labels, Y)


@pytest.mark.parametrize(
    "asked",
    [
        AskColumnWindow(True, 1, N, 2),
        AskColumnWindow(True, 0, N - 1, 2),
        AskColumnWindow(True, 0, 3, 2),
        AskColumnWindow(True, -BLOCK_ROWS, 0, 2),
        AskColumnWindow(True, BLOCK_ROWS * 8, BLOCK_ROWS * 16, 2),
        AskColumnWindow(True, 0, N, 1 << 40),
        AskColumnWindow(True, N, N, 2),
    ],
)
def test_a_window_that_the_rows_are_not_cut_into(asked: AskColumnWindow) -> None:
    reply = session(UseAllRows()).answer(asked)
    assert isinstance(reply, Refused)
    assert "a window of rows" in reply.reason


def test_no_window_of_rows_that_were_listed() -> None:
    reply = session(UseRows(sendable_rows(np.arange(N)))).answer(FIRST)
    assert isinstance(reply, Refused)
    assert "a window of all rows, where others were agreed on" in reply.reason


def test_a_policy_judges_all_windows_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    opened = session(UseAllRows(), rows_a_request=BLOCK_ROWS)
    reply = opened.answer(AskColumnWindow(True, 0, BLOCK_ROWS, 2))
    assert isinstance(reply, Refused)
    assert "limits a reply to 16,384 rows; this Columns has 40,000" in reply.reason


def route(*, takes_all: bool = True) -> Route:
    """What a party of the job expects of Central, as its sheet has it."""
    return cn.Central().route(cn.Regression(), Agreed(federation().roster, "third", 0, None, N, N, takes_all=takes_all))


@pytest.mark.usefixtures("small_messages")
def test_windows_come_once_and_in_their_order() -> None:
    first, second, last = (
        AskColumnWindow(True, start, min(start + BLOCK_ROWS, N), 3) for start in range(0, N, BLOCK_ROWS)
    )
    left = route().after(first)
    assert left is not None
    for wrong in (first, last, AskColumns(True), msgspec.structs.replace(second, n_columns=4)):
        assert left.after(wrong) is None, wrong
    ended = left.after(second)
    assert ended is not None
    assert (done := ended.after(last)) is not None
    assert done.can_end
    assert done.after(last) is None
    changed = (msgspec.structs.replace(first, **other) for other in ({"with_label": False}, {"n_columns": 2}))
    for wrong in (second, *changed):
        assert route().after(wrong) is None, wrong


def test_what_is_no_more_or_was_drawn_comes_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = AskColumnWindow(with_label=True, first=0, stop=N, n_columns=3)
    assert route().after(whole) is None
    assert route().after(AskColumns(with_label=True)) is not None
    monkeypatch.setattr(central, "AT_ONCE", 5 * N)
    assert route().after(whole) is None
    monkeypatch.setattr(central, "AT_ONCE", 5 * N - 1)
    assert route().after(whole) is not None
    assert route().after(AskColumns(with_label=True)) is None
    assert route(takes_all=False).after(whole) is None
    assert route(takes_all=False).after(AskColumns(with_label=True)) is not None


@pytest.mark.usefixtures("small_messages")
def test_all_rows_that_are_used_again_are_listed_rows() -> None:
    """Parties were told which, and take them for no more than that."""
    coreset = federation().coreset(cn.Regression(), cn.AllRows()).coreset
    with pytest.raises(cn.InputError, match="40,000 rows do not fit one message"):
        federation().fit(cn.Regression(), coreset=coreset, solver=cn.Central())
