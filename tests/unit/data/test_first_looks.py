"""Values of tables that stay in their files are looked at in a pass that reads them anyway, before anything is told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import colonnade as cn
from colonnade.data import engines, large_files, streams
from colonnade.data.streamed_tables import StreamedTable
from colonnade.data.tables import read_table
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS, Block
from colonnade.tasks.registry import AnyTask

N_ROWS, FAR = 12 * BLOCK_ROWS + 777, 11 * BLOCK_ROWS + 5
PARTS = {"one": ("a", "b", "c"), "two": ("d", "y")}
N_COLUMNS = 5
SAMPLER = cn.ImportanceSampling(300)
Change = Callable[[dict[str, Floats]], object]


def right() -> dict[str, Floats]:
    rng = np.random.default_rng(3)
    return {name: rng.normal(size=N_ROWS) for columns in PARTS.values() for name in columns}


def parties(folder: Path, columns: dict[str, Floats]) -> list[cn.Party]:
    found = []
    for party, names in PARTS.items():
        path = folder / f"{party}.parquet"
        parquet.write_table(pa.table({name: columns[name] for name in names}), path, row_group_size=50_000)
        found.append(cn.Party(party, path, label="y" if "y" in names else None))
    return found


@pytest.fixture(autouse=True)
def _nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_files, "STREAMED_BYTES", 0)


@pytest.fixture
def n_read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """Count how often all files were read since it was asked last."""
    cells, fill = [0], streams.ParquetRows._fill

    def counted(self: Any, batch: Any, places: list[int]) -> None:
        cells.append(batch.n_rows * len(places))  # by several threads
        fill(self, batch, places)

    def since() -> float:
        found = sum(cells) / (N_ROWS * N_COLUMNS)
        cells.clear()
        return found

    monkeypatch.setattr(streams.ParquetRows, "_fill", counted)
    return since


def test_files_are_read_no_more_often_than_this(tmp_path: Path, n_read: Callable[[], float]) -> None:
    """A job begins with the tables' fingerprints, a read; a draw's rows are in all groups of rows here, a read."""

    def made() -> cn.Federation:
        return cn.Federation(parties(tmp_path, right()))

    tables = [party.table for party in parties(tmp_path, right())]
    assert n_read() == 0.0, "opening"
    for table in tables:
        np.asarray(cn.Regression().score_rule().scores(table))
    assert n_read() == 2.0, "regression scores"
    for party in parties(tmp_path, right()):
        np.asarray(cn.KMeans(4).score_rule().scores(party.table))
    assert n_read() == 3.0, "k-means scores: some rows, rough scores, scores"
    federation = made()
    model = federation.fit(cn.Regression(), sampler=SAMPLER).model
    assert n_read() == 4.0, "fit"
    federation.predict(model)
    assert n_read() == 1.0, "the fingerprint is known"
    made().predict(model)
    assert n_read() == 2.0, "predict"
    made().evaluate(model)
    assert n_read() == pytest.approx(2.0 + 1 / N_COLUMNS), "evaluate: the label's spread, too"


@pytest.mark.parametrize("n_cores", [1, 2])
def test_windows_read_on_where_the_last_one_ended(
    tmp_path: Path, n_read: Callable[[], float], n_cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Distances to so many centres travel block by block."""
    monkeypatch.setattr(engines, "n_cores", lambda: n_cores)
    federation = cn.Federation(parties(tmp_path, right()))
    model = federation.fit(cn.KMeans(15, n_starts=1), sampler=cn.UniformSampling(400)).model
    n_read()
    federation.predict(model)
    assert n_read() == 1.0


def put(name: str, row: int, value: float) -> Change:
    def change(columns: dict[str, Floats]) -> None:
        columns[name][row] = value

    return change


def several(*changes: Change) -> Change:
    return lambda columns: [change(columns) for change in changes]


WRONG: dict[str, Change] = {
    "missing": put("d", FAR, np.nan),
    "infinite": put("d", FAR, -np.inf),
    "large": put("y", FAR, 1e101),
    "tiny": lambda columns: columns.update(b=columns["b"] * 1e-120),
    "inexact": lambda columns: columns.update(c=np.where(np.arange(N_ROWS) == FAR, 2**60, 1)),
    "an earlier column in a later row": several(put("c", 9, np.inf), put("a", FAR, np.nan)),
    "missing and infinite": several(put("c", 9, np.inf), put("c", FAR, np.nan)),
}


def said_of_a_table_in_memory(columns: dict[str, Floats], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(large_files, "STREAMED_BYTES", 1 << 28)
    with pytest.raises(cn.InputError) as caught:
        [read_table(party, pa.table({name: columns[name] for name in names})) for party, names in PARTS.items()]
    monkeypatch.setattr(large_files, "STREAMED_BYTES", 0)
    return str(caught.value)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_value_ends_every_job_before_anything_of_the_rows_is_told(
    tmp_path: Path, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = right()
    WRONG[wrong](columns)
    words = said_of_a_table_in_memory(columns, monkeypatch)
    tasks: list[AnyTask] = [cn.Regression(), cn.KMeans(3)]
    jobs: list[Callable[[cn.Federation], object]] = [
        *(lambda each, task=task: each.fit(task, sampler=SAMPLER) for task in tasks),
        lambda each: each.coreset(cn.Regression(), SAMPLER),
        lambda each: each.fit(cn.Regression(standardize=True), sampler=cn.UniformSampling(300)),
    ]
    for job in jobs:
        federation = cn.Federation(parties(tmp_path, columns))
        for _ in range(2):  # it is not forgotten that nobody has found it right
            with pytest.raises(cn.InputError) as caught:
                job(federation)
            assert words in str(caught.value)
        told = {entry.kind for entry in federation.ledger if entry.sender != "server"}
        assert told <= {"Card", "JobAccepted", "Refused"}


@pytest.mark.parametrize("verb", ["predict", "evaluate"])
def test_a_model_is_applied_to_no_row_of_a_table_with_a_wrong_value(tmp_path: Path, verb: str) -> None:
    model = cn.Federation(parties(tmp_path, right())).fit(cn.Regression(), sampler=SAMPLER).model
    columns = right()
    columns["a"][FAR] = np.nan
    federation = cn.Federation(parties(tmp_path, columns))
    with pytest.raises(cn.InputError, match=f"column 'a': 1 of {N_ROWS} values are missing .* in row {FAR} "):
        getattr(federation, verb)(model)
    told = {entry.kind for entry in federation.ledger if entry.sender != "server"}
    assert told <= {"Card", "JobAccepted", "Refused"}


def test_no_work_is_done_on_a_block_with_a_wrong_value_and_none_is_given_behind_it(tmp_path: Path) -> None:
    columns = right()
    columns["a"][3 * BLOCK_ROWS] = np.inf
    table = parties(tmp_path, columns)[0].table
    seen = list[int]()

    def work(block: Block) -> int:
        seen.append(block.number)
        return block.number

    for numbers, right_ones in ((None, [0, 1, 2]), ([1, 2, 5], [1, 2]), ([5], [])):
        given = list[int]()
        with pytest.raises(cn.InputError, match="column 'a': 1 of"):
            given.extend(table.map(work, numbers))
        assert given == right_ones
    assert 3 not in seen


def test_some_blocks_are_those_of_a_table_that_was_looked_through(tmp_path: Path, n_read: Callable[[], float]) -> None:
    tables = [party.table for party in parties(tmp_path, right())]
    looked = [
        read_table(party, tmp_path / f"{party}.parquet", label="y" if party == "two" else None) for party in PARTS
    ]
    for table in looked:
        table.look_through()
    assert n_read() == 1.0
    for each, other in zip(tables, looked, strict=True):
        assert isinstance(each, StreamedTable)
        for numbers in ([], [0], [2, 7], [12]):
            assert list(each.map(_number, numbers)) == list(other.map(_number, numbers)) == numbers


def test_nothing_is_read_where_nothing_is_left_to_look_at(tmp_path: Path, n_read: Callable[[], float]) -> None:
    """Columns that are to be prepared are no numbers yet: of these there may be none."""
    parties(tmp_path, right())
    prepared = read_table("one", tmp_path / "one.parquet", prepare=cn.Prepare({"a": cn.Number()}))
    looked = read_table("one", tmp_path / "one.parquet")
    looked.look_through()
    n_read()
    for table in (prepared, looked):
        table.look_through()
    assert n_read() == 0.0


def test_labels_are_read_alone_once_all_values_were_looked_at(tmp_path: Path, n_read: Callable[[], float]) -> None:
    columns = right()
    table = parties(tmp_path, columns)[1].table
    for share in (len(PARTS["two"]), 1):
        found = np.concatenate(list(table.labels.map(_last)))
        assert n_read() == pytest.approx(share / N_COLUMNS)
        assert np.array_equal(found, columns["y"])
    columns["d"][FAR] = np.nan
    with pytest.raises(cn.InputError, match="column 'd': 1 of"):
        list(parties(tmp_path, columns)[1].table.labels.map(_last))


def _last(block: Block) -> Floats:
    return block.values[:, -1].copy()


def _number(block: Block) -> int:
    return block.number
