"""Tables that stay in their files: the same bits as in memory, bounded memory, and no use of files that change."""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from pyarrow import csv, parquet

import colonnade as cn
from colonnade.data import engines, large_files, streams
from colonnade.data.engines import Threads, n_cores
from colonnade.data.held_columns import HeldColumns
from colonnade.data.spool import SpooledRows
from colonnade.data.streamed_tables import StreamedTable
from colonnade.data.streams import ParquetRows, open_rows
from colonnade.data.tables import ArrayTable, read_table
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS, Block, values_of
from colonnade.sampling.rules.clustering import ClusteringScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.rules.sharpened import SharpenedScores

N_ROWS = 3 * BLOCK_ROWS + 777
NAMES = ("a", "b", "c", "y")
RNG = np.random.default_rng(0)
VALUES = np.asfortranarray(RNG.standard_t(4, size=(N_ROWS, 4)) * [1.0, 100.0, 0.01, 3.0] + [0, 5, 0, 1])


def written(folder: Path, group_rows: Sequence[int] = (10_000,), name: str = "t.parquet", **columns: Any) -> Path:
    """Write the rows in groups of these lengths, in turn."""
    table = pa.table({**dict(zip(NAMES, VALUES.T, strict=True)), **columns})
    with parquet.ParquetWriter(folder / name, table.schema) as writer:
        start = 0
        for turn in range(N_ROWS):
            if start >= N_ROWS:
                break
            length = group_rows[turn % len(group_rows)]
            writer.write_table(table.slice(start, length), row_group_size=length)
            start += length
    return folder / name


def opened(path: Path) -> ParquetRows:
    return open_rows("its table", [path], NAMES)


def streamed(path: Path) -> StreamedTable:
    return StreamedTable(opened(path), NAMES[:3], "y")


def values(table: Any) -> Floats:
    return np.concatenate(list(table.map(values_of)))


GROUPS = [(10_000,), (BLOCK_ROWS,), (1, 20_000, 333), (1_000,), (N_ROWS,)]


@pytest.mark.parametrize("groups", GROUPS)
def test_blocks_are_the_same_rows_however_the_file_groups_them(tmp_path: Path, groups: tuple[int, ...]) -> None:
    table = streamed(written(tmp_path, groups))
    assert [len(block) for block in table.map(values_of)] == [BLOCK_ROWS] * 3 + [777]
    assert_array_equal(values(table), VALUES)
    assert all(block.flags.f_contiguous for block in table.map(values_of))
    assert_array_equal(
        np.concatenate(list(table.map(values_of, [1, 3]))), np.r_[VALUES[BLOCK_ROWS : 2 * BLOCK_ROWS], VALUES[-777:]]
    )


def test_only_groups_that_have_rows_asked_for_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[str, int]] = []
    whole = parquet.ParquetFile.iter_batches

    def spied(self: Any, size: int, groups: list[int], columns: list[str], **options: Any) -> Any:
        read.extend((column, group) for column in columns for group in groups)
        return whole(self, size, groups, columns, **options)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", spied)
    table = streamed(written(tmp_path, (BLOCK_ROWS,)))
    list(table.map(values_of, [2]))
    assert sorted(read) == [(name, 2) for name in NAMES]


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("n_threads", [1, 2, 3, 9])
def test_any_number_of_threads_reads_the_same_blocks_in_their_order(
    tmp_path: Path, groups: tuple[int, ...], n_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = opened(written(tmp_path, groups))
    for at_once in (1, 2, 8):
        monkeypatch.setattr(streams, "BATCH_BLOCKS", at_once)
        for numbers in (None, [1, 3], [0], range(1, 3), []):
            found = list(rows.blocks(numbers, n_threads=n_threads))
            assert [block.number for block in found] == list(range(4) if numbers is None else numbers)
            for block in found:
                assert_array_equal(block.values, VALUES[block.rows])


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("n_cores", [1, 2, 9])
def test_all_rows_are_read_into_one_array_column_by_column(
    tmp_path: Path, groups: tuple[int, ...], n_cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "n_cores", lambda: n_cores)
    for at_once in (1, 2, 8):
        monkeypatch.setattr(streams, "BATCH_BLOCKS", at_once)
        held = np.full_like(VALUES, np.nan)
        largest = opened(written(tmp_path, groups)).read_into(list(held.T))
        assert_array_equal(held, VALUES)
        assert_array_equal(largest, np.abs(VALUES).max(axis=0))


def test_what_is_no_number_is_seen_while_a_column_is_read(tmp_path: Path) -> None:
    b, c = VALUES[:, 1].copy(), VALUES[:, 2].copy()
    b[-1], c[0] = np.nan, -np.inf
    largest = opened(written(tmp_path, b=b, c=c)).read_into(list(np.empty_like(VALUES).T))
    assert np.isnan(largest[1])
    assert_array_equal(np.isinf(largest), [False, False, True, False])


def test_files_of_other_lengths_than_they_had_are_not_read_into_an_array(tmp_path: Path) -> None:
    """Neither beyond the array, nor with rows left as they were."""
    rows = opened(written(tmp_path))
    for n_rows in (rows.n_rows - 1, rows.n_rows + 1):
        *others, last = rows.groups
        lied = replace(rows, groups=(*others, replace(last, end=n_rows)))
        with pytest.raises(cn.InputError, match="changed while it was in use"):
            lied.read_into([np.empty(n_rows) for _ in rows.columns])


def test_wide_rows_are_decoded_fewer_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read ahead is bounded by bytes, and is a block at least."""
    rows = opened(written(tmp_path))
    assert rows._n_rows_at_once == 8 * BLOCK_ROWS
    for n_bytes, n_blocks in ((3 * 4 * 8 * BLOCK_ROWS, 3), (1, 1)):
        monkeypatch.setattr(streams, "BATCH_BYTES", n_bytes)
        assert rows._n_rows_at_once == n_blocks * BLOCK_ROWS


def handles_on(path: Path) -> int:
    """Count how often this process has a file open."""
    return sum(os.path.realpath(handle) == str(path.resolve()) for handle in Path("/proc/self/fd").iterdir())


def test_a_pass_that_is_abandoned_or_fails_leaves_no_thread_reading_and_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "BATCH_BLOCKS", 1)
    table = streamed(written(tmp_path, (1_000,)))
    blocks = table.rows.blocks(n_threads=2)
    next(blocks)
    assert handles_on(tmp_path / "t.parquet") == 1
    blocks.close()  # type: ignore[attr-defined]
    found = table.map(values_of)
    next(found)
    found.close()  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError):
        list(table.map(failing))
    del blocks, found
    assert handles_on(tmp_path / "t.parquet") == 0
    left = [each.name for each in threading.enumerate() if each.name.startswith(engines.READING)]
    assert len(left) <= n_cores()
    assert engines._threads(os.getpid(), n_cores(), engines.READING)._work_queue.empty()


def failing(block: Block) -> float:
    return 1 / (block.number - 1)


def test_who_reads_on_reads_no_group_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models are applied window by window: each begins where the one before has ended, also of two jobs in turn."""
    table, read = streamed(written(tmp_path, (N_ROWS,))), []
    batches = parquet.ParquetFile.iter_batches

    def noted(self: Any, *arguments: Any, **options: Any) -> Any:
        read.append(arguments[1])
        return batches(self, *arguments, **options)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", noted)
    for windows in ([range(1), range(1, 2), range(2, 4)], [range(2), range(2), range(2, 3), range(2, 4), range(3, 4)]):
        for window in windows:
            found = np.concatenate(list(table.map(values_of, window)))
            assert_array_equal(found, VALUES[window.start * BLOCK_ROWS : window.stop * BLOCK_ROWS])
        n_begun = sum(window.start == 0 for window in windows) + (len(windows) == 5)
        assert len(read) == len(NAMES) * n_begun, "each column once"
        read.clear()
    assert pickle.loads(pickle.dumps(table.rows)).n_rows == N_ROWS, "it can be sent to other machines"  # noqa: S301
    assert isinstance(table.rows, ParquetRows)
    assert not table.rows._stopped


@given(st.lists(st.integers(0, N_ROWS - 1), max_size=30))
def test_rows_are_taken_in_any_order_and_repeatedly(tmp_path_factory: pytest.TempPathFactory, rows: list[int]) -> None:
    ids = np.array(rows, np.int64)
    path = tmp_path_factory.getbasetemp() / "taken.parquet"
    table = streamed(path if path.exists() else written(path.parent, name=path.name))
    taken = table.take(ids)
    assert_array_equal(taken, VALUES[ids])
    assert taken.flags.c_contiguous


@pytest.mark.parametrize("rule", [LeverageScores(True), SharpenedScores(True, 2.0), ClusteringScores(4)], ids=str)
def test_scores_have_the_bits_of_a_table_in_memory(tmp_path: Path, rule: Any) -> None:
    held = ArrayTable(HeldColumns((VALUES,)), NAMES[:3], "y")
    for groups in ((10_000,), (999, 31_000)):
        found = rule.scores(streamed(written(tmp_path, groups)))
        assert_array_equal(np.asarray(found), np.asarray(rule.scores(held)))
        assert found.sum() == rule.scores(held).sum()


def federations(folder: Path, groups: Sequence[int]) -> tuple[cn.Federation, cn.Federation]:
    """Give the same parties, with tables in memory and in files."""
    path = written(folder, groups)
    parts = {"one": ["a", "b"], "two": ["c", "y"]}
    policies = {name: cn.Policy(level="open", columns=columns) for name, columns in parts.items()}
    labels = {"one": None, "two": "y"}
    return (
        cn.Federation(
            [cn.Party(name, parquet.read_table(path), label=labels[name], policy=policies[name]) for name in parts]
        ),
        cn.Federation([cn.Party(name, ds.dataset(path), label=labels[name], policy=policies[name]) for name in parts]),
    )


@pytest.mark.parametrize("draws", ["stratified", "independent", "distinct"])
def test_a_run_has_the_bits_of_one_in_memory(tmp_path: Path, draws: Any) -> None:
    held, in_files = federations(tmp_path, (20_000, 7))
    for split in (None, cn.HoldOut(0.25)):
        runs = [
            each.fit(cn.Regression(), sampler=cn.ImportanceSampling(300, draws=draws), split=split, seed=3)
            for each in (held, in_files)
        ]
        assert_array_equal(runs[0].coreset.rows, runs[1].coreset.rows)
        assert_array_equal(runs[0].coreset.weights, runs[1].coreset.weights)
        assert_array_equal(runs[0].model.coef_, runs[1].model.coef_)
    assert held.evaluate(runs[0].model) == in_files.evaluate(runs[1].model)
    assert_array_equal(held.predict(runs[0].model), in_files.predict(runs[1].model))


@pytest.mark.parametrize(
    ("task", "solver"),
    [(cn.KMeans(3), cn.Central()), (cn.KMeans(3), cn.DistDim()), (cn.Regression(), cn.CompactCentral(step=0.3))],
    ids=["kmeans", "distdim", "compact"],
)
def test_solvers_have_the_bits_of_tables_in_memory(tmp_path: Path, task: Any, solver: Any) -> None:
    runs = [
        each.fit(task, sampler=cn.ImportanceSampling(200), solver=solver, seed=1)
        for each in federations(tmp_path, (9_999,))
    ]
    found = [run.model.coef_ if isinstance(task, cn.Regression) else run.model.cluster_centers_ for run in runs]
    assert_array_equal(*found)


def test_small_files_are_held_and_large_ones_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    assert isinstance(read_table("bank", path), ArrayTable)
    assert isinstance(read_table("bank", ds.dataset(path)), StreamedTable)
    monkeypatch.setattr(large_files, "STREAMED_BYTES", VALUES.nbytes - 1)
    table = read_table("bank", path, label="y")
    assert isinstance(table, StreamedTable)
    assert (table.feature_names, table.label_name, table.n_rows) == (("a", "b", "c"), "y", N_ROWS)
    keyed = read_table("bank", written(tmp_path, id=np.arange(N_ROWS)), key="id")
    assert isinstance(keyed, StreamedTable)
    assert keyed.key_digest is not None
    text = read_table("bank", written(tmp_path, y=["yes", "no"] * (N_ROWS // 2) + ["no"]), label="y")
    assert isinstance(text, StreamedTable)
    assert isinstance(text.rows, SpooledRows), "its numbers are in no file but one of our own"
    assert text.label_levels == ("no", "yes")


def test_a_folder_is_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_files, "STREAMED_BYTES", 0)
    table = pa.table(dict(zip(NAMES, VALUES.T, strict=True)))
    for number, (start, length) in enumerate([(0, 20_000), (20_000, 0), (20_000, 5), (20_005, N_ROWS)]):
        parquet.write_table(table.slice(start, length), tmp_path / f"part-{number}.parquet")
    assert_array_equal(values(read_table("bank", tmp_path)), VALUES)


def test_columns_of_any_kind_of_number_are_float64_in_blocks(tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "small": VALUES[:, 0].astype(np.float32),
        "whole": RNG.integers(-5, 6, N_ROWS).astype(np.int16),
        "mark": RNG.random(N_ROWS) < 0.5,
    }
    table = read_table("bank", ds.dataset(written(tmp_path, (7_777,), **columns)))
    for name, column in columns.items():
        assert_array_equal(values(table)[:, table.feature_names.index(name)], column.astype(np.float64))


def test_weights_and_marks_are_columns_beside(tmp_path: Path) -> None:
    weights, marks = RNG.integers(0, 4, N_ROWS).astype(np.float64), RNG.random(N_ROWS) < 0.3
    path = written(tmp_path, w=weights, late=marks)
    table = read_table("bank", ds.dataset(path), label="y", weight="w", split="late")
    assert isinstance(table, StreamedTable)
    assert table.feature_names == ("a", "b", "c")
    assert_array_equal(table.weight_column, weights)
    assert_array_equal(table.split_column, marks)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (np.where(np.arange(N_ROWS) == 40_000, np.nan, 1.0), "'bad': 1 of 49929 values are missing .* in row 40000"),
        (np.where(np.arange(N_ROWS) == 9, -np.inf, 1.0), "'bad': 1 of 49929 values are infinite"),
        (np.where(np.arange(N_ROWS) == 9, 1e101, 1.0), "'bad': its largest value in size is 1e\\+101 in row 9"),
        (np.where(np.arange(N_ROWS) == 9, 2**53, 1), "'bad': the integer in row 9"),
    ],
    ids=["missing", "infinite", "large", "inexact"],
)
def test_what_is_wrong_with_a_value_is_said_in_the_first_pass(tmp_path: Path, column: Any, message: str) -> None:
    path = written(tmp_path, bad=column)
    uses: list[Callable[[Any], object]] = [values, StreamedTable.look_through, lambda table: table.take(np.array([5]))]
    for use in uses:
        table = read_table("bank", ds.dataset(path))
        with pytest.raises(cn.InputError, match=message):
            use(table)
    with pytest.raises(cn.InputError, match=message):  # keys are read when it is opened, and so is the rest
        read_table("bank", ds.dataset(path), key="a")


def test_what_is_wrong_with_a_value_is_said_of_files_in_the_words_of_a_small_table(tmp_path: Path) -> None:
    path = written(tmp_path, bad=np.where(np.arange(N_ROWS) == 9, np.nan, 1.0))
    other = cn.Party("shop", VALUES[:, :2])
    with pytest.raises(cn.InputError) as held:
        cn.Federation([cn.Party("bank", path, label="y"), other])
    with pytest.raises(cn.InputError) as filed:
        cn.Federation([cn.Party("bank", ds.dataset(path), label="y"), other]).fit(
            cn.Regression(), sampler=cn.ImportanceSampling(9)
        )
    assert str(filed.value) == str(held.value)


def test_a_data_set_is_what_it_scans_and_not_its_files(tmp_path: Path) -> None:
    """Rows that a filter leaves out, and columns that a schema does, stay out; a partition's column is one."""
    path = written(tmp_path)
    filtered = read_table("bank", ds.dataset(path).filter(ds.field("a") < 0.0))
    assert isinstance(filtered, ArrayTable)
    assert_array_equal(filtered.values, VALUES[VALUES[:, 0] < 0.0])
    narrow = read_table("bank", ds.dataset(path, schema=pa.schema([("b", pa.float64())])))
    assert narrow.feature_names == ("b",)
    for kind in (1, 2):
        (tmp_path / "parts" / f"kind={kind}").mkdir(parents=True)
        parquet.write_table(pa.table({"a": [1.0, 2.0]}), tmp_path / "parts" / f"kind={kind}" / "t.parquet")
    assert read_table("bank", ds.dataset(tmp_path / "parts", partitioning="hive")).feature_names == ("a", "kind")


def test_several_threads_read_windows_of_one_table(tmp_path: Path) -> None:
    table = streamed(written(tmp_path))
    found: list[bool] = []

    def read(turn: int) -> None:
        for number in range(12):
            place = (number + turn) % 4
            (block,) = table.rows.blocks(range(place, place + 1))
            found.append(bool((block.values == VALUES[block.rows]).all()))

    threads = [threading.Thread(target=read, args=(turn,)) for turn in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 72


def test_a_data_set_that_is_no_parquet_is_read(tmp_path: Path) -> None:
    csv.write_csv(pa.table({"a": [1.0, 2.0]}), tmp_path / "t.csv")
    assert isinstance(read_table("bank", ds.dataset(tmp_path, format="csv")), ArrayTable)


def test_what_cannot_be_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    with pytest.raises(cn.InputError, match=r"'dask' is no engine\. Pass for instance cn\.DaskEngine"):
        cn.Party("bank", path, engine="dask")  # type: ignore[arg-type]
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (VALUES, {}, "is in no Parquet file"),
        (written(tmp_path, (9,), "words.parquet", job=["clerk"] * N_ROWS), {}, "has a column that is no number, 'job'"),
    ]
    for data, options, why in refused:
        with pytest.raises(cn.InputError, match=f"stay in Parquet files, and this one {why}"):
            cn.Party("bank", data, engine=Threads(), **options)
    monkeypatch.setattr(large_files, "STREAMED_BYTES", 1000)
    with pytest.raises(cn.InputError, match=r"1 column\(s\) are not numbers: 'job' \(string\). Leave them out"):
        cn.Party("bank", tmp_path / "words.parquet")
    assert repr(cn.Party("bank", path)) == f"Party('bank', {N_ROWS} rows, 4 features, in its files)"


# Files that change.


def change_by_rewriting(path: Path) -> None:
    written(path.parent, (5_000,), path.name)


def change_by_replacing(path: Path) -> None:
    written(path.parent, (5_000,), "new.parquet").replace(path)


def change_by_cutting(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def change_by_touching(path: Path) -> None:
    os.utime(path)


def change_and_set_the_time_back(path: Path) -> None:
    """In place, as rsync --inplace --times does, or cp -p."""
    before, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES = {
    change_by_rewriting: "has another size now",
    change_by_replacing: "is another file now",
    change_by_cutting: "has another size now",
    change_by_touching: "was written again or touched",
    change_and_set_the_time_back: "was written again and given its old time, or its permissions or links were changed",
    Path.unlink: r"cannot be read any more \(No such file or directory\)",
}


@pytest.mark.parametrize(("change", "how"), CHANGES.items())
def test_a_file_that_changed_is_used_no_more(tmp_path: Path, change: Any, how: str) -> None:
    table = streamed(written(tmp_path))
    change(tmp_path / "t.parquet")
    for use in (lambda: values(table), lambda: table.take(np.array([5])), lambda: LeverageScores(True).scores(table)):
        with pytest.raises(cn.InputError, match=f"its table changed while it was in use: '.*/t.parquet' {how}\\."):
            use()


def test_which_file_of_a_folder_changed_is_said(tmp_path: Path) -> None:
    for number in range(3):
        written(tmp_path, name=f"part{number}.parquet")
    table = read_table("bank", ds.dataset(tmp_path))
    change_by_touching(tmp_path / "part1.parquet")
    with pytest.raises(
        cn.InputError, match=r"/part1\.parquet' \(file 2 of 3\) was written again or touched\..* make a new Party"
    ):
        values(table)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_while_it_is_read_gives_nothing_whole(
    tmp_path: Path, change: Any, n_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is a thread that reads ahead which meets the change."""
    monkeypatch.setattr(streams, "BATCH_BLOCKS", 1)
    table = streamed(written(tmp_path))
    blocks = table.rows.blocks(n_threads=n_threads)
    next(blocks)
    change(tmp_path / "t.parquet")
    with pytest.raises(cn.InputError, match="its table changed while it was in use"):
        list(blocks)


def test_a_run_names_the_party_whose_file_changed_and_does_nothing(tmp_path: Path) -> None:
    _, federation = federations(tmp_path, (9_000,))
    run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(100))
    change_and_set_the_time_back(tmp_path / "t.parquet")
    with pytest.raises(cn.ColonnadeError, match=r"^Party '(one|two)': its table changed while it was in use") as caught:
        federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(100), seed=1)
    assert "t.parquet" not in str(caught.value), "a name is nobody else's business"
    with pytest.raises(cn.ColonnadeError, match="changed while it was in use"):
        federation.evaluate(run.model)


def test_a_file_that_says_it_has_other_rows_is_no_table(tmp_path: Path) -> None:
    rows = open_rows("its table", [written(tmp_path)], NAMES)
    longer = tuple(type(group)(group.file, group.number, 2 * group.first, 2 * group.end) for group in rows.groups)
    with pytest.raises(cn.InputError, match="changed while it was in use"):
        list(ParquetRows(rows.where, rows.files, rows.columns, longer, rows.seen).blocks())


CHILD = """
import sys
from pathlib import Path
import pyarrow.dataset as ds
from pyarrow import csv, parquet
import colonnade as cn
from colonnade.kernels import per_row
per_row.KEPT_ROWS = 1 << 18  # so that few rows are many
path = sys.argv[1]
federation = cn.Federation([
    cn.Party("one", ds.dataset(path), policy=cn.Policy(level="open", columns=list("abcde"))),
    cn.Party("two", ds.dataset(path), label="j", policy=cn.Policy(level="open", columns=list("fghij"))),
])
run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(1000), split=cn.HoldOut(0.1))
sampler = cn.ImportanceSampling(500, draws="distinct")
federation.fit(cn.Regression(), sampler=sampler, solver=cn.CompactCentral(step=0.5))
# Not by getrusage, which counts what the process was before it became this one.
status = Path("/proc/self/status").read_text()
print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


def peak_of_a_child(path: Path, n_rows: int, group_rows: int) -> int:
    """Write a table of ten columns, and let a process of its own fit it: its most memory, in MB."""
    rng = np.random.default_rng(n_rows)
    table = pa.table({name: rng.normal(size=n_rows) for name in "abcdefghij"})
    parquet.write_table(table, path, row_group_size=group_rows, use_dictionary=False)
    command = [sys.executable, "-c", CHILD, str(path)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("group_rows", [500_000, 5_000_000, 1_000], ids=["groups", "one group", "tiny groups"])
def test_memory_does_not_grow_with_the_table(tmp_path: Path, group_rows: int) -> None:
    """5 million rows are 400 MB of numbers, in one group of rows or in many; 1 million take nearly as much memory."""
    small, large = (peak_of_a_child(tmp_path / f"{n}.parquet", n, group_rows) for n in (1_000_000, 5_000_000))
    assert large < 600
    assert large - small < 100
