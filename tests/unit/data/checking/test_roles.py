"""Guesses of keys and labels."""

import pyarrow as pa
import pytest

from colonnade.data.checking.columns import ColumnSeen, columns_seen
from colonnade.data.checking.roles import guessed_key, spoilt_keys, suggested_label


def seen(**columns: object) -> list[ColumnSeen]:
    return columns_seen(pa.table(columns), {})


def name_of(column: ColumnSeen | None) -> str | None:
    return None if column is None else column.name


@pytest.mark.parametrize(
    "name", ["id", "customer_id", "CustomerID", "customerId", "KEY", "account-no", "user", "client"]
)
def test_integers_that_differ_and_are_called_like_a_key(name: str) -> None:
    assert name_of(guessed_key(seen(**{"income": [3, 1, 2], name: [1, 2, 3]}))) == name


@pytest.mark.parametrize("name", ["income", "valid", "idle", "note", "turkey"])
def test_integers_that_differ_are_no_key_by_chance(name: str) -> None:
    assert guessed_key(seen(**{"age": [1, 1, 2], name: [3, 1, 2]})) is None


def test_the_first_column_is_a_key_if_its_values_differ_and_no_other_is_called_so() -> None:
    assert name_of(guessed_key(seen(kunde=[3, 1, 2], who=["a", "b", "c"]))) == "kunde"
    assert name_of(guessed_key(seen(kunde=[3, 1, 2], id=[5, 6, 7]))) == "id"
    assert guessed_key(seen(kunde=[0.5, 1.5, 2.5])) is None


def test_text_that_differs_is_a_key_if_nothing_else_is() -> None:
    assert name_of(guessed_key(seen(who=["a", "b"]))) == "who"
    assert name_of(guessed_key(seen(who=["a", "b"], id=[1, 2]))) == "id"


@pytest.mark.parametrize("values", [[1, 1, 2], [1, None, 2], [1.0, 2.0, 3.5], ["a", "", "b"]])
def test_a_key_has_no_gaps_no_repeats_and_no_fractions(values: list[object]) -> None:
    assert guessed_key(seen(id=values)) is None


def test_one_row_has_no_key_to_guess() -> None:
    assert guessed_key(seen(id=[1])) is None


def test_what_is_called_like_a_key_but_repeats_is_told() -> None:
    assert [each.name for each in spoilt_keys(seen(id=[1, 1, 2], age=[1, 1, 2], key=["a", "b", "c"]))] == ["id"]


def test_labels_are_suggested_by_name_and_else_the_last_number() -> None:
    assert name_of(suggested_label(seen(target=[1.0, 2.0], b=[1, 2]))) == "target"
    assert name_of(suggested_label(seen(a=[1.0, 2.0], b=[1, 2], c=["x", "y"], d=[5, 5]))) == "b"
    assert suggested_label(seen(c=["x", "y"])) is None
