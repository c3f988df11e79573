"""The door: every kind of data gives the same table, and bad data gives a message that teaches."""

import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pyarrow import csv, parquet

from colonnade.contracts import Table
from colonnade.data.tables import read_table
from colonnade.errors import InputError
from colonnade.kernels.blocks import BLOCK_ROWS, values_of
from whole_tables import held

COLUMNS: dict[str, Any] = {"id": [3, 1, 2], "age": [30.5, 40.0, 50.25], "cars": [0, 2, 1], "owner": [True, False, True]}
VALUES = [[30.5, 0, 1], [40.0, 2, 0], [50.25, 1, 1]]


def as_parquet(folder: Path) -> Path:
    parquet.write_table(pa.table(COLUMNS), folder / "bank.parquet")
    return folder / "bank.parquet"


def as_csv(folder: Path) -> str:
    csv.write_csv(pa.table(COLUMNS), folder / "bank.csv")
    return str(folder / "bank.csv")


def as_gzipped_csv(folder: Path) -> Path:
    with pa.CompressedOutputStream(folder / "bank.csv.gz", "gzip") as file:
        csv.write_csv(pa.table(COLUMNS), file)
    return folder / "bank.csv.gz"


def as_parquet_of_pandas(folder: Path) -> Path:
    pd.DataFrame(COLUMNS, index=pd.Index([7, 8, 9])).to_parquet(folder / "frame.parquet")
    return folder / "frame.parquet"


NAMED: dict[str, Callable[[Path], object]] = {
    "pandas": lambda _: pd.DataFrame(COLUMNS),
    "pandas, its own index": lambda _: pd.DataFrame(COLUMNS, index=pd.Index([5, 3, 1], name="shop")),
    "pandas, nullable types": lambda _: pd.DataFrame(COLUMNS).convert_dtypes(),
    "polars": lambda _: pl.DataFrame(COLUMNS),
    "pyarrow table": lambda _: pa.table(COLUMNS),
    "pyarrow batch": lambda _: pa.record_batch(COLUMNS),
    "pyarrow chunks": lambda _: pa.concat_tables([pa.table(COLUMNS).slice(0, 1), pa.table(COLUMNS).slice(1)]),
    "parquet": as_parquet,
    "parquet of pandas": as_parquet_of_pandas,
    "csv": as_csv,
    "gzipped csv": as_gzipped_csv,
}


@pytest.fixture(params=NAMED)
def named(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    return NAMED[request.param](tmp_path)


def refusal(data: object, *, label: Any = None, key: Any = None) -> str:
    with pytest.raises(InputError) as caught:
        read_table("bank", data, label=label, key=key)
    return str(caught.value)


def assert_says(message: str, *parts: str) -> None:
    """Every part occurs, in this order: what and where come first, advice comes last."""
    assert re.search(".*".join(re.escape(part) for part in parts), message, re.DOTALL), message


# --- what comes in ---


def test_every_named_table_gives_the_same(named: object) -> None:
    table = read_table("bank", named, label="age", key="id")
    assert table.feature_names == ("cars", "owner")
    assert table.label_name == "age"
    assert table.n_rows == 3
    np.testing.assert_array_equal(held(table), np.array(VALUES)[:, [1, 2, 0]])
    assert table.key_digest == read_table("bank", pd.DataFrame(COLUMNS), key="id").key_digest


def test_an_array_with_its_label_beside_it() -> None:
    table = read_table("bank", VALUES, label=np.array([1, 0, 1]))
    assert table.feature_names == ("bank_0", "bank_1", "bank_2")
    assert table.label_name == "bank_label"
    np.testing.assert_array_equal(held(table), np.column_stack([VALUES, [1, 0, 1]]))


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int8", "int64", "uint16", "bool"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_real_type_becomes_float64(kind: str, order: Any) -> None:
    data = np.array([[0, 1], [1, 0], [1, 1]], dtype=kind, order=order)
    table = read_table("bank", data)
    assert held(table).dtype == np.float64
    np.testing.assert_array_equal(held(table), data.astype(float))


def test_decimals_are_numbers() -> None:
    table = read_table("bank", pa.table({"sum": [Decimal("1.50"), Decimal("-2.25")]}))
    assert held(table).tolist() == [[1.5], [-2.25]]


def test_a_decimal_becomes_the_nearest_float() -> None:
    """pyarrow's own cast misses it by a bit for many of them."""
    cents = np.random.default_rng(0).integers(-(10**9), 10**9, 1000)
    exact = [Decimal(int(each)).scaleb(-2) for each in cents]
    table = read_table("bank", pa.table({"sum": pa.array(exact, pa.decimal128(12, 2))}))
    assert held(table)[:, 0].tolist() == [float(each) for each in exact]


def test_a_decimal_without_a_fraction_is_an_integer() -> None:
    whole = pa.array([Decimal(7), Decimal(8)], pa.decimal128(12, 0))
    assert read_table("bank", pa.table({"id": whole, "x": [1, 2]}), key="id").feature_names == ("x",)
    assert_says(refusal(pa.table({"id": pa.array([Decimal(2**53 + 1)], pa.decimal128(18, 0))})), "2^53")


def test_column_labels_that_are_not_text_become_text() -> None:
    table = read_table("bank", pd.DataFrame([[1, 2], [3, 4]]), label="1")
    assert (table.feature_names, table.label_name) == (("0",), "1")


def test_a_pandas_index_is_no_column() -> None:
    frame = pd.DataFrame(COLUMNS).set_index("id")
    assert read_table("bank", frame).feature_names == ("age", "cars", "owner")
    assert_says(refusal(frame, key="id"), "no key column 'id'")
    assert read_table("bank", frame.reset_index(), key="id").key_digest is not None


def test_a_label_party_may_hold_nothing_else() -> None:
    table = read_table("bank", pa.table({"y": [1, 2]}), label="y")
    assert (table.feature_names, held(table).shape) == ((), (2, 1))
    assert read_table("bank", np.empty((2, 0)), label=[1, 2]).feature_names == ()


def test_reading_a_folder_adds_no_columns(tmp_path: Path) -> None:
    folder = tmp_path / "year=2013"
    folder.mkdir()
    assert read_table("bank", as_parquet(folder), key="id").feature_names == ("age", "cars", "owner")


def test_the_extremes_that_are_allowed() -> None:
    read_table("bank", [[1e100, 0.0, 1e-200], [-1e100, 0.0, 1e-99]])
    read_table("bank", np.array([[2**53 - 1]]))


# --- what the table does ---


@given(
    values=hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2), elements=st.integers(-9, 9)),
    data=st.data(),
)
def test_blocks_and_take_agree(values: npt.NDArray[np.float64], data: st.DataObject) -> None:
    table: Table = read_table("bank", values)
    rows = np.array(data.draw(st.lists(st.integers(0, len(values) - 1))), dtype=np.int64)
    taken = table.take(rows)
    np.testing.assert_array_equal(taken, np.vstack(list(table.map(values_of)))[rows])
    assert taken.flags.c_contiguous
    assert taken.flags.writeable


@pytest.mark.parametrize("n_rows", [1, BLOCK_ROWS - 1, BLOCK_ROWS, 2 * BLOCK_ROWS + 1])
def test_blocks_cover_every_row_once(n_rows: int) -> None:
    table = read_table("bank", np.arange(2 * n_rows).reshape(n_rows, 2))
    blocks = list(table.map(values_of))
    assert sum(map(len, blocks)) == n_rows
    assert max(map(len, blocks)) <= BLOCK_ROWS
    assert all(block[:, i].flags.c_contiguous for block in blocks for i in range(2))
    np.testing.assert_array_equal(np.vstack(blocks), held(table))
    np.testing.assert_array_equal(np.vstack(list(table.map(values_of))), held(table))  # read again, from the start


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_table_is_a_copy(order: Any) -> None:
    data, label = np.ones((3, 2), order=order), np.ones(3)
    frame = pd.DataFrame(data)
    tables = read_table("bank", data, label=label), read_table("bank", frame)
    data[:], label[:], frame.loc[:, 0] = 5.0, 5.0, 5.0
    for table in tables:
        assert np.all(held(table) == 1.0)


def test_nobody_writes_to_the_table() -> None:
    table = read_table("bank", VALUES)
    assert held(table).flags.f_contiguous
    for array in (held(table), next(table.map(values_of))):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1.0
    table.take(np.array([0]))[0, 0] = -1.0
    assert held(table)[0, 0] == 30.5


def test_rows_do_not_show_in_a_log() -> None:
    assert "30.5" not in repr(read_table("bank", VALUES))


# --- values that cannot be used ---


@pytest.mark.parametrize(
    "data",
    [
        np.array([[1, 2], [3, np.nan], [5, np.nan]]),
        np.ma.array([[1, 2], [3, 4], [5, 6]], mask=[[False, False], [False, True], [False, True]]),
        pd.DataFrame({"bank_0": [1, 2, 3], "bank_1": [1.0, np.nan, np.nan]}),
        pd.DataFrame({"bank_0": [1, 2, 3], "bank_1": pd.array([1, None, None], dtype="Int64")}),
        pl.DataFrame({"bank_0": [1, 2, 3], "bank_1": [1.0, None, float("nan")]}),
        pa.table({"bank_0": [1, 2, 3], "bank_1": [True, None, None]}),
    ],
    ids=["numpy", "masked", "pandas NaN", "pandas NA", "polars null and NaN", "pyarrow null"],
)
def test_missing_values(data: object) -> None:
    assert_says(refusal(data), "'bank'", "'bank_1'", "2 of 3", "missing", "row 1", "drop these rows from every party")


def test_a_column_without_any_value() -> None:
    assert_says(refusal(pa.table({"x": [1], "gone": [None]})), "'gone'", "1 of 1", "missing", "row 0")


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_values(value: float) -> None:
    message = refusal(np.array([[1.0], [2.0], [value]]))
    assert_says(message, "'bank'", "'bank_0'", "1 of 3", "infinite", "row 2", str(value), "Replace them")
    assert_says(refusal(np.array([[np.inf], [-np.inf]])), "2 of 2", "row 0")


def test_a_label_is_checked_like_a_feature() -> None:
    assert_says(refusal([[1.0], [2.0]], label=[0.0, np.nan]), "'bank_label'", "row 1")


@pytest.mark.parametrize("value", [-1e101, 1.7e308, 1e-101, -1e-300])
def test_magnitudes_whose_squares_leave_the_range(value: float) -> None:
    message = refusal(np.array([[1.0, 0.0], [2.0, value]]))
    assert_says(message, "'bank'", "'bank_1'", f"{value:g}", "row 1", "rescale the column")


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_integers_that_float64_cannot_hold(kind: type[Any]) -> None:
    ids = np.array([[1], [2**53 + 1]], dtype=kind)
    for data in (ids, pd.DataFrame(ids, columns=["bank_0"])):
        message = refusal(data)
        assert_says(message, "'bank'", "'bank_0'", "row 1", "2^53", "key=")
        assert str(2**53) not in message


def test_columns_that_are_not_numbers() -> None:
    frame = pl.DataFrame({"x": [1.0], "city": ["Rome"], "day": [date(2013, 1, 1)], "tags": [[1, 2]]})
    message = refusal(frame.with_columns(kind=pl.Series(["a"], dtype=pl.Categorical)))
    assert_says(
        message,
        "'bank'",
        "4 column(s)",
        "'city' (large_string)",
        "'day' (",
        "'tags' (",
        "'kind' (dict",
        "encode",
        "drop",
    )


@pytest.mark.parametrize("kind", ["complex128", "object", "U3", "datetime64[s]"])
def test_arrays_that_are_not_real_numbers(kind: str) -> None:
    assert_says(refusal(np.array([["1"]]).astype(kind)), "'bank'", "the data", str(np.dtype(kind)), "encode")


def test_a_pandas_column_of_mixed_types_is_named_but_not_shown() -> None:
    message = refusal(pd.DataFrame({"x": [1, 2], "odd": pd.Series([1, "secret"], dtype=object)}))
    assert_says(message, "'bank'", "DataFrame", "odd", "Give each column")
    assert "secret" not in message


# --- tables of the wrong shape ---


@pytest.mark.parametrize(
    "data", [np.arange(3), np.ones((2, 2, 2)), 5, {"a": [1]}, [[1], [2, 3]], pl.LazyFrame({"a": [1]})]
)
def test_data_that_is_not_a_table(data: object) -> None:
    assert_says(refusal(data), "'bank'", "the data", "Pass a 2-D array", "collect")


def test_a_single_column_is_not_a_table() -> None:
    assert_says(refusal(pd.Series([1.0, 2.0])), "'bank'", "Series", "Pass a 2-D array")


@pytest.mark.parametrize(
    "data",
    [np.empty((0, 3)), np.empty((3, 0)), pa.table({"x": pa.array([], pa.float64())}), pd.DataFrame(index=range(3))],
)
def test_empty_tables(data: object) -> None:
    assert_says(refusal(data), "'bank'", "row(s)", "column(s)", "at least one")


def test_a_key_alone_is_nothing_to_learn_from() -> None:
    assert_says(refusal(pa.table({"id": [1, 2]}), key="id"), "'bank'", "2 row(s) and 0 column(s)", "at least one")


@pytest.mark.parametrize(
    "data",
    [pa.table([[1], [2]], names=["a", "a"]), pd.DataFrame([[1, 2]], columns=["a", "a"])],
    ids=["arrow", "pandas"],
)
def test_repeated_column_names(data: object) -> None:
    assert_says(refusal(data), "'bank'", "'a'")
    assert re.search("Rename or drop|a name of its own", refusal(data))


# --- label and key that are not there ---


@pytest.mark.parametrize("role", ["label", "key"])
def test_a_named_column_that_is_not_there(role: str) -> None:
    message = refusal(pd.DataFrame(COLUMNS), **{role: "agee"})
    assert_says(
        message, "'bank'", f"no {role} column 'agee'", "'id', 'age', 'cars', 'owner'", "Name one", "mean 'age'?"
    )


def test_a_long_list_of_columns_is_cut() -> None:
    frame = pd.DataFrame(np.ones((1, 50)))
    assert_says(refusal(frame, label="y"), "'19' and 30 more", "Name one of them")


def test_key_and_label_differ() -> None:
    assert_says(refusal(pd.DataFrame(COLUMNS), label="id", key="id"), "'bank'", "'id'", "both", "two different")


@pytest.mark.parametrize("label", [[1, 0, 1], 3])
def test_the_label_of_a_named_table_is_a_name(label: object) -> None:
    assert_says(
        refusal(pd.DataFrame(COLUMNS), label=label), "'bank'", type(label).__name__, "Add the label as a column"
    )


@pytest.mark.parametrize("names", [{"label": "y"}, {"key": "id"}])
def test_an_array_has_no_names(names: dict[str, str]) -> None:
    assert_says(refusal(VALUES, **names), "'bank'", "no column names", "Pass a named table")


def test_a_label_of_another_length() -> None:
    assert_says(refusal(VALUES, label=[1, 0]), "'bank'", "2 values for 3 rows", "one label per row")


@pytest.mark.parametrize("label", [[[1], [0], [1]], 3])
def test_a_label_of_another_shape(label: object) -> None:
    assert_says(refusal(VALUES, label=label), "'bank'", "the label", "1-D array with one label per row")


def test_a_label_of_text_has_levels() -> None:
    table = read_table("bank", VALUES, label=["yes", "no", " yes"])
    assert table.label_levels == ("no", "yes")
    assert table.take(np.arange(3))[:, -1].tolist() == [1.0, 0.0, 1.0]


def test_a_label_of_text_with_gaps() -> None:
    assert_says(refusal(VALUES, label=["yes", None, " "]), "'bank'", "2 of 3 labels are missing", "row 1", "Leave")


def test_a_label_that_is_text_here_and_there() -> None:
    label = np.array(["yes", 1, "no"], dtype=object)
    assert_says(refusal(VALUES, label=label), "'bank'", "text in some rows", "row 1", "int", "all numbers")


def test_a_label_of_too_many_classes() -> None:
    label = [f"person {i}" for i in range(101)]
    assert_says(refusal(np.eye(101), label=label), "101 different values", "at most 100 classes", "another column")


@pytest.mark.parametrize("dtype", ["object", "category", "string"])
def test_a_label_of_text_in_a_frame(dtype: str) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "late": pd.Series(["yes", "no", "yes"], dtype=dtype)})
    table = read_table("bank", frame, label="late")
    assert table.label_levels == ("no", "yes")
    assert table.take(np.arange(3)).tolist() == [[1.0, 1.0], [2.0, 0.0], [3.0, 1.0]]


def test_a_slip_among_numbers_makes_no_classes() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": ["12000", "12k", "13000"]})
    assert_says(refusal(frame, label="y"), "'y'", "12k", "Correct")


# --- files ---


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert_says(refusal(tmp_path / "gone.parquet"), "'bank'", "gone.parquet", "Check the path")
    assert_says(refusal(tmp_path), "'bank'", "folder", "no .parquet file", "Name a folder that does")


def test_a_file_of_an_unknown_kind(tmp_path: Path) -> None:
    (tmp_path / "bank.xlsx").write_bytes(b"x")
    assert_says(refusal(tmp_path / "bank.xlsx"), "'bank'", "bank.xlsx", "unknown kind", ".parquet, .csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bad.parquet", b"PAR1 not parquet PAR1"),
        ("empty.parquet", b""),
        ("empty.arrow", b""),
        ("bad.feather", b"FEA1 of long ago"),
    ],
)
def test_a_file_that_cannot_be_read(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert_says(refusal(tmp_path / name), "'bank'", name, "cannot be read", "Check that it is whole")


def test_a_parquet_file_cut_short(tmp_path: Path) -> None:
    path = as_parquet(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    assert_says(refusal(path), "'bank'", "bank.parquet", "cannot be read")


def test_missing_values_in_a_csv_file(tmp_path: Path) -> None:
    (tmp_path / "bank.csv").write_text("a,b\n1,2\n3,\nNaN,4\n")
    assert_says(refusal(tmp_path / "bank.csv"), "'bank'", "'a'", "1 of 3", "row 2")


# --- imports ---


def test_importing_the_door_loads_no_frame_library() -> None:
    program = (
        "import sys, colonnade.data.tables;"
        "print([name for name in ('pandas', 'polars', 'pyarrow', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
