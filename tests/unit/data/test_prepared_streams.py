"""Tables that stay in their files and are prepared: the bits of memory, nothing of a file that changes, little memory."""

import datetime as dt
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from pyarrow import parquet

import colonnade as cn
from colonnade.data import large_files
from colonnade.data.streams import StreamedTable
from colonnade.data.tables import ArrayTable, read_table
from colonnade.kernels.blocks import BLOCK_ROWS, values_of
from colonnade.preparation import measuring

N_ROWS = 2 * BLOCK_ROWS + 777
RNG = np.random.default_rng(0)
GAPS = RNG.random(N_ROWS) < 0.1
JOBS = np.array(["clerk", "driver", "nurse", "", "pilot", "é"])[RNG.choice(6, N_ROWS, p=[0.4, 0.3, 0.2, 0.05, 0.0499, 0.0001])]
DAYS = [None if gap else dt.date(2020, 1, 1) + dt.timedelta(int(day)) for gap, day in zip(GAPS, RNG.integers(0, 900, N_ROWS), strict=True)]
COLUMNS = {
    "age": pa.array(RNG.normal(50, 12, N_ROWS), mask=GAPS),
    "income": pa.array(RNG.gamma(2.0, size=N_ROWS) * 1e4),
    "visits": pa.array(RNG.poisson(2, N_ROWS), pa.int16(), mask=GAPS),
    "job": pa.array(JOBS),
    "level": pa.array(JOBS).dictionary_encode(),
    "code": pa.array(RNG.integers(0, 5, N_ROWS)),
    "seen": pa.array(DAYS),
    "written": pa.array([None if day is None else f"{day:%d.%m.%Y}" for day in DAYS]),
    "price": pa.array(RNG.integers(0, 9999, N_ROWS)).cast(pa.decimal128(24, 2)),
    "weight": pa.array(RNG.choice([0.0, 0.1, 0.7, 3.0], N_ROWS)),
    "late": pa.array(RNG.random(N_ROWS) < 0.2),
    "id": pa.array([f"c{i:06}" for i in RNG.permutation(N_ROWS)]),
    "y": pa.array(RNG.normal(size=N_ROWS)),
}
RULES: dict[str, dict[str, Any]] = {
    "numbers": {"income": cn.Number(), "code": cn.Number(), "price": cn.Number()},
    "mean": {"age": cn.Number(missing="mean"), "visits": cn.Number(missing="mean", scale=True)},
    "median": {"age": cn.Number(missing="median"), "visits": cn.Number(missing="median", log=True, scale=True)},
    "fill": {"age": cn.Number(missing=40.0, at_least=30, at_most=60, scale=True)},
    "log": {"income": cn.Number(log=True)},
    "levels": {"job": cn.Category(missing="level"), "code": cn.Category(rare=1), "level": cn.Category(missing="level")},
    "dates": {"seen": cn.Date(["days", "year", "month"], missing="median", scale=True)},
    "written": {"written": cn.Date(["days", "weekday"], format="%d.%m.%Y", missing="mean")},
}
RULES["all"] = {name: rule for rules in RULES.values() for name, rule in rules.items()}


def written(folder: Path, group_rows: Sequence[int] = (10_000,), name: str = "t.parquet", **columns: Any) -> Path:
    """Write the rows in groups of these lengths, in turn."""
    table = pa.table(COLUMNS | columns)
    with parquet.ParquetWriter(folder / name, table.schema) as writer:
        start = turn = 0
        while start < N_ROWS:
            length = group_rows[turn % len(group_rows)]
            writer.write_table(table.slice(start, length), row_group_size=length)
            start, turn = start + length, turn + 1
    return folder / name


def both(path: Path, **given: Any) -> tuple[ArrayTable, StreamedTable]:
    """Read a file into memory, and leave it where it is."""
    held, streamed = read_table("bank", path, **given), read_table("bank", ds.dataset(path), **given)
    assert isinstance(held, ArrayTable)
    assert isinstance(streamed, StreamedTable)
    return held, streamed


def values(table: Any) -> Any:
    return np.concatenate(list(table.map(values_of)))


def same(held: Any, streamed: Any) -> None:
    assert held.feature_names == streamed.feature_names
    assert held.notes == streamed.notes
    assert values(held).tobytes() == values(streamed).tobytes()


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("weighed", [False, True])
def test_each_rule_learns_and_makes_the_bits_of_a_table_in_memory(tmp_path: Path, rules: str, weighed: bool) -> None:
    prepare = cn.Prepare(RULES[rules], tell_levels=True)
    held, streamed = both(written(tmp_path, (1, 9_000, 333)), prepare=prepare, label="y")
    weights = np.asarray(COLUMNS["weight"]) if weighed else None
    assert held.preparing is not None
    assert streamed.preparing is not None
    fitted = held.preparing.fitted(weights)
    assert streamed.preparing.fitted(weights) == fitted
    assert streamed.preparing.told_names(fitted, weights) == held.preparing.told_names(fitted, weights)
    same(held.prepared(fitted), streamed.prepared(fitted))


def test_rows_of_another_table_are_prepared_alike_and_noted(tmp_path: Path) -> None:
    prepare = cn.Prepare({"job": cn.Category(missing="level"), "age": cn.Number(missing="mean")})
    held, _ = both(written(tmp_path), prepare=prepare)
    assert held.preparing is not None
    fitted = held.preparing.fitted((~GAPS & (JOBS != "pilot")).astype(float))
    held, streamed = (table.prepared(fitted) for table in both(tmp_path / "t.parquet", prepare=prepare))
    same(held, streamed)
    assert len(streamed.notes) == 2


def test_rules_that_are_found_are_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    read_table("bank", path, prepare="auto")
    first = capsys.readouterr().err
    table = read_table("bank", ds.dataset(path), prepare="auto")
    assert isinstance(table, StreamedTable)
    assert capsys.readouterr().err == first
    assert "job: category" in first


def federation(folder: Path, in_memory: bool, **given: Any) -> cn.Federation:
    path = written(folder)
    bank = cn.Party("bank", path if in_memory else ds.dataset(path), prepare=cn.Prepare(RULES["all"]), **given)
    shop = cn.Party("shop", RNG_VALUES, label=RNG_VALUES[:, 0] + np.asarray(COLUMNS["y"]))
    return cn.Federation([bank, shop])


RNG_VALUES = np.random.default_rng(5).normal(size=(N_ROWS, 2))


@pytest.mark.parametrize(
    "given_", [{}, {"weight": "weight"}, {"split": "late"}], ids=["plain", "weights of rows", "rows held out"]
)
def test_a_run_has_the_bits_of_one_in_memory(tmp_path: Path, given_: dict[str, Any]) -> None:
    split = cn.SplitBy("bank") if "split" in given_ else cn.HoldOut(0.25)
    found = []
    for in_memory in (True, False):
        parties = federation(tmp_path, in_memory, **given_)
        run = parties.fit(cn.Regression(), sampler=cn.ImportanceSampling(500), split=split, seed=3)
        assert run.model is not None
        found.append((run.model.coef_.tobytes(), run.coreset.rows.tobytes(), parties.evaluate(run.model, split=split)))
    assert found[0] == found[1]
