"""What an owner reads of a job before deciding on it."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import colonnade as cn
from colonnade.contracts import PartyCard, Roster
from colonnade.job_sheets import route_of, sheet_of
from colonnade.node.approval_words import words_of
from colonnade.node.approvals import JobWords
from colonnade.protocol.memory import AppliedNote, KeptHere, PreparedNote, SumNote
from colonnade.protocol.sheet import JobSheet, SheetParty

TABLE = np.random.default_rng(0).normal(size=(400, 2))
TABLES = {
    "bank": cn.Party("bank", TABLE, label=TABLE[:, 0]).table,
    "shop": cn.Party("shop", TABLE).table,
}
ROSTER = Roster(
    (PartyCard("bank", 400, ("bank_0", "bank_1"), "bank_label"), PartyCard("shop", 400, ("shop_0", "shop_1"), None))
)
FIT = {"task": cn.Regression(), "sampler": cn.ImportanceSampling(60), "solver": cn.Central(), "seed": 1}
MEMORY = KeptHere()
MEMORY.keep([AppliedNote(b"x", 3), SumNote("moments", b"", b"", 50, 1)])


def words(verb: str, party: str, run_by: str | None = None, **what: Any) -> JobWords:
    sheet = sheet_of(verb, {**FIT, **what}, ROSTER, run_by)
    return words_of(sheet, route_of(sheet, party), party, TABLES[party], cn.Policy(), MEMORY)


@pytest.mark.parametrize(
    ("party", "what", "told"),
    [
        ("bank", {}, {"features", "labels", "scores", "row ids", "totals"}),
        ("shop", {}, {"features", "scores", "row ids", "totals"}),
        ("shop", {"sampler": cn.UniformSampling(60)}, {"features"}),
    ],
)
def test_what_a_fit_tells_is_listed_the_worst_first(party: str, what: dict[str, Any], told: set[str]) -> None:
    found = words("fit", party, **what)
    assert {each.what for each in found.tells} == told
    assert found.tells[0].what == "features"
    other = "shop" if party == "bank" else "bank"
    assert all(each.to == (("server", other) if each.what == "row ids" else ("server",)) for each in found.tells)
    assert [each.rows for each in found.tells if each.what in ("features", "row ids")] in ([60], [60, 60])
    assert [each.rows for each in found.tells if each.what == "totals"] in ([None], [])
    assert found.job["rows"] == 60
    assert found.n_rows == 400


def test_what_it_takes_of_the_day_and_what_is_left_for_all_time() -> None:
    found = words("fit", "bank", run_by="shop")
    assert found.takes == {"rows": 120, "row_ids": 60}
    assert found.tells[0].to == ("server (shop)",)
    assert [line.partition(";")[0] for line in found.in_all] == ["sums_in_all: 550 of 600 numbers are left"]
    assert words("fit", "bank", sampler=cn.AllRows()).takes["rows"] == 400


def test_a_model_that_is_applied_is_counted_for_all_time() -> None:
    model = (
        cn.Federation([cn.Party("bank", TABLE, label=TABLE[:, 0]), cn.Party("shop", TABLE)])
        .fit(cn.Regression(l2=0.1), sampler=cn.UniformSampling(50), solver=cn.Central())
        .model
    )
    sheet = sheet_of("deliver", {"model": model, "to": "bank", "rows": None}, ROSTER, None)
    found = words_of(sheet, route_of(sheet, "shop"), "shop", TABLES["shop"], cn.Policy(), MEMORY)
    assert [each.what for each in found.tells if each.to == ("bank",)] == ["predictions"]
    assert found.in_all[0].startswith("models_in_all: 97 of 100 are left; this job applies one")
    assert (found.job["to"], found.job["applies_a_model"], found.job["rows"]) == ("bank", True, 400)


@pytest.mark.parametrize("mode", ["clear", "aided", "curve"])
def test_an_alignment_is_put_into_words(mode: str) -> None:
    """Its rows are not counted yet; on a curve, others' keys count as well."""
    table = cn.Party("shop", pa.table({"id": range(30), "x": np.arange(30.0)}), key="id").table
    parties = (SheetParty("bank", 2, True), SheetParty("shop", 1))
    sheet = JobSheet(verb="align", parties=parties, rows=0, align=mode)
    found = words_of(sheet, route_of(sheet, "shop"), "shop", table, cn.Policy(), KeptHere())
    assert (found.job["align"], found.n_rows, found.takes["keys"]) == (mode, 30, 30)
    assert [(told.what, told.rows) for told in found.tells] == [("keys" if mode == "clear" else "matches", 30)]
    assert any("keys of all other parties' lists" in each for each in found.in_all) == (mode == "curve")


@pytest.mark.parametrize("tell_levels", [False, True])
def test_a_preparation_is_put_into_words(tell_levels: bool) -> None:
    """It tells how many columns there are, and levels only where the owner says so."""
    raw = pa.table({"job": ["clerk", "nurse"] * 200, "age": np.arange(400.0)})
    rules = cn.Prepare({"job": cn.Category(), "age": cn.Number()}, tell_levels=tell_levels)
    table = cn.Party("shop", raw, prepare=rules).table
    roster = Roster((ROSTER.cards[0], PartyCard("shop", 400, ("job", "age"), None, prepared="")))
    sheet = sheet_of("prepare", {"task": cn.Regression(), "split": cn.HoldOut(0.2)}, roster, None)
    memory = KeptHere([PreparedNote(b"t", b"x"), PreparedNote(b"t", b"y")])
    found = words_of(sheet, route_of(sheet, "shop"), "shop", table, cn.Policy(), memory)
    assert [(told.what, told.rows, told.to) for told in found.tells] == [("levels", None, ("server",))] * tell_levels
    assert found.takes == {"rows": 0, "row_ids": 0}
    assert found.in_all[0].startswith("how many columns it makes of its own for this choice of rows")
    assert "choices of rows to prepare columns by: 3 of 5 are left, or more" in found.in_all
    others = words_of(sheet, route_of(sheet, "bank"), "bank", TABLES["bank"], cn.Policy(), memory)
    assert not [line for line in others.in_all if "prepare" in line]
