"""Columns that are no features: row weights, and marks of rows to hold out."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import colonnade as cn
from colonnade.data.tables import read_table
from whole_tables import held

COLUMNS: dict[str, Any] = {
    "age": [30.0, 40.0, 50.0, 60.0],
    "y": [1.0, 2.0, 3.0, 4.0],
    "count": [1, 0, 2, 5],
    "fold": ["train", "test", "train", "test"],
    "id": ["a", "b", "c", "d"],
}
FRAME = pd.DataFrame(COLUMNS)
VALUES = FRAME[["age"]].to_numpy()


def refusal(data: object, **roles: Any) -> str:
    with pytest.raises(cn.InputError) as caught:
        cn.Party("bank", data, **roles)
    message = str(caught.value)
    assert "'bank'" in message
    assert message.endswith((".", "?"))
    return message


@pytest.mark.parametrize(
    "convert", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_columns_by_name(convert: Any) -> None:
    table = read_table("bank", convert(FRAME), label="y", key="id", weight="count", split="fold")
    assert table.feature_names == ("age",), "neither is a feature"
    assert table.label_name == "y"
    assert held(table).shape == (4, 2)
    assert table.weight_column is not None
    assert table.split_column is not None
    assert table.weight_column.tolist() == [1.0, 0.0, 2.0, 5.0]
    assert table.split_column.tolist() == [False, True, False, True]
    assert table.row_weights is None, "they count only where a job's frame says so"


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_columns_of_a_file(tmp_path: Path, suffix: str) -> None:
    FRAME.to_parquet(tmp_path / "bank.parquet")
    FRAME.to_csv(tmp_path / "bank.csv", index=False)
    table = read_table("bank", tmp_path / f"bank.{suffix}", label="y", key="id", weight="count", split="fold")
    assert table.feature_names == ("age",)
    assert table.weight_column is not None
    assert table.weight_column.tolist() == [1.0, 0.0, 2.0, 5.0]


@pytest.mark.parametrize("weight", [[1, 0, 2, 5], np.array([1.0, 0.0, 2.0, 5.0]), pd.Series([1, 0, 2, 5])], ids=type)
@pytest.mark.parametrize(
    "split",
    [
        [0, 1, 0, 1],
        [0.0, 1.0, 0.0, 1.0],
        [False, True, False, True],
        ["train", "test", "train", "test"],
        np.array(["train", "test", "train", "test"], dtype=object),
        pd.Series([False, True, False, True]),
    ],
    ids=["whole numbers", "floats", "bools", "words", "objects", "series"],
)
def test_arrays_beside_an_array(weight: Any, split: Any) -> None:
    table = read_table("bank", VALUES, weight=weight, split=split)
    assert table.feature_names == ("bank_0",)
    assert table.weight_column is not None
    assert table.split_column is not None
    assert table.weight_column.tolist() == [1.0, 0.0, 2.0, 5.0]
    assert table.split_column.tolist() == [False, True, False, True]
    assert table.split_column.dtype == np.bool_


@pytest.mark.parametrize(
    "split",
    [
        [0, 1, 0, 1],
        [False, True, False, True],
        [0.0, 1.0, 0.0, 1.0],
        ["train", "test", "train", "test"],
        pd.Categorical(["train", "test", "train", "test"]),
    ],
    ids=["whole numbers", "bools", "floats", "words", "categories"],
)
@pytest.mark.parametrize(
    "convert", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_marks_in_a_column(split: Any, convert: Any) -> None:
    table = read_table("bank", convert(FRAME.assign(fold=split)[["age", "fold"]]), split="fold")
    assert table.split_column is not None
    assert table.split_column.tolist() == [False, True, False, True]


def test_a_party_may_hold_a_label_weights_and_nothing_else() -> None:
    table = read_table("bank", FRAME[["y", "count"]], label="y", weight="count")
    assert table.feature_names == ()
    assert "column(s) to learn from" in refusal(FRAME[["count"]], weight="count")


def test_weights_and_marks_do_not_show_in_a_log() -> None:
    table = read_table("bank", VALUES, weight=[0.125, 1, 1, 1], split=[1, 0, 0, 0])
    assert "0.125" not in repr(table)
    assert "True" not in repr(table)


def test_weights_are_a_copy() -> None:
    weights = np.ones(4)
    table = read_table("bank", VALUES, weight=weights)
    weights[0] = 9.0
    assert table.weight_column is not None
    assert table.weight_column[0] == 1.0


# Bad input


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ([1, -1, 1, 1], "between -1 and 1; they must be from 0 to 1e+100"),
        ([0, 0, 0, 0], "between 0 and 0"),
        ([0, 0, 0, 1e-320], "the largest 1e-100 or more"),
        ([1, 1, 1, 1e200], "between 1 and 1e+200"),
        ([1, np.nan, 1, 1], "1 of 4 values are missing (null or NaN), the first in row 1"),
        ([1, 1, np.inf, 1], "1 of 4 values are infinite, the first in row 2"),
        ([1, 1, -np.inf, 1], "infinite"),
    ],
)
def test_bad_weights(weights: Any, says: str) -> None:
    for message in (
        refusal(VALUES, weight=weights),
        refusal(FRAME.assign(count=weights)[["age", "count"]], weight="count"),
    ):
        assert "row weights" in message
        assert says in message


@pytest.mark.parametrize("role", ["weight", "split"])
def test_roles_of_another_length_or_shape(role: str) -> None:
    assert f"the {role} has 3 values for 4 rows of data. Pass one {role} per row" in refusal(
        VALUES, **{role: [1, 0, 1]}
    )
    assert f"the {role} must have 1 dimension(s)" in refusal(VALUES, **{role: [[1], [0], [1], [0]]})
    assert f"Pass a 1-D array with one {role} per row" in refusal(VALUES, **{role: 1})


def test_weights_of_text() -> None:
    assert "the weight has type <U3, not real numbers" in refusal(VALUES, weight=["one", "two", "1", "0"])
    assert "'fold' (" in refusal(FRAME, label="y", key="id", weight="fold", split="count")


@pytest.mark.parametrize("role", ["weight", "split"])
def test_names_that_are_not_there(role: str) -> None:
    message = refusal(FRAME, **{role: "cuont"})
    assert f"there is no {role} column 'cuont'; the columns are 'age', 'y', 'count'" in message
    assert "Did you mean 'count'?" in message
    assert f"{role}='count' names a column, but an array has no column names" in refusal(VALUES, **{role: "count"})
    assert f"the {role} of a named table is one of its columns, given by name" in refusal(FRAME, **{role: [1, 0, 1, 1]})


@pytest.mark.parametrize(
    ("first", "second"), [("label", "weight"), ("key", "split"), ("weight", "split"), ("key", "weight")]
)
def test_one_column_in_two_roles(first: str, second: str) -> None:
    message = refusal(FRAME, **{first: "count", second: "count"})
    assert f"'count' is both {first} and {second}. Name two different columns" in message


@pytest.mark.parametrize(
    ("marks", "seen"),
    [
        ([0, 1, 2, 0], "is 2 in row 2"),
        ([0.0, 0.5, 1.0, 0.0], "is 0.5 in row 1"),
        ([0.0, np.nan, 1.0, 0.0], "is nan in row 1"),
        (["train", "test", "valid", "test"], "is valid in row 2"),
        (["Train", "test", "train", "test"], "is Train in row 0"),
        ([True, None, False, True], "is None in row 1"),
        (["train", None, "test", "test"], "in row 1"),
    ],
)
def test_marks_that_are_neither(marks: Any, seen: str) -> None:
    messages = [refusal(VALUES, split=marks)]
    if None not in marks and not any(mark != mark for mark in marks):
        messages.append(refusal(FRAME.assign(fold=marks)[["age", "fold"]], split="fold"))
    for message in messages:
        assert f"the split column {seen}" in message or seen in message
        assert "Write 1, true or 'test' where a row is held out, and 0, false or 'train' elsewhere" in message


def test_marks_that_are_missing_in_a_file() -> None:
    arrow = pa.table({"age": [1.0, 2.0], "fold": pa.array([True, None])})
    assert "in row 1" in refusal(arrow, split="fold")


def test_a_job_with_neither_sees_no_difference() -> None:
    """Marks change nothing where no job asks for them; weights always count."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X @ [1.0, 2.0] + np.arange(40.0)

    def coefficients(**roles: Any) -> Any:
        return (
            cn.Federation([cn.Party("bank", X, label=y, **roles)])
            .fit(cn.Regression(), sampler=cn.AllRows())
            .model.coef_
        )

    np.testing.assert_array_equal(coefficients(), coefficients(split=np.arange(40) > 30))
    np.testing.assert_allclose(coefficients(), coefficients(weight=np.full(40, 3.0)), rtol=1e-9)
    assert not np.allclose(coefficients(), coefficients(weight=np.arange(40)))


def test_a_wrong_mark_far_down_is_named_with_its_row(tmp_path: Path) -> None:
    marks = ["train", "test"] * 50_000
    marks[99_998] = "both"
    for data in (table := pa.table({"a": np.arange(1e5), "fold": marks}), table.to_pandas(), tmp_path / "t.parquet"):
        parquet.write_table(table, tmp_path / "t.parquet", row_group_size=30_000)
        assert "the split column is both in row 99998 (rows count from 0)" in refusal(data, split="fold")


CHILD = """
import sys
from pathlib import Path
import pyarrow.dataset as ds
import colonnade as cn
path = Path(sys.argv[1])
party = cn.Party("bank", ds.dataset(path) if path.stem == "set" else path, weight="w", split="fold", label="y")
assert party.table.split_column.mean() == 0.5 and party.table.weight_column.mean() == 3.0
status = Path("/proc/self/status").read_text()
print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["path", "set"])
def test_weights_and_marks_take_nine_bytes_a_row(tmp_path: Path, name: str) -> None:
    """Columns of a table that stays in its files, of words too; they took up to 120 bytes a row."""

    def peak(n_rows: int) -> int:
        columns = {letter: np.zeros(n_rows, np.int8) for letter in "abcdefghijklmnopq"}  # large by its numbers
        table = pa.table(
            columns | {"y": np.ones(n_rows), "w": np.full(n_rows, 3.0), "fold": ["test", "train"] * (n_rows // 2)}
        )
        parquet.write_table(table, path := tmp_path / f"{name}.parquet", row_group_size=1 << 17)
        command = [sys.executable, "-c", CHILD, str(path)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    assert peak(4_000_000) - peak(2_000_000) < 40
