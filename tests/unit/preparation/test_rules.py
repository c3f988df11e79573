import time
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import colonnade as cn
from colonnade.preparation.fitting import fitted
from colonnade.preparation.rules import Prepare

NAMES = ["id", "age", "balance_1", "balance_2", "job", "y"]


def test_exact_names_go_before_patterns_and_earlier_patterns_before_later_ones() -> None:
    prepare = cn.Prepare(
        {"b*": cn.Number(log=True), "balance_*": cn.Category(), "balance_2": cn.Number(), "j?b": cn.Date()}
    )
    assert prepare.by_column(NAMES) == {"balance_1": cn.Number(log=True), "balance_2": cn.Number(), "job": cn.Date()}


def test_columns_keep_the_order_of_the_table() -> None:
    rules = cn.Prepare({"job": cn.Category(), "age": cn.Number()}).by_column(NAMES)
    assert list(rules) == ["age", "job"]


def test_patterns_pass_over_columns_that_have_a_role() -> None:
    rules = cn.Prepare({"*": cn.Number()}).by_column(NAMES, {"id": "key", "y": "label"})
    assert list(rules) == ["age", "balance_1", "balance_2", "job"]


def seconds_to_prepare(n_columns: int) -> float:
    """Measure the processor's time, the better of two."""
    table = pa.table({f"c{i}": [1.0, 2.0, 4.0] for i in range(n_columns)})
    prepare = cn.Prepare({name: cn.Number() for name in table.column_names})

    def seconds() -> float:
        start = time.process_time()
        fitted(prepare.by_column(table.column_names), table).apply(table)
        return time.process_time() - start

    return min(seconds(), seconds())


def test_time_grows_with_columns_not_with_their_square() -> None:
    assert seconds_to_prepare(4000) < 8 * seconds_to_prepare(1000)  # 14 times, when each name was sought in a list


def test_case_matters_in_a_pattern() -> None:
    with pytest.raises(cn.InputError, match=r"no column 'B\*'"):
        cn.Prepare({"B*": cn.Number()}).by_column(NAMES)


def test_a_column_may_be_called_like_a_pattern() -> None:
    rules = cn.Prepare({"size [m]": cn.Number()}).by_column(["size [m]", "size m"])
    assert list(rules) == ["size [m]"]


def test_a_name_that_is_not_there_is_answered_with_the_nearest() -> None:
    with pytest.raises(cn.InputError, match=r"no column 'balanc_1', which prepare names; .* Did you mean 'balance_1'"):
        cn.Prepare({"balanc_1": cn.Number()}).by_column(NAMES)


def test_a_pattern_that_only_columns_with_a_role_match_matches_none() -> None:
    with pytest.raises(cn.InputError, match=r"no column 'i\*', which prepare names"):
        cn.Prepare({"i*": cn.Number()}).by_column(NAMES, {"id": "key"})


def test_a_column_with_a_role_cannot_be_named() -> None:
    with pytest.raises(cn.InputError, match=r"column 'y' is the label, and prepare names it too. Take it out"):
        cn.Prepare({"y": cn.Number(), "age": cn.Number()}).by_column(NAMES, {"y": "label"})


@pytest.mark.parametrize("roles", [{}, {"job#1": "label"}])
def test_a_column_called_like_a_made_one_is_refused(roles: dict[str, str]) -> None:
    with pytest.raises(cn.InputError, match="column 'job#1' is called as those that are made of 'job'"):
        cn.Prepare({"job": cn.Category()}).by_column(["job", "job#1"], roles)


def test_a_column_with_a_number_sign_is_let_in_where_nothing_is_made_of_its_stem() -> None:
    assert list(cn.Prepare({"*": cn.Number()}).by_column(["job#1", "job#x", "#2"])) == ["job#1", "job#x", "#2"]


@pytest.mark.parametrize(
    ("kind", "options", "match"),
    [
        (cn.Number, {"missing": "zero"}, "missing must be a number .* Pass a number or one of: error, mean, median"),
        (cn.Number, {"missing": float("nan")}, "missing must be a number"),
        (cn.Number, {"missing": True}, "missing must be a number"),
        (cn.Number, {"at_least": "0"}, "at_least must be a number"),
        (cn.Number, {"at_most": float("inf")}, "at_most must be a number up to 1e"),
        (cn.Number, {"at_least": 2, "at_most": 1}, "at_least=2 is above at_most=1. Exchange them"),
        (cn.Number, {"log": 1}, "log must be True or False"),
        (cn.Number, {"scale": "yes"}, "scale must be True or False"),
        (cn.Number, {"log": True, "at_most": -1}, "log needs values above -1, and at_most is -1"),
        (cn.Number, {"log": True, "missing": -3}, "log needs values above -1, and missing is -3"),
        (cn.Category, {"rare": 0}, "rare must be a whole number of 1 or more, got 0"),
        (cn.Category, {"unknown": "drop"}, "unknown cannot be 'drop'. Choose among: other, error"),
        (cn.Category, {"missing": "mean"}, "missing cannot be 'mean'. Choose among: error, level"),
        (cn.Date, {"parts": []}, "parts must be some parts of a date, each once"),
        (cn.Date, {"parts": ["day", "day"]}, "each once"),
        (cn.Date, {"parts": ["century"]}, "parts cannot be 'century'. Choose among: days, year"),
        (cn.Date, {"parts": 3}, "parts cannot be 3"),
        (cn.Date, {"format": "iso"}, "format must be as '%d.%m.%Y', got 'iso'"),
        (cn.Date, {"format": "%d.%Q"}, "format must be as '%d.%m.%Y', got '%d.%Q'"),
        (cn.Date, {"format": "100%"}, "format must be as"),
        (cn.Date, {"parts": ["day", "month"], "missing": 1}, "missing=1 cannot stand for day and month at once"),
        (cn.Prepare, {"columns": {}}, "Prepare takes rules by column, got {}"),
        (cn.Prepare, {"columns": "auto"}, "Prepare takes rules by column, got 'auto'"),
        (cn.Prepare, {"columns": {"age": cn.Number}}, "for 'age'. Name a column or a pattern, and give it a Number"),
        (cn.Prepare, {"columns": {1: cn.Number()}}, "Name a column or a pattern"),
        (cn.Prepare, {"columns": {"age": cn.Number()}, "tell_levels": None}, "tell_levels must be True or False"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(kind: Any, options: dict[str, Any], match: str) -> None:
    with pytest.raises(cn.InputError, match=match):
        kind(**options)


def test_rules_are_read_from_what_a_file_says() -> None:
    written = {
        "columns": {
            "age": {"kind": "number", "missing": "median"},
            "balance_*": {"kind": "number", "missing": 0, "log": True, "at_least": 0, "at_most": 1e6, "scale": True},
            "job": {"kind": "category", "rare": 10, "unknown": "other", "missing": "level"},
            "opened": {"kind": "date", "parts": ["year", "month"], "format": "%d.%m.%Y", "missing": "mean"},
        },
        "tell_levels": True,
    }
    read = msgspec.convert(written, Prepare)
    assert read == cn.Prepare(
        {
            "age": cn.Number(missing="median"),
            "balance_*": cn.Number(missing=0.0, at_least=0, at_most=1e6, log=True, scale=True),
            "job": cn.Category(missing="level"),
            "opened": cn.Date(["year", "month"], "%d.%m.%Y", "mean"),
        },
        tell_levels=True,
    )
    assert msgspec.convert(msgspec.to_builtins(read), Prepare) == read


@pytest.mark.parametrize(
    "form", ["%d.%m.%Y", "%Y%m%dT%H%M%S%z", "%H:%M", "%j %Y", "%I:%M %p", "%b %d, %y", "%G-W%V-%u"]
)
def test_formats_are_those_of_python(form: str) -> None:
    assert cn.Date(format=form).format == form


def test_an_option_that_is_not_there_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="rarer"):
        msgspec.convert({"columns": {"job": {"kind": "category", "rarer": 3}}}, Prepare)
