"""Saga against Central, its ledger, and both sides against a hostile peer."""

from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import party_session
from colonnade.contracts import PartyCard, Roster
from colonnade.data.tables import ArrayTable, read_table
from colonnade.kernels.arrays import Floats, Rows
from colonnade.messages import Message, sendable_floats
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import PartySession
from colonnade.sampling.selecting import UseAllRows
from colonnade.solvers.saga.messages import (
    AskCoefficients,
    AskProgress,
    Coefficients,
    OpenSaga,
    PartialProducts,
    Progress,
    SagaStep,
    SquaredNorms,
)
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback

RNG = np.random.default_rng(0)
X = RNG.standard_t(5, size=(400, 6)) @ (np.eye(6) + 0.1 * RNG.normal(size=(6, 6)))
X = (X - X.mean(axis=0)) / X.std(axis=0)
Y = X @ [3.0, -2.0, 0.0, 1.0, 0.0, 0.1] + 7.0 + RNG.normal(size=400)
TASKS = [
    cn.Regression(),
    cn.Regression(l2=0.3),
    cn.Regression(l1=0.4),
    cn.Regression(l2=0.1, l1=0.4),
    cn.Regression(fit_intercept=False),
    cn.Regression(l2=0.1, l1=0.4, fit_intercept=False),
]


def federation(features: Floats = X, labels: Floats = Y, **options: Any) -> cn.Federation:
    return cn.Federation(cn.split_columns(features, labels, [2, 3, 1]), **options)


def objective(
    task: cn.Regression, model: cn.LinearModel, coreset: cn.Coreset, features: Floats = X, labels: Floats = Y
) -> float:
    residuals = features[coreset.rows] @ model.coef_ + model.intercept_ - labels[coreset.rows]
    l2, l1 = task.penalties()
    penalty = l2 * model.coef_ @ model.coef_ + l1 * np.abs(model.coef_).sum()
    return float(coreset.weights @ residuals**2 + coreset.total_weight * penalty)


def excess(
    shared: cn.Federation, task: cn.Regression, coreset: cn.Coreset, solver: cn.Saga, *data: Floats
) -> tuple[float, cn.Run[cn.LinearModel]]:
    run = shared.fit(task, coreset=coreset, solver=solver)
    best = objective(task, shared.fit(task, coreset=coreset, solver=cn.Central()).model, coreset, *data)
    return objective(task, run.model, coreset, *data) / best - 1, run


def epochs(run: cn.Run[Any]) -> int:
    return sum(entry.kind == "Progress" for entry in run.ledger) // len(run.roster.names)


@pytest.mark.parametrize("batch", [1, 8, 30])
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_it_converges_to_centrals_objective(task: cn.Regression, batch: int) -> None:
    shared = federation()
    coreset = shared.coreset(task, cn.ImportanceSampling(size=100), seed=1).coreset
    worse, run = excess(shared, task, coreset, cn.Saga(batch=batch))
    assert abs(worse) < 1e-4
    assert epochs(run) < 30 * batch + 30


@pytest.mark.parametrize("sampler", [cn.AllRows(), cn.UniformSampling(size=150)], ids=str)
def test_on_all_rows_and_on_a_uniform_sample(sampler: Any) -> None:
    shared = federation()
    coreset = shared.coreset(TASKS[3], sampler).coreset
    assert abs(excess(shared, TASKS[3], coreset, cn.Saga())[0]) < 1e-4


def test_rows_are_read_once_however_many_steps_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a table in files each step once read whole groups of rows for its few, twice."""
    taken, take = list[int](), ArrayTable.take

    def counted(table: ArrayTable, rows: Rows) -> Floats:
        taken.append(len(rows))
        return take(table, rows)

    monkeypatch.setattr(ArrayTable, "take", counted)
    drawn = federation().coreset(cn.Regression(), cn.UniformSampling(80)).coreset
    taken.clear()
    federation().fit(cn.Regression(), coreset=drawn, solver=cn.Saga(tolerance=1e-3))
    assert taken == [80] * 3


def test_the_lasso_leaves_columns_out() -> None:
    model = federation().fit(cn.Regression(l1=1.0), sampler=cn.AllRows(), solver=cn.Saga()).model
    assert np.flatnonzero(model.coef_ == 0.0).tolist() == [2, 4, 5]
    none = federation().fit(cn.Regression(l1=100.0), sampler=cn.AllRows(), solver=cn.Saga()).model
    assert none.coef_.tolist() == [0.0] * 6
    assert none.intercept_ == pytest.approx(Y.mean(), abs=1e-3)


@pytest.mark.parametrize("l2", [0.0, 0.001, 0.1])
def test_kc_house_standardised(kc_house: tuple[Floats, Floats], l2: float) -> None:
    """Its columns are exactly collinear: the least-squares problem has many solutions, and one objective."""
    features, price = kc_house
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    shared, task = cn.Federation(cn.split_columns(features, price, [9, 9])), cn.Regression(l2=l2)
    coreset = shared.coreset(task, cn.ImportanceSampling(size=600)).coreset
    worse, run = excess(shared, task, coreset, cn.Saga(scale=False), features, price)
    assert abs(worse) < 1e-4
    assert epochs(run) < 60


def test_raw_columns_need_scaling(kc_house: tuple[Floats, Floats]) -> None:
    shared, task = cn.Federation(cn.split_columns(*kc_house, [9, 9])), cn.Regression(l2=0.01)
    coreset = shared.coreset(task, cn.ImportanceSampling(size=600)).coreset
    assert abs(excess(shared, task, coreset, cn.Saga(), *kc_house)[0]) < 1e-4
    with pytest.warns(
        cn.ConvergenceWarning, match=r"after 20 epochs .* pass scale=True; raise max_epochs, lower batch"
    ):
        worse, _ = excess(shared, task, coreset, cn.Saga(scale=False, max_epochs=20), *kc_house)
    assert worse > 0.1


def test_scaling_changes_the_way_and_not_the_answer() -> None:
    features, task = X * [1.0, 100.0, 1.0, 0.01, 1.0, 1.0] + [0, 0, 50, 0, 0, 0], cn.Regression(l2=0.02, l1=0.05)
    shared = federation(features)
    coreset = shared.coreset(task, cn.ImportanceSampling(size=150)).coreset
    assert abs(excess(shared, task, coreset, cn.Saga(), features, Y)[0]) < 1e-4


def test_a_constant_column_and_parties_without_columns() -> None:
    parties = [cn.Party("flat", np.full((400, 1), 0.1)), cn.Party("x", X), cn.Party("y", np.empty((400, 0)), label=Y)]
    shared = cn.Federation(parties)
    run = shared.fit(cn.Regression(l2=0.1), sampler=cn.AllRows(), solver=cn.Saga())
    best = federation().fit(cn.Regression(l2=0.1), sampler=cn.AllRows()).model
    np.testing.assert_allclose(run.model.coef_, [0.0, *best.coef_], atol=2e-3)
    assert run.model.intercept_ == pytest.approx(best.intercept_, abs=1e-3)


def test_labels_that_are_all_zero() -> None:
    run = federation(labels=np.zeros(400)).fit(cn.Regression(), sampler=cn.AllRows(), solver=cn.Saga())
    assert (run.model.coef_.tolist(), run.model.intercept_, epochs(run)) == ([0.0] * 6, 0.0, 1)


@pytest.mark.parametrize("batch", [1, 7])
def test_every_transport_gives_the_same_bits(batch: int) -> None:
    runs = [
        federation(transport=transport).fit(
            TASKS[3], sampler=cn.ImportanceSampling(size=50), solver=cn.Saga(batch=batch, tolerance=0.01), seed=2
        )
        for transport in (InProcess, Loopback)
    ]
    assert runs[0].model.coef_.tobytes() == runs[1].model.coef_.tobytes()
    assert runs[0].model.intercept_ == runs[1].model.intercept_
    assert runs[0].ledger == runs[1].ledger


# What travels


@pytest.mark.parametrize("batch", [1, 8])
def test_the_ledger_counts_an_epoch_as_documented(batch: int) -> None:
    size, n_parties, n_features = 120, 3, 6
    with pytest.warns(cn.ConvergenceWarning, match=f"lower batch .now {batch}."):
        run = federation().fit(
            cn.Regression(), sampler=cn.UniformSampling(size=size), solver=cn.Saga(batch, tolerance=0, max_epochs=3)
        )
    # The first epoch's blocks are all of them; later ones are drawn, and here all are of one length.
    an_epoch = n_parties * (2 * size + size // batch + 2)
    around = n_parties * (size + 1) + n_features + n_parties
    assert run.ledger.by_phase()["solving"].units == 3 * an_epoch + around, "norms, step size; coefficients, offsets"


def test_what_is_revealed_is_said() -> None:
    run = federation().fit(cn.Regression(), sampler=cn.UniformSampling(size=50), solver=cn.Saga())
    shown = run.ledger.disclosures()
    assert shown["party1", "server"] == ("schema", "scores", "predictions", "model")
    assert shown["party3", "server"] == ("schema", "scores", "labels", "model")
    assert shown["server", "party1"] == ("schema", "labels", "row ids", "totals", "model"), "residuals tell of labels"


@pytest.mark.parametrize(
    ("party", "kept", "asked", "told"),
    [
        (0, "scores", "OpenJob", "SquaredNorms"),
        (0, "predictions", "SagaStep", "PartialProducts"),
        (2, "labels", "OpenJob", "SquaredNorms"),
        (1, "model", "OpenJob", "Progress"),
    ],
)
def test_policies_are_respected(party: int, kept: str, asked: str, told: str) -> None:
    """What every reply of a kind reveals is known from the sheet; what only some do, when they are made."""
    parties = cn.split_columns(X, Y, [2, 3, 1])
    parties[party].policy = cn.Policy(level="open", never=[kept])
    shared = cn.Federation(parties)
    refused = f"'party{party + 1}' did not answer {asked}: .* reveals {kept}, which a {told}"
    with pytest.raises(cn.PolicyRefusedError, match=refused):
        shared.fit(cn.Regression(), sampler=cn.UniformSampling(size=50), solver=cn.Saga())


# Bad input


def test_other_tasks_are_refused_before_anything_is_sent() -> None:
    shared = federation()
    sent = len(shared.ledger)
    with pytest.raises(cn.UnsupportedError, match=r"Saga solves linear tasks, and KMeans is not linear\."):
        shared.fit(cn.KMeans(3), sampler=cn.AllRows(), solver=cn.Saga())
    with pytest.raises(cn.UnsupportedError, match="cv"):
        shared.fit(cn.Regression(l2="cv"), sampler=cn.AllRows(), solver=cn.Saga())
    assert len(shared.ledger) == sent


@pytest.mark.parametrize(
    "options",
    [{"batch": 0}, {"batch": 1.5}, {"tolerance": -1.0}, {"tolerance": np.nan}, {"max_epochs": 0}, {"scale": 1}],
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(cn.InputError, match=f"{next(iter(options))} must be"):
        cn.Saga(**options)


def test_columns_whose_squares_leave_the_range() -> None:
    with pytest.raises(cn.InputError, match=r"'party1' did not answer OpenSaga: .* Use Saga\(scale=True\)"):
        federation(1e60 * X).fit(cn.Regression(), sampler=cn.AllRows(), solver=cn.Saga(scale=False))
    run = federation(1e60 * X).fit(cn.Regression(), sampler=cn.AllRows(), solver=cn.Saga())
    np.testing.assert_allclose(run.model.coef_ * 1e60, [3.0, -2.0, 0.0, 1.0, 0.0, 0.1], atol=0.3)


# Hostile parties: the server's side, fed by hand

ROSTER = Roster((PartyCard("airline", 9, ("x", "z"), "y"), PartyCard("weather", 9, ("t",), None)))
CORESET = cn.Coreset(np.arange(4), np.ones(4), n_rows=9, total_weight=9.0)
HONEST: list[dict[str, Message]] = [
    {"airline": SquaredNorms(np.ones(4)), "weather": SquaredNorms(np.ones(4))},
    {"airline": PartialProducts(None, np.ones(4)), "weather": PartialProducts(np.ones(4), None)},
    {"airline": Progress(0.0, 1.0), "weather": Progress(0.0, 1.0)},
    {"airline": Coefficients(np.ones(2), 0.5), "weather": Coefficients(np.ones(1), 0.25)},
]


def play(inboxes: list[dict[str, Message]]) -> Any:
    script = cn.Saga().solve(cn.Regression(), ROSTER, CORESET, np.random.default_rng(0))
    next(script)
    try:
        for inbox in inboxes:
            script.send(inbox)
    except StopIteration as end:
        return end.value.model
    return None


def test_honest_parties() -> None:
    model = play(HONEST)
    assert model.coef_.tolist() == [1.0, 1.0, 1.0]
    assert model.intercept_ == 0.75


@pytest.mark.parametrize(
    ("at", "reply", "message"),
    [
        (0, SquaredNorms(np.ones(3)), "shape"),
        (0, SquaredNorms(np.full(4, -1.0)), "negative"),
        (0, SquaredNorms(np.full(4, np.nan)), "NaN"),
        (1, PartialProducts(None, np.ones(5)), "shape"),
        (1, PartialProducts(None, np.full(4, np.inf)), "infinity"),
        (1, PartialProducts(None, np.full(4, 1e101)), "magnitude above"),
        (1, PartialProducts(np.ones(4), None), "products less the label where none were due, or none"),
        (1, PartialProducts(np.ones(4), np.ones(4)), "products less the label"),
        (1, PartialProducts(None, None), "products less the label"),
        (2, Progress(-1.0, 1.0), "negative"),
        (2, Progress(np.nan, 1.0), "NaN"),
        (2, Progress(0.0, np.inf), "infinity"),
        (3, Coefficients(np.ones(3), 0.0), "shape"),
        (3, Coefficients(np.full(2, np.nan), 0.0), "NaN"),
        (3, Coefficients(np.ones(2), 1e200), "magnitude above"),
    ],
)
def test_hostile_replies(at: int, reply: Message, message: str) -> None:
    inboxes = [dict(inbox) for inbox in HONEST]
    inboxes[at]["airline"] = reply
    with pytest.raises(cn.RemoteProtocolError, match=f"'airline' sent a {reply.kind} with .*{message}") as caught:
        play(inboxes)
    assert (caught.value.party, caught.value.kind) == ("airline", reply.kind)


# A hostile server: the party's side, fed by hand

NOTHING = sendable_floats([])


def opening(n_blocks: int = 3, seed: int = 0, l2: float = 0.0, l1: float = 0.0) -> OpenSaga:
    return OpenSaga(n_blocks, seed, l2, l1, fit_intercept=True, scale=True)


def session(*requests: Message) -> PartySession:
    table = read_table("airline", X[:12, :2], label=Y[:12])
    opened = party_session(table, Policy(level="open"))
    for request in (Hello(WIRE_VERSION), UseAllRows(), *requests):
        assert not isinstance(opened.answer(request), Refused)
    return opened


STEP = SagaStep(NOTHING, 1, 0.1)


def test_an_honest_server() -> None:
    party = session(opening(), STEP, SagaStep(np.ones(4), 0, None), AskProgress(np.ones(4)))
    reply = party.answer(AskCoefficients())
    assert isinstance(reply, Coefficients)
    assert reply.coef.shape == (2,)
    assert party.state.learning is None, "nothing is left behind"


@pytest.mark.parametrize(
    ("before", "request_"),
    [
        ((), STEP),
        ((), AskProgress(NOTHING)),
        ((), AskCoefficients()),
        ((opening(),), AskProgress(NOTHING)),
        ((opening(),), AskCoefficients()),
        ((opening(), STEP), AskCoefficients()),
        ((opening(), STEP), opening()),
        ((opening(), STEP, AskProgress(np.ones(4))), AskProgress(np.ones(4))),
        ((opening(), STEP, AskProgress(np.ones(4)), AskCoefficients()), SagaStep(NOTHING, 0, None)),
    ],
)
def test_requests_out_of_order(before: tuple[Message, ...], request_: Message) -> None:
    check_refused(session(*before), request_, "order")


@pytest.mark.parametrize(
    "request_",
    [opening(0), opening(13), opening(-1), opening(seed=-1), opening(l2=-1.0), opening(l1=np.nan), opening(l2=np.inf)],
)
def test_hostile_openings(request_: Message) -> None:
    check_refused(session(), request_, "request")


@pytest.mark.parametrize(
    ("before", "request_"),
    [
        ((opening(),), SagaStep(NOTHING, 3, 0.1)),
        ((opening(),), SagaStep(NOTHING, -1, 0.1)),
        ((opening(),), SagaStep(NOTHING, 0, None)),
        ((opening(),), SagaStep(NOTHING, 0, 0.0)),
        ((opening(),), SagaStep(NOTHING, 0, np.nan)),
        ((opening(),), SagaStep(np.ones(4), 0, 0.1)),
        ((opening(), STEP), SagaStep(np.ones(4), 0, 0.1)),
        ((opening(), STEP), SagaStep(NOTHING, 0, None)),
        ((opening(), STEP), SagaStep(np.ones((4, 1)), 0, None)),
        ((opening(), STEP), SagaStep(np.full(4, np.nan), 0, None)),
        ((opening(), STEP), AskProgress(np.ones(3))),
        ((opening(), STEP), AskProgress(np.full(4, 1e101))),
        ((opening(), SagaStep(NOTHING, 0, 1e100)), AskProgress(np.full(4, 1e100))),
    ],
)
def test_hostile_steps(before: tuple[Message, ...], request_: Message) -> None:
    check_refused(session(*before), request_, "request")


def check_refused(party: PartySession, request: Message, cause: str) -> None:
    state = party.state
    reply = party.answer(request)
    assert isinstance(reply, Refused)
    assert reply.cause == cause
    assert party.state is state, "a refused request leaves the state as it was"


@pytest.mark.parametrize(
    ("task", "options"),
    [
        (cn.Classification(l2=1e-2), {}),
        (cn.Classification(l1=1e-2), {}),
        (cn.Classification(l2=1e-2, fit_intercept=False), {}),
        (cn.Classification(l2=1e-2, standardize=True), {"bits": 12}),
    ],
)
def test_classes_are_told_apart_as_by_central(task: Any, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(600, 5)) * [1.0, 30.0, 0.1, 1.0, 1.0] + 1.0
    late = np.where((features - 1) @ [1.0, 0.02, -5.0, 0.5, 0.0] + rng.logistic(size=600) > 0.5, "late", "early")
    parties = cn.Federation(cn.split_columns(features, late, [2, 2, 1]))
    run = parties.fit(task, sampler=cn.ImportanceSampling(200), solver=cn.Saga(**options), seed=1)
    central = parties.fit(task, coreset=run.coreset)
    rows = run.coreset.rows
    codes = (late == "late").astype(float)[rows]
    costs = [
        task.cost(each.model, features[rows], codes, run.coreset.weights, run.coreset.total_weight)
        for each in (run, central)
    ]
    assert costs[0] == pytest.approx(costs[1], rel=1e-4)
    assert run.facts["cost"] == pytest.approx(costs[0], rel=1e-4), "from slopes as old as their block's last visit"
    assert run.model.classes_ == ("early", "late")


def test_more_classes_than_two_are_not_for_saga() -> None:
    features = np.random.default_rng(1).normal(size=(60, 4))
    parties = cn.Federation(cn.split_columns(features, np.arange(60) % 3, [2, 2]))
    with pytest.raises(cn.UnsupportedError, match="two classes apart, not 3"):
        parties.fit(cn.Classification(l2=0.1), sampler=cn.AllRows(), solver=cn.Saga())
