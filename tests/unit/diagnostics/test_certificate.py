"""Certificates: what they say of runs of every kind, in words too, and what they refuse."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade import validation
from colonnade.diagnostics.certifying import certify, in_secret
from colonnade.transports.loopback import Loopback
from harness import play

RNG = np.random.default_rng(0)
X = RNG.standard_t(4, size=(4000, 6))
Y = X @ np.arange(6.0) + 3.0 + 2.0 * RNG.normal(size=4000)
WIDTHS = [2, 3, 1]
SAMPLER = cn.ImportanceSampling(400)


@pytest.fixture(scope="module")
def federation() -> cn.Federation:
    return cn.Federation(cn.split_columns(X, Y, WIDTHS))


@pytest.fixture(scope="module")
def run(federation: cn.Federation) -> cn.Run[Any]:
    return federation.fit(cn.Regression(), sampler=SAMPLER, seed=2)


def cost_of(federation: cn.Federation, run: cn.Run[Any]) -> float:
    return float(federation.evaluate(run.model).cost)


def test_it_says_what_is_true(federation: cn.Federation, run: cn.Run[Any]) -> None:
    found = federation.certify(run)
    best = cost_of(federation, federation.fit(cn.Regression(), sampler=cn.AllRows()))
    cost, (low, high) = cost_of(federation, run), found.cost_interval
    assert low < cost < high
    assert high - low < 0.5 * cost
    assert found.excess is not None
    assert cost - best < found.excess
    assert found.relative_excess is not None
    assert found.relative_excess == pytest.approx(found.excess / (low - found.excess))
    assert found.relative_excess < 0.15
    assert found.trusted
    assert (found.task, found.why_no_bound) == ("Regression", None)
    assert 500 < found.rows < 600, "each row once, also if two parties drew it"


def test_words(federation: cn.Federation, run: cn.Run[Any]) -> None:
    found = federation.certify(run)
    exact = msgspec.structs.replace(
        found, cost=4.13e10, cost_interval=(3.9e10, 4.4e10), relative_excess=0.03, run_bytes=406_000, bytes=4_000
    )
    assert str(exact) == (
        "cost 4.13e10, between 3.9e10 and 4.4e10 with 95 % confidence; at most 3.0 % above the best possible, with "
        "95 % confidence; of the table that the run learned from; 410 kB sent, 4.0 kB of it for this check"
    )
    assert "NOT TO BE TRUSTED: the drawn rows" in str(msgspec.structs.replace(found, draws_p=1e-4))
    doubted = msgspec.structs.replace(found, gradient_p=1e-4)
    assert "NOT TO BE TRUSTED: the audit's rows pull" in str(doubted)
    assert not doubted.trusted
    assert "at most 12.3 above" in str(msgspec.structs.replace(found, excess=12.3, relative_excess=None))
    assert "; whether the table is the run's is not known; " in str(msgspec.structs.replace(found, table=None))


def test_of_a_table_that_changed_there_is_a_cost_and_no_bound(run: cn.Run[Any]) -> None:
    """Also where the run learned on all rows, and was the best possible there."""
    other = cn.Federation(cn.split_columns(X, Y + 1.0, WIDTHS))
    on_all = cn.Federation(cn.split_columns(X, Y, WIDTHS)).fit(cn.Regression(), sampler=cn.AllRows())
    for of in (run, on_all):
        with pytest.raises(cn.AlignmentError, match="The table of party3 changed since the model was learned"):
            other.certify(of)
        found = other.certify(of, changed="allow")
        assert (found.table, found.excess, found.relative_excess, found.gradient_p) == ("changed", None, None, None)
        words = (
            "how far it is from the best possible is not known: the run learned from another table; of a table that "
        )
        assert f"{words}CHANGED since the run; " in str(found)
    low, high = found.cost_interval
    assert low < other.evaluate(on_all.model, changed="allow").cost < high


def test_its_cost_and_what_it_shows_are_in_it(federation: cn.Federation, run: cn.Run[Any]) -> None:
    position = len(federation.ledger)
    found = federation.certify(run)
    ledger = federation.ledger.since(position)
    assert (found.units, found.bytes, found.run_bytes) == (ledger.units, ledger.bytes, run.ledger.bytes)
    assert found.reveals == ("schema", "totals", "row ids", "scores", "features", "moments", "labels")
    told = ledger.by_phase()["certifying"].bytes
    assert 3 * 2 * found.rows < told < 3 * (2 * found.rows + 250), "16 bits a row and party, and little else"
    assert {entry.phase for entry in ledger} == {"opening", "sampling", "summing", "certifying"}


def test_an_audit_of_as_many_rows_as_there_are_nearly_knows_the_cost(
    federation: cn.Federation, run: cn.Run[Any]
) -> None:
    """Most rows are then certain, and these do not vary."""
    usual, large = federation.certify(run), federation.certify(run, rows=8000)
    (low, high), cost = large.cost_interval, cost_of(federation, run)
    assert low < cost < high
    assert large.rows <= 4000
    assert high - low < 0.2 * (usual.cost_interval[1] - usual.cost_interval[0])


def test_audits_are_independent_of_the_coreset_and_of_each_other(federation: cn.Federation, run: cn.Run[Any]) -> None:
    same, other = federation.certify(run), federation.certify(run, seed=run.seed)
    assert same == federation.certify(run)
    assert same.cost != other.cost
    assert same.excess == other.excess


def test_over_bytes_and_after_saving_it_is_the_same(run: cn.Run[Any], tmp_path: Path) -> None:
    over_bytes = cn.Federation(cn.split_columns(X, Y, WIDTHS), transport=Loopback)
    here = cn.Federation(cn.split_columns(X, Y, WIDTHS))
    saved = cn.Run.load(run.save(tmp_path / "run"))
    assert saved.precision == run.precision
    assert over_bytes.certify(saved) == here.certify(run)


def test_penalties_and_scales(federation: cn.Federation) -> None:
    for task in (
        cn.Regression(l2=0.5),
        cn.Regression(l1=0.5),
        cn.Regression(l2="cv", standardize=True),
        cn.Regression(l2=0.1, l1=0.1, fit_intercept=False, standardize=True),
    ):
        learned, best = (federation.fit(task, sampler=sampler, seed=2) for sampler in (SAMPLER, cn.AllRows()))
        found = federation.certify(learned)
        assert found.cost == pytest.approx(cost_of(federation, learned), rel=0.25)
        assert found.excess is not None
        assert found.gradient_p is not None
        assert found.gradient_p > 0.01
        if task.l2 != "cv":
            gap = task.cost(learned.model, X, Y) - task.cost(best.model, X, Y)
            assert 0 <= gap < found.excess


@pytest.mark.parametrize(
    "sampler",
    [
        cn.UniformSampling(400),
        cn.ImportanceSampling(400, uniform_share=0.3, draws="independent"),
        cn.ImportanceSampling(400, draws="distinct"),
        cn.ImportanceSampling(400, uniform_share=0.3, draws="distinct"),
    ],
)
def test_other_draws(federation: cn.Federation, sampler: Any) -> None:
    found = federation.certify(federation.fit(cn.Regression(), sampler=sampler))
    assert found.trusted
    assert found.relative_excess is not None


def test_all_rows_leave_nothing_to_gain(federation: cn.Federation) -> None:
    found = federation.certify(federation.fit(cn.Regression(), sampler=cn.AllRows()))
    assert (found.excess, found.relative_excess) == (0.0, 0.0)
    assert found.trusted
    assert "it is the best possible: it was learned on all rows" in str(found)


def test_rounded_rows(federation: cn.Federation) -> None:
    rounded = federation.fit(cn.Regression(), sampler=SAMPLER, solver=cn.CompactCentral())
    best = cost_of(federation, federation.fit(cn.Regression(), sampler=cn.AllRows()))
    found = federation.certify(rounded)
    assert found.excess is not None
    assert cost_of(federation, rounded) - best < found.excess < best


def test_what_rounding_hides_is_looked_for() -> None:
    """Two parties hold nearly the same column, and the label depends on what lies between them."""
    rng = np.random.default_rng(3)
    shared, rest = rng.normal(size=8000), rng.normal(size=8000)
    columns = np.column_stack([shared, shared + 0.02 * rest])
    label = shared + rest + 0.3 * rng.normal(size=8000)
    federation = cn.Federation(cn.split_columns(columns, label, [1, 1]))
    learned = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(800), solver=cn.CompactCentral())
    best = cost_of(federation, federation.fit(cn.Regression(), sampler=cn.AllRows()))
    excess = cost_of(federation, learned) - best
    assert excess > 5 * best, "the model is far off, and its rows do not show it"
    assert learned.precision is not None
    assert learned.precision.excess is not None
    assert learned.precision.excess < excess
    assert len(learned.precision.hidden) == 1
    found = federation.certify(learned)
    assert found.excess is None
    assert "rounding hides directions" in str(found)
    assert "smaller step" in str(found)
    assert federation.certify(federation.fit(cn.Regression(), coreset=learned.coreset)).excess is not None


def test_where_columns_coincide_it_says_what_it_does_not_count() -> None:
    rng = np.random.default_rng(5)
    shared = rng.normal(size=(6000, 2))
    columns = np.column_stack([shared, shared[:, 0], rng.normal(size=6000)])
    federation = cn.Federation(cn.split_columns(columns, shared.sum(axis=1) + rng.normal(size=6000), [2, 2]))
    learned = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(800), solver=cn.CompactCentral())
    found = federation.certify(learned)
    assert found.n_hidden == 1
    assert found.relative_excess is not None
    assert found.relative_excess < 0.1
    assert "but for what rounding hides in 1 direction in which the parties' columns coincide" in str(found)


def test_too_much_hidden_is_refused_by_name() -> None:
    rng = np.random.default_rng(4)
    shared = rng.normal(size=(3000, 10))
    columns = np.column_stack([shared, shared + 1e-3 * rng.normal(size=shared.shape)])
    federation = cn.Federation(cn.split_columns(columns, shared.sum(axis=1) + rng.normal(size=3000), [10, 10]))
    learned = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(900), solver=cn.CompactCentral())
    found = federation.certify(learned)
    assert found.excess is None
    assert "rounding hides 10 directions" in str(found)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"solver": cn.Saga()}, "has not seen the rows"),
        ({"coreset": cn.Coreset(np.arange(300), np.full(300, 40 / 3), 4000, 4000.0)}, "how the rows of this coreset"),
        ({"sampler": cn.ImportanceSampling(7)}, "single rows decide"),
    ],
)
@pytest.mark.filterwarnings("ignore:7 coefficients were learned on 7 distinct rows:colonnade.AssumptionWarning")
def test_where_there_is_no_bound_it_says_why(federation: cn.Federation, change: dict[str, Any], why: str) -> None:
    options = {} if "coreset" in change else {"sampler": SAMPLER}
    found = federation.certify(federation.fit(cn.Regression(), **(options | change)))
    assert (found.excess, found.relative_excess, found.gradient_p) == (None, None, None)
    assert why in str(found)


@pytest.mark.parametrize("solver", [cn.Central(), cn.DistDim(), cn.CompactCentral()])
@pytest.mark.parametrize("standardize", [False, True])
def test_clusters(federation: cn.Federation, solver: Any, standardize: bool) -> None:
    task = cn.KMeans(n_clusters=4, n_starts=2, standardize=standardize)
    learned = federation.fit(task, sampler=SAMPLER, solver=solver)
    position = len(federation.ledger)
    found = federation.certify(learned, seed=2)  # nineteen seeds of twenty hold
    low, high = found.cost_interval
    assert low < cost_of(federation, learned) < high
    assert found.excess is None
    assert "nobody can tell what the best centres would cost" in str(found)
    told = federation.ledger.since(position).by_phase()["certifying"].bytes
    assert 3 * 4 * 2 * found.rows < told < 3 * (4 * 2 * found.rows + 250), "16 bits a row, party and centre"


def test_held_out_rows_and_weights_count_as_in_the_run() -> None:
    weight = np.where(np.arange(4000) % 2 == 0, 0.5, 2.0)
    federation = cn.Federation(cn.split_columns(X, Y, WIDTHS, weight=weight))
    split = cn.HoldOut(0.25)
    learned = federation.fit(cn.Regression(), sampler=SAMPLER, split=split)
    residuals = learned.model.predict(X) - Y
    held_out = federation.evaluate(learned.model, split=split).cost
    cost = float(weight @ np.square(residuals)) - held_out
    low, high = federation.certify(learned).cost_interval
    assert low < cost < high
    assert cost < 0.9 * float(weight @ np.square(residuals))


def test_secret_scores_stay_secret(federation: cn.Federation) -> None:
    with pytest.warns(cn.DisclosureWarning):
        secret = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(300, scores="secure"), solver=cn.Saga())
    assert "scores" not in federation.certify(secret).reveals


@pytest.mark.parametrize("rows", [0, 49, 69, 2.5])
def test_too_few_rows(federation: cn.Federation, run: cn.Run[Any], rows: Any) -> None:
    with pytest.raises(cn.InputError, match=r"rows|size"):
        federation.certify(run, rows=rows)


def test_runs_that_cannot_be_certified(federation: cn.Federation, run: cn.Run[Any]) -> None:
    with pytest.raises(cn.InputError, match="no model"):
        federation.certify(federation.coreset(cn.Regression(), SAMPLER))
    with pytest.raises(cn.InputError, match="does not fit party"):
        cn.Federation(cn.split_columns(X, Y, [3, 2, 1])).certify(
            cn.Federation(cn.split_columns(X[:, :5], Y, [2, 2, 1])).fit(cn.Regression(), sampler=SAMPLER)
        )
    with pytest.raises(cn.AlignmentError, match="4000 rows; these parties hold 3999"):
        cn.Federation(cn.split_columns(X[1:], Y[1:], WIDTHS)).certify(run)
    with pytest.raises(cn.InputError, match="needs a label"):
        cn.Federation(cn.split_columns(X, None, WIDTHS)).certify(run)
    with pytest.raises(cn.UnsupportedError, match="is not a run"):
        federation.certify(run.model)


def test_an_owner_can_refuse_audits(run: cn.Run[Any]) -> None:
    for policy in (
        cn.Policy(level="open", phases=["sampling", "summing", "solving"]),
        cn.Policy(level="open", never=["predictions"]),
        cn.Policy(level="open", rows_a_request=499),
    ):
        parties = cn.split_columns(X, Y, WIDTHS)
        parties[1] = cn.Party("party2", X[:, 2:5], policy=policy)
        with pytest.raises((cn.PolicyRefusedError, cn.InputError)):
            cn.Federation(parties).certify(run)


@pytest.mark.parametrize("sampler", [cn.AllRows(), cn.UniformSampling(400), cn.ImportanceSampling(400)])
@pytest.mark.parametrize("apart", [False, True])
def test_between_machines_scores_stay_secret_unless_the_run_told_them(sampler: Any, apart: bool) -> None:
    federation = cn.Federation(cn.split_columns(X, Y, WIDTHS))
    run = federation.fit(cn.Regression(), sampler=sampler)
    secure = in_secret(run.coreset.sampler, 3, between_machines=apart)
    script = certify(validation.audit_subject(run, federation.roster), federation.roster, 200, 1, secure=secure)
    play(federation, script)
    assert ("scores" in {what for entry in federation.sent for what in entry.reveals}) is not apart


def test_a_run_that_told_its_scores_is_certified_likewise() -> None:
    assert not in_secret(repr(cn.ImportanceSampling(400, scores="plain")), 3, between_machines=True)
    assert not in_secret(repr(cn.ImportanceSampling(400, round_scores=True)), 3, between_machines=True)
    assert not in_secret(repr(cn.AllRows()), 2, between_machines=True)
