"""Tables that are read piece by piece: the same values from every source, and little memory beside them."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from colonnade.data import filling
from colonnade.data.filling import filled, largest_in_size
from colonnade.data.tables import ArrayTable, read_table
from colonnade.errors import InputError
from whole_tables import held

N_ROWS = 1000
RNG = np.random.default_rng(0)
COLUMNS: dict[str, Any] = {
    "id": [f"k{number}" for number in RNG.permutation(N_ROWS)],
    "single": RNG.normal(size=N_ROWS).astype(np.float32).astype(np.float64),
    "integer": RNG.integers(-(2**53) + 1, 2**53, N_ROWS),
    "small": RNG.integers(0, 100, N_ROWS),
    "flag": RNG.random(N_ROWS) < 0.5,
    "double": RNG.normal(size=N_ROWS) * 10.0 ** RNG.integers(-9, 9, N_ROWS),
    "weight": RNG.random(N_ROWS),
    "y": RNG.normal(size=N_ROWS),
}
TABLE = pa.table(COLUMNS)
NARROW = TABLE.set_column(1, "single", TABLE["single"].cast(pa.float32())).set_column(
    3, "small", TABLE["small"].cast(pa.uint8())
)
FEATURES = ["single", "integer", "small", "flag", "double", "y"]
EXPECTED = np.column_stack([np.asarray(COLUMNS[name], dtype=np.float64) for name in FEATURES])


def put_parquet(folder: Path, rows: int) -> Path:
    parquet.write_table(NARROW, folder / "bank.parquet", row_group_size=rows)
    return folder / "bank.parquet"


def put_folder(folder: Path) -> Path:
    (folder / "parts").mkdir()
    for number, start in enumerate(range(0, N_ROWS, 300)):
        parquet.write_table(NARROW.slice(start, 300), folder / "parts" / f"{number}.parquet")
    return folder / "parts"


def put_csv(folder: Path) -> Path:
    csv.write_csv(TABLE, folder / "bank.csv")
    return folder / "bank.csv"


def put_ipc(folder: Path) -> Path:
    with pa.ipc.new_file(folder / "bank.arrow", NARROW.schema) as writer:
        writer.write_table(NARROW, max_chunksize=77)
    return folder / "bank.arrow"


SOURCES: dict[str, Callable[[Path], object]] = {
    "parquet": lambda folder: put_parquet(folder, N_ROWS),
    "small row groups": lambda folder: put_parquet(folder, 7),
    "folder": put_folder,
    "csv": put_csv,
    "ipc": put_ipc,
    "arrow": lambda _: NARROW,
    "uneven chunks": lambda _: pa.concat_tables([NARROW.slice(0, 1), NARROW.slice(1, 500), NARROW.slice(501)]),
    "pandas": lambda _: TABLE.to_pandas(),
    "polars": lambda _: pl.DataFrame(COLUMNS),
}


@pytest.mark.parametrize("piece_rows", [64, 65_536])
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_bits(
    tmp_path: Path, source: str, piece_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "PIECE_ROWS", piece_rows)
    table = read_table("bank", SOURCES[source](tmp_path), key="id", label="y", weight="weight")
    assert table.feature_names == tuple(FEATURES[:-1])
    assert held(table).flags.f_contiguous
    assert isinstance(table, ArrayTable)
    assert not any(part.flags.writeable for part in table.values.parts)
    assert np.array_equal(held(table).view(np.uint64), np.asfortranarray(EXPECTED).view(np.uint64))
    assert table.weight_column is not None
    assert np.array_equal(table.weight_column, COLUMNS["weight"])
    assert table.keys is not None
    assert list(table.keys.values) == [key.encode() for key in COLUMNS["id"]]
    assert table.key_digest == table.keys.values.digest()


@pytest.mark.parametrize("bad", [None, np.nan, np.inf, -1e200])
@pytest.mark.parametrize("row", [0, 63, 64, 999])
def test_a_bad_value_is_found_in_every_piece(bad: float | None, row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "PIECE_ROWS", 64)
    values = [1.0, *[2.0] * (N_ROWS - 1)]
    column = [*values[:row], bad, *values[row + 1 :]]
    with pytest.raises(InputError, match=f"column 'x': .*in row {row} "):
        read_table("bank", pa.table({"x": pa.array(column, pa.float64())}))


def test_the_largest_in_size_of_an_array() -> None:
    values = np.asfortranarray(RNG.normal(size=(70_000, 3)))
    assert np.array_equal(largest_in_size(list(values.T)), np.abs(values).max(axis=0))
    values[69_999, 1] = np.nan
    assert np.isnan(largest_in_size(list(values.T))).tolist() == [False, True, False]


@pytest.mark.parametrize(("said", "words"), [(3, "has 2 rows, and says"), (1, "has 2 rows and more, and says")])
def test_a_file_that_has_other_rows_than_it_says(said: int, words: str) -> None:
    with pytest.raises(InputError, match=f"{words} that it has {said}"):
        filled("bank", pa.table({"x": [1.0, 2.0]}).to_reader(), said, ["x"])


def test_a_file_that_says_that_it_has_more_rows_than_fit() -> None:
    with pytest.raises(InputError, match="do not fit into memory"):
        filled("bank", pa.table({"x": [1.0, 2.0]}).to_reader(), 1 << 62, ["x"])


CHILD = """
import sys
import pyarrow.compute, pyarrow.parquet
import colonnade as cn

def kilobytes(what):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(what))

before = kilobytes("VmHWM")
party = cn.Party("bank", sys.argv[1], label="y", key="id")
print(kilobytes("VmHWM") - before, kilobytes("VmRSS") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux, which tells how much memory there was")
def test_a_table_is_not_held_twice_while_it_is_read(tmp_path: Path) -> None:
    """Of 160 MB of numbers; Arrow alone takes about 110 MB to read whatever it is."""
    n_rows = 2_000_000
    column = RNG.normal(size=n_rows)
    columns = {f"x{place}": column for place in range(9)} | {"y": column, "id": np.arange(n_rows)[::-1]}
    parquet.write_table(pa.table(columns), tmp_path / "bank.parquet", use_dictionary=False, compression="none")
    child = [sys.executable, "-c", CHILD, str(tmp_path / "bank.parquet")]
    found = subprocess.run(child, capture_output=True, text=True, check=True).stdout  # our own program
    peak, after = (int(kilobytes) * 1024 / (n_rows * 10 * 8) for kilobytes in found.split())
    assert peak < 2.6, "of it once, its keys, and what is being read"
    assert after < 2.2
