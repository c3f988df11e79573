"""Checks of tables that stay in their files find what checks in memory do, and hold little."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, feather, parquet

import colonnade as cn
from colonnade.data import csv_reading, large_files
from colonnade.data.checking import key_and_label, tallies
from colonnade.data.checking.check import Check, Preparing, check_table
from colonnade.data.checking.columns import columns_seen
from colonnade.data.checking.starting import start_from
from colonnade.data.checking.tables import table_to_look_at
from colonnade.data.filed_columns import FileColumns
from colonnade.data.sources import Roles
from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.preparation.measuring import Piece, quantile
from colonnade.protocol.policy import Policy

N = BLOCK_ROWS + 500
RNG = np.random.default_rng(0)
AGES = RNG.normal(40, 5, N)
AGES[17] = 4_000.0
GAPS = RNG.random(N) < 0.05
COLUMNS: dict[str, Any] = {
    "customer": [f" C{i}" for i in RNG.permutation(N)],
    "age": AGES,
    "income": pa.array(RNG.normal(50, 9, N), mask=GAPS),
    "again": AGES,
    "nearly": AGES * 2 + RNG.normal(size=N) * 0.01,
    "job": pa.array(RNG.choice(["clerk", "cook", "", "nurse"], N, p=[0.5, 0.3, 0.1, 0.1])).dictionary_encode(),
    "flat": np.ones(N, np.int8),
    "number": RNG.integers(0, 2**60, N),
    "code": RNG.integers(0, 9, N).astype(np.uint8),
    "amount": [f"{value:.1f}".replace(".", ",") for value in RNG.normal(size=N)],
    "since": pa.array(RNG.integers(0, 9_000, N), mask=GAPS).cast(pa.int32()).cast(pa.date32()),
    "half": RNG.normal(size=N).astype(np.float16),
    "yes": RNG.random(N) < 0.3,
    "void": pa.nulls(N),
    "spending": np.maximum(RNG.normal(size=N), 0.0),
}
RULES = cn.Prepare({"age": cn.Number(), "income": cn.Number(), "job": cn.Category(), "again": cn.Number(scale=True)})


def written(folder: Path, **columns: Any) -> Path:
    table = pa.table({name: values for name, values in {**COLUMNS, **columns}.items() if values is not None})
    parquet.write_table(table, folder / "bank.parquet", row_group_size=5_000)
    return folder / "bank.parquet"


def both(path: Path, monkeypatch: pytest.MonkeyPatch, prepare: Preparing, roles: Roles | None = None) -> list[Check]:
    """Check a file in memory, and where it is."""
    found = []
    for most in (1 << 28, 0):
        monkeypatch.setattr(large_files, "STREAMED_BYTES", most)
        roles = roles or Roles("spending", "customer")
        found.append(check_table("bank", path, roles, prepare, Policy(level="open"), show_keys=True))
    return found


def put_csv(folder: Path, table: Any) -> Path:
    csv.write_csv(table.set_column(5, "job", table["job"].cast(pa.string())), folder / "bank.csv")
    return folder / "bank.csv"


def put_ipc(folder: Path, table: Any) -> Path:
    feather.write_feather(table, folder / "bank.arrow", chunksize=5_000)
    return folder / "bank.arrow"


@pytest.mark.parametrize("prepare", ["auto", RULES, None])
@pytest.mark.parametrize("put", [put_csv, put_ipc])
def test_so_it_is_with_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Any, prepare: Preparing
) -> None:
    monkeypatch.setattr(csv_reading, "PIECE_BYTES", 100_000)
    ages = pa.array([*AGES[:-1].astype(int).tolist(), 40.5])  # a fraction in the last line only
    path = put(tmp_path, parquet.read_table(written(tmp_path, again=ages)))
    held, filed = both(path, monkeypatch, prepare)
    assert filed == held
    assert {"outliers", "key-rewritten"} <= {each.kind for each in filed.findings}
    found, _, _ = table_to_look_at("bank", path, list, keys=["customer"], as_text=lambda _: [])
    assert isinstance(found, FileColumns)
    assert found.take(np.array([N - 1, 3]))["again"].to_pylist() == [40.5, float(ages[3].as_py())]


@pytest.mark.parametrize("prepare", ["auto", RULES, None])
def test_all_that_is_found_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepare: Preparing) -> None:
    held, filed = both(written(tmp_path), monkeypatch, prepare)
    assert filed == held
    assert {"repeated", "outliers", "key-rewritten"} <= {each.kind for each in filed.findings}


@pytest.mark.parametrize(
    "columns",
    [
        {"customer": [f"c{i // 2}" for i in range(N)]},
        {"customer": [None, "", *map(str, range(N - 2))]},
        {"customer": [f"{' ' * (i % 2)}c{i // 2}" for i in range(N)]},
        {"spending": RNG.choice(np.array(["yes", "no ", None]), N)},
        {"spending": np.full(N, 2.0)},
        {"spending": pa.array(RNG.normal(size=N), mask=GAPS)},
        {"income": None, "since": None, "amount": None, "void": None},
        {"age": np.where(GAPS, np.inf, AGES)},
    ],
)
def test_what_is_wrong_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: dict[str, Any]) -> None:
    choices: tuple[Preparing, ...] = ("auto", None)
    for prepare in choices:
        held, filed = both(written(tmp_path, **columns), monkeypatch, prepare)
        assert filed == held


def test_what_a_party_is_started_from_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    held = start_from("bank", str(path), "bank.parquet", label="spending")
    monkeypatch.setattr(large_files, "STREAMED_BYTES", 0)
    assert start_from("bank", str(path), "bank.parquet", label="spending") == held
    assert held.key.columns == ("customer",)
    assert isinstance(table_to_look_at("bank", path, list, keys=(), as_text=lambda _: [])[0], FileColumns)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 12), max_size=60), st.integers(1, 9), st.sampled_from([1, 3, 100]))
def test_different_values_are_counted_however_few_are_held(values: list[int], size: int, most: int) -> None:
    words = np.array(values, np.uint64)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tallies, "MOST_VALUES", most)
        patched.setattr(tallies, "WAITING", 2)
        parts = tallies.tallies(lambda: (words[i : i + size] for i in range(0, len(words), size)), len(words))
        found = np.concatenate([*parts, np.empty(0, np.int64)])
    assert sorted(found.tolist()) == sorted(np.unique(words, return_counts=True)[1].tolist())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=50), st.sampled_from([0.0, 0.01, 0.25, 0.5, 0.99, 1.0]))
def test_quantiles_are_those_of_all_numbers(values: list[float], share: float) -> None:
    found = quantile(lambda: iter([Piece(np.array(values), None)]), len(values), share)
    assert found == pytest.approx(np.quantile(values, share), rel=1e-12, abs=1e-12)


def test_levels_are_counted_across_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_files, "STREAMED_BYTES", 0)
    path = written(tmp_path, job=["rare"] * 3 + ["clerk"] * (N - 6) + ["rare"] * 3)
    table = table_to_look_at("bank", path, list, keys=(), as_text=lambda _: [])[0]
    (job,) = columns_seen(table.select(["job"]), {"job": 7})
    assert (job.distinct, job.rare_levels, job.rare_rows) == (2, 1, 6)


CHILD = """
import sys
from pathlib import Path
import numpy as np, pyarrow as pa
from pyarrow import csv, feather, parquet
from colonnade.data import filed_keys, large_files
from colonnade.data.checking import tallies
from colonnade.data.checking.check import check_table
from colonnade.data.checking.starting import start_from
from colonnade.data.sources import Roles
from colonnade.preparation import measuring
from colonnade.protocol.policy import Policy
large_files.STREAMED_BYTES = 0
filed_keys.MOST_HASHES = measuring.MOST_HELD = tallies.MOST_VALUES = tallies.WAITING = 1 << 17  # few rows are many
path, n_rows, some = sys.argv[1], int(sys.argv[2]), 200_000
writer = None
for part in range(n_rows // some):
    rng = np.random.default_rng(part)
    columns = {name: rng.normal(size=some) for name in "abcdefghij"}
    columns["job"] = rng.choice(["clerk", "driver", "nurse"], some)
    columns["id"] = pa.array(rng.permutation(some) + part * some).cast(pa.string())
    table = pa.table(columns)
    writer = writer or parquet.ParquetWriter(path, table.schema)
    writer.write_table(table)
writer.close()
start_from("bank", path, path, label="a")
assert check_table("bank", path, Roles("a", "id"), "auto", Policy(level="open")).starts
status = Path("/proc/self/status").read_text()
print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_table(tmp_path: Path) -> None:
    """1.2 million rows are 96 MB of numbers and 36 MB of text, three times what they may take more than a sixth."""
    small, large = (
        int(
            subprocess.run(
                [sys.executable, "-c", CHILD, str(tmp_path / f"{n}.parquet"), str(n)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for n in (200_000, 1_200_000)
    )
    assert large - small < 40


def test_labels_of_many_words_are_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all words are kept of what is no label; those that are not are there all the same."""
    monkeypatch.setattr(key_and_label, "MOST_KEPT_LEVELS", 10)
    words = pa.chunked_array([[*(f"w{piece}-{each}" for each in range(20)), None, " "] for piece in range(3)])
    assert key_and_label._text_seen(pa.table({"name": words}), "name").missing == 6
