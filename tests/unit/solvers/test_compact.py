"""CompactCentral: near Central in its models, far below it in bytes, and safe from hostile replies."""

import gc
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import party_session
from colonnade.contracts import PartyCard, Roster
from colonnade.data.tables import read_table
from colonnade.errors import RemoteProtocolError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.level_codes import encode_levels
from colonnade.kernels.quantise import encode_codes
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.sampling.selecting import UseAllRows
from colonnade.solvers import compact as solver_file
from colonnade.solvers.scaled_columns import AskScaledColumns, ScaledColumns
from colonnade.solvers.whitened_columns import AskWhitenedColumns, WhitenedColumns, WhitenedRows, read_whitened
from colonnade.transports.loopback import Loopback
from random_parties import make_parties

TASKS = [
    cn.Regression(),
    cn.Regression(l2=0.1, standardize=True),
    cn.Regression(l1=0.05),
    cn.Regression(l2=0.02, l1=0.05, fit_intercept=False),
    cn.Regression(l2="cv"),
    cn.KMeans(n_clusters=3),
    cn.KMeans(n_clusters=3, standardize=True),
]


def coefficients(model: Any) -> Floats:
    found: Floats = model.coef_ if isinstance(model, cn.LinearModel) else np.sort(model.cluster_centers_, axis=0)
    return found


@pytest.mark.parametrize("task", TASKS, ids=str)
@pytest.mark.parametrize("split", [None, cn.HoldOut(0.3)], ids=["all", "split"])
def test_a_fine_step_gives_what_central_gives_on_all_rows(task: Any, split: Any) -> None:
    """All rows meet the moments exactly, so that calibration changes nothing either."""
    federation = cn.Federation(make_parties())
    plain, compact = (
        federation.fit(task, sampler=cn.AllRows(), split=split, solver=solver, seed=1)
        for solver in (cn.Central(), cn.CompactCentral(step=1e-5))
    )
    if isinstance(task, cn.KMeans):
        assert compact.facts["cost"] == pytest.approx(plain.facts["cost"], rel=1e-3)
    else:
        np.testing.assert_allclose(coefficients(compact.model), coefficients(plain.model), rtol=1e-2, atol=2e-3)


def test_bytes_and_disclosures() -> None:
    federation = cn.Federation(make_parties(n_rows=2000))
    plain = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(800))
    compact = federation.fit(cn.Regression(), coreset=plain.coreset, solver=cn.CompactCentral())
    columns = [entry for entry in compact.ledger if entry.kind == "WhitenedColumns"]
    assert sum(entry.bytes for entry in columns) < 0.08 * plain.ledger.by_phase()["solving"].bytes
    assert [entry.reveals for entry in columns] == [
        ("moments", "features"),
        ("moments", "features"),
        ("moments", "labels", "features"),
    ]
    # The paper's count, m (d + 1), and the moments: 6 features and the label, their means and mixing matrices.
    assert sum(entry.units for entry in columns) == 800 * 7 + 7 + 3 + 6 + 3
    np.testing.assert_array_equal(compact.coreset.weights, plain.coreset.weights)
    assert 0 < compact.facts["weight_change"] < 1


def test_a_policy_keeps_labels_and_moments() -> None:
    rng = np.random.default_rng(0)
    for kept in ("labels", "moments", "features"):
        party = cn.Party(
            "a", rng.normal(size=(50, 2)), label=rng.normal(size=50), policy=cn.Policy(level="open", never=[kept])
        )
        with pytest.raises(cn.PolicyRefusedError, match=f"never reveals {kept}"):
            cn.Federation([party]).fit(cn.Regression(), sampler=cn.AllRows(), solver=cn.CompactCentral())


@pytest.mark.parametrize("task", [cn.Regression(), cn.KMeans(n_clusters=3)], ids=str)
def test_transports_agree_bit_for_bit(task: Any) -> None:
    options: Any = {"sampler": cn.ImportanceSampling(80, round_scores=True), "solver": cn.CompactCentral(0.3)}
    near = cn.Federation(make_parties()).fit(task, **options, seed=3)
    far = cn.Federation(make_parties(), transport=Loopback).fit(task, **options, seed=3)
    np.testing.assert_array_equal(coefficients(near.model), coefficients(far.model))
    assert near.ledger.bytes == far.ledger.bytes


def test_rounded_scores_weigh_rows_as_exact_ones_do() -> None:
    federation = cn.Federation(make_parties(n_rows=500))
    exact = federation.coreset(cn.Regression(), cn.ImportanceSampling(3000), seed=1)
    rounded = federation.coreset(cn.Regression(), cn.ImportanceSampling(3000, round_scores=True), seed=1)
    assert rounded.ledger.units == exact.ledger.units
    assert rounded.ledger.bytes < 0.25 * exact.ledger.bytes
    by_row = dict(zip(exact.coreset.rows.tolist(), exact.coreset.weights.tolist(), strict=True))
    pairs = [(by_row[r], w) for r, w in zip(rounded.coreset.rows, rounded.coreset.weights, strict=True) if r in by_row]
    expected, found = np.array(pairs).T
    assert np.abs(found / expected - 1).max() < 2e-3  # a thousandth of the row's score and one of the total


def test_collinear_parties_and_constant_columns() -> None:
    """The second party repeats the first's columns: a direction with nothing in it but rounding."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=3000)
    copies = np.column_stack([X[:, :2] + X[:, 1:], np.full(3000, 7.5)])
    federation = cn.Federation([cn.Party("a", X, label=y), cn.Party("b", copies), cn.Party("c", np.ones((3000, 1)))])
    best = federation.evaluate(federation.fit(cn.Regression(), sampler=cn.AllRows()).model).cost
    for step in (0.3, 1.0, 2.0):
        run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(1500), solver=cn.CompactCentral(step))
        assert federation.evaluate(run.model).cost < 1.1 * best


def test_one_row_and_duplicates() -> None:
    X = np.arange(12.0).reshape(6, 2) ** 2
    federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2.0], [1, 1]))
    for rows in ([3], [2] * 5):
        coreset = cn.Coreset(np.array(rows), np.ones(len(rows)), n_rows=6, total_weight=6.0)
        with pytest.warns(cn.AssumptionWarning, match="3 coefficients were learned on 1 distinct rows"):
            run = federation.fit(cn.Regression(), coreset=coreset, solver=cn.CompactCentral(0.1))
        assert np.isfinite(run.model.coef_).all()


def test_a_label_party_without_features() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    federation = cn.Federation([cn.Party("a", np.empty((400, 0)), label=X @ [1.0, 2.0]), cn.Party("b", X)])
    run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(300), solver=cn.CompactCentral(0.1))
    np.testing.assert_allclose(run.model.coef_, [1.0, 2.0], atol=0.05)


@pytest.mark.parametrize("step", [0.0, -1.0, float("nan"), 100.0, True, "fine"])
def test_the_step_must_make_sense(step: Any) -> None:
    with pytest.raises(cn.InputError, match="step must be a number"):
        cn.CompactCentral(step)


ROSTER = Roster((PartyCard("airline", 9, ("x", "z"), "y"), PartyCard("weather", 9, ("t",), None)))
CORESET = cn.Coreset(np.arange(4), np.ones(4), n_rows=9, total_weight=9.0)
NONE = b"\x00"  # no column is exact
CODES = NONE + encode_codes((7 * np.arange(12)).reshape(3, 4) % 5 - 2)
WEATHER = WhitenedColumns(
    4, 0.5, 1, sendable_floats([0.0]), sendable_floats([1.0]), None, NONE + encode_codes(np.zeros((1, 4), int))
)


def with_exact(values: list[float], n_rounded: int = 2) -> bytes:
    """Write codes whose second column is exact."""
    rounded = encode_codes(np.arange(4 * n_rounded).reshape(n_rounded, 4) % 3 - 1)
    return b"\x40" + encode_levels(np.array(values)[:, np.newaxis]) + rounded


def whitened(**changed: Any) -> WhitenedColumns:
    honest = {
        "size": 4,
        "step": 0.5,
        "n_columns": 3,
        "mean": [0.0, 1.0],
        "mixing": [1.0, 0.5, 0.2, 1.0, 0.1, 1.0],
        "label_mean": 3.0,
        "codes": CODES,
    }
    given = {**honest, **changed}
    return WhitenedColumns(
        given["size"],
        given["step"],
        given["n_columns"],
        None if given["mean"] is None else sendable_floats(given["mean"]),
        None if given["mixing"] is None else sendable_floats(given["mixing"]),
        given["label_mean"],
        given["codes"],
    )


@pytest.mark.parametrize("kind", [AskWhitenedColumns, AskScaledColumns])
@pytest.mark.parametrize("most", [-1, 0, 1])
def test_a_limit_that_not_a_single_row_fits(kind: Any, most: int) -> None:
    """Constants take no bytes at all: also those of a limit below that are refused, and nothing breaks."""
    for values in (np.arange(8.0).reshape(4, 2) ** 2, np.ones((4, 2))):
        party = party_session(read_table("a", values), Policy(level="open"))
        for greeting in (Hello(WIRE_VERSION), UseAllRows()):
            party.answer(greeting)
        reply = party.answer(kind(0.5, 5, most))
        if isinstance(reply, Refused):
            assert "Not a single row fits" in reply.reason
        else:
            assert isinstance(reply, WhitenedColumns | ScaledColumns)
            assert len(reply.codes) <= most


@pytest.mark.parametrize("task", [cn.Regression(), cn.KMeans(n_clusters=3)], ids=str)
def test_parties_that_keep_different_numbers_of_rows_line_up(task: Any) -> None:
    """Each leaves out rows to stay within its own limit; of what is left all have the same rows, and their values."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    made = cn.split_columns(X, X.sum(axis=1) if isinstance(task, cn.Regression) else None, [2, 2, 1])
    sessions = {party.name: party_session(party.table, Policy(level="open")) for party in made}
    roster = Roster(tuple(PartyCard(p.name, 500, p.table.feature_names, p.table.label_name) for p in made))
    for party in sessions.values():
        for greeting in (Hello(WIRE_VERSION), UseAllRows()):
            party.answer(greeting)
    solver, rows = cn.CompactCentral(1e-4), np.arange(500)

    def fetched(most: Any) -> Any:
        script = solver.fetch(task, roster, rows, np.random.default_rng(0), most)
        outbox = next(script)
        inbox: dict[str, Any] = {name: sessions[name].answer(request) for name, request in outbox.items()}
        with pytest.raises(StopIteration) as end:
            script.send(inbox)
        return end.value.value, {name: (reply.size, len(reply.codes)) for name, reply in inbox.items()}

    every, lengths = fetched(None)
    limits = dict(zip(roster.names, (1500, 700, 10**6), strict=True))
    some, sent = fetched(limits)
    assert all(sent[name][1] <= limits[name] for name in roster.names)
    sizes = [size for size, _ in sent.values()]
    assert len(set(sizes)) == 3
    assert sizes[-1] == 500
    assert lengths[roster.names[-1]] == sent[roster.names[-1]]
    assert len(some.kept) == min(sizes)
    for name, columns in every.columns.items():
        np.testing.assert_allclose(some.columns[name].values, columns.values[some.kept], atol=2e-4)


def test_rows_are_left_out_only_within_a_limit() -> None:
    """A party cannot keep back rows as it likes where there is none, and not all where there is one."""
    for most, size in ((None, 3), (10**6, 0), (10**6, -1), (10**6, 5)):
        request = AskWhitenedColumns(0.5, 5, most)
        with pytest.raises(RemoteProtocolError, match=f"{size} rows, where 4 were asked for"):
            read_whitened(ROSTER.cards[0], whitened(size=size), ROSTER, np.arange(4), request)


def solve(task: Any, airline: Message, weather: Message) -> Any:
    script = cn.CompactCentral(0.5).solve(task, ROSTER, CORESET, np.random.default_rng(0))
    next(script)
    with pytest.raises(StopIteration) as end:
        script.send({"airline": airline, "weather": weather})
    return end.value.value.model


def test_an_honest_reply_is_taken() -> None:
    assert np.isfinite(solve(cn.Regression(l2=0.1), whitened(), WEATHER).coef_).all()
    exact = whitened(codes=with_exact([1.0, 2.0, 1.0, 0.0]))
    assert np.isfinite(solve(cn.Regression(l2=0.1), exact, WEATHER).coef_).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"size": 5}, "5 rows, where 4 were asked for"),
        ({"n_columns": 2}, "2 columns, where 3 are due"),
        ({"step": 0.6}, "a step of 0.6, where 0.5 was asked for"),
        ({"step": np.nan}, "a step of nan, where 0.5 was asked for"),
        ({"mean": [0.0]}, "shape"),
        ({"mean": None}, "no moments, where they are due"),
        ({"mixing": None}, "no moments, where they are due"),
        ({"mean": [0.0, np.nan]}, "NaN, infinity"),
        ({"label_mean": None}, "a label where none was due, or none where it was"),
        ({"label_mean": np.inf}, "NaN, infinity"),
        ({"mixing": [1.0, 0.5]}, "no mixing matrix of 3 columns"),
        ({"mixing": [-1.0, 0.5, 0.2, 1.0, 0.1, 1.0]}, "mixing matrix that is not positive"),
        ({"mixing": [1.0, 0.5, 0.2, 0.0, 0.0, 1.0]}, "mixing matrix that is not positive"),
        ({"mixing": [np.inf, 0.5, 0.2, 1.0, 0.1, 1.0]}, "NaN, infinity"),
        ({"codes": CODES[:-1]}, "bytes"),
        ({"codes": CODES + b"\x00"}, "bytes after the last code"),
        ({"codes": b""}, "bytes do not hold"),
        ({"codes": NONE + encode_codes(np.arange(8).reshape(2, 4))}, "byte"),
        ({"codes": b"\xf0" + CODES[1:]}, "bits after the last number"),
        ({"codes": b"\x40" + CODES[1:]}, "."),
        ({"codes": with_exact([1.0, 2.0, 1.0, 2.0], n_rounded=3)}, "byte"),
        ({"codes": with_exact([1.0, 2.0, 1.0, 2.0])[:6]}, "."),
        ({"codes": with_exact([1.0, 2.0, 1.0, 1e300])}, "NaN, infinity"),
        ({"codes": with_exact([1.0, 2.0, 1.0, 99.0])}, "rows that vary more than whitened ones"),
        ({"codes": with_exact([1.0, 2.0, 1.0, 2.0]), "mixing": [0.0, 0.5, 0.2, 1.0, 0.1, 1.0]}, "depend on each other"),
        ({"codes": with_exact([1.0, 2.0, 1.0, 2.0]), "mixing": [1e-300, 0.5, 0.2, 1.0, 0.1, 1.0]}, "NaN, infinity"),
    ],
)
def test_hostile_whitened_columns(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"'airline' sent a WhitenedColumns with .*{message}") as caught:
        solve(cn.Regression(), whitened(**changed), WEATHER)
    assert (caught.value.party, caught.value.kind) == ("airline", "WhitenedColumns")


KNOWN = {"mean": None, "mixing": None}


def read_known(**changed: Any) -> WhitenedRows:
    """Read rows of a party whose moments came before with others."""
    card, rows = ROSTER.cards[0], np.arange(4)
    before = read_whitened(card, whitened(), ROSTER, rows, AskWhitenedColumns(0.5, 5))
    request = AskWhitenedColumns(0.5, 5, known=True)
    return read_whitened(card, whitened(**{**KNOWN, **changed}), ROSTER, rows, request, before)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"mean": [0.0, 1.0]}, "moments, where they are known"),
        ({"mixing": [1.0, 0.5, 0.2, 1.0, 0.1, 1.0]}, "moments, where they are known"),
        ({"label_mean": 3.5}, "another mean of the label than it told before"),
        ({"label_mean": None}, "a label where none was due, or none where it was"),
        ({"n_columns": 4}, "4 columns, where 3 are due"),
        ({"codes": NONE + encode_codes(np.arange(8).reshape(2, 4))}, "byte"),
        ({"codes": with_exact([1.0, 2.0, 1.0, 2.0])}, "other columns that are exact than before"),
    ],
)
def test_hostile_columns_of_known_moments(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"'airline' sent a WhitenedColumns with .*{message}"):
        read_known(**changed)


def test_moments_that_are_known_come_no_second_time() -> None:
    """A party leaves them out where it is asked to, and the same rows come of it; a label is still counted as one."""
    rng = np.random.default_rng(0)
    card = PartyCard("airline", 9, ("x", "z"), "y")
    party = party_session(
        read_table("airline", rng.normal(size=(9, 2)), label=rng.normal(size=9)), Policy(level="open")
    )
    for greeting in (Hello(WIRE_VERSION), UseAllRows()):
        assert not isinstance(party.answer(greeting), Refused)
    first, again = AskWhitenedColumns(0.5, 5), AskWhitenedColumns(0.5, 5, known=True)
    whole, less = (party.answer(request) for request in (first, again))
    assert isinstance(whole, WhitenedColumns)
    assert isinstance(less, WhitenedColumns)
    roster = Roster((card,))
    before = read_whitened(card, whole, roster, np.arange(9), first)
    after = read_whitened(card, less, roster, np.arange(9), again, before)
    np.testing.assert_array_equal(after.values, before.values)
    assert (less.mean, less.mixing) == (None, None)
    assert whole.numbers_told(whole.units()) == {"moments": 8, "labels": 10, "features": 18}
    assert less.numbers_told(less.units()) == {"labels": 10, "features": 18}
    assert Reveals.MOMENTS not in less.tells()


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (ScaledColumns(3, 2, 0.5, sendable_floats([1.0, 2.0]), b"\x00\x00\x00\x00"), "3 rows, where 4 were asked for"),
        (ScaledColumns(4, 1, 0.5, sendable_floats([1.0]), b"\x00\x00"), "rows of 1 columns, not as asked for"),
        (ScaledColumns(4, 2, 0.0, sendable_floats([1.0, 2.0]), b"\x00\x00\x00\x00"), "not positive"),
        (ScaledColumns(4, 2, np.nan, sendable_floats([1.0, 2.0]), b"\x00\x00\x00\x00"), "not positive"),
        (ScaledColumns(4, 2, np.inf, sendable_floats([1.0, 2.0]), b"\x00\x00\x00\x00"), "not positive"),
        (ScaledColumns(4, 2, -0.5, sendable_floats([1.0, 2.0]), b"\x00\x00\x00\x00"), "not positive"),
        (ScaledColumns(4, 2, 0.5, sendable_floats([1.0, np.inf]), b"\x00\x00\x00\x00"), "NaN, infinity"),
        (ScaledColumns(4, 2, 0.5, sendable_floats([1.0]), b"\x00\x00\x00\x00"), "levels"),
        (ScaledColumns(4, 2, 0.5, sendable_floats([1.0, 2.0]), b"\x00\x09\x00\x00"), "Form"),
        (ScaledColumns(4, 2, 0.5, sendable_floats([1.0, 2.0]), b"\x00\x00\x00"), "number"),
    ],
)
def test_hostile_scaled_columns(reply: ScaledColumns, message: str) -> None:
    weather = ScaledColumns(4, 1, 0.5, sendable_floats([1.0]), b"\x00\x00")
    with pytest.raises(RemoteProtocolError, match=f"'airline' sent a ScaledColumns with .*{message}"):
        solve(cn.KMeans(2), reply, weather)


@pytest.mark.parametrize("kind", [AskWhitenedColumns, AskScaledColumns])
@pytest.mark.parametrize(
    ("step", "seed"), [(0.0, 5), (-0.5, 5), (np.nan, 5), (np.inf, 5), (1e-9, 5), (17.0, 5), (0.5, -5)]
)
def test_hostile_requests(kind: Any, step: float, seed: int) -> None:
    party = party_session(read_table("a", np.arange(8.0).reshape(4, 2)), Policy(level="open"))
    for greeting in (Hello(WIRE_VERSION), UseAllRows()):
        assert not isinstance(party.answer(greeting), Refused)
    state, reply = party.state, party.answer(kind(step, seed))
    assert isinstance(reply, Refused)
    assert reply.cause == "request"
    assert party.state is state, "nothing was applied"


def two_classes() -> cn.Federation:
    """A label of two values, which is both a number and a class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 7))
    y = (X @ rng.normal(size=7) + rng.normal(size=3000) > 0).astype(float)
    return cn.Federation(cn.split_columns(X, y, [3, 4]))


@pytest.mark.parametrize("task", [cn.Regression(l2=0.1), cn.Classification(l2=0.1)])
def test_what_rows_say_is_the_same_when_it_is_asked_for_as_at_once(
    task: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run that keeps codes finds precision and errors of the bits that one has which found them before it ended."""
    later = two_classes().fit(task, sampler=cn.ImportanceSampling(size=400), solver=cn.CompactCentral(), seed=3)

    def at_once(self: Any, task: Any, roster: Any, coreset: Any, rng: Any) -> Any:
        fetched = yield from self.fetch(task, roster, coreset.rows, rng)
        return self.finish(task, roster, coreset, fetched, rng)

    monkeypatch.setattr(cn.CompactCentral, "solve", at_once)
    now = two_classes().fit(task, sampler=cn.ImportanceSampling(size=400), solver=cn.CompactCentral(), seed=3)
    assert now.errors is not None
    assert now.precision is not None
    assert (later.errors, later.precision) == (now.errors, now.precision)
    saved = cn.Run.load(later.save(tmp_path / "run"))
    assert (saved.errors, saved.precision) == (now.errors, now.precision)


def mixed_parties(kind: str) -> cn.Federation:
    """Numbers, levels and constants; parties that nearly repeat each other; a level that hardly any row has."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 6)) * [1.0, 1e3, 1e-3, 1.0, 1.0, 1.0] + [0.0, 1e5, 0.0, 0.0, 3.0, 0.0]
    X[:, 4] = rng.integers(4, size=4000)
    if kind == "collinear":
        X[:, 5] = X[:, 0] + 0.01 * X[:, 5]
    if kind == "constant":
        X[:, 3] = 7.5
    if kind == "rare":
        X[:, 4] = np.arange(4000) == 17
    y = X / X.std(axis=0).clip(1e-9) @ [1.0, -2.0, 0.5, 0.0, 1.0, 2.0] + rng.normal(size=4000)
    weights = np.where(np.arange(4000) % 3, 1.0, 2.5) if kind == "weighted" else None
    return cn.Federation([cn.Party("a", X[:, :3], weight=weights), cn.Party("b", X[:, 3:], label=y)])


@pytest.mark.parametrize("task", [task for task in TASKS if isinstance(task, cn.Regression)], ids=str)
@pytest.mark.parametrize("kind", ["plain", "collinear", "constant", "rare", "weighted"])
def test_sums_give_the_model_that_rows_give(task: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options: Any = {"sampler": cn.ImportanceSampling(300), "solver": cn.CompactCentral(), "seed": 2}
    sums = mixed_parties(kind).fit(task, **options)
    monkeypatch.setattr("colonnade.solvers.compact._summary", lambda *_: None)
    rows = mixed_parties(kind).fit(task, **options)
    scale = np.abs(rows.model.coef_).clip(1e-12)
    np.testing.assert_allclose(sums.model.coef_ / scale, rows.model.coef_ / scale, atol=1e-6)
    assert sums.model.intercept_ == pytest.approx(rows.model.intercept_, rel=1e-6, abs=1e-6)
    assert sums.facts == pytest.approx(rows.facts, rel=1e-9)
    assert sums.ledger.bytes == rows.ledger.bytes


def test_least_squares_restores_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are restored when someone asks what they say; folds are made of rows."""
    restored, federation = [], mixed_parties("plain")
    honest = solver_file._restore

    def counted(*given: Any) -> Any:
        restored.append(1)
        return honest(*given)

    monkeypatch.setattr(solver_file, "_restore", counted)
    options: Any = {"sampler": cn.ImportanceSampling(300), "solver": cn.CompactCentral()}
    run = federation.fit(cn.Regression(l2=0.1), **options)
    assert not restored
    assert run.errors is not None
    assert restored
    restored.clear()
    federation.fit(cn.Regression(l2="cv"), **options)
    assert restored


def test_a_fit_does_not_wait_for_what_rows_say(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def found(*_: object) -> None:
        asked.append(1)

    monkeypatch.setattr("colonnade.solvers.compact.precision_of", found)
    run = two_classes().fit(cn.Regression(), sampler=cn.ImportanceSampling(size=400), solver=cn.CompactCentral())
    assert not asked
    assert (run.precision, run.precision) == (None, None)
    assert asked == [1]


def test_numbers_that_lead_to_no_errors_are_named_also_after_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What parties sent is read once more: what goes wrong then is said as in the run."""

    def overflow(*_: object) -> None:
        np.float64(1e300) * np.float64(1e300)

    monkeypatch.setattr("colonnade.solvers.compact.precision_of", overflow)
    run = two_classes().fit(cn.Regression(), sampler=cn.ImportanceSampling(size=400), solver=cn.CompactCentral())
    with pytest.raises(RemoteProtocolError, match="do not lead to a result"):
        _ = run.precision


def test_a_run_keeps_codes_and_not_rows() -> None:
    """Of 1,000 rows of 60 columns, 480 kB, it keeps less than a fifth until it is asked what they say."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 60))
    federation = cn.Federation(cn.split_columns(X, X @ rng.normal(size=60) + rng.normal(size=5000), [20, 20, 20]))
    how: Any = {"sampler": cn.ImportanceSampling(size=1000), "solver": cn.CompactCentral()}
    federation.fit(cn.Regression(), **how)
    tracemalloc.start()
    run = federation.fit(cn.Regression(), **how)
    most, deadline = 8 * 1000 * 60 / 5, time.monotonic() + 5
    while (kept := _traced()) >= most and time.monotonic() < deadline:  # a thread of ours may still let go of its last
        time.sleep(0.02)
    tracemalloc.stop()
    assert run.model is not None
    assert kept < most


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
