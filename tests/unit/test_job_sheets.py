"""For every verb: the honest script stays on the route of its sheet; whatever is one field off is refused by name."""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

import colonnade as cn
from colonnade.branches import Branch
from colonnade.contracts import Inbox, Outbox
from colonnade.job_sheets import ROUTES, route_of, sheet_of
from colonnade.messages import Message, sendable_floats, sendable_rows
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import PartySession
from colonnade.protocol.sheet import JobSheet, OpenJob
from colonnade.tasks.jobs import shared_seed

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 6))
Y = X @ np.ones(6) + RNG.normal(size=N)
MARKED = np.arange(N) % 3 == 0
LATE, CLASSES = np.where(Y > 0, "late", "on time"), cn.Classification(l2=0.1)
RIDGE, CLUSTERS = cn.Regression(l2=0.1), cn.KMeans(n_clusters=2, n_starts=1)
DRAWN = cn.ImportanceSampling(40)


class Suspicious:
    """Hands messages over, and first tries requests that are nearly the same on a copy of each session."""

    def __init__(self, sessions: Mapping[str, PartySession]) -> None:
        self.sessions = sessions
        self.sheets: set[bytes] = set()
        self.tried: set[str] = set()

    latest: "Suspicious"

    def exchange(self, outbox: Outbox) -> Inbox:
        return {party: self._ask(self.sessions[party], request) for party, request in outbox.items()}

    def _ask(self, session: PartySession, request: Message) -> Message:
        if isinstance(request, OpenJob):
            self.sheets.add(request.sheet)
            Suspicious.latest = self
        route = session.state.route
        assert route is not None
        assert route.after(request) is not None, route.objection(request)
        agreed = {name for ask in route.next_asks() if ask.kind is type(request) for name in ask.fields}
        for name in sorted(agreed):
            for value in others(getattr(request, name)):
                self._refuses(session, changed(request, name, value), name)
        reply = session.answer(request)
        left = session.state.route
        if left is not None and left.after(request) is None and not isinstance(reply, Refused):
            self._refuses(session, request, None)
        return reply

    def _refuses(self, session: PartySession, request: Message, field: str | None) -> None:
        trial = copy(session)
        reply = trial.answer(request)
        assert isinstance(reply, Refused), f"{request.kind}.{field}"
        assert reply.cause == "order"
        assert reply.reason.endswith("A party answers only what the job sheet entails.")
        if field is not None:
            self.tried.add(f"{request.kind}.{field}")
            assert f"where this {request.kind} has {field} = " in reply.reason
        assert trial.state is session.state


def changed(request: Message, name: str, value: Any) -> Message:
    if name == "window":
        return msgspec.structs.replace(request, first=request.first + 1)  # type: ignore[attr-defined]
    if name != "part":  # of a model: made of three fields
        return msgspec.structs.replace(request, **{name: value})
    fields = dict(zip(("coef", "centers", "scale"), value, strict=True))
    return msgspec.structs.replace(request, **{k: v for k, v in fields.items() if k in request.__struct_fields__})


def others(value: Any) -> list[Any]:
    """Give values that are nearly this one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 2**40, -1 - value]
    if isinstance(value, float):
        return [value + 1.0, np.nextafter(value, 2.0), float("nan")]
    if isinstance(value, str):
        return ["other"]
    if isinstance(value, bytes):  # a branch: no words at all, and ways that the sheet's caps do not have
        ways = [
            Branch("evenly", N + 1, None),
            Branch("evenly", 2, None),
            Branch("scores", -40, None),
            Branch("scores", 40, float("nan")),
            Branch("scores", None, None),
            Branch("all", 40, 0.5),
        ]
        words = [b"", msgspec.msgpack.encode(["by lot", 40, 0.5]), msgspec.msgpack.encode(["evenly", 40, 0.5, "gram"])]
        return [*words, *(way.encoded() for way in ways)]
    if isinstance(value, np.ndarray) and value.dtype == np.int64:
        return [sendable_rows(np.repeat(value, 99))]
    if isinstance(value, np.ndarray):
        longer = np.repeat(value, 99, axis=0) if len(value) else np.ones((1, *value.shape[1:]))
        return [sendable_floats(longer)]
    if isinstance(value, tuple):  # a part of a model
        return [tuple(None if each is None else sendable_floats(each + 1e-9) for each in value)]
    return [None] if value is not None else [cn.HoldOut(0.25)]


def federation(label: Any = Y, **roles: Any) -> cn.Federation:
    parties = cn.split_columns(X, label, [2, 2, 2])
    if roles:
        parties[0] = cn.Party("party1", X[:, :2], **roles)
    return cn.Federation(parties, transport=Suspicious)


def fitted(task: Any, solver: Any, sampler: Any = DRAWN, **options: Any) -> Callable[[], object]:
    return lambda: federation().fit(task, sampler=sampler, solver=solver, **options)


def drawn(sampler: Any, task: Any = RIDGE, split: Any = None) -> Callable[[], object]:
    return lambda: federation().coreset(task, sampler, split=split)


def applied(verb: str, task: Any = RIDGE, *words: Any, **options: Any) -> Callable[[], object]:
    def job() -> object:
        shared = federation()
        model = shared.fit(task, sampler=cn.AllRows()).model
        return getattr(shared, verb)(model, *words, **options)

    return job


def again() -> object:
    shared = federation()
    return shared.fit(RIDGE, coreset=shared.coreset(RIDGE, DRAWN).coreset)


def certified(task: Any = RIDGE, solver: Any = None, label: Any = Y, **options: Any) -> Callable[[], object]:
    def job() -> object:
        shared = federation(label=label)
        return shared.certify(shared.fit(task, sampler=DRAWN, solver=solver or cn.Central()), **options)

    return job


def diagnosed(task: Any, sampler: Any = None) -> Callable[[], object]:
    def job() -> object:
        shared = federation()
        return shared.diagnose(task, sampler=sampler, model=shared.fit(task, sampler=DRAWN).model)

    return job


def audited() -> object:
    shared = federation()
    return shared.spot_check(shared.coreset(RIDGE, cn.ImportanceSampling(20, draws="committed")), rows=2)


def keyed(mode: Any) -> Callable[[], object]:
    tables = {f"party{i}": pd.DataFrame({"id": RNG.permutation(N), "x": X[:, i]}) for i in range(1, 4)}
    parties = [cn.Party(name, table, key="id") for name, table in tables.items()]
    return lambda: cn.Federation(parties, align=mode, transport=Suspicious)


def prepared(**roles: Any) -> Callable[[], object]:
    rules = cn.Prepare({"x": cn.Number(scale=True)})
    parties = [
        cn.Party("party1", pd.DataFrame({"x": X[:, 1]}), prepare=rules),
        cn.Party("party2", X[:, 2:], label=Y, **roles),
    ]
    split = cn.SplitBy("party2") if roles else cn.HoldOut(0.3)
    return lambda: cn.Federation(parties, transport=Suspicious)._runtime.prepare(RIDGE, split)


JOBS: dict[str, tuple[str, Callable[[], object]]] = {
    "all rows": ("coreset", drawn(cn.AllRows())),
    "uniform": ("coreset", drawn(cn.UniformSampling(9))),
    "importance": ("coreset", drawn(DRAWN)),
    "clustering scores": ("coreset", drawn(DRAWN, CLUSTERS)),
    "rounded": ("coreset", drawn(cn.ImportanceSampling(9, round_scores=True))),
    "even share": ("coreset", drawn(cn.ImportanceSampling(9, 0.4))),
    "set totals": ("coreset", drawn(cn.ImportanceSampling(9, totals="set"))),
    "committed": ("coreset", drawn(cn.ImportanceSampling(9, 0.4, "committed"))),
    "secure": ("coreset", drawn(cn.ImportanceSampling(9, scores="secure"))),
    "held out": ("coreset", drawn(DRAWN, split=cn.HoldOut(0.2))),
    "split and weights": (
        "coreset",
        lambda: federation(split=MARKED, weight=1.0 + MARKED).coreset(RIDGE, DRAWN, split=cn.SplitBy("party1")),
    ),
    "central": ("fit", fitted(cn.Regression(standardize=True), cn.Central())),
    "compact": ("fit", fitted(RIDGE, cn.CompactCentral())),
    "compact clusters": ("fit", fitted(CLUSTERS, cn.CompactCentral())),
    "gram": ("fit", fitted(RIDGE, cn.SecureGram())),
    "gram, a chosen penalty": ("fit", fitted(cn.Regression(l2="cv"), cn.SecureGram(), cn.AllRows())),
    "saga": ("fit", fitted(RIDGE, cn.Saga(batch=10, tolerance=0.1))),
    "saga, coded": ("fit", fitted(RIDGE, cn.Saga(batch=10, tolerance=0.1, bits=16))),
    "saga, on rows that are not held out": (
        "fit",
        fitted(RIDGE, cn.Saga(batch=10, tolerance=0.1), cn.AllRows(), split=cn.HoldOut(0.2)),
    ),
    "saga, on rows that a column marks": (
        "fit",
        lambda: federation(split=MARKED).fit(
            RIDGE, sampler=cn.AllRows(), solver=cn.Saga(batch=10, tolerance=0.1), split=cn.SplitBy("party1")
        ),
    ),
    "lloyd": ("fit", fitted(CLUSTERS, cn.SecureLloyd())),
    "distdim": ("fit", fitted(CLUSTERS, cn.DistDim())),
    "a coreset made before": ("fit", again),
    "predict": ("predict", applied("predict")),
    "predict some, to a party": ("predict", applied("predict", RIDGE, rows=[1, 2, 5], to="party2")),
    "predict clusters, rounded": ("predict", applied("predict", CLUSTERS, bits=16)),
    "deliver": ("deliver", applied("deliver", RIDGE, "party2", rows=[1, 2, 5])),
    "deliver clusters": ("deliver", applied("deliver", CLUSTERS, "party1")),
    "evaluate": ("evaluate", applied("evaluate")),
    "evaluate some, rounded": ("evaluate", applied("evaluate", RIDGE, rows=20, bits=16)),
    "evaluate held-out rows": ("evaluate", applied("evaluate", CLUSTERS, split=cn.HoldOut(0.3))),
    "evaluate in secret": ("evaluate", applied("evaluate", RIDGE, by="party1")),
    "plan": ("plan", lambda: federation().plan(RIDGE, budget_bytes=10**6)),
    "plan clusters": ("plan", lambda: federation().plan(CLUSTERS, budget_bytes=10**6)),
    "planned": ("planned", lambda: federation().fit(RIDGE, budget_bytes=10**6)),
    "planned fit of clusters": ("planned", lambda: federation().fit(CLUSTERS, target_excess=0.5)),
    "plan classes": ("plan", lambda: federation(label=LATE).plan(CLASSES, budget_bytes=10**6)),
    "planned fit of classes": ("planned", lambda: federation(label=LATE).fit(CLASSES, budget_bytes=10**6)),
    "certify": ("certify", certified(rows=70)),
    "certify, standardised": ("certify", certified(cn.Regression(standardize=True), rows=70)),
    "certify what was rounded": ("certify", certified(solver=cn.CompactCentral(2.0), rows=70)),
    "certify classes": ("certify", certified(CLASSES, label=LATE, rows=90)),
    "certify clusters": ("certify", certified(cn.KMeans(n_clusters=2, standardize=True), rows=70)),
    "diagnose": ("diagnose", lambda: federation().diagnose(RIDGE)),
    "diagnose classes": (
        "diagnose",
        lambda: federation(label=LATE).diagnose(CLASSES, sampler=cn.ImportanceSampling(40)),
    ),
    "diagnose clusters": ("diagnose", lambda: federation().diagnose(CLUSTERS)),
    "diagnose near a model": ("diagnose", diagnosed(CLUSTERS)),
    "diagnose a coreset near a model": (
        "diagnose",
        diagnosed(cn.KMeans(n_clusters=2, standardize=True), cn.ImportanceSampling(20, scores="secure")),
    ),
    "audit": ("audit", audited),
    "align in the clear": ("align", keyed("clear")),
    "prepare": ("prepare", prepared()),
    "prepare by rows that a column marks": ("prepare", prepared(split=MARKED, weight=1.0 + MARKED)),
    "align, aided": ("align", keyed("aided")),
    "align on a curve": ("align", keyed("curve")),
}


# What the sheet settles of requests that apply a model, or measure rows, though other numbers would be answered alike.
SETTLED = {
    "certify": {"AskAuditedPredictions": {"part", "hidden", "seed"}},
    "certify what was rounded": {"AskAuditedPredictions": {"part", "hidden", "seed"}},
    "plan classes": {"AskClasses": {"n_told"}, "AskClassColumns": {"step", "seed"}},
    "diagnose classes": {"AskWhitenedClassRows": {"fit_intercept"}, "AskClasses": {"n_told"}},
    "certify classes": {"AskAuditedLogits": {"part", "hidden", "seed"}, "AskClasses": {"n_told"}},
    "certify clusters": {"AskAuditedDistances": {"centers", "part"}},
    "diagnose clusters": {"AskPairDistances": {"count", "seed"}, "AskRowDistances": {"count", "seed"}},
    "diagnose a coreset near a model": {"AskMovedDistances": {"centers", "part", "seed"}},
}


def test_every_verb_has_a_job_here() -> None:
    assert {verb for verb, _ in JOBS.values()} == set(ROUTES)


@pytest.mark.filterwarnings("ignore::colonnade.AssumptionWarning")
@pytest.mark.parametrize("name", JOBS)
def test_an_honest_server_stays_on_the_route_and_nothing_nearby_is_answered(name: str) -> None:
    """Each request is tried with each field that was agreed on changed, and a second time, at every party."""
    verb, job = JOBS[name]
    job()
    played = Suspicious.latest
    (encoded,) = played.sheets
    sheet = msgspec.msgpack.decode(encoded, type=JobSheet)
    assert sheet.verb == verb, "one sheet, the same for all parties"
    for party, session in played.sessions.items():
        left = session.state.route
        assert left is not None
        assert left.can_end, f"{party} expects {[ask.kind.__name__ for ask in left.next_asks()]}"
    routes = [route_of(sheet, each.name) for each in sheet.parties]
    known = {ask.kind.__name__ for route in routes for ask in route.asks()}
    assert {kind.partition(".")[0] for kind in played.tried} <= known
    assert {f"{kind}.{field}" for kind, fields in SETTLED.get(name, {}).items() for field in fields} <= played.tried


@pytest.mark.parametrize("name", ["saga", "saga, coded", "saga, on rows that are not held out"])
def test_the_blocks_of_saga_follow_from_the_sheet(name: str) -> None:
    JOBS[name][1]()
    step = "CodedStep" if "coded" in name else "SagaStep"
    assert {"OpenSaga.n_blocks", "OpenSaga.seed", f"{step}.block"} <= Suspicious.latest.tried


def test_a_sheet_is_made_of_what_the_caller_asked_for_alone() -> None:
    roster = federation().roster
    what = {"task": RIDGE, "sampler": DRAWN, "solver": cn.Central(), "split": None, "seed": 5}
    first, again, other = (sheet_of("fit", {**what, "seed": seed}, roster, None) for seed in (5, 5, 6))
    assert first == again != other
    assert first.seed == shared_seed(5)
    assert [each.name for each in first.parties] == list(roster.names)
    assert len(first.draws[0].own) == 3, "a digest for each party"
    assert b"l2" in msgspec.msgpack.encode(first.task)
