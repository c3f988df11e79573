"""What was learned: applied to other rows, kept, and read again without trust."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import colonnade as cn
from colonnade.preparation import preparation as module
from colonnade.preparation.fitting import fitted
from colonnade.preparation.preparation import Preparation
from colonnade.preparation.rules import Rule

TABLE = pa.table(
    {
        "age": [20.0, 30.0, 40.0, 30.0],
        "gap": [1.0, None, 3.0, 4.0],
        "job": ["clerk", "clerk", "baker", "smith"],
        "pure": ["a", "a", "b", "b"],
        "opened": ["2020-01-01", "2021-01-01", "2022-01-01", "2023-01-01"],
    }
)
RULES: dict[str, Rule] = {
    "age": cn.Number(missing="median"),
    "gap": cn.Number(missing="mean", scale=True),
    "job": cn.Category(rare=2),
    "pure": cn.Category(rare=1, missing="level"),
    "opened": cn.Date(["year"], missing="mean"),
}
LEARNED = fitted(RULES, TABLE)


def new_rows(**columns: Any) -> Any:
    rows = TABLE.slice(0, 2)
    for name, values in columns.items():
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(values))
    return rows


def test_the_order_of_columns_and_others_beside_them_do_not_matter() -> None:
    other = TABLE.select(TABLE.column_names[::-1]).append_column("secret", [["x"] * 4])
    applied = LEARNED.apply(other)
    assert np.array_equal(applied.values, LEARNED.apply(TABLE).values)
    assert applied.values.flags.f_contiguous
    assert applied.values.dtype == np.float64
    assert applied.notes == ()
    assert LEARNED.names == ("age", "gap", "gap#1", "job#1", "pure#1", "opened#1")
    assert LEARNED.own_names == ("age", "gap", "gap is missing", "job=(other)", "pure=b", "opened.year")


def test_a_table_without_rows_has_the_columns() -> None:
    assert LEARNED.apply(TABLE.slice(0, 0)).values.shape == (0, 6)


def test_unknown_levels_count_as_other_and_are_counted() -> None:
    applied = LEARNED.apply(new_rows(job=["pilot", "baker"]))
    assert applied.values[:, 3].tolist() == [1, 1]
    (note,) = applied.notes
    assert note == "job: 1 row has levels that were not there when it was learned; they count as other"


def test_without_a_column_for_others_unknown_levels_count_as_the_reference() -> None:
    applied = LEARNED.apply(new_rows(pure=["c", None]))
    assert applied.values[:, 4].tolist() == [0, 0]
    assert applied.notes == (
        "pure: 2 rows have levels that were not there when it was learned; they count as its most frequent level",
    )


def test_gaps_where_there_were_none_are_filled_and_noted() -> None:
    applied = LEARNED.apply(new_rows(age=[None, 20.0], opened=[None, ""]))
    assert applied.values[:, 0].tolist() == [30, 20]
    assert applied.values[:, 5].tolist() == [2021.5, 2021.5]
    assert applied.notes == (
        "age: 1 row has no value, and none was missing when it was learned; they are filled in",
        "opened: 2 rows have no value, and none was missing when it was learned; they are filled in",
    )


@pytest.mark.parametrize(
    ("rule", "values", "match"),
    [
        (cn.Number(), [1.0, None], r"column 'x', row 1 \(rows count from 0\): the value is missing. Fill it in"),
        (cn.Number(log=True), [1.0, -2.0], "row 1 .*-2 has no log"),
        (cn.Number(), ["1", "2"], "row 0 .*'1' is text"),
        (cn.Category(rare=1), ["1", None], "row 1 .*the level is missing. Fill it in; .* missing='level'"),
        (cn.Category(rare=1, unknown="error"), [1, 3], "row 1 .*the level 3 was not there .* unknown='other'"),
        (cn.Category(rare=1, unknown="error", missing="level"), [1, None], "row 1 .*the level None was not there"),
    ],
)
def test_what_cannot_be_prepared_is_named(rule: Any, values: Any, match: str) -> None:
    preparation = fitted({"x": rule}, pa.table({"x": [1, 2]}))
    with pytest.raises(cn.InputError, match=match):
        preparation.apply(pa.table({"x": values}))


def test_rare_levels_are_known_where_unknown_ones_are_refused() -> None:
    preparation = fitted({"x": cn.Category(rare=2, unknown="error")}, pa.table({"x": ["a", "a", "b"]}))
    assert preparation.apply(pa.table({"x": ["b", "a"]})).values.tolist() == [[1], [0]]


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(cn.InputError, match=r"no column 'age', which was prepared; .* Did you mean 'agee'\?"):
        LEARNED.apply(TABLE.rename_columns(["agee", *TABLE.column_names[1:]]))


def test_a_column_that_is_not_there_is_named_for_no_rows_too() -> None:
    with pytest.raises(cn.InputError, match="no column 'age'"):
        LEARNED.apply(TABLE.drop_columns("age").slice(0, 0))


def test_it_is_kept_as_json() -> None:
    again = Preparation.from_json(LEARNED.to_json())
    assert again == LEARNED
    assert again.to_json() == LEARNED.to_json()


GOOD = json.loads(LEARNED.to_json())


def changed(place: int, **fields: Any) -> bytes:
    columns = [dict(column) for column in GOOD["columns"]]
    columns[place].update(fields)
    return json.dumps({**GOOD, "columns": columns}).encode()


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        LEARNED.to_json()[:-1],
        json.dumps({**GOOD, "format": 2}).encode(),
        json.dumps({**GOOD, "more": 1}).encode(),
        json.dumps({**GOOD, "columns": [*GOOD["columns"], GOOD["columns"][0]]}).encode(),
        changed(0, kind="code"),
        changed(0, column=3),
        changed(0, more=1),
        changed(0, column="gap"),
        changed(0, column="job#1"),
        changed(0, scaling={"fill": None, "mean": 0.0, "deviation": 0.0}),
        changed(0, scaling={"fill": None, "mean": 0.0, "deviation": -1.0}),
        changed(0, scaling={"fill": 1e300}),
        changed(0, scaling={"fill": float("nan")}),
        changed(0, at_least=2.0, at_most=1.0),
        changed(0, log=True, scaling={"fill": -3.0}),
        changed(0, log=True, at_most=-2.0),
        changed(2, levels=["a", "a"]),
        changed(2, levels=["clerk"]),
        changed(2, levels=[""]),
        changed(2, levels=["(other)"]),
        changed(2, reference=None, levels=["a"]),
        changed(2, reference=None, rare=[]),
        changed(2, levels=[str(i) for i in range(1000)]),
        changed(2, rare=[str(i) for i in range(100_001)]),
        changed(2, unknown="guess"),
        changed(4, parts=[]),
        changed(4, parts=[["century", {"fill": None}]]),
        changed(4, parts=[["year", {"fill": None}], ["year", {"fill": None}]]),
    ],
)
def test_what_is_none_of_ours_is_refused(written: bytes) -> None:
    with pytest.raises(
        cn.InputError, match=r"The preparation cannot be read .* Take it as it was written, or fit again"
    ):
        Preparation.from_json(written)


def test_too_much_is_neither_written_nor_read(monkeypatch: pytest.MonkeyPatch) -> None:
    written = LEARNED.to_json()
    monkeypatch.setattr(module, "MAX_JSON_BYTES", len(written) - 1)
    with pytest.raises(cn.InputError, match=r"more than .* Leave it out"):
        LEARNED.to_json()
    with pytest.raises(cn.InputError, match=r"cannot be read .* bytes, more than"):
        Preparation.from_json(written)
