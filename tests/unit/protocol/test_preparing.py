"""Columns that parties prepare: what travels of it, who keeps what, and how models are applied."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.contracts import Inbox, Outbox
from colonnade.kernels.per_row import numbers_in
from colonnade.protocol.memory import KeptHere
from colonnade.protocol.preparing import _check_few, _note
from colonnade.protocol.session import PartyData
from colonnade.protocol.viewed_table import ViewedTable
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback

N = 400
RULES = cn.Prepare(
    {
        "job": cn.Category(missing="level"),
        "age": cn.Number(missing="mean"),
        "opened": cn.Date(parts=["year", "month"]),
    }
)
RULES_OF_JOBS = cn.Prepare({"job": cn.Category(missing="level")})
TASK, ALL = cn.Regression(l2=0.01), cn.AllRows()
SPLIT = cn.HoldOut(0.25, seed=3)


def bank(n: int = N, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    jobs = rng.choice(["clerk", "driver", "nurse", "painter", ""], size=n, p=[0.4, 0.3, 0.2, 0.05, 0.05])
    age = rng.integers(18, 80, size=n).astype(float)
    age[rng.random(n) < 0.1] = np.nan
    opened = pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 7000, size=n), unit="D")
    return pd.DataFrame({"job": jobs, "age": age, "opened": opened, "secret_note": ["x"] * n})


def shop(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    visits = rng.poisson(5, size=len(table)).astype(float)
    spent = 3 * visits + table["age"].fillna(40) + 10 * (table["job"] == "nurse") + rng.normal(size=len(table))
    return pd.DataFrame({"visits": visits, "spent": spent})


def parties(n: int = N, seed: int = 0, prepare: Any = RULES, **policy: Any) -> list[cn.Party]:
    table = bank(n, seed)
    rules = cn.Policy(**policy) if policy else None
    return [
        cn.Party("bank", table, prepare=prepare, policy=rules),
        cn.Party("shop", shop(table, seed), label="spent"),
    ]


def fitted_by(run: cn.Run[cn.LinearModel]) -> dict[str, str]:
    assert run.model.learned_from_ is not None
    return run.model.learned_from_.preparations


def test_a_model_is_learned_from_what_was_made_of_the_columns() -> None:
    run = cn.Federation(parties()).fit(TASK, sampler=ALL)
    assert run.model.feature_names_in_ == (
        "job#1", "job#2", "job#3", "job#4", "age", "age#1", "opened#1", "opened#2", "visits",
    )  # fmt: skip
    assert fitted_by(run).keys() == {"bank"}
    assert [entry.kind for entry in run.ledger].count("PreparedColumns") == 1  # what it rests on stands on its ledger


def test_it_is_prepared_once_for_all_jobs_that_hold_out_the_same_rows() -> None:
    federation = cn.Federation(parties())
    for split in (None, SPLIT, SPLIT, None):
        federation.fit(TASK, sampler=ALL, split=split)
    kinds = [entry.kind for entry in federation.ledger]
    assert kinds.count("PreparedColumns") == 2


def test_rows_held_out_change_nothing() -> None:
    """Other values there, other levels, gaps: the same preparation to the bit."""
    table = bank()
    held_out = cn.Federation([cn.Party("a", np.arange(N)[:, None], label=np.zeros(N))])
    test_rows = np.setdiff1d(np.arange(N), held_out.coreset(TASK, ALL, split=SPLIT).coreset.rows)
    other = table.copy()
    other.loc[test_rows, "job"] = "astronaut"
    other.loc[test_rows, "age"] = 1e6
    fits = (cn.Federation([cn.Party("bank", each, prepare=RULES), parties()[1]]).fit for each in (table, other))
    first = next(fits)(TASK, sampler=ALL, split=SPLIT)
    with pytest.warns(cn.AssumptionWarning, match="job: 100 rows have levels that were not there"):
        second = next(fits)(TASK, sampler=ALL, split=SPLIT)
    assert fitted_by(first) == fitted_by(second)
    assert "astronaut" not in fitted_by(second)["bank"]


@pytest.mark.parametrize("model_from", ["memory", "disk"])
def test_new_rows_are_prepared_as_those_that_a_model_was_learned_from(model_from: str, tmp_path: Path) -> None:
    run = cn.Federation(parties()).fit(TASK, sampler=ALL)
    if model_from == "disk":
        run = cn.Run.load(run.save(tmp_path / "run"))
    new = parties(50, seed=1)
    found = cn.Federation(new).predict(run.model)
    raw = pd.concat([bank(50, 1), shop(bank(50, 1), 1)], axis=1)
    assert np.allclose(found, run.model.to_sklearn().predict(raw), rtol=1e-12)


def test_a_level_that_is_new_is_said() -> None:
    run = cn.Federation(parties()).fit(TASK, sampler=ALL)
    table = bank(30, 2)
    table.loc[:2, "job"] = "astronaut"
    federation = cn.Federation([cn.Party("bank", table, prepare=RULES), parties(30, 2)[1]])
    with pytest.warns(cn.AssumptionWarning, match="job: 3 rows"):
        federation.predict(run.model)


@pytest.mark.filterwarnings("ignore:The excess of this plan is not known")  # columns tell this label
def test_all_verbs_go_by_prepared_columns() -> None:
    federation = cn.Federation(parties())
    sampler = cn.ImportanceSampling(size=200)
    run = federation.fit(TASK, sampler=sampler, split=SPLIT)
    assert (federation.evaluate(run.model, split=SPLIT).r2 or 0) > 0.5
    assert federation.certify(run).bytes > 0
    assert len(federation.predict(run.model)) == N
    assert federation.coreset(TASK, sampler, split=SPLIT).coreset.rows.tolist() == run.coreset.rows.tolist()
    plan = federation.plan(TASK, budget_bytes=40_000, split=SPLIT)
    assert federation.fit(TASK, plan=plan).model.feature_names_in_ == run.model.feature_names_in_
    assert federation.fit(TASK, budget_bytes=40_000, split=SPLIT).split == SPLIT
    committed = federation.coreset(TASK, cn.ImportanceSampling(size=20, draws="committed"))
    assert federation.spot_check(committed, rows=None).spot_check().opened
    clusters = federation.fit(cn.KMeans(n_clusters=3), sampler=sampler)
    federation.diagnose(cn.KMeans(n_clusters=3), model=clusters.model, rows=100, pairs=100)
    assert federation.disclosure(TASK, sampler=sampler).headline


class Recorder(Loopback):
    """Keeps every byte between the server and the parties."""

    seen: list[bytes] = []  # noqa: RUF012  # of all of them

    def exchange(self, outbox: Outbox) -> Inbox:
        inbox = super().exchange(outbox)
        self.seen += [codec().encode(message) for message in (*outbox.values(), *inbox.values())]
        return inbox


def test_no_level_mean_or_value_of_preparation_reaches_the_server() -> None:
    Recorder.seen.clear()
    rules = cn.Prepare({"job": cn.Category(missing="level"), "age": cn.Number(missing="mean", scale=True)})
    sampler = cn.ImportanceSampling(size=100, scores="secure", allow_two_parties=True)
    federation = cn.Federation(parties(prepare=rules), transport=Recorder)
    run = federation.fit(TASK, sampler=sampler, solver=cn.SecureGram(allow_two_parties=True), split=SPLIT)
    told = b"".join(Recorder.seen)
    fitted = json.loads(fitted_by(run)["bank"])
    levels = ["clerk", "driver", "nurse", "painter", "(missing)"]
    assert not [level for level in levels if level.encode() in told]
    numbers = [number for number in _numbers(fitted) if number not in (0.0, 1.0) and number % 1]
    assert len(numbers) >= 3  # fill, mean, scale
    forms = [np.float64(number).tobytes() for number in numbers]
    assert not [form for form in forms if form in told or form[::-1] in told]
    assert not [number for number in numbers if repr(number).encode() in told]
    assert b"secret_note" not in told


def test_levels_leave_where_the_owner_says_so_and_stand_on_the_ledger() -> None:
    rules = cn.Prepare({"job": cn.Category(missing="level")}, tell_levels=True)
    federation = cn.Federation(parties(prepare=rules))
    run = federation.fit(TASK, sampler=ALL)
    assert "job=nurse" in run.model.feature_names_in_
    assert "levels" in {told for entry in federation.ledger for told in entry.reveals}
    assert "levels" in {line.what for line in run.disclosure.lines}
    assert "job=nurse " in run.model.table()
    assert "nursejob" not in run.model.table()
    kept = cn.Federation(parties(prepare=rules, level="open", never=["levels"]))
    with pytest.raises(cn.PolicyRefusedError, match="levels"):
        kept.fit(TASK, sampler=ALL)


def test_few_choices_of_rows_are_prepared_for() -> None:
    """A hundred splits of its choice would tell a server which rows share a level that is nearly rare."""
    federation, sampler = cn.Federation(parties(level="usual")), cn.UniformSampling(size=50)
    for seed in (0, 1, 2, 3, 4, 0, 4):
        federation.coreset(TASK, sampler, split=cn.HoldOut(0.5, seed=seed))
    with pytest.raises(cn.PolicyRefusedError, match="5 choices of held-out rows"):
        federation.coreset(TASK, sampler, split=cn.HoldOut(0.5, seed=5))


@pytest.mark.parametrize("n_counted", [0, 1, N // 2, N])
@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_rows_that_count_are_noted_alike_block_by_block_and_by_number(n_counted: int, weight: float) -> None:
    weights = np.zeros(N)
    weights[np.random.default_rng(0).permutation(N)[:n_counted]] = weight
    table = parties(N)[0].table
    notes = [
        _note(PartyData(ViewedTable(each, numbers_in(weights), None, None)))
        for each in (table, replace(table, row_numbers=np.arange(N)))
    ]
    assert notes[0] == notes[1]


def test_a_table_that_its_owner_adds_rows_to_is_another() -> None:
    memory, policy = KeptHere(), cn.Policy(level="usual")

    def choose(n: int, seed: int) -> None:
        counted = numbers_in((np.random.default_rng(seed).random(n) < 0.5).astype(float))
        data = PartyData(ViewedTable(parties(n)[0].table, counted, None, None), policy=policy, memory=memory)
        note = _note(data)
        _check_few(note, data)
        memory.keep([note])

    for seed in range(5):
        choose(N, seed)
    with pytest.raises(cn.PolicyRefusedError, match="5 choices of held-out rows"):
        choose(N, 5)
    choose(N + 1, 5)


@pytest.mark.parametrize("prepared_first", [True, False])
def test_a_model_goes_with_the_preparation_it_was_learned_with(prepared_first: bool) -> None:
    rules = cn.Prepare({"visits": cn.Number()})
    table = shop(bank())
    plain, prepared = (cn.Federation([cn.Party("shop", table, label="spent", prepare=r)]) for r in (None, rules))
    first, second = (prepared, plain) if prepared_first else (plain, prepared)
    run = first.fit(TASK, sampler=ALL)
    with pytest.raises(cn.InputError, match=r"columns of 'shop' .* and now it"):
        second.predict(run.model)


def test_bits_are_equal_over_the_wire() -> None:
    here, wire = (cn.Federation(parties(), transport=t) for t in (InProcess, Loopback))
    runs = [each.fit(TASK, sampler=cn.ImportanceSampling(size=100), split=SPLIT) for each in (here, wire)]
    assert np.array_equal(runs[0].model.coef_, runs[1].model.coef_)
    assert runs[0].model.learned_from_ == runs[1].model.learned_from_


def _numbers(value: object) -> list[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for each in value for number in _numbers(each)]
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


@pytest.mark.filterwarnings("ignore::colonnade.AssumptionWarning")  # as some pilots of so little money raise
def test_a_budget_pays_for_preparation_too() -> None:
    federation, budget = cn.Federation(parties(2000)), 9_000
    assert federation.fit(TASK, budget_bytes=budget).ledger.bytes <= budget
    with pytest.raises(cn.InputError, match="preparing columns took"):
        cn.Federation(parties(2000)).fit(TASK, budget_bytes=500)


def test_a_table_says_what_levels_compare_to() -> None:
    run = cn.Federation(parties()).fit(TASK, sampler=ALL)
    assert run.model.table().endswith("Levels compare to job=clerk.")


def test_what_was_learned_is_in_no_repr() -> None:
    run = cn.Federation(parties()).fit(TASK, sampler=ALL)
    assert "nurse" not in repr(run) + repr(run.model)


def test_one_frame_has_no_room_for_two_columns_of_one_name() -> None:
    table = bank()
    both = [
        cn.Party("bank", table, prepare=RULES),
        cn.Party("shop", table[["job"]].assign(y=1.0), prepare=RULES_OF_JOBS, label="y"),
    ]
    run = cn.Federation(both).fit(TASK, sampler=ALL)
    with pytest.raises(cn.InputError, match="'bank' and 'shop' both have a column 'job'"):
        run.model.to_sklearn()


def test_few_rows_with_a_penalty_are_said_to_rest_on_it() -> None:
    X = np.random.default_rng(0).normal(size=(30, 40))
    with pytest.warns(cn.AssumptionWarning, match="but for the penalty"):
        cn.Federation(cn.split_columns(X, X[:, 0], [20, 20])).fit(cn.Regression(l2=10.0), sampler=ALL)
