"""What is seen of columns as they came."""

from datetime import date

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from colonnade.data.checking.columns import ColumnSeen, columns_seen

TABLE = pa.table(
    {
        "id": [7, 5, 9, 3, 1, 2],
        "age": [20.5, None, float("nan"), 31.0, 44.0, 20.5],
        "copy": [20.5, 1.0, 2.0, 31.0, 44.0, 20.5],
        "again": [20.5, 1.0, 2.0, 31.0, 44.0, 20.5],
        "job": ["clerk", "", None, "cook", "clerk", "clerk"],
        "coded": pa.array(["a", "b", "a", "a", "b", "a"]).dictionary_encode(),
        "since": [date(2020, 1, day) for day in (5, 4, 3, 2, 1, 6)],
        "flat": [1, 1, 1, 1, 1, 1],
        "void": pa.nulls(6),
        "amount": ["1,5", " 2", "-3.25", "1e3", "12", ".5"],
    }
)


def seen(name: str, **rare: int) -> ColumnSeen:
    return {each.name: each for each in columns_seen(TABLE, rare)}[name]


def test_gaps_are_nulls_nans_and_empty_text() -> None:
    assert [each.missing for each in columns_seen(TABLE, {})] == [0, 2, 0, 0, 2, 0, 0, 0, 6, 0]


@pytest.mark.parametrize(
    ("name", "kind", "values", "counts"),
    [
        ("id", "number", "6 values, all different", "6 values, all different, none missing"),
        ("age", "number", "20.5 to 44", "2 missing"),
        ("job", "text", "2 levels, 2 of them rare", "2 levels, 2 of them rare, 2 missing"),
        ("coded", "text", "2 levels, 2 of them rare", "2 levels, 2 of them rare, none missing"),
        ("since", "date", "2020-01-01 to 2020-01-06", "none missing"),
        ("flat", "number", "one value", "one value, none missing"),
        ("void", "empty", "no value", "no value, 6 missing"),
    ],
)
def test_in_words(name: str, kind: str, values: str, counts: str) -> None:
    column = seen(name)
    assert (column.kind, column.in_values(), column.in_counts()) == (kind, values, counts)


def test_repeated_columns_name_the_first() -> None:
    assert [each.name for each in columns_seen(TABLE, {}) if each.same_as] == ["again"]
    assert seen("again").same_as == "copy"


def test_columns_that_differ_in_their_last_row_are_not_repeated() -> None:
    first = list(range(1000))
    table = pa.table({"a": first, "b": [*first[:-1], 5]})
    assert [each.same_as for each in columns_seen(table, {})] == [None, None]


ENCODED = {
    "integers": pa.array([7, 5, 7, 3, None, 2]),
    "floats": pa.array([20.5, None, float("nan"), 31.0, 44.0, 20.5]),
    "flags": pa.array([True, False, None, True, True, True]),
    "dates": pa.array([date(2020, 1, day) for day in (5, 4, 3, 2, 1, 5)]),
    "words": pa.array(["clerk", "", None, "cook", "clerk", "clerk"]),
}


@pytest.mark.parametrize("name", ENCODED)
def test_a_dictionary_is_looked_at_as_its_values(name: str) -> None:
    table = pa.table({"plain": ENCODED[name], "encoded": ENCODED[name].dictionary_encode()})
    plain, encoded = columns_seen(table, {})
    assert encoded.type.startswith("dictionary<")
    assert encoded == msgspec.structs.replace(plain, name="encoded", type=encoded.type, same_as=encoded.same_as)
    assert encoded.same_as == ("plain" if name != "floats" else None)  # NaN is not itself


def test_half_floats() -> None:
    (column,) = columns_seen(pa.table({"half": np.array([1.5, -2.0, np.nan], np.float16)}), {})
    assert (column.type, column.missing, column.least, column.greatest) == ("halffloat", 1, -2.0, 1.5)


@pytest.mark.parametrize("first", [-(2**62), -(2**40), 2**40])
def test_dates_that_python_has_not(first: int) -> None:
    far = pa.array([first, first + 1, None]).cast(pa.timestamp("s"))
    seen = columns_seen(pa.table({"far": far, "again": far}), {})
    assert [each.same_as for each in seen] == [None, "far"]
    assert (seen[0].kind, seen[0].missing, seen[0].distinct) == ("date", 1, None)
    assert seen[0].in_values() == f"{seen[0].least} to {seen[0].greatest}"


def test_levels_are_rare_by_their_columns_rule() -> None:
    assert (seen("job", job=2).rare_levels, seen("job", job=2).rare_rows) == (1, 1)
    assert seen("job", job=1).rare_levels == 0


def test_text_that_reads_as_numbers() -> None:
    assert seen("amount").numeric == 6
    assert seen("amount").reads_as_numbers
    assert not seen("job").reads_as_numbers


def test_nothing_shows_a_value_of_what_may_be_a_key() -> None:
    assert (seen("id").least, seen("id").greatest) == (None, None)
    (key,) = columns_seen(TABLE.select(["age"]), {}, keys=["age"])
    assert (key.least, key.greatest, key.distinct) == (None, None, None)
    for name in TABLE.column_names:
        assert not any(text in seen(name).in_counts() for text in ("20.5", "44", "clerk", "2020"))
