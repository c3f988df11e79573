import json
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import colonnade as cn
from colonnade.disclosure import MEANINGS, OTHERS, Disclosure
from colonnade.ledger import Entry, Ledger
from colonnade.messages import Reveals
from colonnade.solvers import AnySolver


def federation(policy: cn.Policy | None = None) -> cn.Federation:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    bank = cn.Party("bank", X[:, :2], label=X @ np.ones(6), policy=policy)
    return cn.Federation([bank, cn.Party("shop", X[:, 2:4]), cn.Party("telephone", X[:, 4:])])


def test_every_kind_of_disclosure_has_words() -> None:
    assert set(MEANINGS) == set(Reveals) - {Reveals.NOTHING}


def test_the_sheet_says_first_that_rows_were_shown() -> None:
    sheet = federation().fit(cn.Regression(), sampler=cn.ImportanceSampling(20)).disclosure
    assert sheet.headline == (
        "Features or labels of single rows were shown: to server features of bank, shop, telephone; "
        "to server labels of bank."
    )
    assert str(sheet).replace("\n", " ").startswith(sheet.headline)
    assert [line.what for line in sheet.lines][:4] == ["features"] * 3 + ["labels"]


def test_a_secure_coreset_shows_no_row_and_no_partys_scores() -> None:
    sheet = federation().coreset(cn.Regression(), cn.ImportanceSampling(20, scores="secure")).disclosure
    assert sheet.headline == "Nobody was shown features or labels of any row."
    assert {line.what for line in sheet.lines} == {"sums of scores", "row ids", "totals", "schema"}
    assert "no party's own part" in " ".join(str(sheet).split())


def test_lines_are_what_the_ledger_says() -> None:
    run = federation().coreset(cn.Regression(), cn.ImportanceSampling(20))
    pairs = {(line.who, line.about, line.what) for line in run.disclosure.lines}
    expected = {
        (receiver, OTHERS if sender == "server" else sender, what)
        for (sender, receiver), kinds in run.ledger.disclosures().items()
        for what in kinds
    }
    assert pairs == expected
    (scores,) = (line for line in run.disclosure.lines if (line.about, line.what) == ("shop", "scores"))
    assert (scores.who, scores.numbers, scores.messages) == ("server", 20, ("Scores",))
    assert json.loads(run.disclosure.to_json())["lines"][0]["what"] == "scores"


def amounts(run: cn.Run[Any], who: str = "server") -> dict[tuple[str, str], int]:
    return {(line.about, line.what): line.numbers for line in run.disclosure.lines if line.who == who}


@pytest.mark.parametrize("solver", [cn.Central(), cn.CompactCentral()])
def test_each_amount_counts_the_numbers_that_tell_it_and_not_the_whole_message(solver: Any) -> None:
    """200 labels beside 400 features were once told to be 600 labels."""
    run = federation().fit(cn.Regression(), sampler=cn.AllRows(), solver=solver)
    found = amounts(run)
    assert [found[party, "features"] for party in ("bank", "shop", "telephone")] == [400] * 3
    mean = isinstance(solver, cn.CompactCentral)
    assert found["bank", "labels"] == 200 + mean
    assert sum(found.values()) == run.ledger.units
    assert amounts(run, "bank")[OTHERS, "model"] == 2, "its coefficients, which the paper does not count"


def test_amounts_of_an_evaluation_and_of_saga() -> None:
    parties = federation()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cn.ConvergenceWarning)
        run = parties.fit(cn.Regression(), sampler=cn.UniformSampling(40), solver=cn.Saga(max_epochs=2))
    found = amounts(run)
    assert found["shop", "predictions"] == found["bank", "labels"], "a number a row of every block from either"
    parties.evaluate(run.model, rows=50)
    sheet = Disclosure.of(Ledger(parties.sent))
    told = {(line.about, line.what): line.numbers for line in sheet.lines if line.who == "server"}
    assert (told["bank", "features"], told["bank", "labels"]) == (50, 1), "one number says how much labels vary"


def test_a_ledger_of_an_earlier_version_tells_at_most_the_whole_message() -> None:
    entry = {"phase": "solving", "round": 1, "sender": "bank", "receiver": "server", "kind": "Columns"}
    told = {"units": 600, "bytes": 9, "reveals": ["features", "labels"]}
    sheet = Disclosure.of(Ledger.from_json(json.dumps([entry | told])))
    assert [(line.what, line.numbers) for line in sheet.lines] == [("features", 600), ("labels", 600)]


def test_an_empty_ledger_discloses_nothing() -> None:
    assert str(Disclosure.of(Ledger())) == "Nobody learned anything about anybody's data."


@pytest.mark.parametrize(
    ("task", "solver"),
    [
        (cn.Regression(standardize=True), None),
        (cn.Regression(), cn.Central()),
        (cn.Regression(l1=0.1), cn.CompactCentral()),
        (cn.Regression(), cn.Saga()),
        (cn.KMeans(3), cn.DistDim()),
        (cn.KMeans(3), cn.CompactCentral()),
    ],
)
@pytest.mark.parametrize(
    "sampler",
    [
        cn.AllRows(),
        cn.ImportanceSampling(5000, 0.3, scores="secure", totals="set"),
        cn.ImportanceSampling(30, draws="committed"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::colonnade.DisclosureWarning", "ignore::colonnade.ConvergenceWarning")
def test_what_a_plan_would_disclose_is_what_the_run_then_does(task: Any, solver: Any, sampler: Any) -> None:
    """And finding it out asks nobody anything."""
    parties = federation()
    before, split = len(parties.ledger), cn.HoldOut(0.2)
    planned = parties.disclosure(task, sampler=sampler, solver=solver, split=split)
    assert len(parties.ledger) == before
    if solver is None:
        run: cn.Run[Any] = parties.coreset(task, sampler, split=split)
    else:
        run = parties.fit(task, sampler=sampler, solver=solver, split=split)
    told = [{(line.who, line.about, line.what) for line in sheet.lines} for sheet in (planned, run.disclosure)]
    assert told[0] == told[1]
    assert "numbers" not in str(planned).splitlines()[2]


def test_a_plan_that_shows_rows_warns_and_one_that_does_not_is_silent() -> None:
    with pytest.warns(cn.DisclosureWarning, match="labels of single rows would be shown: to server features of bank"):
        federation().disclosure(cn.Regression(), sampler=cn.UniformSampling(9), solver=cn.Central())
    sampler = cn.ImportanceSampling(9, scores="secure", totals="set")
    sheet = federation().disclosure(cn.Regression(), sampler=sampler)
    assert sheet.headline == "Nobody would be shown features or labels of any row."
    assert {line.what for line in sheet.lines} == {"sums of scores", "row ids", "schema"}
    little = federation().disclosure(cn.KMeans(2), sampler=cn.UniformSampling(9))
    assert {(line.what, line.messages) for line in little.lines} == {
        ("schema", ("OpenJob",)),
        ("schema", ("JobAccepted",)),
    }
    nothing = Disclosure((), planned=True)
    assert str(nothing) == "Nobody would learn anything about anybody's data."


def test_a_plan_is_checked_like_a_run() -> None:
    two = cn.Federation(cn.split_columns(np.eye(8), np.arange(8.0), [4, 4]))
    with pytest.raises(cn.InputError, match="allow_two_parties=True"):
        two.disclosure(cn.Regression(), sampler=cn.ImportanceSampling(9, scores="secure"))
    with pytest.raises(cn.UnsupportedError):
        two.disclosure(cn.Regression(), sampler=cn.AllRows(), solver=cn.DistDim())


def test_a_party_that_runs_the_server_is_named() -> None:
    run = federation().coreset(cn.Regression(), cn.ImportanceSampling(20))
    sheet = Disclosure.of(Ledger(run.ledger, run_by="bank"))
    assert {line.who for line in sheet.lines} == {"server (bank)", "bank", "shop", "telephone"}
    assert "server (bank)" in str(sheet).splitlines()[4]


def test_opened_rows_are_on_the_sheet() -> None:
    parties = federation()
    run = parties.coreset(cn.Regression(), cn.ImportanceSampling(20, draws="committed", scores="secure"))
    assert "scores" not in {line.what for line in run.disclosure.lines}
    (line, *_) = (line for line in parties.spot_check(run, rows=2).disclosure.lines if line.what == "scores")
    assert (line.who, line.messages) == ("server", ("Openings",))


def test_a_table_a_lawyer_can_read() -> None:
    text = str(federation().coreset(cn.Regression(), cn.ImportanceSampling(20)).disclosure)
    table = text.splitlines()[2:]
    assert table[0].split() == ["who", "learned", "about", "whom", "what", "numbers,", "told", "in"]
    assert table[1].split() == ["at", "most"]
    assert any(line.startswith("bank, shop, telephone  the other parties") and "row ids" in line for line in table), (
        "which rows all drew"
    )
    assert max(map(len, text.splitlines())) <= 80


def test_fifty_parties_are_counted_on_the_sheet_and_named_in_json() -> None:
    names = [f"hospital of district {number:02}" for number in range(50)]
    entries = [Entry("solving", 1, name, "server", "Columns", 3, 90, ("features",), (3,)) for name in names]
    sheet = Disclosure.of(Ledger(entries))
    assert "to server features of hospital of district 00, hospital of district 01, hospital" in " ".join(
        str(sheet).split()
    )
    assert "and 47 more" in sheet.headline
    assert max(map(len, str(sheet).splitlines())) <= 80
    assert "hospital of district 49" in sheet.to_json()


def test_secret_scores_of_rows_that_are_shown_are_worth_a_warning() -> None:
    secure = cn.ImportanceSampling(20, scores="secure")
    with pytest.warns(cn.DisclosureWarning, match="Central shows the server features and labels") as caught:
        federation().fit(cn.Regression(), sampler=secure)
    assert caught[0].filename == __file__
    federation().coreset(cn.Regression(), secure)
    federation().fit(cn.Regression(), sampler=cn.ImportanceSampling(20))  # no warning: warnings are errors here


@pytest.mark.parametrize(
    ("solver", "task"),
    [(cn.Central(), cn.Regression()), (cn.Saga(max_epochs=200), cn.Regression()), (cn.DistDim(), cn.KMeans(3))],
)
def test_solvers_show_what_they_say(solver: AnySolver, task: cn.Regression | cn.KMeans) -> None:
    raw = federation().fit(task, sampler=cn.UniformSampling(30), solver=solver).disclosure.raw
    assert {line.what for line in raw} == set(solver.shows)


def test_what_preparation_tells_is_planned_as_it_is_told() -> None:
    raw = pa.table({"job": ["clerk", "nurse"] * 50, "age": [float(i) for i in range(100)]})
    rules = cn.Prepare({"job": cn.Category(), "age": cn.Number()})
    parties = [cn.Party("bank", raw, prepare=rules), cn.Party("shop", [[float(i)] for i in range(100)])]
    planned = cn.Federation(parties).disclosure(cn.KMeans(n_clusters=2), sampler=cn.UniformSampling(20))
    told = [line for line in planned.lines if "PreparedColumns" in line.messages]
    assert [(line.about, line.what) for line in told] == [("bank", "schema")]
