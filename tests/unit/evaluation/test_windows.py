"""Models applied window by window: the same results, whoever asks; and no window but those of the job sheet."""

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec, party_session
from colonnade.data.tables import read_table
from colonnade.evaluation.applying import class_losses_route, evaluated_route, predicted_route
from colonnade.evaluation.classes.messages import AskClassLosses, ClassLosses, told_of
from colonnade.evaluation.clustering import AskPartialDistances
from colonnade.evaluation.linear import AskPartialPredictions, PartialPredictions
from colonnade.evaluation.telling import model_digest
from colonnade.kernels import selections
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.messages import Message, sendable_floats
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.memory import KeptHere, SumNote
from colonnade.protocol.policy import Policy, amounts
from colonnade.protocol.refusal import Refused
from colonnade.routes import END, Route
from colonnade.sampling.selecting import UseAllRows
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback
from secure_trial import Wire

N = 40_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4)) + np.array([1e3, 0.0, 0.0, 5.0])
Y = X @ [1.0, -2.0, 0.5, 0.0] + RNG.normal(size=N)
WEIGHTS = RNG.integers(0, 4, size=N).astype(float)
CLASS = np.where(np.median(Y) < Y, "late", "on time")
GRADE = np.digitize(Y, np.quantile(Y, [0.3, 0.7])).astype(float)


def parties(label: Any = Y, **third: Any) -> list[cn.Party]:
    return [
        cn.Party("first", X[:, :2], weight=WEIGHTS),
        cn.Party("second", X[:, 2:3]),
        cn.Party("third", X[:, 3:], label=label, **third),
    ]


NAMES = ("first_0", "first_1", "second_0", "third_0")
PARTS = {"first": 2, "second": 1, "third": 1}
LINEAR = cn.LinearModel(np.array([0.9, -2.1, 0.5, 0.1]), 3.0, NAMES, parts_=PARTS)
CLUSTERS = cn.KMeansModel(X[:5] + 0.1, NAMES, parts_=PARTS)
YES_NO = cn.ClassificationModel(
    np.array([[1.0, -2.0, 0.5, 0.0]]), np.array([-1e3]), ("late", "on time"), NAMES, parts_=PARTS
)
OF_GRADES = np.array([[-1.0, 2.0, -0.5, 0.0], [0.0, 0.0, 0.0, 0.1], [1.0, -2.0, 0.5, 0.0]])
GRADES = cn.ClassificationModel(OF_GRADES, np.array([998.0, 0.0, -1002.0]), (0, 1, 2), NAMES, parts_=PARTS)
SPLIT = cn.HoldOut(0.3, seed=1)


def delivered(federation: cn.Federation) -> Any:
    federation.predict(LINEAR, to="second")
    found = federation.received("second")
    assert found is not None
    return found.predictions


JOBS: dict[str, tuple[Any, Callable[[cn.Federation], Any]]] = {
    "evaluate": (Y, lambda f: f.evaluate(LINEAR)),
    "evaluate, held out": (Y, lambda f: f.evaluate(LINEAR, split=SPLIT)),
    "evaluate, drawn": (Y, lambda f: f.evaluate(LINEAR, rows=35_000, seed=2)),
    "evaluate, clusters": (Y, lambda f: f.evaluate(CLUSTERS)),
    "evaluate, clusters drawn": (Y, lambda f: f.evaluate(CLUSTERS, rows=35_000, seed=2)),
    "evaluate, clusters held out": (Y, lambda f: f.evaluate(CLUSTERS, split=SPLIT)),
    "evaluate, classes": (CLASS, lambda f: f.evaluate(YES_NO)),
    "evaluate, classes held out": (CLASS, lambda f: f.evaluate(YES_NO, split=SPLIT)),
    "evaluate, classes drawn": (CLASS, lambda f: f.evaluate(YES_NO, rows=35_000)),
    "evaluate, grades": (GRADE, lambda f: f.evaluate(GRADES)),
    "predict": (Y, lambda f: f.predict(LINEAR)),
    "predict, chosen": (Y, lambda f: f.predict(LINEAR, rows=np.arange(N)[::-1][:35_000])),
    "predict, clusters": (Y, lambda f: f.predict(CLUSTERS)),
    "predict, grades": (GRADE, lambda f: f.predict(GRADES).probabilities),
    "predict, delivered": (Y, lambda f: delivered(f)),
}
ROUNDED: dict[str, tuple[Any, Callable[[cn.Federation], Any]]] = {
    "evaluate": (Y, lambda f: f.evaluate(LINEAR, bits=16)),
    "evaluate, clusters": (Y, lambda f: f.evaluate(CLUSTERS, bits=16)),
    "predict": (Y, lambda f: f.predict(LINEAR, bits=16)),
    "evaluate, classes": (CLASS, lambda f: f.evaluate(YES_NO, bits=16)),
}


# What the label party is told of a classification: its coefficients, the intercepts and the classes.
LABEL_UNITS = {"evaluate, classes": 1 + 1 + 2, "evaluate, grades": 3 + 3 + 3}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a window of every block: three of these tables."""
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)


def numbers(found: Any) -> list[float]:
    """List all numbers of a report, or of predictions."""
    if isinstance(found, np.ndarray):
        return found.ravel().tolist()
    told = [found] if isinstance(found, int | float) else found if isinstance(found, list | tuple) else []
    if isinstance(found, msgspec.Struct):
        told = list(msgspec.structs.asdict(found).values())
    return [float(found)] if isinstance(found, int | float) else [each for part in told for each in numbers(part)]


def n_windows(federation: cn.Federation) -> int:
    """Count the rounds of the last job in which a model was applied."""
    kinds = ("PartialPredictions", "PartialDistances", "RoundedParts")
    return len({entry.round for entry in federation.ledger if entry.kind in kinds})


@pytest.mark.parametrize("job", JOBS)
def test_windows_change_nothing(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    label, do = JOBS[job]
    whole = cn.Federation(parties(label))
    wanted = do(whole)
    assert n_windows(whole) == 1
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    cut = {transport: cn.Federation(parties(label), transport=transport) for transport in (InProcess, Loopback)}
    found = {transport: do(federation) for transport, federation in cut.items()}
    assert {n_windows(federation) for federation in cut.values()} == {3}
    assert numbers(found[InProcess]) == numbers(found[Loopback]), "bit for bit"
    np.testing.assert_allclose(numbers(found[InProcess]), numbers(wanted), rtol=1e-11)
    assert cut[InProcess].ledger == cut[Loopback].ledger
    spreads = sum(entry.units for entry in cut[InProcess].ledger) - sum(entry.units for entry in whole.ledger)
    model_units = sum(
        entry.units for entry in cut[InProcess].ledger if entry.kind in ("AskPartialPredictions", "AskPartialDistances")
    )
    of_classes = next((n for name, n in LABEL_UNITS.items() if job.startswith(name)), 0)
    assert spreads == (model_units + 3 * of_classes) * 2 // 3, "the model comes with each window, nothing else"


@pytest.mark.parametrize("job", ROUNDED)
@pytest.mark.usefixtures("small")
def test_rounded_windows_keep_to_their_bound(job: str) -> None:
    label, do = ROUNDED[job]
    federations = [cn.Federation(parties(label), transport=transport) for transport in (InProcess, Loopback)]
    first, second = map(do, federations)
    assert n_windows(federations[0]) == 3
    assert numbers(first) == numbers(second)
    exact = JOBS[job][1](federations[0])
    if isinstance(first, np.ndarray):
        assert 0 < np.abs(first - exact).max() < 0.1
        for some in (slice(0, BLOCK_ROWS), slice(2 * BLOCK_ROWS, N)):
            apart = first[some] - exact[some]
            # Uniform errors, each window with a dither of its own: their mean is within six standard errors of 0.
            assert abs(apart.mean()) < 6 * apart.std() / np.sqrt(len(apart))
    else:
        assert first.rounded_by is not None
        assert 0 < first.rounded_by < 0.1
        assert first.cost == pytest.approx(exact.cost, rel=1e-3)


def test_dithers_of_windows_differ() -> None:
    """One dither for all windows would show in sums of their errors."""
    rows = np.tile(RNG.normal(size=(BLOCK_ROWS, 2)), (2, 1))
    federation = cn.Federation(cn.split_columns(rows, None, [1, 1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selections, "WINDOW_NUMBERS", 1)
        found = federation.predict(
            cn.LinearModel(np.ones(2), 0.0, federation.roster.feature_names, parts_={"party1": 1, "party2": 1}), bits=6
        )
    first, second = np.split(found - rows.sum(axis=1), 2)
    # Independent errors correlate by more than this with a chance of one in a billion.
    assert abs(np.corrcoef(first, second)[0, 1]) < 6 / np.sqrt(BLOCK_ROWS)


@pytest.mark.usefixtures("small")
def test_many_windows_are_one_line_of_the_ledger() -> None:
    federation = cn.Federation(parties())
    position = len(federation.ledger)
    federation.evaluate(CLUSTERS)
    lines = str(federation.ledger.since(position)).splitlines()
    (told,) = [line.split() for line in lines if " PartialDistances " in line]
    assert told[:2] == ["predicting", "9-11"], "after three windows of weights, and two that were brought"
    assert f"{3 * 5 * int(np.count_nonzero(WEIGHTS)):,}" in told, "all windows together"


# A hostile server

COEF, CENTERS = sendable_floats([1.0, 2.0]), sendable_floats(np.ones((16, 2)))
MODEL = model_digest((COEF, None, None))


def asked(first: int, stop: int) -> AskPartialPredictions:
    return AskPartialPredictions(COEF, less_label=False, by_weight=False, first=first, stop=stop)


def after(route: Route | None, *requests: Message) -> Route | None:
    for request in requests:
        route = None if route is None else route.after(request)
    return route


@pytest.mark.usefixtures("small")
def test_every_window_once_and_in_order() -> None:
    first, second, third = windows = [asked(0, BLOCK_ROWS), asked(BLOCK_ROWS, 2 * BLOCK_ROWS), asked(2 * BLOCK_ROWS, N)]
    route = predicted_route(MODEL, N, None, 0, delivered=False)
    assert after(route, *windows) is END
    for refused in (
        (second,),
        (third,),
        (first, first),
        (first, third),
        (first, second, second),
        (first, second, third, third),
        (first, second, third, first),
        (asked(0, N),),
        (asked(0, 2 * BLOCK_ROWS),),
        (asked(0, BLOCK_ROWS - 1),),
        (asked(0, BLOCK_ROWS + 1),),
        (first, asked(BLOCK_ROWS - 1, 2 * BLOCK_ROWS)),
        (first, asked(BLOCK_ROWS + 1, 2 * BLOCK_ROWS)),
        (first, asked(BLOCK_ROWS, N)),
        (first, second, asked(2 * BLOCK_ROWS, N + 1)),
        (first, AskPartialDistances(CENTERS, None, BLOCK_ROWS, 2 * BLOCK_ROWS)),
    ):
        assert after(route, *refused) is None
    left = after(route, first)
    assert left is not None
    assert not left.can_end
    assert "the window from 16,384 on of 40,000 rows" in str(left.objection(third))


def test_a_job_of_few_rows_is_one_window() -> None:
    route = evaluated_route(MODEL, N, None, 0, by_weight=False)
    whole = AskPartialPredictions(COEF, less_label=True, by_weight=False, first=0, stop=N)
    assert after(route, whole) is END
    assert after(route, msgspec.structs.replace(whole, stop=BLOCK_ROWS)) is None


@pytest.mark.usefixtures("small")
def test_logits_are_brought_in_order() -> None:
    route = class_losses_route(MODEL, N, 2, None, 0, has_label=True, by_weight=True)
    logits = sendable_floats(np.zeros(4))
    ends = ((0, BLOCK_ROWS), (BLOCK_ROWS, 2 * BLOCK_ROWS), (2 * BLOCK_ROWS, N))
    first, second, last = (AskClassLosses(COEF, logits, logits, logits, None, True, *each) for each in ends)
    assert after(route, first, second, last) is END
    for refused in (
        (last,),
        (first, last),
        (second,),
        (first, first),
        (first, second, msgspec.structs.replace(last, first=0)),
        (first, msgspec.structs.replace(second, coef=sendable_floats([9.0]))),
        (first, msgspec.structs.replace(second, by_weight=False)),
        (msgspec.structs.replace(first, others=sendable_floats(np.zeros((4, 3)))),),
    ):
        assert after(route, *refused) is None


@pytest.mark.parametrize(("first", "stop"), [(-1, 9), (0, 5), (0, 11), (5, 10), (10, 10), (2**62, 2**62), (0, -1)])
def test_a_session_without_a_sheet_knows_windows_too(first: int, stop: int) -> None:
    table = read_table("a", np.arange(20.0).reshape(10, 2), label=np.ones(10))
    session = party_session(table, Policy(level="open"))
    for request in (Hello(WIRE_VERSION), UseAllRows()):
        assert not isinstance(session.answer(request), Refused)
    for bad in (asked(first, stop), compared(np.zeros(10), first, stop)):
        reply = session.answer(codec().decode(codec().encode(bad)))
        assert isinstance(reply, Refused)
        assert "a window of rows" in reply.reason


def compared(others: Floats, first: int, stop: int, **changes: Any) -> AskClassLosses:
    """Ask for losses of a window, of a model of two columns and classes."""
    zeros = sendable_floats([0.0, 0.0])
    asked = AskClassLosses(
        zeros, sendable_floats(others), zeros[:1], sendable_floats([0.0, 1.0]), None, True, first, stop
    )
    return msgspec.structs.replace(asked, **changes)


@pytest.mark.usefixtures("small")
def test_windows_of_logits_are_of_one_model_and_nothing_is_told_before_the_last() -> None:
    """A server without a sheet may ask what it likes, but not what two models make of one window each."""
    table = read_table("a", np.arange(2.0 * N).reshape(N, 2), label=np.arange(N) % 2)
    session = party_session(table, Policy(level="open"))
    for request in (Hello(WIRE_VERSION), UseAllRows()):
        session.answer(request)
    zeros, ends = np.zeros(BLOCK_ROWS), (BLOCK_ROWS, 2 * BLOCK_ROWS)
    first = session.answer(compared(zeros, 0, BLOCK_ROWS))
    assert isinstance(first, ClassLosses)
    assert not any(map(len, told_of(first)))
    for changes in (
        {"coef": sendable_floats([0.0, 1.0])},
        {"intercepts": sendable_floats([1.0])},
        {"values": sendable_floats([0.0, 2.0])},
        {"by_weight": False},
    ):
        assert "where 0 would be next" in refused(session.answer(compared(zeros, *ends, **changes)))
    assert "shape" in refused(session.answer(compared(zeros[1:], *ends)))
    assert not isinstance(session.answer(compared(zeros, *ends)), Refused)
    last = session.answer(compared(np.zeros(N - ends[1]), ends[1], N))
    assert isinstance(last, ClassLosses)
    assert last.confusion.sum() == N


def refused(reply: Any) -> str:
    assert isinstance(reply, Refused)
    return reply.reason


class Meddled(InProcess):
    """A party that changes its reply to the last window."""

    changes: ClassVar[dict[str, Any]] = {}

    def exchange(self, outbox: Any) -> Any:
        inbox = dict(super().exchange(outbox))
        for party, request in outbox.items():
            if isinstance(request, AskPartialPredictions) and request.stop == N and party == "third":
                inbox[party] = msgspec.structs.replace(inbox[party], **self.changes)
        return inbox


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"label_spread": 1.0}, "a label's spread where none was due"),
        ({"values": sendable_floats(np.ones(N))}, "shape"),
        ({"values": sendable_floats(np.full(N - 2 * BLOCK_ROWS, np.nan))}, "NaN"),
        ({"values": sendable_floats(np.ones(N - 2 * BLOCK_ROWS))}, "a label's spread of .*, where its labels have"),
    ],
)
@pytest.mark.usefixtures("small")
def test_what_a_party_may_not_tell_of_a_later_window(changes: dict[str, Any], why: str) -> None:
    lying = type("Lying", (Meddled,), {"changes": changes})
    bare = cn.LinearModel(np.array([1.0, 1.0, 1.0, 0.0]), 0.0, NAMES, parts_=PARTS)
    unweighted = [cn.Party("first", X[:, :2]), cn.Party("second", X[:, 2:3]), cn.Party("third", X[:, 3:], label=Y)]
    with pytest.raises(cn.RemoteProtocolError, match=f"'third' sent a PartialPredictions with .*{why}"):
        cn.Federation(unweighted, transport=lying).evaluate(bare)


# The owner's policy


@pytest.mark.parametrize("model", [LINEAR, CLUSTERS], ids=["linear", "clusters"])
@pytest.mark.usefixtures("small")
def test_windows_pass_no_limit_of_rows(model: Any) -> None:
    """A window has 16,384 rows, and the owner lets 20,000 be told: a job of 40,000 is refused before the first."""
    capped = parties(policy=cn.Policy(level="open", rows_a_request=20_000))
    federation = cn.Federation(capped)
    counted = int(np.count_nonzero(WEIGHTS))
    jobs: list[Callable[[Any], Any]] = [federation.predict, federation.evaluate]
    for job in jobs:
        position = len(federation.ledger)
        with pytest.raises(cn.PolicyRefusedError, match=r"limits a reply to 20,000 rows; this .* has "):
            job(model)
        told = [entry.kind for entry in federation.ledger.since(position) if entry.sender == "third"]
        assert not [kind for kind in told if kind.startswith("Partial")]
    assert counted > 20_000
    assert federation.evaluate(model, rows=20_000).n_evaluated == 20_000
    assert len(federation.predict(model, rows=np.arange(20_000))) == 20_000
    with pytest.raises(cn.PolicyRefusedError, match="limits a reply to 20,000 rows"):
        federation.predict(model, rows=np.arange(20_001))


def test_all_windows_of_a_model_count_as_one_model() -> None:
    reply = PartialPredictions(sendable_floats(np.ones(3)), None)
    assert [amounts(asked(first, first + 3), reply)["models"] for first in (0, 3, 6)] == [1, 0, 0]
    assert amounts(asked(3, 6), reply)["rows"] == 3


@pytest.mark.usefixtures("small")
def test_logits_of_every_window_name_what_is_told() -> None:
    """An owner who counts what is told counts two evaluations that differ in their first window alone."""
    table, memory = read_table("a", np.arange(2.0 * N).reshape(N, 2), label=np.arange(N) % 2), KeptHere()
    for logit in (0.0, 1.0, 1.0):
        session = party_session(table, Policy(level="open", least_rows=4), memory=memory)
        for request in (Hello(WIRE_VERSION), UseAllRows()):
            session.answer(request)
        for first in range(0, N, BLOCK_ROWS):
            stop = min(first + BLOCK_ROWS, N)
            others = np.full(stop - first, logit if first == 0 else 0.0)
            assert isinstance(session.answer(compared(others, first, stop)), ClassLosses)
    assert sum(isinstance(note, SumNote) for note in memory.notes()) == 2


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("field", ["sums", "confusion", "areas", "calibration"])
def test_a_party_that_tells_sums_before_the_last_window_is_named(field: str) -> None:
    def meddle(_: str, __: str, data: bytes) -> bytes:
        message = codec().decode(data)
        told = {field: sendable_floats(np.zeros((1, 3)))}
        return codec().encode(msgspec.structs.replace(message, **told)) if isinstance(message, ClassLosses) else data

    with pytest.raises(cn.RemoteProtocolError, match=r"'third' sent .*sums before the last window"):
        cn.Federation(parties(CLASS), transport=Wire(meddle)).evaluate(YES_NO)
