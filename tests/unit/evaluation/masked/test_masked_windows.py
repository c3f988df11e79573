"""Models applied under masks window by window: the same results, and no window but those of the job sheet."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.evaluation.applying import masked_route
from colonnade.evaluation.classes.messages import AskMaskedClassLosses, BringMaskedClasses
from colonnade.evaluation.masked.messages import (
    AskLosses,
    AskMagnitude,
    AskMaskedPredictions,
    BringMasked,
    DeliverMasked,
    MaskedPredictions,
    MaskedReceived,
)
from colonnade.evaluation.telling import model_digest
from colonnade.kernels import selections
from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.messages import Message, sendable_floats
from colonnade.privacy.pair_keys import AskPairAgreement, AskPairKey
from colonnade.privacy.statements import CircleKeys
from colonnade.protocol import windows
from colonnade.routes import Route
from colonnade.tasks.jobs import deliver_in_secret, evaluate_in_secret
from colonnade.transports.loopback import Loopback
from harness import play
from secure_trial import Recording, Restarting, Wire

N = 40_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4)) + np.array([3.0, 0.0, 0.0, 5.0])
Y = X @ [1.0, -2.0, 0.5, 0.0] + RNG.normal(size=N)
WEIGHTS = RNG.integers(0, 4, size=N).astype(float)
CLASS = np.where(np.median(Y) < Y, "late", "on time")
GRADE = np.digitize(Y, np.quantile(Y, [0.3, 0.7])).astype(float)
NAMES, PARTS = ("first_0", "first_1", "second_0", "third_0"), {"first": 2, "second": 1, "third": 1}
LINEAR = cn.LinearModel(np.array([0.9, -2.1, 0.5, 0.1]), 3.0, NAMES, parts_=PARTS)
CLUSTERS = cn.KMeansModel(X[:5] + 0.1, NAMES, parts_=PARTS)
YES_NO = cn.ClassificationModel(
    np.array([[1.0, -2.0, 0.5, 0.0]]), np.array([-3.0]), ("late", "on time"), NAMES, parts_=PARTS
)
OF_GRADES = np.array([[-1.0, 2.0, -0.5, 0.0], [0.0, 0.0, 0.0, 0.1], [1.0, -2.0, 0.5, 0.0]])
GRADES = cn.ClassificationModel(OF_GRADES, np.array([1.0, 0.0, -1.0]), (0, 1, 2), NAMES, parts_=PARTS)


def parties(label: Any = Y, level: str = "open") -> list[cn.Party]:
    policy = cn.Policy(level=level)  # type: ignore[arg-type]  # one of its levels
    return [
        cn.Party("first", X[:, :2], weight=WEIGHTS, policy=policy),
        cn.Party("second", X[:, 2:3], policy=policy),
        cn.Party("third", X[:, 3:], label=label, policy=policy),
    ]


def federation(transport: Any = Loopback, label: Any = Y, level: str = "open") -> cn.Federation:
    return cn.Federation(parties(label, level), transport=transport)


def delivered(model: Any) -> Callable[[cn.Federation], Any]:
    def do(federation: cn.Federation) -> Any:
        federation.deliver(model, "second")
        found = federation.received("second")
        assert found is not None
        assert len(found.rows) == N
        return getattr(found.predictions, "probabilities", found.predictions)

    return do


JOBS: dict[str, tuple[Any, Callable[[cn.Federation], Any]]] = {
    "evaluate": (Y, lambda f: f.evaluate(LINEAR, by="second")),
    "evaluate, by the label party": (Y, lambda f: f.evaluate(LINEAR, by="third")),
    "evaluate, held out": (Y, lambda f: f.evaluate(LINEAR, by="second", split=cn.HoldOut(0.3, seed=1))),
    "evaluate, drawn": (Y, lambda f: f.evaluate(LINEAR, by="second", rows=35_000, seed=2)),
    "evaluate, clusters": (Y, lambda f: f.evaluate(CLUSTERS, by="first")),
    "evaluate, classes": (CLASS, lambda f: f.evaluate(YES_NO, by="third")),
    "evaluate, grades": (GRADE, lambda f: f.evaluate(GRADES, by="third")),
    "deliver": (Y, delivered(LINEAR)),
    "deliver clusters": (Y, delivered(CLUSTERS)),
    "deliver classes": (CLASS, delivered(YES_NO)),
    "deliver grades": (GRADE, delivered(GRADES)),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a window of every block: three of these tables."""
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)


def numbers(found: Any) -> list[float]:
    if isinstance(found, np.ndarray):
        return found.ravel().tolist()
    if isinstance(found, msgspec.Struct):
        found = list(msgspec.structs.asdict(found).values())
    if isinstance(found, list | tuple):
        return [each for part in found for each in numbers(part)]
    return [float(found)] if isinstance(found, int | float) else []


@pytest.mark.parametrize("job", JOBS)
def test_windows_change_nothing(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    label, do = JOBS[job]
    whole = do(federation(label=label))
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    wire = Recording()
    cut = do(federation(wire, label))
    asked = [codec().decode(data) for data in wire.sent]
    assert sum(isinstance(each, BringMasked | BringMaskedClasses) for each in asked) == 2, "the last is delivered"
    assert sum(isinstance(each, AskMaskedPredictions) for each in asked) == 3 * 3
    np.testing.assert_allclose(numbers(cut), numbers(whole), rtol=1e-11, atol=1e-9)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("intercept", [1e101, 7e151, 8e151])
def test_an_intercept_whose_losses_have_no_sum_is_refused(intercept: float) -> None:
    """Of several windows they are added up, and that they overflow was no named error."""
    shared = federation()
    model = cn.LinearModel(LINEAR.coef_, intercept, NAMES, parts_=PARTS)
    with pytest.raises(cn.ColonnadeError):
        play(shared, evaluate_in_secret(model, None, None, "second", shared.roster, 0))


@pytest.mark.parametrize("job", ["deliver classes", "deliver grades"])
def test_no_more_chances_are_kept_than_a_message_could_bring(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a server has a party keep a hundred numbers of every row."""
    monkeypatch.setattr(windows, "MAX_NUMBERS", 2 * N)
    label, do = JOBS[job]
    if job == "deliver classes":
        do(federation(label=label))
        return
    with pytest.raises(cn.InputError, match="3 numbers of 40,000 rows would be kept"):
        do(federation(label=label))


@pytest.mark.usefixtures("small")
def test_no_two_windows_have_the_same_masks() -> None:
    """Of equal rows, and equal masks, the differences of two windows would be zeros."""
    rows = np.tile(RNG.normal(size=(BLOCK_ROWS, 3)), (2, 1))
    wire = Recording()
    shared = cn.Federation(cn.split_columns(rows, None, [1, 1, 1]), transport=wire)
    model = cn.LinearModel(np.ones(3), 0.0, shared.roster.feature_names)
    shared.deliver(model, "party3")
    sent = [reply.masked for reply in wire.replies() if isinstance(reply, MaskedPredictions) and reply.masked]
    assert len(sent) == 4
    words = [np.frombuffer(each, np.uint8).reshape(-1, 7) for each in sent]
    for first, second in ((0, 2), (1, 3)):
        # Independent bytes are equal once in 256.
        assert np.mean(words[first] == words[second]) < 0.02


@pytest.mark.parametrize("kind", ["AskMaskedPredictions", "BringMasked", "AskLosses", "AskPairAgreement"])
@pytest.mark.parametrize("party", ["second", "third"])
@pytest.mark.usefixtures("small")
def test_a_party_that_restarts_between_windows_changes_nothing(kind: str, party: str) -> None:
    restarting = Restarting(kind, party)
    found = federation(restarting).evaluate(LINEAR, by="second")
    assert restarting.restarts == (party == "second" or kind not in ("BringMasked", "AskLosses"))
    assert numbers(found) == numbers(federation().evaluate(LINEAR, by="second")), "bit for bit"


# A hostile server

COEF = sendable_floats([1.0, 2.0])
MODEL = model_digest((COEF, None, None))
KEYS = CircleKeys(b"", ())
MAGNITUDE, BROUGHT = AskMagnitude(COEF, None, None, evaluating=True), BringMasked((), 0.0, 0, BLOCK_ROWS)
LAST = AskLosses((), 0.0, 2 * BLOCK_ROWS, N)


def asked(first: int, stop: int) -> AskMaskedPredictions:
    return AskMaskedPredictions(COEF, None, None, True, True, 7, "bank", None if first else KEYS, first, stop)


def after(route: Route | None, *requests: Message) -> Route | None:
    for request in requests:
        route = None if route is None else route.after(request)
    return route


@pytest.mark.parametrize("party", ["bank", "shop"])
@pytest.mark.usefixtures("small")
def test_every_window_once_and_in_order(party: str) -> None:
    route = masked_route(MODEL, N, "bank", party, evaluating=True, by_weight=True)
    first, second, third = asked(0, BLOCK_ROWS), asked(BLOCK_ROWS, 2 * BLOCK_ROWS), asked(2 * BLOCK_ROWS, N)
    brought, last = ([BROUGHT], [LAST]) if party == "bank" else ([], [])
    begun = (MAGNITUDE, AskPairKey())
    fair = (first, *brought, second, *brought, third, *last)
    for length in range(len(fair) + 1):
        left = after(route, *begun, *fair[:length])
        assert left is not None
        assert left.after(AskPairKey()) is not None, "a key may be lost anywhere"
    assert after(route, *begun, *fair, AskPairAgreement(())) is not None
    for refused in (
        (second,),
        (third,),
        (first, *brought, first),
        (first, *brought, third),
        (asked(0, N),),
        (asked(0, 2 * BLOCK_ROWS),),
        (asked(0, BLOCK_ROWS - 1),),
        (first, *brought, asked(BLOCK_ROWS - 1, 2 * BLOCK_ROWS)),
        (first, *brought, asked(BLOCK_ROWS, N)),
        (*fair, third),
        (*fair, first),
        (first, LAST),
        (first, *brought, BROUGHT),
        (first, DeliverMasked((), 0.0, 0, BLOCK_ROWS)),
        (*fair, LAST),
    ):
        assert after(route, *begun, *refused) is None
    if party == "bank":
        assert after(route, *begun, first, second) is None, "the others' parts come before the next window"
    else:
        assert after(route, *begun, first, BROUGHT) is None, "who learns nothing is brought nothing"


def meddled(kind: type[Message], change: Callable[[Any], Message], time: int, to: str = "second") -> Wire:
    """Change the request of this kind that is so many before the last of the three."""
    seen = 0

    def meddle(_: str, receiver: str, data: bytes) -> bytes:
        nonlocal seen
        message = codec().decode(data)
        if type(message) is not kind or receiver != to:
            return data
        seen += 1
        return codec().encode(change(message)) if seen == time else data

    return Wire(meddle)


def evaluated(wire: Any) -> Any:
    """Let one evaluate, in a run without a sheet: what else stops a server is tried."""
    shared = federation(wire)
    return play(shared, evaluate_in_secret(LINEAR, None, None, "second", shared.roster, 0))


@pytest.mark.parametrize(
    ("kind", "time", "changes", "why"),
    [
        (AskMaskedPredictions, 2, {"first": 0, "stop": BLOCK_ROWS}, "no keys with the first window"),
        (AskMaskedPredictions, 2, {"first": 2 * BLOCK_ROWS, "stop": N}, "another window, question or keys"),
        (AskMaskedPredictions, 2, {"stop": N}, "a window of rows"),
        (AskMaskedPredictions, 2, {"stop": 2 * BLOCK_ROWS + 1}, "a window of rows"),
        (AskMaskedPredictions, 2, {"first": BLOCK_ROWS - 1}, "a window of rows"),
        (AskMaskedPredictions, 2, {"first": -1}, "a window of rows"),
        (AskMaskedPredictions, 1, {"keys": None}, "no keys with the first window"),
        (AskMaskedPredictions, 2, {"keys": KEYS}, "another window, question or keys"),
        (AskMaskedPredictions, 2, {"coef": sendable_floats([0.25])}, "another window, question or keys"),
        (AskMaskedPredictions, 2, {"magnitude": 300}, "another window, question or keys"),
        (AskMaskedPredictions, 2, {"to": "third"}, "another window, question or keys"),
        (AskMaskedPredictions, 2, {"by_weight": False}, "another window, question or keys"),
        (BringMasked, 1, {"stop": N}, "parts of rows 0 to 40000"),
        (BringMasked, 2, {"first": 0, "stop": BLOCK_ROWS}, "parts of rows 0 to 16384"),
        (BringMasked, 2, {"intercept": 3.5}, "rows from 16384 on, where 0 would be next"),
        (AskLosses, 1, {"intercept": 3.5}, "rows from 32768 on, where 0 would be next"),
        (AskLosses, 1, {"first": BLOCK_ROWS, "stop": 2 * BLOCK_ROWS}, "parts of rows 16384 to 32768"),
    ],
)
@pytest.mark.usefixtures("small")
def test_another_window_model_or_intercept_on_the_way_is_refused(
    kind: type[Message], time: int, changes: dict[str, Any], why: str
) -> None:
    """Losses of one model up to a row, and of another from there on, would tell by their difference of single rows."""
    with pytest.raises(cn.ColonnadeError, match=why):
        evaluated(meddled(kind, lambda message: msgspec.structs.replace(message, **changes), time))


@pytest.mark.parametrize(
    ("kind", "time", "changes", "why"),
    [
        (BringMaskedClasses, 1, {"stop": N}, "parts of rows 0 to 40000"),
        (BringMaskedClasses, 2, {"first": 0, "stop": BLOCK_ROWS}, "parts of rows 0 to 16384"),
        (BringMaskedClasses, 2, {"intercepts": sendable_floats([2.5])}, "rows from 16384 on, where 0 would be next"),
        (BringMaskedClasses, 2, {"names": ("on time", "late")}, "rows from 16384 on, where 0 would be next"),
        (BringMaskedClasses, 1, {"names": ("late", "never")}, "has a class|has the class"),
        (AskMaskedClassLosses, 1, {"intercepts": sendable_floats([2.5])}, "rows from 32768 on, where 0 would be next"),
        (AskMaskedClassLosses, 1, {"first": BLOCK_ROWS, "stop": 2 * BLOCK_ROWS}, "parts of rows 16384 to 32768"),
    ],
)
@pytest.mark.usefixtures("small")
def test_other_classes_or_intercepts_on_the_way_are_refused(
    kind: type[Message], time: int, changes: dict[str, Any], why: str
) -> None:
    wire = meddled(kind, lambda message: msgspec.structs.replace(message, **changes), time, to="third")
    with pytest.raises(cn.ColonnadeError, match=why):
        federation(wire, CLASS).evaluate(YES_NO, by="third")


@pytest.mark.parametrize("kind", ["AskMaskedPredictions", "BringMaskedClasses", "AskMaskedClassLosses"])
@pytest.mark.usefixtures("small")
def test_a_label_party_that_restarts_between_windows_changes_nothing(kind: str) -> None:
    restarting = Restarting(kind, "third")
    found = federation(restarting, CLASS).evaluate(YES_NO, by="third")
    assert restarting.restarts == 1
    assert numbers(found) == numbers(federation(label=CLASS).evaluate(YES_NO, by="third")), "bit for bit"


@pytest.mark.parametrize(("label", "model"), [(CLASS, YES_NO), (GRADE, GRADES)], ids=["classes", "grades"])
@pytest.mark.parametrize("by", [None, "third"])
@pytest.mark.usefixtures("small")
def test_an_evaluation_of_classes_has_no_limit_of_rows(
    label: Any, model: Any, by: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on more rows than a message has numbers."""
    monkeypatch.setattr(windows, "MAX_NUMBERS", N // 2)
    assert federation(label=label).evaluate(model, by=by).n_evaluated == np.count_nonzero(WEIGHTS)


@pytest.mark.usefixtures("small")
def test_parts_of_another_window_are_not_what_was_signed() -> None:
    kept: list[BringMasked] = []

    def replay(message: BringMasked) -> BringMasked:
        return msgspec.structs.replace(message, parts=kept[0].parts)

    def meddle(_: str, __: str, data: bytes) -> bytes:
        message = codec().decode(data)
        if not isinstance(message, BringMasked):
            return data
        kept.append(message)
        return codec().encode(replay(message))

    shared = federation(Wire(meddle))
    with pytest.raises(cn.ColonnadeError, match="a signature of 'first' on something else"):
        play(shared, deliver_in_secret(LINEAR, None, "second", shared.roster))


@pytest.mark.usefixtures("small")
def test_a_window_is_brought_once() -> None:
    answered: list[Message] = []

    def ask_before(_: str, receiver: str, data: bytes) -> bytes:
        message = codec().decode(data)
        if isinstance(message, BringMasked) and not answered:
            answered.extend(wire.sessions[receiver].answer(message) for _ in range(2))
        return data

    wire = Wire(ask_before)
    found = evaluated(wire)  # what was let go is gone, and all begin again
    assert numbers(found) == numbers(federation().evaluate(LINEAR, by="second"))
    assert [len(reply.digest) for reply in answered if isinstance(reply, MaskedReceived)] == [32, 0]


@pytest.mark.usefixtures("small")
def test_a_server_that_skips_what_is_brought_learns_no_losses_of_some_windows() -> None:
    """Losses of the windows that it chose to bring would be sums over rows of its choice."""

    def skip(_: str, receiver: str, data: bytes) -> bytes:
        message = codec().decode(data)
        if isinstance(message, AskMaskedPredictions) and message.first and receiver == "second":
            session = wire.sessions["second"]
            keys: Any = session.state.secret
            assert keys.kept.taken.stop == message.first
        return data

    wire = Wire(skip)
    evaluated(wire)

    def lose(_: str, __: str, data: bytes) -> bytes:
        message = codec().decode(data)
        if isinstance(message, BringMasked) and message.first:
            return codec().encode(msgspec.structs.replace(message, first=0, stop=BLOCK_ROWS))
        return data

    with pytest.raises(cn.ColonnadeError, match="parts of rows 0 to 16384"):
        evaluated(Wire(lose))


@pytest.mark.parametrize(("first", "stop"), [(-1, 9), (0, 5), (0, 2**62), (2**62, 2**63 - 1), (0, -1)])
def test_windows_that_are_none(first: int, stop: int) -> None:
    shared = federation(meddled(AskMaskedPredictions, lambda m: msgspec.structs.replace(m, first=first, stop=stop), 1))
    with pytest.raises(cn.ColonnadeError, match="a window of rows"):
        play(shared, deliver_in_secret(LINEAR, None, "second", shared.roster))


@pytest.mark.usefixtures("small")
def test_rows_of_all_windows_count_against_the_owners_limit() -> None:
    """A window has 16,384 rows, and the owner lets 20,000 be told: a job of 40,000 is refused before the first."""
    capped = parties()
    capped[1].policy = cn.Policy(level="open", rows_a_request=20_000)
    shared = cn.Federation(capped)
    with pytest.raises(cn.PolicyRefusedError, match=r"limits a reply to 20,000 rows; this MaskedPredictions has "):
        shared.evaluate(LINEAR, by="third")
    assert "MaskedPredictions" not in {entry.kind for entry in shared.ledger if entry.sender == "second"}
    shared.deliver(LINEAR, "second")  # who learns them tells nothing
