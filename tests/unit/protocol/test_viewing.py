"""Held-out rows, row weights and scaled columns: what travels, what counts, and what is left of it afterwards."""

from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import party_session
from colonnade.contracts import JobView, PartyCard, Roster
from colonnade.data.tables import read_table
from colonnade.kernels.draws import held_out
from colonnade.messages import Message, sendable_flags, sendable_floats
from colonnade.privacy.identities import identities_here
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import PartySession
from colonnade.protocol.viewing import AskRowWeights, AskSplit, Moments, RowWeights, Split, UseFrame, agree_on_view
from colonnade.sampling.rules.clustering import ClusteringScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.selecting import UseAllRows
from colonnade.signing import SignedMarks, SignedWeights, marks_statement, weights_statement
from colonnade.solvers.central import AskColumns, Columns
from harness import watch

N = 200
RNG = np.random.default_rng(0)
X = RNG.standard_t(4, size=(N, 5)) * [1.0, 50.0, 1.0, 0.1, 3.0] + [100.0, 0.0, -7.0, 0.0, 0.0]
Y = X @ [1.0, 0.02, -2.0, 5.0, 0.5] + RNG.normal(size=N)
WEIGHTS = RNG.integers(0, 4, size=N).astype(np.float64)
MARKED = np.arange(N) % 3 == 0
TASK = cn.Regression(l2=0.1)
SIZE = cn.ImportanceSampling(size=40)
SIGNATURE = 64  # bytes


def parties(weight: Any = None, split: Any = None, **policies: Policy) -> list[cn.Party]:
    return [
        cn.Party("airline", X[:, :2], label=Y, policy=policies.get("airline")),
        cn.Party("weather", X[:, 2:4], weight=weight, policy=policies.get("weather")),
        cn.Party("registry", X[:, 4:], split=split, policy=policies.get("registry")),
    ]


def federation(weight: Any = None, split: Any = None, **policies: Policy) -> cn.Federation:
    return cn.Federation(parties(weight, split, **policies))


def framing(run: cn.Run[Any]) -> list[tuple[str, str, str, int]]:
    return [(e.kind, e.sender, e.receiver, e.units) for e in run.ledger if e.phase == "framing"]


# What travels


def test_nothing_is_sent_where_nothing_is_asked() -> None:
    """Also where a party has a column to split by, and no job asks for it."""
    plain, with_column = (list(federation(split=marks).fit(TASK, sampler=SIZE).ledger) for marks in (None, MARKED))
    assert [entry.phase for entry in plain if entry.phase == "framing"] == []
    # But for the sheet's bytes: it says which columns there are.
    assert [e for e in plain if e.kind != "OpenJob"] == [e for e in with_column if e.kind != "OpenJob"]
    assert sum(entry.units for entry in plain) == 40 + 2 * 40 * 3 + 2 * 3 + 40 * 6


def test_of_a_held_out_fraction_only_the_fraction_and_the_seed_travel() -> None:
    shared = federation()
    run = shared.coreset(TASK, cn.AllRows(), split=cn.HoldOut(0.25, seed=5))
    assert framing(run) == [("UseFrame", "server", name, 0) for name in shared.roster.names] + [
        ("Moments", name, "server", 0) for name in shared.roster.names
    ]
    after_opening = [entry for entry in run.ledger if entry.phase != "opening"]
    assert {entry.reveals for entry in after_opening} == {()}
    assert max(entry.bytes for entry in after_opening) < 80, "whatever the number of rows"


@pytest.mark.parametrize(("fraction", "seed"), [(0.25, 0), (0.5, 1), (0.013, 2), (0.99, 3), (1 / 3, 4)])
def test_every_party_holds_out_the_same_rows(fraction: float, seed: int) -> None:
    """Columns that are the row numbers tell which rows each party sent."""
    numbers = np.arange(N, dtype=np.float64)[:, None]
    shared = cn.Federation([cn.Party("a", numbers, label=np.zeros(N)), cn.Party("b", numbers + 1e6)])
    split, sessions = cn.HoldOut(fraction, seed=seed), watch(shared)
    kept = shared.coreset(cn.Regression(), cn.AllRows(), split=split).coreset.rows
    assert len(kept) == N - round(fraction * N)
    for name in ("a", "b"):
        np.testing.assert_array_equal(sessions[name].state.selected(), kept)
    np.testing.assert_array_equal(kept, np.flatnonzero(np.asarray(held_out(N, fraction, seed)) == 0))


def test_the_run_seed_does_not_decide_what_is_held_out() -> None:
    shared = federation()
    first, second = (shared.coreset(TASK, cn.AllRows(), split=cn.HoldOut(0.2), seed=seed) for seed in (0, 1))
    np.testing.assert_array_equal(first.coreset.rows, second.coreset.rows)
    other = shared.coreset(TASK, cn.AllRows(), split=cn.HoldOut(0.2, seed=1))
    assert not np.array_equal(first.coreset.rows, other.coreset.rows)


def test_a_partys_choice_of_rows_travels_as_bits() -> None:
    run = federation(split=MARKED).fit(TASK, sampler=cn.AllRows(), split=cn.SplitBy("registry"))
    assert framing(run) == [
        ("AskSplit", "server", "registry", 0),
        ("Split", "registry", "server", N),
        ("UseFrame", "server", "airline", N),
        ("UseFrame", "server", "weather", N),
        ("UseFrame", "server", "registry", 0),
        ("Moments", "airline", "server", 0),
        ("Moments", "weather", "server", 0),
        ("Moments", "registry", "server", 0),
    ]
    shown = {(e.sender, e.receiver): e for e in run.ledger if e.units and e.phase == "framing"}
    assert {entry.reveals for entry in shown.values()} == {("row ids",)}
    assert shown["registry", "server"].bytes <= N / 8 + 20 + SIGNATURE, "a bit a row"
    np.testing.assert_array_equal(run.coreset.rows, np.flatnonzero(~MARKED))
    assert run.coreset.total_weight == np.sum(~MARKED)


def test_row_weights_go_to_all_others_and_not_back() -> None:
    run = federation(weight=WEIGHTS).coreset(TASK, SIZE)
    assert framing(run)[:5] == [
        ("AskRowWeights", "server", "weather", 0),
        ("RowWeights", "weather", "server", N),
        ("UseFrame", "server", "airline", N),
        ("UseFrame", "server", "weather", 0),
        ("UseFrame", "server", "registry", N),
    ]
    assert run.ledger.disclosures()["server", "registry"] == ("schema", "row weights", "totals", "row ids")
    assert run.coreset.total_weight == WEIGHTS.sum()
    assert (WEIGHTS[run.coreset.rows] > 0).all(), "a row that weighs nothing is never drawn"


def test_of_scaled_columns_the_moments_travel() -> None:
    run = federation().coreset(cn.KMeans(3, standardize=True), SIZE)
    sent = [(e.kind, e.sender, e.units, e.reveals) for e in run.ledger if e.units and e.phase == "framing"]
    moments = [("airline", 4), ("weather", 4), ("registry", 2)]
    assert sent == [("Moments", party, units, ("moments",)) for party, units in moments]


def test_weights_and_a_split_multiply() -> None:
    coreset = federation(weight=WEIGHTS, split=MARKED).coreset(TASK, cn.AllRows(), split=cn.SplitBy("registry")).coreset
    np.testing.assert_array_equal(coreset.rows, np.flatnonzero(~MARKED & (WEIGHTS > 0)))
    np.testing.assert_array_equal(coreset.weights, WEIGHTS[coreset.rows])
    assert coreset.total_weight == coreset.weights.sum()


@pytest.mark.parametrize(("kept", "asked"), [("moments", "UseFrame"), ("row weights", "OpenJob")])
def test_an_owner_can_refuse(kept: str, asked: str) -> None:
    """What is sure to be told, before the job begins; what depends on the scaling, when it would be."""
    guarded = federation(weight=WEIGHTS, weather=Policy(level="open", never=[kept]))
    with pytest.raises(cn.PolicyRefusedError, match=f"'weather' did not answer {asked}: .* never reveals {kept}"):
        guarded.fit(cn.Regression(standardize=True), sampler=SIZE)


def test_an_owner_can_refuse_its_split() -> None:
    guarded = federation(split=MARKED, registry=Policy(level="open", never=["row ids"]))
    with pytest.raises(cn.PolicyRefusedError, match=r"'registry' did not answer OpenJob: .* never reveals row ids"):
        guarded.fit(TASK, sampler=cn.AllRows(), split=cn.SplitBy("registry"))


# Bad input


@pytest.mark.parametrize("party", ["airline", "elsewhere", ""])
def test_a_split_by_a_party_without_such_a_column(party: str) -> None:
    shared = federation(split=MARKED)
    before = len(shared.ledger)
    with pytest.raises(cn.InputError, match=f"'{party}' has no column to split by; parties that have one: registry"):
        shared.fit(TASK, sampler=SIZE, split=cn.SplitBy(party))
    assert len(shared.ledger) == before, "nothing was sent"


@pytest.mark.parametrize("fraction", [0, 1, 0.0, 1.0, -0.1, 1.5, np.nan, np.inf, True, "0.2", None])
def test_a_fraction_lies_between_0_and_1(fraction: Any) -> None:
    with pytest.raises(cn.InputError, match=r"fraction must lie between 0 and 1, got .*\. Pass for instance 0\.2"):
        cn.HoldOut(fraction)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "0"])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(cn.InputError, match="seed must be a whole number"):
        cn.HoldOut(0.2, seed=seed)


@pytest.mark.parametrize("split", [0.2, "registry", cn.HoldOut])
def test_a_split_is_a_split(split: Any) -> None:
    model = federation().fit(TASK, sampler=SIZE).model
    calls: list[Any] = [
        lambda: federation().fit(TASK, sampler=SIZE, split=split),
        lambda: federation().coreset(TASK, SIZE, split=split),
        lambda: federation().evaluate(model, split=split),
    ]
    for call in calls:
        with pytest.raises(cn.UnsupportedError, match=r"is not a split\. Pass one of: HoldOut \| SplitBy"):
            call()


@pytest.mark.parametrize(
    ("marks", "side"), [(np.zeros(N), "test"), (np.ones(N), "train"), (WEIGHTS == 0, "test"), (WEIGHTS > 0, "train")]
)
def test_a_split_that_leaves_nothing(marks: Any, side: str) -> None:
    shared = federation(weight=WEIGHTS, split=marks)
    model = shared.fit(TASK, sampler=SIZE).model
    ask: Any = {
        "train": lambda split: shared.fit(TASK, sampler=SIZE, split=split),
        "test": lambda split: shared.evaluate(model, split=split),
    }
    with pytest.raises(cn.InputError, match=f"leaves no row to {side}, or none that has weight"):
        ask[side](cn.SplitBy("registry"))


def test_so_few_rows_that_none_is_held_out() -> None:
    shared = federation()
    split = cn.HoldOut(0.001)
    model = shared.fit(TASK, sampler=SIZE, split=split).model
    with pytest.raises(cn.InputError, match="leaves no row to test"):
        shared.evaluate(model, split=split)


def test_a_coreset_with_rows_that_are_held_out() -> None:
    shared = federation()
    coreset = shared.coreset(TASK, SIZE).coreset
    with pytest.raises(cn.InputError, match=r"has row \d+, which is held out .* Draw the coreset with the same split"):
        shared.fit(TASK, coreset=coreset, split=cn.HoldOut(0.5))
    drawn = shared.coreset(TASK, SIZE, split=cn.HoldOut(0.5)).coreset
    again = shared.fit(TASK, coreset=drawn, split=cn.HoldOut(0.5))
    np.testing.assert_array_equal(again.coreset.rows, drawn.rows)


def test_two_parties_with_weights() -> None:
    with pytest.raises(cn.InputError, match=r"a and b all hold row weights\. Name weights at one party only"):
        cn.Federation([cn.Party(name, np.eye(3), weight=np.ones(3)) for name in ("a", "b")])


# A view never leaks into the next job

SPLIT = cn.HoldOut(0.4)
JOBS: dict[str, Any] = {
    "predict": lambda f, model: f.predict(model),
    "evaluate": lambda f, model: np.array([f.evaluate(model).cost, f.evaluate(model, rows=50).cost]),
    "coreset": lambda f, _: f.coreset(TASK, SIZE, seed=3).coreset.weights,
    "uniform": lambda f, _: f.coreset(TASK, cn.UniformSampling(size=30)).coreset.rows,
    "all rows": lambda f, _: f.fit(TASK, sampler=cn.AllRows()).model.coef_,
    "k-means": lambda f, _: f.fit(cn.KMeans(3), sampler=SIZE).model.cluster_centers_,
    "given rows": lambda f, _: f.fit(TASK, coreset=cn.Coreset(np.arange(9), np.ones(9), N, float(N))).model.coef_,
}


@pytest.fixture(scope="module")
def model() -> cn.LinearModel:
    return federation().fit(TASK, sampler=cn.AllRows()).model


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS.keys())
@pytest.mark.parametrize("sampler", [SIZE, cn.AllRows(), cn.UniformSampling(size=50)], ids=str)
def test_the_next_job_sees_the_tables_as_they_are(job: Any, sampler: Any, model: cn.LinearModel) -> None:
    used = federation()
    used.fit(cn.Regression(standardize=True), sampler=sampler, split=SPLIT)
    np.testing.assert_array_equal(job(used, model), job(federation(), model))


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS.keys())
def test_so_it_does_after_a_job_that_stopped_half_way(job: Any, model: cn.LinearModel) -> None:
    """The view was agreed on, and then the coreset turned out to hold rows that are held out."""
    used = federation()
    sessions = watch(used)
    with pytest.raises(cn.InputError, match="held out"):
        used.fit(cn.Regression(standardize=True), coreset=used.coreset(TASK, SIZE).coreset, split=SPLIT)
    assert sessions["airline"].state.view is not None
    np.testing.assert_array_equal(job(used, model), job(federation(), model))


@pytest.mark.parametrize("job", ["predict", "evaluate", "uniform", "k-means given"])
@pytest.mark.parametrize("kept", ["moments", "totals"])
def test_so_it_does_after_a_refusal(job: str, kept: str, model: cn.LinearModel) -> None:
    """One party refuses, the others have viewed their tables already; or all have, and one refuses what comes next."""
    guarded = federation(registry=Policy(level="open", never=[kept]))
    with pytest.raises(cn.PolicyRefusedError, match=f"never reveals {kept}"):
        guarded.fit(cn.Regression(standardize=True), sampler=SIZE)
    play = JOBS.get(job, JOBS["given rows"])
    np.testing.assert_array_equal(play(guarded, model), play(federation(), model))


def test_a_job_that_stopped_half_way_costs_the_next_run_nothing() -> None:
    used = federation(registry=Policy(level="open", never=["moments"]))
    with pytest.raises(cn.PolicyRefusedError):
        used.fit(cn.Regression(standardize=True), sampler=SIZE)
    before = len(used.ledger)
    run = used.fit(TASK, sampler=SIZE)
    assert run.ledger == federation().fit(TASK, sampler=SIZE).ledger
    assert used.ledger.since(before) == run.ledger, "nothing else was sent"


def test_views_do_not_add_up() -> None:
    """Standardised twice in a row, the second time it is not the standardised columns that are standardised."""
    task = cn.KMeans(3, standardize=True)
    used = federation(weight=WEIGHTS)
    runs: Any = [used.fit(task, sampler=cn.AllRows(), split=split) for split in (None, SPLIT, None)]
    np.testing.assert_array_equal(runs[0].model.cluster_centers_, runs[2].model.cluster_centers_)
    np.testing.assert_array_equal(runs[0].model.scale_, runs[2].model.scale_)
    assert not np.array_equal(runs[0].model.scale_, runs[1].model.scale_)


@pytest.mark.parametrize("task", [cn.Regression(standardize=True), cn.KMeans(3, standardize=True)], ids=str)
def test_a_second_run_in_the_same_view_computes_no_scores_anew(task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = LeverageScores if isinstance(task, cn.Regression) else ClusteringScores
    calls, honest = [], rule.scores

    def counting(self: Any, table: Any) -> Any:
        calls.append(table)
        return honest(self, table)

    monkeypatch.setattr(rule, "scores", counting)
    shared = federation(weight=WEIGHTS, split=MARKED)
    runs = [shared.coreset(task, SIZE, split=cn.SplitBy("registry"), seed=seed) for seed in (1, 2, 1)]
    assert len(calls) == 3, "once a party"
    np.testing.assert_array_equal(runs[0].coreset.weights, runs[2].coreset.weights)
    shared.coreset(task, SIZE, split=cn.HoldOut(0.1))
    assert len(calls) == 6, "other rows count, so scores are others"


# Hostile replies

ROSTER = Roster(
    (
        PartyCard("airline", 4, ("x", "z"), "y", has_split=True),
        PartyCard("weather", 4, ("t",), None, has_weights=True),
    )
)
MARKS, ROW_WEIGHTS = sendable_flags([True, False, False, False]), sendable_floats([1.0, 0.0, 2.0, 3.0])
AIRLINE = Moments(sendable_floats([1.0, 2.0]), sendable_floats([3.0, 4.0]))
WEATHER = Moments(sendable_floats([5.0]), sendable_floats([6.0]))


def play(split: Message | None = None, weights: Message | None = None, airline: Message | None = None) -> JobView:
    script = agree_on_view(ROSTER, cn.SplitBy("airline"), "train", "standard")
    assert [type(request) for request in next(script).values()] == [AskSplit]
    outbox = script.send({"airline": split or Split(MARKS, b"by airline")})
    assert [type(request) for request in outbox.values()] == [AskRowWeights]
    outbox = script.send({"weather": weights or RowWeights(ROW_WEIGHTS, b"by weather")})
    shown = {
        name: tuple(column and (column.party, column.signature) for column in (frame.held_out, frame.weights))
        for name, frame in outbox.items()
        if isinstance(frame, UseFrame)
    }
    told = {"held_out": ("airline", b"by airline"), "weights": ("weather", b"by weather")}
    assert shown == {"airline": (None, told["weights"]), "weather": (told["held_out"], None)}, "as they were signed"
    with pytest.raises(StopIteration) as end:
        script.send({"airline": airline or AIRLINE, "weather": WEATHER})
    view = end.value.value
    assert isinstance(view, JobView)
    return view


def test_honest_parties() -> None:
    view = play()
    assert view.row_weights is not None
    assert view.shift is not None
    assert view.scale is not None
    assert np.asarray(view.row_weights).tolist() == [0.0, 0.0, 2.0, 3.0]
    assert (view.shift.tolist(), view.scale.tolist()) == ([1.0, 2.0, 5.0], [3.0, 4.0, 6.0])


@pytest.mark.parametrize("marks", [[True] * 3, [True] * 5, [[True, False]] * 2, []])
def test_hostile_splits(marks: Any) -> None:
    with pytest.raises(cn.RemoteProtocolError, match="'airline' sent a Split with an array of shape") as caught:
        play(split=Split(sendable_flags(marks), b""))
    assert (caught.value.party, caught.value.kind) == ("airline", "Split")


BAD_WEIGHTS = [
    ([1.0, 1.0, 1.0], "shape"),
    ([[1.0], [1.0], [1.0], [1.0]], "shape"),
    ([1.0, -1.0, 1.0, 1.0], "negative value -1.0"),
    ([1.0, np.nan, 1.0, 1.0], "NaN, infinity"),
    ([1.0, np.inf, 1.0, 1.0], "NaN, infinity"),
    ([1.0, 1e200, 1.0, 1.0], "magnitude above"),
    ([0.0, 0.0, 0.0, 0.0], "all zero"),
    ([0.0, 0.0, 1e-320, 0.0], "all zero, or nearly"),
]


@pytest.mark.parametrize(("weights", "message"), BAD_WEIGHTS)
def test_hostile_weights(weights: Any, message: str) -> None:
    with pytest.raises(cn.RemoteProtocolError, match=f"'weather' sent a RowWeights with .*{message}") as caught:
        play(weights=RowWeights(sendable_floats(weights), b""))
    assert (caught.value.party, caught.value.kind) == ("weather", "RowWeights")


@pytest.mark.parametrize(
    ("shift", "scale", "message"),
    [
        (None, None, "no moments where they were due"),
        ([1.0, 2.0], None, "no moments where they were due"),
        (None, [1.0, 2.0], "no moments where they were due"),
        ([1.0], [1.0, 2.0], "shape"),
        ([1.0, 2.0], [1.0, 2.0, 3.0], "shape"),
        ([1.0, np.nan], [1.0, 2.0], "NaN"),
        ([1.0, 2.0], [1.0, np.inf], "NaN, infinity"),
        ([1.0, 2.0], [1.0, 0.0], "the value 0.0, which is not positive"),
        ([1.0, 2.0], [-1.0, 2.0], "the value -1.0, which is not positive"),
        ([1.0, 2.0], [1e-200, 2.0], "the value 1e-200, which is not positive, or out of range"),
    ],
)
def test_hostile_moments(shift: Any, scale: Any, message: str) -> None:
    reply = Moments(*(None if values is None else sendable_floats(values) for values in (shift, scale)))
    with pytest.raises(cn.RemoteProtocolError, match=f"'airline' sent a Moments with .*{message}") as caught:
        play(airline=reply)
    assert (caught.value.party, caught.value.kind) == ("airline", "Moments")


# Hostile requests


def session(weight: Any = None, split: Any = None) -> PartySession:
    table = read_table("airline", np.arange(8.0).reshape(4, 2), weight=weight, split=split)
    opened = party_session(table, Policy(level="open"), PEOPLE["airline"])
    opened.answer(Hello(WIRE_VERSION))
    return opened


PEOPLE = identities_here(["airline", "weather", "registry"], np.random.default_rng(0).bytes)
NO_SHEET = b""  # of a session that no job opened


def marks_of(party: str, marks: Any, sheet: bytes = NO_SHEET, by: str | None = None) -> SignedMarks:
    flags = sendable_flags(marks)
    return SignedMarks(party, flags, PEOPLE[by or party].sign(marks_statement(party, sheet, flags)))


def weights_of(party: str, weights: Any, sheet: bytes = NO_SHEET, by: str | None = None) -> SignedWeights:
    floats = sendable_floats(weights)
    return SignedWeights(party, floats, PEOPLE[by or party].sign(weights_statement(party, sheet, floats)))


def view(
    split: Any = None, held_out: Any = None, weights: Any = None, *, side: Any = "train", scaling: Any = "own"
) -> UseFrame:
    """Frame rows as an honest server does: what parties told is signed by them."""
    return UseFrame(
        side,
        scaling,
        split,
        None if held_out is None else marks_of("registry", held_out),
        None if weights is None else weights_of("weather", weights),
    )


BY_COLUMN = cn.SplitBy("registry")


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        *((view(weights=weights), reason) for weights, reason in BAD_WEIGHTS),
        (view(BY_COLUMN, [True] * 3), "shape"),
        (view(BY_COLUMN, [[True] * 4]), "shape"),
        (view(BY_COLUMN), "a split by a column that neither it nor this party has"),
    ],
)
def test_hostile_frames(request_: UseFrame, reason: str) -> None:
    asked = session()
    reply = asked.answer(request_)
    assert isinstance(reply, Refused)
    assert reply.cause == "request"
    assert reason in reply.reason
    assert asked.state.view is None
    assert asked.state.step == "greeted"


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (marks_of("registry", [True, False, True, False], by="server"), "'registry' did not sign for this job"),
        (marks_of("registry", [True, False, True, False], by="airline"), "'registry' did not sign for this job"),
        (marks_of("registry", [True, False, True, False], sheet=b"another job"), "'registry' did not sign"),
        (marks_of("weather", [True, False, True, False]), "'weather' did not sign for this job"),
        (SignedMarks("stranger", sendable_flags([True, False, True, False]), bytes(64)), "'stranger' did not sign"),
        (weights_of("weather", [0.0, 0.0, 1.0, 0.0], by="server"), "row weights that 'weather' did not sign"),
        (weights_of("weather", [0.0, 0.0, 1.0, 0.0], by="airline"), "row weights that 'weather' did not sign"),
        (weights_of("weather", [0.0, 0.0, 1.0, 0.0], sheet=b"another job"), "row weights that 'weather' did not sign"),
        (SignedWeights("stranger", sendable_floats(np.ones(4)), bytes(64)), "row weights that 'stranger' did not sign"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else None,
)
def test_columns_that_their_party_did_not_sign_for_this_job(request_: SignedMarks | SignedWeights, reason: str) -> None:
    """A server that could choose who counts would read a row from the moments of it alone."""
    asked = session()
    marks, weights = (request_, None) if isinstance(request_, SignedMarks) else (None, request_)
    reply = asked.answer(UseFrame("train", "standard", BY_COLUMN if marks else None, marks, weights))
    assert isinstance(reply, Refused)
    assert (reply.cause, asked.state.view) == ("request", None)
    assert reason in reply.reason


def test_signed_columns_are_of_no_use_where_a_split_is_another_partys() -> None:
    reply = session().answer(
        UseFrame("train", "own", cn.SplitBy("weather"), marks_of("registry", [True, False, True, False]), None)
    )
    assert isinstance(reply, Refused)
    assert "rows to hold out that 'registry' did not sign for this job" in reply.reason


LEAST = Policy(level="open", least_rows=3)


def guarded(n_rows: int, policy: Policy = LEAST) -> PartySession:
    values = np.random.default_rng(1).normal(size=(n_rows, 2))
    asked = party_session(read_table("airline", values), policy, PEOPLE["airline"])
    asked.answer(Hello(WIRE_VERSION))
    return asked


@pytest.mark.parametrize(("n_marked", "answers"), [(2, False), (3, True), (9, True), (10, False)])
@pytest.mark.parametrize("side", ["train", "test"])
def test_a_split_holds_out_and_leaves_enough_rows(n_marked: int, answers: bool, side: Any) -> None:
    reply = guarded(12).answer(view(BY_COLUMN, np.arange(12) < n_marked, side=side))
    assert isinstance(reply, Moments if answers else Refused)
    if isinstance(reply, Refused):
        assert reply.cause == "policy"
        assert "a split holds out, and leaves, 3 rows at least" in reply.reason


def test_moments_are_of_enough_rows_and_not_of_nearly_those_of_earlier_ones() -> None:
    asked = guarded(40)
    one_row = view(weights=np.eye(40)[7], scaling="standard")
    assert isinstance(asked.answer(one_row), Refused), "its mean is that row"
    heavy = view(weights=np.where(np.arange(40) == 7, 1e6, 1.0), scaling="standard")
    assert isinstance(asked.answer(heavy), Refused), "effectively one row"
    assert isinstance(asked.answer(view(scaling="standard")), Moments)
    assert isinstance(asked.answer(view(scaling="standard")), Moments), "the same again tells nothing new"
    but_one = view(weights=np.where(np.arange(40) == 7, 0.0, 1.0), scaling="standard")
    for nearly, reason in (
        (but_one, "1 rows apart from"),
        (view(weights=np.arange(1.0, 41.0), scaling="standard"), ""),
    ):
        reply = asked.answer(nearly)
        assert isinstance(reply, Refused)
        assert reply.cause == "policy"
        assert (reason or "over the same rows, with other weights") in reply.reason


@pytest.mark.parametrize(
    "request_",
    [
        view(BY_COLUMN, [True] * 4),
        view(BY_COLUMN, [False] * 4, side="test"),
        view(BY_COLUMN, [True, True, True, False], weights=[1.0, 1.0, 1.0, 0.0]),
        AskSplit(0, 4),
        AskRowWeights(0, 4),
    ],
    ids=["nothing to train", "nothing to test", "nothing that weighs", "no split column", "no weights"],
)
def test_views_that_this_party_cannot_use(request_: Message) -> None:
    reply = session().answer(request_)
    assert isinstance(reply, Refused)
    assert reply.cause == "input"


def test_views_one_after_another_are_told_apart() -> None:
    """A server that changes its mind within one split: no crash, and each time what was asked last."""
    asked = session(split=[1, 0, 0, 0])  # which counts where no other party's marks came
    for request, expected in [
        (view(BY_COLUMN), [1, 2, 3]),
        (view(BY_COLUMN, [False, True, False, False]), [0, 2, 3]),
        (view(BY_COLUMN), [1, 2, 3]),
        (view(BY_COLUMN, weights=[1.0, 0.0, 1.0, 1.0]), [2, 3]),
        (view(BY_COLUMN), [1, 2, 3]),
        (view(BY_COLUMN, side="test"), [0]),
        (view(cn.HoldOut(0.25)), np.flatnonzero(np.asarray(held_out(4, 0.25, 0)) == 0)),
        (view(), range(4)),
    ]:
        assert isinstance(asked.answer(request), Moments)
        asked.answer(UseAllRows())
        np.testing.assert_array_equal(asked.state.selected(), expected)


def test_scaled_columns_are_what_the_party_sends() -> None:
    asked = session(weight=[1.0, 1.0, 0.0, 2.0])
    values = np.arange(8.0).reshape(4, 2)
    moments = asked.answer(view(scaling="standard"))
    assert isinstance(moments, Moments)
    mean = np.average(values, axis=0, weights=[1, 1, 0, 2])
    np.testing.assert_allclose(moments.shift, mean)  # type: ignore[arg-type]
    deviation = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=[1, 1, 0, 2]))
    np.testing.assert_allclose(moments.scale, deviation)  # type: ignore[arg-type]
    asked.answer(UseAllRows())
    columns = asked.answer(AskColumns(with_label=False))
    assert isinstance(columns, Columns)
    np.testing.assert_allclose(columns.features, ((values - mean) / deviation)[[0, 1, 3]])


def test_a_view_holds_until_the_run_agrees_on_another() -> None:
    asked = session()
    asked.answer(view(weights=[0.0, 1.0, 1.0, 0.0]))
    for _ in range(2):
        asked.answer(UseAllRows())
        np.testing.assert_array_equal(asked.state.selected(), [1, 2])
    assert isinstance(asked.answer(AskRowWeights(0, 4)), Refused)
    asked.answer(UseAllRows())
    assert asked.state.selected().tolist() == [1, 2], "a refused request leaves the state as it was"
    asked.answer(view(weights=[1.0, 1.0, 1.0, 0.0]))
    asked.answer(UseAllRows())
    assert asked.state.selected().tolist() == [0, 1, 2]


def test_a_second_view_of_a_run_is_one_of_the_table_as_it_is() -> None:
    """Not of the table as the first view shows it: standardised columns would be standardised again."""
    asked = session()
    first, second = (asked.answer(UseFrame("train", "standard", None, None, None)) for _ in range(2))
    third = asked.answer(UseFrame("train", "scaled", None, None, None))
    assert isinstance(first, Moments)
    assert isinstance(second, Moments)
    assert isinstance(third, Moments)
    assert first.scale is not None
    assert first.scale.tolist() == (second.scale if second.scale is not None else np.empty(0)).tolist()
    assert first.scale.tolist() == (third.scale if third.scale is not None else np.empty(0)).tolist()
