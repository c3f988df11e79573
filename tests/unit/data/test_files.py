"""The one door: streams, folders of Parquet files, Arrow files; of each only what is wanted."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import csv, fs, parquet

import colonnade as cn
from colonnade.data.engines import Threads
from colonnade.data.files import open_table
from colonnade.errors import InputError
from whole_tables import read_whole

TABLE = pa.table({"id": ["b", "a"], "age": [30, 40], "spent": [1.5, 2.5], "town": ["Rome", None]})


def as_parquet(folder: Path) -> Path:
    parquet.write_table(TABLE, folder / "bank.parquet")
    return folder / "bank.parquet"


def as_csv(folder: Path) -> Path:
    csv.write_csv(TABLE, folder / "bank.csv")
    return folder / "bank.csv"


def as_folder(folder: Path) -> Path:
    for i, year in enumerate(("year=2012", "year=2013")):
        (folder / "bank" / year).mkdir(parents=True)
        parquet.write_table(TABLE.slice(i, 1), folder / "bank" / year / "part-0.parquet")
    return folder / "bank"


def as_ipc(folder: Path, name: str, new: Callable[..., Any], **options: Any) -> Path:
    with pa.OSFile(str(folder / name), "wb") as sink, new(sink, TABLE.schema, **options) as writer:
        writer.write_table(TABLE)
    return folder / name


def as_compressed_ipc(folder: Path) -> Path:
    return as_ipc(folder, "bank.feather", pa.ipc.new_file, options=pa.ipc.IpcWriteOptions(compression="zstd"))


class Stream:
    """What a library may hand in: an Arrow stream and nothing else."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


class Batch:
    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return TABLE.combine_chunks().to_batches()[0].__arrow_c_array__(requested_schema)


SOURCES: dict[str, Callable[[Path], object]] = {
    "pandas": lambda _: TABLE.to_pandas().set_index(pd.Index([5, 7], name="shop")),
    "polars": lambda _: pl.from_arrow(TABLE),
    "pyarrow": lambda _: TABLE,
    "reader": lambda _: TABLE.to_reader(),
    "stream": lambda _: Stream(),
    "batch": lambda _: Batch(),
    "duckdb": lambda _: duckdb.from_arrow(TABLE),
    "parquet": as_parquet,
    "folder": as_folder,
    "ipc file": lambda folder: as_ipc(folder, "bank.arrow", pa.ipc.new_file),
    "ipc stream": lambda folder: as_ipc(folder, "bank.arrow", pa.ipc.new_stream),
    "feather": as_compressed_ipc,
    "csv": as_csv,
}


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    return SOURCES[request.param](tmp_path)


def refusal(data: object) -> str:
    with pytest.raises(InputError) as caught:
        cn.Party("bank", data)
    return str(caught.value)


def test_every_source_is_read_whole(source: object) -> None:
    assert read_whole(source).to_pydict() == TABLE.to_pydict()


def test_only_the_chosen_columns_come_in_their_order(source: object) -> None:
    asked: list[list[str]] = []

    def choose(names: Any) -> list[str]:
        asked.append(list(names))
        return ["spent", "id"]

    opened = open_table("bank", source, choose)
    assert isinstance(opened.batches, pa.RecordBatchReader)
    assert opened.batches.schema.names == ["spent", "id"]
    assert opened.batches.read_all().to_pydict() == {"spent": [1.5, 2.5], "id": ["b", "a"]}
    assert asked == [TABLE.column_names]
    assert opened.notes == ()
    assert opened.place(1).startswith("row 1")


def test_a_policy_chooses_too(source: object) -> None:
    party = cn.Party("bank", source, key="id", policy=cn.Policy(level="open", never_columns=["town"]))
    assert party.table.feature_names == ("age", "spent")


def test_no_column_is_none(source: object) -> None:
    assert read_whole(source, lambda _: []).column_names == []


def test_a_column_with_a_dot_is_not_a_nested_one(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"a.b": [1.0], "a": [2.0]}), tmp_path / "a.parquet")
    assert read_whole(tmp_path / "a.parquet", lambda _: ["a"]).to_pydict() == {"a": [2.0]}


VIEWS = pl.DataFrame(
    {
        "age": ["1", "2", "12k"],
        "job": pl.Series(["clerk", "cook", None], dtype=pl.Categorical),
        "photo": [b"a", b"\xff", None],
    }
)


def test_views_are_read_as_what_they_show() -> None:
    """Polars hands out text and bytes as views, for which most functions of pyarrow have no kernel."""
    table = read_whole(VIEWS)
    assert table.schema.types[0] == pa.large_string()
    assert table.schema.types[1].value_type == pa.large_string()
    assert table.schema.types[2] == pa.large_binary()
    assert [column.to_pylist() for column in table.columns] == [list(column) for column in VIEWS.iter_columns()]


def test_text_of_polars_among_numbers_is_named() -> None:
    assert "1 column(s) are not numbers: 'age' (large_string; row 2 (rows count from 0): '12k')" in refusal(
        VIEWS.select("age")
    )
    with pytest.raises(InputError, match=r"column 'age', row 2 .*'12k' is text, not a number"):
        cn.Party("bank", VIEWS, prepare=cn.Prepare({"age": cn.Number()}))


def test_a_polars_category_is_prepared() -> None:
    rule = cn.Category(rare=1, missing="level")
    assert cn.Party("bank", VIEWS, prepare=cn.Prepare({"job": rule})).table.n_rows == 3


class Broken:
    """A stream that ends in an error, which quotes a value."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        def batches() -> Iterator[Any]:
            yield from TABLE.to_batches()
            raise RuntimeError("'Rome' is a secret")

        return pa.RecordBatchReader.from_batches(TABLE.schema, batches()).__arrow_c_stream__(requested_schema)


def test_a_stream_that_breaks_is_named_without_its_words() -> None:
    with pytest.raises(InputError, match="this Broken cannot be read as a table") as caught:
        read_whole(Broken())
    assert "Rome" not in str(caught.value)
    message = refusal(duckdb.sql("select cast(x as integer) as x from (values ('Rome')) t(x)"))
    assert "this DuckDBPyRelation cannot be read as a table" in message
    assert "Rome" not in message


def test_a_reader_is_read_once() -> None:
    reader = TABLE.select(["age"]).to_reader()
    assert cn.Party("bank", reader).table.n_rows == 2
    assert "the table has 0 row(s)" in refusal(reader)


# --- folders ---


def test_hidden_and_empty_files_do_not_count(tmp_path: Path) -> None:
    folder = as_folder(tmp_path)
    for name in (".part-0.parquet.crc", "_SUCCESS", "_metadata.parquet"):
        (folder / name).write_bytes(b"x")
    (folder / "part-9.parquet").touch()
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "part-0.parquet").write_bytes(b"half")
    assert read_whole(folder).to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (pa.table({"age": ["x"], "spent": [1.0]}), "'age' is int64 in 'a.parquet', and string in 'b.parquet'"),
        (pa.table({"age": [1]}), "'spent' is double in 'a.parquet', and missing in 'b.parquet'"),
        (
            pa.table({"age": [1], "spent": [1.0], "more": [1]}),
            "'more' is missing in 'a.parquet', and int64 in 'b.parquet'",
        ),
    ],
)
def test_files_of_a_folder_have_the_same_columns(tmp_path: Path, table: Any, says: str) -> None:
    parquet.write_table(pa.table({"age": [1], "spent": [1.0]}), tmp_path / "a.parquet")
    parquet.write_table(table, tmp_path / "b.parquet")
    message = refusal(tmp_path)
    assert says in message
    assert message.endswith("Write all files with the same columns and types.")


def test_columns_of_another_order_are_the_same(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"age": [1], "spent": [1.5]}), tmp_path / "a.parquet")
    parquet.write_table(pa.table({"spent": [2.5], "age": [2]}), tmp_path / "b.parquet")
    assert read_whole(tmp_path).to_pydict() == {"age": [1, 2], "spent": [1.5, 2.5]}


def test_a_folder_holds_nothing_else(tmp_path: Path) -> None:
    folder = as_folder(tmp_path)
    (folder / "more.csv").write_text("age\n1\n")
    assert "'more.csv' in it is no .parquet file" in refusal(folder)
    (folder / "more.csv").unlink()
    (folder / "more.parquet").write_bytes(b"PAR1 not parquet PAR1")
    assert "'more.parquet' in it cannot be read" in refusal(folder)


@pytest.mark.parametrize(
    ("names", "says"), [(["a", "a"], "'a' occur more than once"), (["a", ""], "column 2 has no name")]
)
def test_columns_have_names_of_their_own(tmp_path: Path, names: list[str], says: str) -> None:
    table = pa.table([[1.0], [2.0]], names=names)
    parquet.write_table(table, tmp_path / "a.parquet")
    assert says in refusal(tmp_path / "a.parquet")
    assert says in refusal(table)


@pytest.mark.parametrize("scheme", ["s3", "gs", "abfs", "hdfs", "http", "https"])
def test_files_elsewhere_are_to_be_mounted_or_handed_in_as_a_data_set(scheme: str) -> None:
    for path in (f"{scheme}://joe:s3cret@bucket/x.parquet", Path("/home/joe") / f"{scheme}://joe:s3cret@bucket/x"):
        with pytest.raises(InputError, match=f"an address, {scheme}://.*Mount or copy .*filesystem=") as caught:
            cn.Party("bank", path)
        assert "s3cret" not in str(caught.value)


def test_a_data_set_of_another_file_system_is_read_as_it_scans(tmp_path: Path) -> None:
    as_parquet(tmp_path)
    elsewhere = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    party = cn.Party("bank", ds.dataset("bank.parquet", filesystem=elsewhere), policy=cn.Policy(columns=["age"]))
    assert party.table.n_rows == 2
    with pytest.raises(InputError, match="an engine works on tables that stay in Parquet files"):
        cn.Party("bank", ds.dataset("bank.parquet", filesystem=elsewhere), engine=Threads())
