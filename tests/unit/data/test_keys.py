"""Keys: the same rows in the same order give the same digest, and no key is ever shown."""

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

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
