"""What prepare="auto" chooses, and says that it chose."""

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import colonnade as cn
from colonnade.preparation.choosing import chosen
from colonnade.preparation.fitting import fitted

N = 60
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=i) for i in range(N)]


@pytest.mark.parametrize(
    ("values", "rule", "line"),
    [
        ([0, 1, 2] * 20, cn.Number(), "x: number"),
        (
            [0.5, None, 2.5] * 20,
            cn.Number(missing="median"),
            "x: number, its 20 missing values filled by the median and",
        ),
        ([True, False] * 30, cn.Number(), "x: number"),
        ([float("nan"), 1.0] * 30, cn.Number(missing="median"), "x: number, its 30 missing"),
        (["yes", "no"] * 30, cn.Category(), "x: category, 2 levels"),
        (["a"] * 28 + ["b"] * 29 + [*"cde"], cn.Category(), "x: category, 5 levels, 3 of them rare together"),
        (["a"] * 29 + ["b"] * 30 + ["c"], cn.Category(), "x: category, 3 levels, 1 of them rare"),
        (["a", "", None] * 20, cn.Category(missing="level"), "x: category, 2 levels, missing is one (40 rows)"),
        (pa.array([3, 4] * 30).dictionary_encode(), cn.Category(), "x: category, 2 levels"),
        (pa.array([3.5, 4] * 30).dictionary_encode(), cn.Number(), "x: number"),
        (pa.array(["u", "v"] * 30).dictionary_encode(), cn.Category(), "x: category, 2 levels"),
        (DAYS, cn.Date(), "x: date, as days since 1970"),
        ([str(day) for day in DAYS], cn.Date(), "x: date, as days since 1970"),
        (
            [f"{day:%d.%m.%Y}" for day in DAYS],
            cn.Date(format="%d.%m.%Y"),
            "x: date, written as '%d.%m.%Y', as days since 1970",
        ),
        (
            [f"{day:%m/%d/%Y}" for day in DAYS],
            cn.Date(format="%m/%d/%Y"),
            "x: date, written as '%m/%d/%Y', as days since 1970",
        ),
        (
            ["01/02/2020", "03/04/2020"] * 30,
            None,
            "x: left out, dates that are written as '%d/%m/%Y' or '%m/%d/%Y': say which in format",
        ),
        ([*map(str, DAYS[1:]), ""], cn.Date(missing="median"), "x: date, as days since 1970, its 1 missing"),
        (
            pa.array(DAYS).cast(pa.timestamp("ns")).cast(pa.timestamp("ns", "UTC")),
            cn.Date(),
            "x: date, as days since 1970",
        ),
        ([*map(str, DAYS[1:]), "soon"], None, "x: left out, 60 different values in 60 rows look like ids or free text"),
        ([f"id{i}" for i in range(N)], None, "x: left out, 60 different values in 60 rows look like ids"),
        ([f"id{i % 12}" for i in range(N)], None, "x: left out, none of its 12 levels has 10 rows"),
        (["a", "(other)"] * 30, None, "x: left out, a level is called (other)"),
        ([7] * N, None, "x: left out, all its values are the same"),
        (["k"] * N, None, "x: left out, all its values are the same"),
        ([DAYS[0]] * N, None, "x: left out, all its values are the same"),
        ([7, None] * 30, cn.Number(missing="median"), "x: number"),
        ([None] * N, None, "x: left out, all its values are missing"),
        (["", None] * 30, None, "x: left out, all its values are missing"),
        ([2**60 + i for i in range(N)], None, "x: left out, integers of 2^53 or more look like ids"),
        ([b"a", b"b"] * 30, None, "x: left out, its values are of the type binary"),
        ([[1]] * N, None, "x: left out, its values are of the type list"),
    ],
)
def test_each_kind_of_column(values: Any, rule: Any, line: str) -> None:
    table = pa.table({"x": values, "beside": np.arange(N)})
    prepare, (said, _) = chosen(table)
    assert prepare.columns.get("x") == rule
    assert said.startswith(line)
    assert fitted(prepare.by_column(table.column_names), table).apply(table).notes == ()


def test_too_many_frequent_levels_are_left_out() -> None:
    levels = [f"id{i}" for i in range(1001)] * 10
    prepare, lines = chosen(pa.table({"x": levels, "y": range(10010)}))
    assert list(prepare.columns) == ["y"]
    assert lines[0] == "x: left out, 1,001 levels of 10 rows or more look like ids"


def test_columns_with_a_role_are_not_looked_at() -> None:
    prepare, lines = chosen(pa.table({"id": ["a", "b"], "x": [1, 2]}), {"id": "key"})
    assert list(prepare.columns) == ["x"]
    assert lines == ["x: number"]


def test_nothing_to_choose_is_an_error_that_says_why() -> None:
    with pytest.raises(
        cn.InputError, match=r"no column that could enter \(x: left out, all .* Name columns in prepare"
    ):
        chosen(pa.table({"x": [1, 1]}))
