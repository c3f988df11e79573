"""Keys: the same rows in the same order give the same digest, and no key is ever shown."""

import datetime
import re
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from colonnade.data.keys import read_keys
from colonnade.data.tables import read_table
from colonnade.errors import InputError


def refusal(data: object) -> str:
    with pytest.raises(InputError) as caught:
        read_table("bank", data, key="id")
    return str(caught.value)


def digest(ids: object) -> bytes | None:
    return read_table("bank", pa.table({"id": ids, "x": [0.0] * len(ids)}), key="id").key_digest  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64()])
def test_integers_of_any_width_are_the_same_keys(kind: Any) -> None:
    assert digest(pa.array([7, 12, 3], kind)) == digest(pa.array(["7", "12", "3"]))


def test_text_of_any_encoding_is_the_same_key() -> None:
    ids = ["é", "b", "ab"]
    digests = {digest(pa.array(ids, kind)) for kind in (pa.string(), pa.large_string(), pa.string_view())}
    frame = pd.DataFrame({"id": pd.Categorical(ids), "x": [0.0] * 3})
    assert digests == {read_table("bank", frame, key="id").key_digest}


@pytest.mark.parametrize("other", [["b", "a"], ["a", "c"], ["a", "b", "c"], ["ab", "x"], ["a", "b-"]])
def test_other_keys_or_another_order_give_another_digest(other: list[str]) -> None:
    assert digest(pa.array(["a", "b"])) != digest(pa.array(other))


def test_the_length_prefix_keeps_neighbours_apart() -> None:
    assert digest(pa.array(["ab", "c"])) != digest(pa.array(["a", "bc"]))


def test_a_csv_key_is_text_as_written(tmp_path: Path) -> None:
    (tmp_path / "bank.csv").write_text("id,x\n007,1\n7,2\n")
    assert read_table("bank", tmp_path / "bank.csv", key="id").key_digest == digest(pa.array(["007", "7"]))


def test_a_repeated_key_is_found_but_not_shown() -> None:
    message = refusal(pd.DataFrame({"id": ["Ann", "Bob", "Eve", "Bob"], "x": 1.0}))
    for part in ("'bank'", "'id'", "1 of 4 rows repeat", "in row 3", "Join or add them up at the party first"):
        assert part in message
    assert "Bob" not in message


@pytest.mark.parametrize("missing", [None, ""])
def test_a_missing_key(missing: str | None) -> None:
    message = refusal(pl.DataFrame({"id": ["Ann", missing, "Eve", missing], "x": [1.0] * 4}))
    for part in ("'bank'", "'id'", "2 of 4", "in rows 1, 3", "fill them in"):
        assert part in message


def test_a_key_of_floats() -> None:
    message = refusal(pd.DataFrame({"id": [1.0, 2.0], "x": 1}))
    for part in ("'bank'", "'id'", "double", "Convert"):
        assert part in message
    assert "floats are rounded, and equal keys might differ" in message


def values(*columns: Any, duplicates: Any = "error") -> list[bytes]:
    table = pa.table({f"k{number}": column for number, column in enumerate(columns)})
    return list(read_keys("bank", table.column_names, table, duplicates).values)


def forms(text: str) -> list[str]:
    """Write a name as others might: composed or not, in other letters, with blanks around."""
    written = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
    return [
        blank + each + other for each in written for blank, other in (("", ""), (" ", "\t"), ("\u3000", "\u00a0\n"))
    ]


@given(st.text(min_size=1).filter(lambda text: text.strip()))
@example("Ångström")
@example("\u1e9b\u0323")
@example("İstanbul")
def test_however_a_text_is_written_it_is_the_same_key(text: str) -> None:
    found = {value for form in forms(text) for value in values(pa.array([form]))}
    assert len(found) == 1
    assert values(pa.array([next(iter(found)).decode()])) == [*found], "its form is a key in that form"


@given(st.text(st.characters(max_codepoint=0x7F), min_size=1).filter(str.strip))
@example("\x1cA\x1f")
def test_a_key_does_not_depend_on_the_letters_of_others(text: str) -> None:
    assert values(pa.array([text])) == values(pa.array([text, "Ångström"]))[:1]


@given(st.text(st.characters(max_codepoint=0x17F, categories=["L"]), min_size=1))
def test_large_letters_are_small_ones(text: str) -> None:
    swapped = [each for each in (text.upper(), text.lower()) if each.lower() == text.lower() and "İ" not in text]
    assert len({value for each in swapped for value in values(pa.array([each]))}) <= 1


@given(st.integers(-(2**63), 2**63 - 1))
@example(10**18)
@example(0)
def test_an_integer_is_its_text(number: int) -> None:
    as_text = values(pa.array([f" {number} "]))
    assert values(pa.array([number], pa.int64())) == as_text == [str(number).encode()]
    assert values(pa.array([number]).dictionary_encode()) == as_text


def test_large_neighbours_and_leading_zeros_are_different_keys() -> None:
    assert len(set(values(pa.array([10**18, 10**18 + 1])))) == 2
    assert values(pa.array([2**64 - 1], pa.uint64())) == [b"18446744073709551615"]
    assert len({*values(pa.array(["007", "07", "7"])), *values(pa.array([7]))}) == 3


@given(st.lists(st.binary(min_size=1), unique=True))
def test_bytes_are_as_they_are_and_never_a_text(found: list[bytes]) -> None:
    keys = values(pa.array(found, pa.binary()))
    assert [key[1:] for key in keys] == found
    for value, key in zip(found, keys, strict=True):
        with suppress(UnicodeDecodeError, InputError):
            assert values(pa.array([value.decode()])) != [key]


@given(st.lists(st.tuples(*[st.text("ab1 ", min_size=1).filter(str.strip)] * 2), min_size=1))
@example([("a", "bc"), ("ab", "c")])
def test_several_columns_are_compared_one_by_one(pairs: list[tuple[str, str]]) -> None:
    stripped = {(first.strip(), second.strip()) for first, second in pairs}
    first, second = (pa.array(column) for column in zip(*pairs, strict=True))
    assert len({*values(first, second, duplicates="first")}) == len(stripped)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_are_their_iso_text(unit: str) -> None:
    moments = [datetime.datetime(2013, 1, 1, 5), datetime.datetime(1969, 12, 31, 23, 59, 50)]
    column = pa.array(moments, pa.timestamp(unit))
    texts = ["2013-01-01T05:00:00", "1969-12-31T23:59:50"]
    assert values(column) == values(pa.array(texts)) == [text.lower().encode() for text in texts]


@given(st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1)))
def test_the_same_moment_is_one_key_in_any_zone_and_unit(moment: datetime.datetime) -> None:
    aware = moment.replace(tzinfo=datetime.UTC)
    zoned = [pa.array([aware], pa.timestamp(unit, zone)) for unit in ("us", "ns") for zone in ("UTC", "Asia/Kolkata")]
    (found,) = {value for column in zoned for value in values(column)}
    assert found.endswith(b"z")
    assert datetime.datetime.fromisoformat(found.decode().upper()) == aware
    assert values(pa.array([moment], pa.timestamp("us"))) == [found[:-1]], "without a zone it is another key"


def test_dates_of_both_kinds_are_their_text() -> None:
    days = [datetime.date(2024, 2, 29), datetime.date(1969, 1, 1)]
    wanted = [b"2024-02-29", b"1969-01-01"]
    assert values(pa.array(days, pa.date32())) == values(pa.array(days, pa.date64())) == wanted
    assert values(pa.array([str(day) for day in days])) == wanted


@pytest.mark.parametrize("column", [pa.array([True]), pa.array([1.5]), pa.array([None]), pa.array([[1]])])
def test_other_types_are_refused_by_name(column: Any) -> None:
    with pytest.raises(InputError, match=f"its type is {re.escape(str(column.type))}, and a key is integers, text"):
        values(column)


@given(st.lists(st.sampled_from(["secret-a", "secret-b", " SECRET-A", "secret-c", ""]), min_size=1))
def test_errors_name_counts_and_rows_and_never_keys(names: list[str]) -> None:
    clean = [name.strip().lower() for name in names]
    empty = [row for row, name in enumerate(clean) if not name]
    repeats = [row for row, name in enumerate(clean) if name in clean[:row]]
    if not empty and not repeats:
        assert values(pa.array(names)) == [name.encode() for name in clean]
        return
    with pytest.raises(InputError) as refused:
        values(pa.array(names))
    message, bad = str(refused.value), empty or repeats
    assert f"{len(bad)} of {len(names)}" in message
    assert f" {', '.join(map(str, bad[:5]))}{', ...' if len(bad) > 5 else ''} (rows count from 0)" in message
    assert "secret" not in message.lower()
    if not empty:
        assert values(pa.array(names), duplicates="first") == [*dict.fromkeys(name.encode() for name in clean)]
        once = [name.encode() for name in clean if clean.count(name) == 1]
        if once:
            assert values(pa.array(names), duplicates="drop") == once
        else:
            with pytest.raises(InputError, match="no row is left"):
                values(pa.array(names), duplicates="drop")


def test_no_such_way_with_duplicates() -> None:
    with pytest.raises(InputError, match="duplicates='last' is none of error, first, drop"):
        values(pa.array(["a"]), duplicates="last")
