"""Servers that would learn rows' levels, or values, from how parties prepare their columns."""

from collections.abc import Callable, Iterator
from dataclasses import replace as replaced
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

import colonnade as cn
from colonnade.contracts import Roster
from colonnade.evaluation.telling import ModelKept, TellModel
from colonnade.job_sheets import sheet_of
from colonnade.kernels import draws
from colonnade.kernels.arrays import Flags, Floats
from colonnade.messages import sendable_flags, sendable_floats
from colonnade.node.memory_file import MEMORY, KeptInFile
from colonnade.protocol.memory import ScoredNote, SumNote
from colonnade.protocol.preparing import PrepareColumns, PreparedColumns, prepare
from colonnade.protocol.refusal import Refused
from colonnade.protocol.sheet import JobAccepted, JobSheet
from colonnade.protocol.viewing import AskRowWeights, Moments, RowWeights, UseFrame
from colonnade.signing import SignedMarks, SignedWeights, digest, marks_statement, weights_statement
from colonnade.solvers.central import Columns
from colonnade.tasks.jobs import draw, learn
from hostile.test_alignment import align_without, greet
from hostile_trial import HostileServer, hostile_server, identity_of, turned_away

N, N_NURSES = 120, 10
TASK = cn.Regression(l2=0.1)
STRICT, USUAL, OPEN = ({"level": level, "requests_a_minute": 100_000} for level in ("strict", "usual", "open"))
RULES: dict[str, Any] = {"job": cn.Category(), "age": cn.Number(missing="mean")}
FEW = r"prepares columns for 3 choices of held-out rows at most"
Choose = Callable[[HostileServer, Flags], PreparedColumns]


def bank(seed: int = 0) -> pd.DataFrame:
    """Make a table in which a level is as rare as one may be that gets a column, and some values are missing."""
    rng = np.random.default_rng(seed)
    jobs = rng.permutation(["nurse"] * N_NURSES + ["painter"] * 3 + ["driver"] * 47 + ["clerk"] * (N - N_NURSES - 50))
    age = rng.integers(18, 80, size=N).astype(float) + 0.25
    age[rng.choice(N, 4, replace=False)] = np.nan
    return pd.DataFrame({"job": jobs, "age": age})


def two_levels() -> pd.DataFrame:
    """Make one that has as many columns by whichever rows it is prepared."""
    return bank().assign(job=["clerk", "driver"] * (N // 2))


def town(rules: Any = None, table: pd.DataFrame | None = None, **options: Any) -> list[cn.Party]:
    """Make a bank that prepares its columns, and two others, of which one weighs and splits rows."""
    rng = np.random.default_rng(1)
    prepare = cn.Prepare(RULES if rules is None else rules, **options)
    return [
        cn.Party("bank", bank() if table is None else table, prepare=prepare),
        cn.Party("shop", rng.normal(size=(N, 2)), label=rng.normal(size=N)),
        cn.Party("post", rng.normal(size=(N, 2)), weight=np.ones(N), split=np.arange(N) < 20),
    ]


def nurses() -> set[int]:
    return set(np.flatnonzero(bank()["job"] == "nurse").tolist())


def sheet(server: HostileServer, split: Any = None) -> JobSheet:
    """Write an honest sheet of a preparation."""
    return sheet_of("prepare", {"task": TASK, "split": split}, server.roster, None)


def by_weights(server: HostileServer, held_out: Flags, lightest: float = 0.0, heaviest: float = 1.0) -> PreparedColumns:
    """Choose rows by weights that a party signs which joins forces with the server."""
    job = sheet(server)
    server.open(job)
    weights = sendable_floats(np.where(held_out, lightest, heaviest))
    statement = weights_statement("post", digest(msgspec.msgpack.encode(job)), weights)
    signed = SignedWeights("post", weights, identity_of(server.folder, "post").sign(statement))
    server.told("bank", UseFrame("train", "own", None, None, signed), Moments)
    return server.told("bank", PrepareColumns(), PreparedColumns)


def by_marks(server: HostileServer, held_out: Flags) -> PreparedColumns:
    """Choose rows by marks that it signs."""
    job = sheet(server, cn.SplitBy("post"))
    server.open(job)
    made = digest(msgspec.msgpack.encode(job))
    signer, weights, marks = identity_of(server.folder, "post"), sendable_floats(np.ones(N)), sendable_flags(held_out)
    marked = SignedMarks("post", marks, signer.sign(marks_statement("post", made, marks)))
    weighed = SignedWeights("post", weights, signer.sign(weights_statement("post", made, weights)))
    server.told("bank", UseFrame("train", "own", cn.SplitBy("post"), marked, weighed), Moments)
    return server.told("bank", PrepareColumns(), PreparedColumns)


def by_seed(server: HostileServer, seed: int) -> PreparedColumns:
    """Let seeds choose, honestly but for their number."""
    server.honestly(prepare(server.roster, cn.HoldOut(0.1, seed)), "prepare", task=TASK, split=cn.HoldOut(0.1, seed))
    return next(reply for _, reply in reversed(server.received) if isinstance(reply, PreparedColumns))


def few_at_a_time(server: HostileServer, choose: Choose | None) -> set[int]:
    """Hold out a tenth of the rows, again and again: where a level keeps its column, no row of it is among them."""
    suspects = set(range(N))
    for seed in range(1000):
        held_out = np.asarray(draws.held_out(N, 0.1, seed), bool)
        told = by_seed(server, seed) if choose is None else choose(server, held_out)
        if "job#3" in told.feature_names:
            suspects -= set(np.flatnonzero(held_out).tolist())
        if len(suspects) == N_NURSES:
            break
    return suspects


def one_at_a_time(server: HostileServer, choose: Choose) -> set[int]:
    """Hold out a row: it is a nurse's if the column goes."""
    everyone = choose(server, np.zeros(N, np.bool_))
    rows = range(N)
    told = {row: choose(server, np.arange(N) == row).feature_names for row in rows}
    return {row for row, names in told.items() if names != everyone.feature_names}


WAYS: dict[str, Choose | None] = {"seeds": None, "weights": by_weights, "marks": by_marks}


@pytest.mark.parametrize("way", WAYS)
def test_choices_of_rows_without_end_tell_who_shares_a_level(way: str, tmp_path: Path) -> None:
    """At `open`: what the tests below refuse is worth refusing."""
    with hostile_server(tmp_path, town(), OPEN) as server:
        assert few_at_a_time(server, WAYS[way]) == nurses()


@pytest.mark.parametrize("policy", [USUAL, STRICT], ids=["usual", "strict"])
@pytest.mark.parametrize("way", WAYS)
def test_columns_are_prepared_for_few_choices_of_rows(way: str, policy: dict[str, Any], tmp_path: Path) -> None:
    policies = {"bank": policy}
    with hostile_server(tmp_path, town(), OPEN, policies=policies) as server:
        refusal = turned_away(lambda: few_at_a_time(server, WAYS[way]), FEW)
        assert refusal.party == "bank"
        assert len({reply.name for _, reply in server.received if isinstance(reply, PreparedColumns)}) == 3


def test_choices_are_enough_rows_apart(tmp_path: Path) -> None:
    """Two that differ by a row would tell of it whether its level is nearly rare, or its value missing."""
    with hostile_server(tmp_path, town(), USUAL) as server:
        turned_away(lambda: one_at_a_time(server, by_weights), "10 rows apart at least; this one is 1 apart")
        turned_away(lambda: one_at_a_time(server, by_marks), "a split holds out, and leaves, 10 rows at least")


def test_rows_of_little_weight_count_and_tell_who_shares_a_level(tmp_path: Path) -> None:
    """At `open`: levels are rare by weight, so that no row need be left out."""
    with hostile_server(tmp_path, town(), OPEN) as server:
        assert one_at_a_time(server, partial(by_weights, lightest=1e-9)) == nurses()


def test_the_same_rows_by_other_weights_are_another_choice(tmp_path: Path) -> None:
    with hostile_server(tmp_path, town(), USUAL) as server:
        light = partial(by_weights, lightest=1e-9)
        turned_away(lambda: one_at_a_time(server, light), "this one is 0 apart from an earlier one of other weights")
        light(server, np.zeros(N, np.bool_))


def test_weights_do_not_make_more_choices(tmp_path: Path) -> None:
    """Each leaves out other rows, enough of them, and weighs those that count in its own way."""
    with hostile_server(tmp_path, town(), USUAL) as server:
        for number in range(3):
            by_weights(server, np.arange(N) // 20 == number, lightest=0.0)
        turned_away(lambda: by_weights(server, np.arange(N) // 20 == 3, lightest=1e-9), FEW)


def test_weights_do_not_name_a_level_of_few_rows(tmp_path: Path) -> None:
    """Three are painters, and by weights that are ten times as large they are no more rare."""
    with hostile_server(tmp_path, town(tell_levels=True), USUAL) as server:
        told = by_weights(server, np.zeros(N, np.bool_), heaviest=10.0)
        assert told.feature_names == ("job#1", "job#2", "job#3", "age", "age#1")
        assert told.levels is None


def test_choices_are_remembered_after_a_restart(tmp_path: Path) -> None:
    for seeds in ((0, 1), (1, 2, 0)):
        with hostile_server(tmp_path, town(), USUAL) as server:
            for seed in seeds:
                by_seed(server, seed)
    with hostile_server(tmp_path, town(), USUAL) as server:
        by_seed(server, 1)
        turned_away(lambda: by_seed(server, 3), FEW)


def test_runs_that_are_open_at_the_same_time_share_the_choices(tmp_path: Path) -> None:
    """None has told its columns when the last is opened."""

    def nested(seed: int) -> None:
        split = cn.HoldOut(0.1, seed)
        server.open(sheet(server, split))
        told = server.told("post", AskRowWeights(0, server.roster.n_rows), RowWeights)
        weights = SignedWeights("post", told.weights, told.signature)
        server.told("bank", UseFrame("train", "own", split, None, weights), Moments)
        if seed < 3:
            with server.besides():
                nested(seed + 1)
        server.told("bank", PrepareColumns(), PreparedColumns)

    with hostile_server(tmp_path, town(), USUAL) as server:
        turned_away(lambda: nested(0), FEW)
        assert sum(isinstance(reply, PreparedColumns) for _, reply in server.received) == 3


def keyed(rules: dict[str, Any], table: pd.DataFrame, keys: Any) -> list[cn.Party]:
    """Make parties whose rows are matched by key."""
    rng = np.random.default_rng(1)
    label = rng.normal(size=N)
    return [
        cn.Party("party0", table.assign(id=keys), key="id", prepare=cn.Prepare(rules)),
        cn.Party("party1", pd.DataFrame({"id": keys, "a": rng.normal(size=N)}), key="id"),
        cn.Party("party2", pd.DataFrame({"id": keys, "b": rng.normal(size=N), "y": label}), key="id", label="y"),
    ]


def prepared_by(server: HostileServer, split: Any = None) -> Roster:
    """Let columns be prepared, honestly."""
    return server.honestly(prepare(server.roster, split), "prepare", task=TASK, split=split)


def test_nor_do_alignments_without_end_give_more_choices(tmp_path: Path) -> None:
    """A server that says which rows are common chooses by that which ones count."""

    def realigned(without: int) -> None:
        align_without(server, without)
        greet(server)
        prepared_by(server)

    with hostile_server(tmp_path, keyed(RULES, bank(), np.arange(N)), USUAL, are_aligned=False) as server:
        realigned(0)
        realigned(0)  # the same rows, in another order
        turned_away(lambda: realigned(1), "10 rows apart at least; this one is 1 apart")
        realigned(20)
        realigned(40)
        turned_away(lambda: realigned(60), FEW.replace("3", "2"))


def test_whether_it_can_be_done_is_counted_as_what_comes_of_it(tmp_path: Path) -> None:
    """Each try tells whether all values among the rows that count are missing: refused or not, it is a choice."""
    table = bank()
    table["age"] = np.where(np.arange(N) < 90, np.nan, table["age"].fillna(40.0))
    with hostile_server(tmp_path, town(table=table), USUAL) as server:
        for start in (0, 10, 20):
            held_out = ~((np.arange(N) >= start) & (np.arange(N) < start + 60))
            turned_away(partial(by_weights, server, held_out), r"its columns cannot be prepared by its owner's rules")
        turned_away(partial(by_weights, server, np.arange(N) < 30), FEW)
        assert server.said_to_owner("bank").count("no row that counts has a value, so there is no mean") == 3


def test_whether_a_level_is_known_does_not_depend_on_which_rows_are_common(tmp_path: Path) -> None:
    """By alignments less a row a server would find the one whose level is new: all rows are looked at, or none."""
    table, keys = bank(), np.arange(N)
    rules = {"job": cn.Category(unknown="error")}
    with hostile_server(tmp_path, keyed(rules, table, keys), USUAL, are_aligned=False) as server:
        align_without(server, 0)
        greet(server)
        learned = prepared_by(server)
    table.loc[5, "job"] = "astronaut"
    with hostile_server(tmp_path, keyed(rules, table, keys), USUAL, are_aligned=False) as server:
        for without in (0, 1, 60, 100):
            align_without(server, without)
            greet(server)
            roster = replaced(
                learned,
                alignment=server.roster.alignment,
                cards=tuple(replaced(card, n_rows=server.roster.n_rows) for card in learned.cards),
            )
            job = sheet_of("coreset", {"task": TASK, "sampler": cn.AllRows()}, roster, None)
            turned_away(partial(server.open, job), "its columns cannot be prepared by its owner's rules")
        assert "'astronaut' was not there" in server.said_to_owner("party0")
        assert "astronaut" not in str(server.received)
        assert "astronaut" not in str(server.log_of("party0"))


def test_names_do_not_tell_whether_two_choices_came_to_the_same(tmp_path: Path) -> None:
    """What was learned is the same, to the bit: that would tell that no row held out has a level of its own."""
    with hostile_server(tmp_path, town({"job": cn.Category()}, two_levels()), USUAL) as server:
        rosters = [prepared_by(server, cn.HoldOut(0.1, seed)) for seed in (0, 1, 1)]
        for roster in rosters:
            server.open(sheet_of("coreset", {"task": TASK, "sampler": cn.AllRows()}, roster, None))
        told = {
            reply.fingerprint for party, reply in server.received if isinstance(reply, JobAccepted) and party == "bank"
        }
    assert len({roster.cards[0].prepared for roster in rosters}) == 2
    assert len(told) == 3, "one is none, of columns that were to be prepared"
    files = list((tmp_path / "bank-state").glob("prepared-*.json"))
    assert len(files) == 2
    assert len({file.read_bytes() for file in files}) == 1


def with_prepared(job: JobSheet, party: str, **changes: Any) -> JobSheet:
    """Change a party's entry on a sheet."""
    return replace(job, parties=tuple(replace(each, **changes) if each.name == party else each for each in job.parties))


NOT_THERE = "does not have the preparation|cannot be prepared"
NOT_AS_IT_IS = "this party's columns or rows are not as they are"
SHEETS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a path": ("bank", {"prepared": "../../x"}, "does not have the preparation"),
    "a path to a file there": ("bank", {"prepared": "../bank-state/memory.notes"}, "does not have the preparation"),
    "an unknown name": ("bank", {"prepared": "0" * 32}, "does not have the preparation 00000000"),
    "a name and a line": ("bank", {"prepared": "0" * 32 + "\n"}, "does not have the preparation"),
    "upper case": ("bank", {"prepared": "A" * 32}, "does not have the preparation"),
    "columns as they came": ("bank", {"prepared": "", "features": 2}, "columns are not prepared first"),
    "no name, and as many as prepared": ("bank", {"prepared": ""}, NOT_AS_IT_IS),
    "none": ("bank", {"prepared": None}, NOT_AS_IT_IS),
    "none, as they came": ("bank", {"prepared": None, "features": 2}, NOT_AS_IT_IS),
    "more columns": ("bank", {"features": 6}, NOT_AS_IT_IS),
    "one that does not prepare": ("shop", {"prepared": "0" * 32}, "its owner has no .prepare. any more"),
    "one that does not, with no name": ("shop", {"prepared": ""}, NOT_AS_IT_IS),
    "10 MB": ("bank", {"prepared": "a" * 10_000_000}, "a job sheet of 10,"),
}


@pytest.fixture(scope="module")
def square(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileServer]:
    with hostile_server(tmp_path_factory.mktemp("town"), town(), USUAL) as server:
        yield server


@pytest.mark.parametrize("lie", SHEETS)
def test_a_sheet_names_a_preparation_that_there_is(lie: str, square: HostileServer) -> None:
    party, changes, why = SHEETS[lie]
    roster = prepared_by(square)
    honest = sheet_of("coreset", {"task": TASK, "sampler": cn.AllRows()}, roster, None)
    square.open(honest)
    refusal = turned_away(partial(square.open, with_prepared(honest, party, **changes)), why)
    assert refusal.party == party
    assert len(refusal.refusal.reason) < 1000
    assert str(square.folder) not in refusal.refusal.reason


def test_columns_that_are_prepared_are_not_prepared_again(square: HostileServer) -> None:
    roster = prepared_by(square)
    again = sheet_of("prepare", {"task": TASK}, roster, None)
    square.open(again)
    told = square.told("post", AskRowWeights(0, square.roster.n_rows), RowWeights)
    weights = SignedWeights("post", told.weights, told.signature)
    square.told("bank", UseFrame("train", "own", None, None, weights), Moments)
    turned_away(lambda: square.told("bank", PrepareColumns(), PreparedColumns), "columns are numbers as they are")


def test_a_party_that_does_not_prepare_is_not_asked_to(square: HostileServer) -> None:
    square.open(sheet(square))
    refused = square.ask("shop", PrepareColumns())
    assert isinstance(refused, Refused)
    assert refused.cause == "order"


def fit(server: HostileServer, roster: Roster, split: Any, solver: Any) -> Any:
    """Learn a model of all rows, honestly."""
    all_rows = cn.AllRows()
    server.open(sheet_of("fit", {"task": TASK, "sampler": all_rows, "solver": solver, "split": split}, roster, None))
    return server.play(learn(TASK, all_rows, solver, split, roster, 0)).model


def test_a_model_is_applied_to_columns_as_they_were_prepared_for_it(tmp_path: Path) -> None:
    """Else one that was told gives other numbers of each row: by preparation A, the coefficients of B."""
    rules = {"job": cn.Category(), "age": cn.Number(missing=0.0, scale=True)}
    with hostile_server(tmp_path, town(rules, two_levels()), USUAL) as server:
        first, second = (prepared_by(server, split) for split in (None, cn.HoldOut(0.2, seed=3)))
        assert first.parts == second.parts, "they have as many columns"
        model = fit(server, first, None, cn.Central())
        honest = sheet_of("predict", {"model": model}, first, None)
        server.open(honest)
        mixed = with_prepared(honest, "bank", prepared=second.cards[0].prepared)
        refusal = turned_away(partial(server.open, mixed), "applies only models that it helped to learn")
        assert refusal.party == "bank"


def test_sums_of_columns_prepared_otherwise_are_other_sums(tmp_path: Path) -> None:
    """They are over the same rows, and other numbers: counted each time."""
    rules = {"job": cn.Category(), "age": cn.Number(missing=0.0, scale=True)}
    with hostile_server(tmp_path, town(rules, two_levels()), USUAL) as server:
        for split in (None, cn.HoldOut(0.2, seed=3), None):
            fit(server, prepared_by(server, split), None, cn.SecureGram())
    notes = notes_of(tmp_path, "bank")
    sums = [note for note in notes if isinstance(note, SumNote)]
    assert len(sums) == 2
    assert len({note.rows for note in sums}) == 1


def test_rows_are_scored_for_few_preparations(tmp_path: Path) -> None:
    """Scores in other columns are other quadratic forms."""
    sampler = cn.ImportanceSampling(20, scores="secure")

    def score(split: Any) -> None:
        roster = prepared_by(server, split)
        server.open(sheet_of("coreset", {"task": TASK, "sampler": sampler, "seed": 0}, roster, None))
        server.play(draw(TASK, sampler, None, roster, 0))

    with hostile_server(tmp_path, town(), {**USUAL, "never": ["features"]}) as server:
        for split in (None, cn.HoldOut(0.2, seed=3), None):
            score(split)
    assert len([note for note in notes_of(tmp_path, "bank") if isinstance(note, ScoredNote)]) == 2


def test_neither_the_server_nor_a_log_is_told_levels_and_means(tmp_path: Path) -> None:
    """The owner is: what columns there are, and the party's part of the model by its own names."""
    with hostile_server(tmp_path, town(), USUAL) as server:
        fit(server, prepared_by(server), None, cn.SecureGram())
        told, said = f"{server.received} {server.log_of('bank')}", server.said_to_owner("bank")
    assert "job#1" in told
    assert not [word for word in ("driver", "nurse", "clerk", str(tmp_path)) if word in told]
    assert "4 rows" not in told
    assert "job=driver, job=nurse, job=(other), age, age is missing" in said
    assert "Largest coefficients: job=" in said
    (part,) = (tmp_path / "bank-state").glob("part-*.json")
    assert part.stat().st_mode & 0o077 == 0


def test_a_model_of_another_form_is_not_kept(tmp_path: Path) -> None:
    """A matrix of coefficients was written down, and then broke the words that the owner is told."""
    with hostile_server(tmp_path, town(), USUAL) as server:
        roster, all_rows, solver = prepared_by(server), cn.AllRows(), cn.Central()
        server.open(sheet_of("fit", {"task": TASK, "sampler": all_rows, "solver": solver}, roster, None))
        server.play_until(learn(TASK, all_rows, solver, None, roster, 0), TellModel)
        lie = TellModel(sendable_floats(np.ones((3, 5))), None, None)
        turned_away(lambda: server.told("bank", lie, ModelKept), r"an array of shape \(3, 5\) for 5 features")
    assert not list((tmp_path / "bank-state").glob("part-*.json"))


def test_choices_are_free_where_they_tell_nothing(tmp_path: Path) -> None:
    """Numbers of which none is missing, as they are, are the same by whatever rows."""
    table = bank().assign(age=bank()["age"].fillna(40.25))
    with hostile_server(tmp_path, town({"age": cn.Number(log=True)}, table), USUAL) as server:
        assert {by_seed(server, seed).feature_names for seed in range(8)} == {("age",)}


def shown_by(server: HostileServer, prepared: PreparedColumns) -> Floats:
    """Learn on 20 rows, the same each time, of columns so prepared, and keep what the bank shows of them."""
    bank_card, *others = server.roster.cards
    card = replaced(bank_card, feature_names=prepared.feature_names, prepared=prepared.name)
    roster, sampler = replaced(server.roster, cards=(card, *others)), cn.UniformSampling(20)
    server.open(sheet_of("fit", {"task": TASK, "sampler": sampler, "solver": cn.Central(), "seed": 0}, roster, None))
    server.play(learn(TASK, sampler, cn.Central(), None, roster, 0))
    told = [reply for party, reply in server.received if party == "bank" and isinstance(reply, Columns)]
    return told[-1].features[:, 0]


def value_of(server: HostileServer, row: int) -> float:
    """Scale by all rows and by all but one: how the values of others move tells that one, in their units."""
    before, after = (shown_by(server, by_weights(server, np.arange(N) == left_out)) for left_out in (-1, row))
    slope, shift = np.polyfit(before, after, 1)
    return float(shift * (N - 1) / slope)


def test_scales_of_two_choices_tell_the_row_between_them(tmp_path: Path) -> None:
    """At `open`: a row that was never drawn. Elsewhere such choices are refused, though columns stay as many."""
    table = bank().assign(age=bank()["age"].fillna(40.25))
    age, row = table["age"].to_numpy(), 7
    parties = town({"age": cn.Number(scale=True)}, table)
    with hostile_server(tmp_path / "open", parties, OPEN) as server:
        assert value_of(server, row) == pytest.approx((age[row] - age.mean()) / age.std(), rel=1e-6)
    with hostile_server(tmp_path / "usual", parties, USUAL) as server:
        turned_away(lambda: value_of(server, row), "10 rows apart at least; this one is 1 apart")


def notes_of(folder: Path, party: str) -> frozenset[Any]:
    """Read what a party remembers."""
    memory = KeptInFile(folder / f"{party}-state" / MEMORY)
    try:
        return memory.notes()
    finally:
        memory.close()
