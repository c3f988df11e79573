"""What is learned of a table, and what is refused, by name, row and value."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import colonnade as cn
from colonnade.preparation import levels, reading
from colonnade.preparation.columns import CategoryColumn, DateColumn, NumberColumn
from colonnade.preparation.fitting import fitted
from colonnade.preparation.preparation import Preparation
from colonnade.preparation.rules import PARTS, Rule


def learned(values: Any, rule: Rule, weights: Any = None) -> Preparation:
    column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    return fitted({"x": rule}, pa.table({"x": column}), weights)


def applied(values: Any, rule: Rule) -> Any:
    column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    return learned(column, rule).apply(pa.table({"x": column})).values.tolist()


# Numbers


@pytest.mark.parametrize(("missing", "fill"), [("mean", 3.0), ("median", 2.0), (7.5, 7.5)])
def test_missing_numbers_are_filled_and_marked(missing: Any, fill: float) -> None:
    values = [1.0, None, 2.0, float("nan"), 6.0]
    assert applied(values, cn.Number(missing=missing)) == [[1, 0], [fill, 1], [2, 0], [fill, 1], [6, 0]]
    assert learned(values, cn.Number(missing=missing)).names == ("x", "x#1")
    assert learned(values, cn.Number(missing=missing)).own_names == ("x", "x is missing")


def test_no_indicator_where_nothing_is_missing() -> None:
    assert learned([1, 2, 3], cn.Number(missing="mean")).names == ("x",)


def test_filled_then_clipped_then_log_then_scaled() -> None:
    rule = cn.Number(missing=-5.0, at_least=0, at_most=10, log=True, scale=True)
    shaped = np.log1p([0.0, 0.0, 3.0, 10.0])
    expected = (shaped - shaped.mean()) / shaped.std()
    assert np.allclose(np.array(applied([None, -2, 3, 400], rule))[:, 0], expected, rtol=1e-14)


def test_a_constant_column_is_scaled_by_one() -> None:
    assert applied([5, 5, 5], cn.Number(scale=True)) == [[0], [0], [0]]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 0, 1], pa.uint8()),
        pa.array([True, False, True]),
        pa.array([Decimal("1.0"), Decimal("0.0"), Decimal("1.0")]),
        pa.array([1, 0, 1]).dictionary_encode(),
        pa.array(np.array([1, 0, 1], dtype=np.float16)),
        pa.chunked_array([[1], [], [0, 1]], pa.int64()),
    ],
)
def test_what_is_a_number(values: Any) -> None:
    assert applied(values, cn.Number()) == [[1], [0], [1]]


@pytest.mark.parametrize(
    ("values", "rule", "match"),
    [
        ([1.0, None, None], cn.Number(), r"'x': 2 of 3 values are missing, the first in row 1 .* missing='median'"),
        ([1.0, float("inf")], cn.Number(), r"'x', row 1 \(rows count from 0\): inf is infinite or beyond"),
        ([1.0, 1e200], cn.Number(at_most=1.0), r"row 1 .*1e\+200 is infinite or beyond"),
        ([0, 2**53], cn.Number(), r"row 1 .* 2\^53 or more .* key="),
        (["1", "12k", "3"], cn.Number(), r"row 1 .*'12k' is text, not a number. Correct it, .* Category\(\)"),
        (["1,5"], cn.Number(), r"row 0 .*'1,5' is text"),
        (["1", None, "3.5"], cn.Number(), r"row 0 .*'1' is text, though it looks like a number. Write the column as"),
        ([dt.date(2020, 1, 1)], cn.Number(), r"'x' has the type date32\[day\], not numbers. Name it as a Date\(\)"),
        ([b"1"], cn.Number(), r"'x' has the type binary, not numbers. Name it as another kind"),
        ([0.5, -1.0], cn.Number(log=True), r"row 1 .*-1 has no log\(1 \+ x\).* pass at_least=0"),
        ([None, None], cn.Number(missing="mean"), r"'x': no row that counts has a value, so there is no mean"),
    ],
)
def test_a_number_that_cannot_be_is_named(values: Any, rule: Rule, match: str) -> None:
    with pytest.raises(cn.InputError, match=match):
        learned(values, rule)


def test_a_bad_value_is_found_behind_blocks_of_good_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BLOCK_ROWS", 2)
    with pytest.raises(cn.InputError, match=r"row 5 .*'12k'"):
        learned(["1", "2", "3", "4", "5", "12k"], cn.Number())


def test_rows_of_errors_are_those_of_the_table() -> None:
    counts = np.array([False, True, False, True])
    with pytest.raises(cn.InputError, match=r"row 3 .*inf"):
        learned([np.inf, 1.0, np.inf, np.inf], cn.Number(), counts)


def test_a_long_value_is_shortened() -> None:
    with pytest.raises(cn.InputError, match=r"'a{39}[.]{3} is text"):
        learned(["a" * 1000], cn.Number())


# Categories


def test_levels_are_compared_to_the_most_frequent() -> None:
    values = ["b"] * 3 + ["a"] * 2 + ["c"] * 2 + ["d"]
    preparation = learned(values, cn.Category(rare=2))
    assert preparation.columns == (CategoryColumn("x", "b", ("a", "c"), ("d",), "other", "error"),)
    assert preparation.names == ("x#1", "x#2", "x#3")
    assert preparation.own_names == ("x=a", "x=c", "x=(other)")
    assert applied(values, cn.Category(rare=2)) == [[0, 0, 0]] * 3 + [[1, 0, 0]] * 2 + [[0, 1, 0]] * 2 + [[0, 0, 1]]


def test_of_equally_frequent_levels_the_first_is_the_reference() -> None:
    (column,) = learned(["c", "b", "b", "c", "a"], cn.Category(rare=1)).columns
    assert isinstance(column, CategoryColumn)
    assert (column.reference, column.levels) == ("b", ("a", "c"))


def test_others_are_no_reference_even_where_they_are_the_most() -> None:
    assert learned([*"abcdefg", "z", "z"], cn.Category(rare=2)).own_names == ("x=(other)",)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (["a"] * 20, "it has one level only"),
        (["a"], "it has one level only"),
        ([*"abcdefg"], "all its levels are rare"),
    ],
)
def test_one_level_gives_no_column_and_is_reported(values: list[str], why: str) -> None:
    preparation = learned(values, cn.Category())
    assert preparation.names == ()
    assert preparation.notes == (f"x: {why}, so it gives no column",)
    assert preparation.apply(pa.table({"x": values})).values.shape == (len(values), 0)


def test_missing_is_a_level_and_may_be_rare() -> None:
    values = ["a"] * 4 + [None, ""] + ["b"] * 2
    assert learned(values, cn.Category(rare=2, missing="level")).own_names == ("x=(missing)", "x=b")
    assert learned(values, cn.Category(rare=3, missing="level")).own_names == ("x=(other)",)


def test_all_missing_is_one_level() -> None:
    assert learned([None, "", None], cn.Category(rare=1, missing="level")).names == ()
    assert learned(pa.nulls(3), cn.Category(rare=1, missing="level")).names == ()


@pytest.mark.parametrize(
    ("values", "own_names"),
    [
        (pa.array([1, 1, 2]), ("x=2",)),
        (pa.array([1.0, 1.0, -2.0]), ("x=-2",)),
        (pa.array([Decimal("1.00"), Decimal("1.00"), Decimal("2.00")]), ("x=2",)),
        (pa.array([True, True, False]), ("x=false",)),
        (pa.array([2**60, 2**60, 2**60 + 1]), (f"x={2**60 + 1}",)),
        (pa.array(["a", "a", " a"]).dictionary_encode(), ("x= a",)),
        (pa.array(["a", "a", "A"], pa.string_view()), ("x=A",)),
        (pa.chunked_array([pa.array(["b", "b"]).dictionary_encode(), pa.array(["a"]).dictionary_encode()]), ("x=a",)),
    ],
)
def test_what_is_a_level(values: Any, own_names: tuple[str, ...]) -> None:
    assert learned(values, cn.Category(rare=1)).own_names == own_names
    assert applied(values, cn.Category(rare=1)) == [[0], [0], [1]]


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (["a", "", None], r"'x': 2 of 3 values are missing, the first in row 1 .* missing='level'"),
        ([1.0, 2.5], r"row 1 .*2.5 is no level: of floats only whole numbers .* Number\(\)"),
        ([1.0, float("inf")], r"row 1 .*inf is no level"),
        ([dt.date(2020, 1, 1)], r"its type is date32\[day\], and levels are text"),
        (["a", "(other)"], r"'x' has a level that is called \(other\).* Rename it"),
        (["a", "(missing)"], r"called \(missing\)"),
    ],
)
def test_a_level_that_cannot_be_is_named(values: Any, match: str) -> None:
    with pytest.raises(cn.InputError, match=match):
        learned(values, cn.Category(rare=1))


def test_ids_are_no_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = pa.array(range(1001)).cast(pa.string())
    with pytest.raises(cn.InputError, match="1,001 levels of 1 rows or more; 1,000 is the most: it looks like an id"):
        learned(ids, cn.Category(rare=1))
    assert len(learned(ids.slice(1), cn.Category(rare=1)).names) == 999
    assert learned(ids, cn.Category()).names == ()
    monkeypatch.setattr(levels, "MOST_KEPT_LEVELS", 1000)
    with pytest.raises(cn.InputError, match="different levels or more: it looks like an id or free text"):
        learned(ids, cn.Category())


# Dates

NOON = dt.datetime(2024, 12, 31, 12, 34, 56)
DAYS = (dt.date(2024, 12, 31) - dt.date(1970, 1, 1)).days


@pytest.mark.parametrize(
    "values",
    [
        pa.array([NOON], pa.timestamp("s")),
        pa.array([NOON], pa.timestamp("ns")),
        pa.array([NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=0)))], pa.timestamp("us", "Asia/Tokyo")),
        pa.array(["2024-12-31 12:34:56"]),
        pa.array(["2024-12-31T14:34:56+02:00"], pa.large_string()),
        pa.array(["2024-12-31T12:34:56Z"]).dictionary_encode(),
    ],
)
def test_all_parts_of_a_time_whatever_it_is_written_in(values: Any) -> None:
    (row,) = applied(values, cn.Date(PARTS))
    assert row[0] == pytest.approx(DAYS + (12 * 3600 + 34 * 60 + 56) / 86_400, rel=1e-15)
    assert row[1:] == [2024, 4, 12, 1, 31, 366, 1, 12, 34, 56]


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (pa.array([dt.date(2024, 12, 31)]), None),
        (pa.array([dt.date(2024, 12, 31)], pa.date64()), None),
        (["2024-12-31"], None),
        (["31.12.2024"], "%d.%m.%Y"),
        (["12/31/24"], "%m/%d/%y"),
        (["2024-12-31 01:00 +0100"], "%Y-%m-%d %H:%M %z"),
    ],
)
def test_days_of_a_date(values: Any, form: str | None) -> None:
    assert applied(values, cn.Date(format=form)) == [[DAYS]]


def test_times_of_day() -> None:
    values = pa.array([dt.time(6, 30), dt.time(18, 0)], pa.time32("s"))
    assert applied(values, cn.Date(["days", "hour", "minute"])) == [[6.5 / 24, 6, 30], [0.75, 18, 0]]
    assert applied(values.cast(pa.time64("ns")), cn.Date(["hour"])) == [[6], [18]]
    with pytest.raises(cn.InputError, match=r"'x' has times of day, which have no year. Take of them: days, hour"):
        learned(values, cn.Date(["year"]))


def test_missing_dates_are_filled_and_marked_once() -> None:
    rule = cn.Date(["year", "month"], "%d.%m.%Y", missing="median")
    values = ["01.03.2020", "", None, "05.05.2022"]
    assert applied(values, rule) == [[2020, 3, 0], [2021, 4, 1], [2021, 4, 1], [2022, 5, 0]]
    preparation = learned(values, rule)
    assert preparation.names == ("x#1", "x#2", "x#3")
    assert preparation.own_names == ("x.year", "x.month", "x is missing")
    (column,) = preparation.columns
    assert isinstance(column, DateColumn)
    assert column.indicator


def test_parts_are_scaled_each_by_itself() -> None:
    got = np.array(applied(["2020-01-01", "2022-03-01"], cn.Date(["year", "month"], scale=True)))
    assert got.tolist() == [[-1, -1], [1, 1]]


@pytest.mark.parametrize(
    ("values", "rule", "match"),
    [
        (["2020-01-01", "1.2.2020"], cn.Date(), r"row 1 .*'1.2.2020' cannot be read .* ISO 8601.* format="),
        (["2020-02-31"], cn.Date(), "row 0 .*'2020-02-31' cannot be read"),
        (["31.01.2020", "31.02.2020"], cn.Date(format="%d.%m.%Y"), r"row 1 .*'31.02.2020' cannot be read .*'%d.%m.%Y'"),
        (["01.02.20"], cn.Date(format="%d.%m.%Y"), "'01.02.20' cannot be read"),
        (["01.02.2020 x"], cn.Date(format="%d.%m.%Y"), "cannot be read"),
        ([None, dt.date(2020, 1, 1)], cn.Date(), "'x': 1 of 2 values are missing, the first in row 0"),
        ([20200101], cn.Date(), "row 0 .*20200101 has the type int64, which is no date or time"),
        (pa.array([0, 3_000_000], pa.date32()), cn.Date(), "row 1 .* not of the years 1 to 9999"),
        (pa.array([2**62], pa.timestamp("s")), cn.Date(), "row 0 .* not of the years 1 to 9999"),
    ],
)
def test_a_date_that_cannot_be_is_named(values: Any, rule: Rule, match: str) -> None:
    with pytest.raises(cn.InputError, match=match):
        learned(values, rule)


# All


def test_a_table_without_rows_that_count_is_refused() -> None:
    with pytest.raises(cn.InputError, match=r"no row to learn from. Hold out fewer"):
        learned([1.0, 2.0], cn.Number(), np.zeros(2))


def test_only_rows_that_count_are_looked_at() -> None:
    weights = np.array([1.0, 1.0, 0.0, 1.0])
    (column,) = learned([1.0, 2.0, np.inf, 6.0], cn.Number(missing="mean", scale=True), weights).columns
    assert isinstance(column, NumberColumn)
    assert column.scaling.fill == column.scaling.mean == 3.0
    assert not column.indicator
    held_out = ["a", "a", "b", "a"]
    assert learned(held_out, cn.Category(rare=1), weights).names == ()


def test_names_that_would_be_the_same_at_the_party_are_refused() -> None:
    table = pa.table({"a": ["p", "p", "b=c"], "a=b": ["q", "q", "c"]})
    with pytest.raises(cn.InputError, match="two prepared columns would be called 'a=b=c'"):
        fitted(dict.fromkeys(table.column_names, cn.Category(rare=1)), table)
