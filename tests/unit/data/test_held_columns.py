"""Columns of 32 bits stay such in memory, and nothing that is computed tells."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import colonnade as cn
from colonnade.data.held_columns import DOUBLE, SINGLE, HeldColumns, kind_of
from colonnade.data.tables import ArrayTable, read_table
from colonnade.kernels.blocks import values_of

RNG = np.random.default_rng(5)
N_ROWS = 40_000
SMALL = RNG.normal(size=(N_ROWS, 4)).astype(np.float32)
LABEL = SMALL @ np.array([1.0, -2.0, 0.5, 0.0]) + RNG.normal(size=N_ROWS)


def parts_of(data: object, **given: Any) -> list[tuple[np.dtype[Any], int]]:
    table = read_table("bank", data, **given)
    assert isinstance(table, ArrayTable)
    return [(part.dtype, part.shape[1]) for part in table.values.parts]


def test_an_array_stays_as_it_came() -> None:
    assert parts_of(SMALL) == [(SINGLE, 4)]
    assert parts_of(SMALL, label=LABEL) == [(SINGLE, 4), (DOUBLE, 1)]
    assert parts_of(SMALL, label=LABEL.astype(np.float32)) == [(SINGLE, 5)]
    assert parts_of(SMALL.astype(np.float64), label=LABEL) == [(DOUBLE, 5)]


def test_columns_of_a_frame_stay_as_they_came() -> None:
    frame = pa.table({"a": SMALL[:, 0], "b": LABEL, "c": SMALL[:, 1], "d": SMALL[:, 2] > 0, "w": SMALL[:, 3] ** 2})
    assert parts_of(frame.drop("w")) == [(SINGLE, 1), (DOUBLE, 1), (SINGLE, 2)]
    table = read_table("bank", frame, label="b", weight="w")
    assert isinstance(table, ArrayTable)
    assert [part.shape[1] for part in table.values.parts] == [3, 1]
    assert table.weight_column is not None
    assert table.weight_column.dtype == np.float64
    assert np.array_equal(table.values[:], np.column_stack([SMALL[:, :2], SMALL[:, 2] > 0, LABEL]))


@pytest.mark.parametrize(
    ("kind", "held"),
    [("bool", SINGLE), ("int8", SINGLE), ("uint16", SINGLE), ("int32", DOUBLE), ("int64", DOUBLE), ("float16", SINGLE)],
)
def test_32_bits_are_taken_only_where_they_lose_nothing(kind: str, held: np.dtype[Any]) -> None:
    assert kind_of(np.dtype(kind)) == held


def test_blocks_and_rows_are_of_64_bits() -> None:
    table = read_table("bank", SMALL, label=LABEL)
    whole = np.column_stack([SMALL, LABEL])
    blocks = list(table.map(values_of))
    assert {block.dtype for block in blocks} == {DOUBLE}
    assert np.array_equal(np.concatenate(blocks), whole)
    rows = np.array([7, 39_999, 0, 7])
    assert np.array_equal(table.take(rows), whole[rows])
    assert table.take(rows).flags.c_contiguous


@pytest.mark.parametrize("task", [cn.Regression(l2=0.1), cn.KMeans(n_clusters=3)], ids=str)
def test_a_fit_has_the_same_bits(task: Any) -> None:
    narrow, wide = (
        cn.Federation([cn.Party("a", values[:, :2]), cn.Party("b", values[:, 2:], label=LABEL)])
        for values in (SMALL, SMALL.astype(np.float64))
    )
    runs = [federation.fit(task, sampler=cn.ImportanceSampling(size=300)) for federation in (narrow, wide)]
    assert np.array_equal(runs[0].coreset.rows, runs[1].coreset.rows)
    assert np.array_equal(runs[0].coreset.weights, runs[1].coreset.weights)
    predictions = [federation.predict(runs[0].model) for federation in (narrow, wide)]
    assert np.array_equal(*predictions)


def test_a_bad_value_of_32_bits_is_named() -> None:
    bad = SMALL.copy()
    bad[39_000, 2] = np.inf
    with pytest.raises(cn.InputError, match="column 'bank_2': 1 of 40000 values are infinite, the first in row 39000"):
        read_table("bank", bad)


def test_nobody_writes_to_them() -> None:
    table = read_table("bank", SMALL, label=LABEL)
    assert isinstance(table, ArrayTable)
    assert not any(part.flags.writeable for part in table.values.parts)


def test_first_columns_and_another_order() -> None:
    held = HeldColumns((SMALL[:, :2], LABEL[:, None]))
    assert [part.shape[1] for part in held.first(3).parts] == [2, 1]
    assert [part.shape[1] for part in held.first(2).parts] == [2]
    assert held.first(0).n_columns == 0
    assert len(held.first(0)) == N_ROWS
    rows = RNG.permutation(N_ROWS)
    assert np.array_equal(held.in_order(rows)[:], np.column_stack([SMALL[rows, :2], LABEL[rows]]))


def test_a_parquet_file_is_held_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "bank.parquet"
    pq.write_table(pa.table({"a": SMALL[:, 0], "b": SMALL[:, 1], "y": LABEL}), path)
    assert parts_of(path, label="y") == [(SINGLE, 2), (DOUBLE, 1)]
    table = read_table("bank", path, label="y")
    assert isinstance(table, ArrayTable)
    assert np.array_equal(table.values[:], np.column_stack([SMALL[:, :2], LABEL]))
