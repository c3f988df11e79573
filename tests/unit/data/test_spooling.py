"""Large tables that cannot be read by block: from a file of our own, they are what they are in memory."""

import gzip
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from numpy.testing import assert_array_equal
from pyarrow import csv, feather, parquet

import colonnade as cn
from colonnade import disk
from colonnade.data import csv_reading, large_files, sqlite_types
from colonnade.data.spool import SpooledRows
from colonnade.data.streamed_tables import StreamedTable
from colonnade.data.tables import ArrayTable, read_table
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS, values_of

N_ROWS = 2 * BLOCK_ROWS + 777
RNG = np.random.default_rng(0)
MIXED: list[Any] = [*RNG.integers(-9, 9, N_ROWS - 5).tolist(), 1.5, 2, 3, 4, 5]  # integers, and far down a fraction
TABLE = pa.table(
    {
        "a": RNG.standard_t(4, N_ROWS),
        "n": RNG.integers(-9, 9, N_ROWS),
        "m": pa.array([float(each) for each in MIXED]),
        "y": RNG.choice(["late", " in time ", "lost"], N_ROWS),
        "w": RNG.integers(1, 5, N_ROWS),
        "s": RNG.choice(["train", "test"], N_ROWS),
    }
)
ROLES: dict[str, Any] = {"label": "y", "weight": "w", "split": "s"}
DECIMALS = pa.array([Decimal(int(cents)) / 100 for cents in RNG.integers(-(10**8), 10**8, N_ROWS)], pa.decimal128(9, 2))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a table of some blocks come in many pieces."""
    monkeypatch.setattr(csv_reading, "PIECE_BYTES", 100_000)
    monkeypatch.setattr(csv_reading, "QUOTED_BYTES", 100_000)
    monkeypatch.setattr(sqlite_types, "SOME_ROWS", 5_000)


def put_csv(folder: Path, name: str = "t.csv", table: Any = TABLE, **options: Any) -> Path:
    csv.write_csv(table, folder / name, csv.WriteOptions(**options))
    return folder / name


def put_unquoted(folder: Path) -> Path:
    return put_csv(folder, quoting_style="none")


def put_gzip(folder: Path) -> Path:
    content = put_csv(folder).read_bytes()
    (folder / "t.csv.gz").write_bytes(gzip.compress(content, 1))
    return folder / "t.csv.gz"


def put_commas(folder: Path) -> Path:
    """As Excel writes it in Germany; the first letter of Latin-1 is far down."""
    lines = [";".join(TABLE.column_names)]
    lines += [";".join(str(value).replace(".", ",") for value in row.values()) for row in TABLE.to_pylist()]
    text = "\r\n".join(lines).replace("lost", "verlören")
    (folder / "t.csv").write_bytes(text.encode("latin-1"))
    return folder / "t.csv"


def put_ipc(folder: Path, *, as_stream: bool) -> Path:
    opened = pa.ipc.new_stream if as_stream else pa.ipc.new_file
    with opened(str(folder / "t.arrow"), TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=7_000)
    return folder / "t.arrow"


def put_feather(folder: Path) -> Path:
    feather.write_feather(TABLE, folder / "t.feather", chunksize=9_000)
    return folder / "t.feather"


def put_parquet(folder: Path, table: Any = TABLE) -> Path:
    parquet.write_table(table, folder / "t.parquet", row_group_size=10_000)
    return folder / "t.parquet"


def put_dictionary(folder: Path) -> Path:
    encoded = TABLE.set_column(3, "y", TABLE["y"].dictionary_encode())
    return put_parquet(folder, encoded)


def put_decimals(folder: Path) -> Path:
    return put_parquet(folder, TABLE.append_column("price", DECIMALS))


def put_float32(folder: Path) -> Path:
    return put_parquet(folder, TABLE.append_column("small", TABLE["a"].cast(pa.float32(), safe=False)))


def put_partitions(folder: Path) -> Any:
    for kind in (1, 2):
        (folder / f"kind={kind}").mkdir()
        put_parquet(folder / f"kind={kind}")
    return ds.dataset(folder, partitioning="hive")


def put_sqlite(folder: Path) -> cn.Query:
    columns = {**TABLE.to_pydict(), "m": MIXED, "late": [None] * 10 + [0.5] * (N_ROWS - 10)}
    with sqlite3.connect(folder / "t.db") as connection:
        connection.execute(f"create table t({', '.join(columns)})")
        places = ", ".join("?" * len(columns))
        connection.executemany(f"insert into t values({places})", zip(*columns.values(), strict=True))
    return cn.Query("select a, n, m, y, w, s from t -- all\norder by a;", database=str(folder / "t.db"))


SOURCES: dict[str, Callable[[Path], Any]] = {
    "csv": put_csv,
    "csv without quotation marks": put_unquoted,
    "csv.gz": put_gzip,
    "csv of Latin-1 with commas": put_commas,
    "ipc file": lambda folder: put_ipc(folder, as_stream=False),
    "ipc stream": lambda folder: put_ipc(folder, as_stream=True),
    "feather": put_feather,
    "parquet with a label of text": put_parquet,
    "parquet with a label of categories": put_dictionary,
    "parquet with decimals": put_decimals,
    "parquet with float32": put_float32,
    "data set with a filter": lambda folder: ds.dataset(put_parquet(folder)).filter(ds.field("n") > -8),
    "data set of partitions": put_partitions,
    "data set with a schema": lambda folder: ds.dataset(
        put_parquet(folder), schema=TABLE.schema.set(1, pa.field("n", pa.float64()))
    ),
    "sqlite": put_sqlite,
}


def both(data: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, **roles: Any) -> tuple[ArrayTable, StreamedTable]:
    """Read a table into memory, and into a file."""
    found = []
    for most in (1 << 40, 1000):
        monkeypatch.setattr(large_files, "STREAMED_BYTES", most)
        found.append(read_table("bank", data(), **roles))
    held, streamed = found
    assert isinstance(held, ArrayTable)
    assert isinstance(streamed, StreamedTable)
    assert isinstance(streamed.rows, SpooledRows)
    return held, streamed


def values(table: StreamedTable) -> Floats:
    return np.concatenate(list(table.map(values_of)))


def same(held: ArrayTable, streamed: StreamedTable) -> None:
    assert_array_equal(values(streamed).view(np.uint64), np.ascontiguousarray(held.values[:]).view(np.uint64))
    assert (streamed.feature_names, streamed.label_name) == (held.feature_names, held.label_name)
    assert (streamed.label_levels, streamed.notes) == (held.label_levels, held.notes)
    for name in ("weight_column", "split_column"):
        assert_array_equal(getattr(streamed, name), getattr(held, name), strict=True)


@pytest.mark.parametrize("source", SOURCES)
def test_the_bits_are_those_of_the_table_in_memory(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = SOURCES[source](tmp_path)
    held, streamed = both(lambda: data, monkeypatch, **ROLES)
    same(held, streamed)
    assert held.n_rows > BLOCK_ROWS
    rows = RNG.integers(0, held.n_rows, 50)
    assert_array_equal(streamed.take(rows), held.take(rows))


def test_a_stream_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    same(*both(lambda: TABLE.to_reader(9_000), monkeypatch, **ROLES))


def test_what_is_in_memory_already_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_files, "STREAMED_BYTES", 1000)
    for data in (TABLE, TABLE.to_pandas()):
        assert isinstance(read_table("bank", data, **ROLES), ArrayTable)


def test_of_postgres(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANK", postgres)
    sql = (
        f"select i * 0.1::float8 a, (i % 7)::int4 n, (i * 0.01)::numeric(12, 2) m, (i * 0.5)::float4 f, "  # noqa: S608
        f"case when i % 3 = 0 then 'late' else 'in time' end y from generate_series(1, {N_ROWS}) i"
    )
    same(*both(lambda: cn.Query(sql, database_env="BANK"), monkeypatch, label="y"))


def test_gaps_before_the_first_value_of_sqlite_are_gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its driver would take a column that begins so for integers, and a later fraction for a fault of the query."""
    put_sqlite(tmp_path)
    query = cn.Query("select a, late from t", database=str(tmp_path / "t.db"))
    monkeypatch.setattr(sqlite_types, "SOME_ROWS", 5)
    assert_refused_alike(lambda: query, monkeypatch, f"'late': 10 of {N_ROWS} values are missing")


def test_a_run_has_the_bits_of_one_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put_csv(tmp_path)
    runs = []
    for most in (1 << 40, 1000):
        monkeypatch.setattr(large_files, "STREAMED_BYTES", most)
        parties = [
            cn.Party("one", path, label="a", weight="w", policy=cn.Policy(level="open", columns=["a", "n", "w"])),
            cn.Party("two", path, policy=cn.Policy(level="open", columns=["m"])),
        ]
        assert ("in a file of its own" in repr(parties[0])) == (most == 1000)
        federation = cn.Federation(parties)
        run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(300), split=cn.HoldOut(0.2), seed=3)
        runs.append((run, federation.evaluate(run.model), federation.predict(run.model)))
    (held, cost, predictions), (streamed, its_cost, its_predictions) = runs
    assert_array_equal(held.coreset.rows, streamed.coreset.rows)
    assert_array_equal(held.coreset.weights, streamed.coreset.weights)
    assert_array_equal(held.model.coef_, streamed.model.coef_)
    assert cost == its_cost
    assert_array_equal(predictions, its_predictions)


# What is wrong.


def assert_refused_alike(data: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, words: str, **roles: Any) -> None:
    """Require the same words of a table that would be held and of one that would not."""
    said = []
    for most in (1 << 40, 1000):
        monkeypatch.setattr(large_files, "STREAMED_BYTES", most)
        with pytest.raises(cn.InputError, match=words) as caught:
            read_table("bank", data(), **roles)
        said.append(str(caught.value))
    assert said[0] == said[1]


def changed(name: str, value: Any, row: int = 30_000) -> Any:
    """Put one value into the table, far down."""
    column = TABLE[name].to_pylist()
    column[row] = value
    return TABLE.set_column(TABLE.column_names.index(name), name, pa.array(column))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (changed("a", None), "column 'a': 1 of 33545 values are missing .* in row 30000"),
        (changed("a", np.inf), "column 'a': 1 of 33545 values are infinite"),
        (changed("a", -1e150), "column 'a': its largest value in size is -1e\\+150 in row 30000"),
        (changed("n", 2**60), "column 'n': the integer in row 30000"),
        (changed("y", None), "column 'y': 1 of 33,545 labels are missing, the first in row 30000"),
        (changed("y", "12"), r"'y' \(string; row 0 .*: ' ?(lost|late|in time)"),
        (changed("s", "tset"), "the split column is tset in row 30000"),
        (changed("w", -1), "row weights: they lie between -1 and 4"),
        (TABLE.set_column(3, "y", pa.array([f"{i} x" for i in range(N_ROWS)])), "33,545 different values"),
        (TABLE.append_column("gone", pa.nulls(N_ROWS)), "column 'gone': 33545 of 33545 values are missing"),
        (TABLE.append_column("job", pa.array(["clerk"] * N_ROWS)), r"1 column\(s\) are not numbers: 'job' \(string\)"),
        (TABLE.slice(0, 0), "has 0 row"),
    ],
    ids=["gap", "infinity", "size", "integer", "label", "slip", "mark", "weight", "levels", "null", "text", "empty"],
)
def test_what_is_wrong_is_said_in_the_same_words(
    tmp_path: Path, table: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pa.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=7_000)
    assert_refused_alike(lambda: tmp_path / "t.arrow", monkeypatch, words, **ROLES)


@pytest.mark.parametrize("style", ["needed", "none"])
@pytest.mark.parametrize("begins", ["n", "a"])
def test_a_word_far_down_a_file_of_text_is_named_by_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, style: str, begins: str
) -> None:
    table = pa.table({begins: [*map(str, TABLE[begins].to_pylist()[:-1]), "12k"], "w": TABLE["w"]})
    words = rf"'{begins}' \(string; row 33544 \(line 33546 of t\.csv\): '12k'\)"
    path = put_csv(tmp_path, table=table, quoting_style=style)
    assert_refused_alike(lambda: path, monkeypatch, words)


def test_a_line_far_down_that_does_not_fit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put_csv(tmp_path)
    for end, words in (("1,2\n", "line 33547: it has 2 value"), ('1,2,3,"', "after line 33546: a quotation mark")):
        (tmp_path / "bad.csv").write_bytes(path.read_bytes() + end.encode())
        assert_refused_alike(lambda: tmp_path / "bad.csv", monkeypatch, words, **ROLES)


def test_types_that_change_again_and_again_are_those_of_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gaps come first, then whole numbers, then fractions: each when rows of the earlier kind were handed on."""
    n = 40_000
    columns = {
        "x": [*["1"] * n, "1.5", *["2"] * n],
        "z": [*["0"] * (n // 2), *["7"] * n, *["0.25"] * (n // 2), "1e3"],
        "mark": [*["1"] * n, "true", *["0"] * n],
    }
    lines = [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    same(*both(lambda: tmp_path / "t.csv", monkeypatch))


def test_a_full_disk_is_said_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put_csv(tmp_path)
    monkeypatch.setattr(large_files, "STREAMED_BYTES", 1000)
    (tmp_path / "own").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "own"))

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "write", full)
    with pytest.raises(cn.InputError, match=r"Party 'bank': its table .*'.*own' \(No space left on device\)"):
        read_table("bank", path, **ROLES)
    assert list((tmp_path / "own").iterdir()) == []


def test_no_engine_but_threads_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_files, "STREAMED_BYTES", 1000)
    with pytest.raises(cn.InputError, match="stay in Parquet files, and this one is in no Parquet file"):
        cn.Party("bank", put_csv(tmp_path), engine=cn.DaskEngine("tcp://127.0.0.1:1"), **ROLES)


# Memory.

CHILD = """
import os, sys
from pathlib import Path
import numpy as np
import colonnade as cn
from colonnade.data import large_files
large_files.STREAMED_BYTES = 4 << 20

def megabytes(what):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(what)) >> 10

def party(data):
    return cn.Party("bank", data, label="c0")

data = eval(sys.argv[1])
n_rows = 2_000
small = Path(sys.argv[2]) / "small.csv"
small.write_text("c0,c1\\n" + "1.5,2\\n" * n_rows)
federation = cn.Federation([party(small)])  # so that all is imported
federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(100))
before = megabytes("VmRSS")
bank = party(data)
federation = cn.Federation([bank])
federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(100))
print(bank.table.n_rows, megabytes("VmHWM") - before)
"""


def most_held(data: str, folder: Path) -> tuple[int, int]:
    """Read and fit a table in a process of its own: its rows, and how many megabytes were held at most."""
    run = subprocess.run(
        [sys.executable, "-c", CHILD, data, str(folder)], check=True, stdout=subprocess.PIPE, text=True
    )
    n_rows, n_bytes = map(int, run.stdout.split())
    return n_rows, n_bytes


N_LARGE, N_COLUMNS = 800_000, 40  # 256 MB of numbers
MOST_HELD = 110
needs_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux, which tells of memory")


@needs_linux
@pytest.mark.parametrize("first", ["1.5", '"1.5"'])
def test_a_large_file_of_text_takes_little_memory(tmp_path: Path, first: str) -> None:
    line = "".join(f",{place}" for place in range(N_COLUMNS - 1))
    some = "".join(f"{row % 7}.5{line}\n" for row in range(10_000))
    with (tmp_path / "t.csv").open("w") as file:
        file.write(",".join(f"c{place}" for place in range(N_COLUMNS)) + "\n")
        file.write(f"{first}{line}\n")
        for _ in range(0, N_LARGE, 10_000):
            file.write(some)
    n_rows, held = most_held(repr(str(tmp_path / "t.csv")), tmp_path)
    assert n_rows == N_LARGE + 1
    assert held < MOST_HELD


@needs_linux
def test_a_large_query_takes_little_memory(tmp_path: Path) -> None:
    """SQLite gives a thousand rows a thousand times."""
    names = ", ".join(f"c{place}" for place in range(N_COLUMNS))
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute(f"create table t({names})")
        rows = RNG.normal(size=(1000, N_COLUMNS)).tolist()
        connection.executemany(f"insert into t values({', '.join('?' * N_COLUMNS)})", rows)
    sql = (
        f"with recursive n(i) as (select 1 union all select i + 1 from n where i < {N_LARGE // 1000}) "  # noqa: S608
        "select t.* from n, t"
    )
    n_rows, held = most_held(f"cn.Query({sql!r}, database={str(tmp_path / 't.db')!r})", tmp_path)
    assert n_rows == N_LARGE
    assert held < MOST_HELD


@needs_linux
def test_a_large_query_of_postgres_takes_little_memory(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANK", postgres)
    columns = ", ".join(f"(i % {place + 2})::float8 c{place}" for place in range(N_COLUMNS))
    sql = f"with t as materialized (select {columns} from generate_series(1, 1000) i) "  # noqa: S608
    sql += f"select t.* from generate_series(1, {N_LARGE // 1000}), t"  # noqa: S608
    n_rows, held = most_held(f"cn.Query({sql!r}, database_env='BANK')", tmp_path)
    assert n_rows == N_LARGE
    assert held < MOST_HELD
