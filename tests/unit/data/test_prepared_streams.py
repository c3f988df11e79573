"""Tables that stay in their files, prepared and with keys: the bits of memory, little of it, no file that changes."""

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
from colonnade.contracts import Alignment
from colonnade.data import filed_keys, large_files
from colonnade.data.streamed_tables import StreamedTable
from colonnade.data.tables import ArrayTable, read_table
from colonnade.kernels.blocks import BLOCK_ROWS, values_of

N_ROWS = 2 * BLOCK_ROWS + 777
RNG = np.random.default_rng(0)
GAPS = RNG.random(N_ROWS) < 0.1
JOBS = np.array(["clerk", "driver", "nurse", "", "pilot", "é"])[
    RNG.choice(6, N_ROWS, p=[0.4, 0.3, 0.2, 0.05, 0.0499, 0.0001])
]
DAYS = [
    None if gap else dt.date(2020, 1, 1) + dt.timedelta(int(day))
    for gap, day in zip(GAPS, RNG.integers(0, 900, N_ROWS), strict=True)
]
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


def test_the_label_of_a_prepared_table_is_read_alone(tmp_path: Path) -> None:
    held, streamed = both(written(tmp_path), prepare=cn.Prepare(RULES["all"]), label="y")
    assert held.preparing is not None
    prepared = streamed.prepared(held.preparing.fitted(None))
    labels = prepared.labels
    assert (labels.rows.columns, labels.n_rows) == (("y",), N_ROWS)
    assert values(labels)[:, -1].tobytes() == values(prepared)[:, -1].tobytes() == np.asarray(COLUMNS["y"]).tobytes()


def test_rows_of_another_table_are_prepared_alike_and_noted(tmp_path: Path) -> None:
    prepare = cn.Prepare({"job": cn.Category(missing="level"), "age": cn.Number(missing="mean")})
    held, _ = both(written(tmp_path), prepare=prepare)
    assert held.preparing is not None
    fitted = held.preparing.fitted((~GAPS & (JOBS != "pilot")).astype(float))
    prepared = [table.prepared(fitted) for table in both(tmp_path / "t.parquet", prepare=prepare)]
    same(*prepared)
    assert len(prepared[1].notes) == 2


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


# Keys.


def test_a_key_that_is_compared_only_has_the_digest_of_one_in_memory(tmp_path: Path) -> None:
    ids = {"income_id": COLUMNS["id"].dictionary_encode(), "visits_id": RNG.integers(0, 9_000, N_ROWS)}
    path = written(tmp_path, (1, 9_000, 333), **ids)
    for key in ("id", ["id", "income_id"], "visits_id"):
        policy = cn.Policy(level="open", columns=["income", *([key] if isinstance(key, str) else key)])
        duplicates: Any = "first" if key == "visits_id" else "error"
        held, streamed = both(path, key=key, duplicates=duplicates, policy=policy)
        assert streamed.key_digest == held.key_digest
        assert held.keys is not None
        assert streamed.keys is not None
        assert (streamed.keys.count, streamed.keys.n_rows) == (held.keys.count, held.keys.n_rows)
        assert_array_equal(streamed.keys.rows, held.keys.rows)
        rows = RNG.integers(0, N_ROWS, 50)
        assert streamed.key_columns(rows).to_pylist() == held.key_columns(rows).to_pylist()
        assert streamed.key_columns(rows[:0]).schema.names == held.key_columns(rows[:0]).schema.names


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=40), st.sampled_from(["first", "drop", "error"]), st.booleans()
)
def test_rows_that_repeat_keys_are_treated_as_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: list[int], duplicates: Any, as_text: bool
) -> None:
    monkeypatch.setattr(filed_keys, "MOST_HASHES", 3)  # so that few keys take several passes
    ids = [f" K{number} " for number in numbers] if as_text else numbers
    path = tmp_path / "keys.parquet"
    parquet.write_table(pa.table({"id": ids, "a": np.arange(float(len(ids)))}), path, row_group_size=7)
    found: list[Any] = []
    for data in (path, ds.dataset(path)):
        try:
            table = read_table("bank", data, key="id", duplicates=duplicates)
            assert table.keys is not None
            found.append((table.key_digest, list(table.keys.values), table.keys.rows.tolist()))
            assert table.keys.values.digest() == table.key_digest
        except cn.InputError as error:
            found.append(str(error))
    assert found[0] == found[1]


@pytest.mark.parametrize("ids", [["a", None, "b", "", None], [1, None, 2, 3, None], [2.5, 1, 2, 3, 4]])
def test_what_is_wrong_with_keys_is_said_as_in_memory(tmp_path: Path, ids: list[Any]) -> None:
    path = tmp_path / "keys.parquet"
    parquet.write_table(pa.table({"id": ids, "a": np.arange(5.0)}), path, row_group_size=2)
    words = []
    for data in (path, ds.dataset(path)):
        with pytest.raises(cn.InputError) as caught:
            read_table("bank", data, key="id")
        words.append(str(caught.value))
    assert words[0] == words[1]
    assert "key" in words[0]


def test_parties_with_the_same_keys_in_the_same_order_need_no_matching(tmp_path: Path) -> None:
    path = written(tmp_path)
    for shop_ids, goes in ((COLUMNS["id"], True), (COLUMNS["id"].take(pa.array(np.arange(N_ROWS)[::-1])), False)):
        bank = cn.Party("bank", ds.dataset(path), key="id", prepare=cn.Prepare(RULES["median"]))
        assert isinstance(bank.table, StreamedTable)
        shop = cn.Party(
            "shop", pa.table({"id": shop_ids, "a": RNG_VALUES[:, 0], "y": COLUMNS["y"]}), key="id", label="y"
        )
        if goes:
            run = cn.Federation([bank, shop]).fit(cn.Regression(), sampler=cn.ImportanceSampling(200))
            assert run.model is not None
        else:
            with pytest.raises(cn.AlignmentError):
                cn.Federation([bank, shop]).fit(cn.Regression(), sampler=cn.ImportanceSampling(200))


@pytest.mark.parametrize("mode", ["clear", "aided", "curve"])
@pytest.mark.parametrize("prepared", [False, True])
def test_records_that_are_matched_have_the_bits_of_tables_in_memory(tmp_path: Path, mode: Any, prepared: bool) -> None:
    rng, n_rows = np.random.default_rng(7), 2_000 if mode == "curve" else 20_000
    ids = np.array([f"K{number}" for number in rng.permutation(n_rows)])
    jobs = np.array(["clerk", "driver", "nurse"])[rng.integers(0, 3, n_rows)]
    ages = pa.array(rng.normal(50, 9, n_rows), mask=rng.random(n_rows) < 0.1)
    bank = pa.table({"id": ids, "job": jobs, "age": ages, "a": rng.normal(size=n_rows), "w": rng.random(n_rows)})
    path = tmp_path / "bank.parquet"
    parquet.write_table(bank if prepared else bank.drop(["job", "age"]), path, row_group_size=3_000)
    some = rng.permutation(n_rows)[: n_rows * 3 // 4]
    shop = pa.table({"id": [f" {key.lower()}" for key in ids[some]], "b": rng.normal(size=len(some)), "y": some / 1e4})
    rules: dict[str, Any] = {
        "job": cn.Category(),
        "age": cn.Number(missing="median", scale=True),
        "a": cn.Number(scale=True),
    }
    found: list[Any] = []
    for data in (path, ds.dataset(path)):
        one = cn.Party("bank", data, key="id", weight="w", prepare=cn.Prepare(rules) if prepared else None)
        parties = cn.Federation([one, cn.Party("shop", shop, key="id", label="y")], align=mode)
        split = cn.HoldOut(0.2)
        run = parties.fit(cn.Regression(), sampler=cn.ImportanceSampling(300), split=split, seed=2)
        assert run.model is not None
        found.append((run.model.coef_.tolist(), run.coreset.weights.tolist(), parties.evaluate(run.model, split=split)))
        assert isinstance(one.table, ArrayTable if data is path else StreamedTable)
    assert found[0] == found[1]


def test_an_aligned_table_is_in_the_common_order_and_can_be_aligned_again(tmp_path: Path) -> None:
    held, streamed = both(written(tmp_path), key="id", prepare=cn.Prepare(RULES["all"]), label="y", weight="weight")
    for seed, share in ((0, 0.5), (1, 0.01)):
        rng = np.random.default_rng(seed)
        positions = np.where(rng.random(N_ROWS) < share, rng.permutation(N_ROWS), -1)
        alignment = Alignment(b"f", positions)
        held, streamed = held.aligned(alignment), streamed.aligned(alignment)
        assert values(held).tobytes() == values(streamed).tobytes()
        assert_array_equal(held.weight_column, streamed.weight_column)
        rows = rng.integers(0, held.n_rows, 20)
        assert held.key_columns(rows).to_pylist() == streamed.key_columns(rows).to_pylist()
        assert_array_equal(held.row_numbers, streamed.row_numbers)
        assert held.preparing is not None
        assert streamed.preparing is not None
        weights = rng.integers(0, 3, held.n_rows).astype(float)
        fitted = held.preparing.fitted(weights)
        assert streamed.preparing.fitted(weights) == fitted
        same(held.prepared(fitted), streamed.prepared(fitted))


# Files that change, other machines, memory.


def rewrite(path: Path) -> None:
    written(path.parent, (5_000,), path.name)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("change", [rewrite, cut, Path.unlink])
def test_a_file_that_changes_between_learning_and_applying_is_used_no_more(tmp_path: Path, change: Any) -> None:
    table = read_table("bank", ds.dataset(written(tmp_path)), prepare=cn.Prepare(RULES["all"]), key="id")
    assert table.preparing is not None
    assert table.keys is not None
    fitted = table.preparing.fitted(None)
    prepared = table.prepared(fitted)
    change(tmp_path / "t.parquet")
    uses: list[Any] = [
        lambda: table.preparing.fitted(None),
        lambda: table.prepared(fitted),
        lambda: values(prepared),
        lambda: prepared.take(np.array([5])),
        lambda: list(table.keys.values),
        lambda: table.key_columns(np.array([5])),
        lambda: table.aligned(Alignment(b"f", np.arange(N_ROWS))),
    ]
    for use in uses:
        with pytest.raises(cn.InputError, match="its table changed while it was in use"):
            use()


def test_a_run_names_the_party_whose_file_changed(tmp_path: Path) -> None:
    parties = federation(tmp_path, in_memory=False)
    run = parties.fit(cn.Regression(), sampler=cn.ImportanceSampling(100))
    rewrite(tmp_path / "t.parquet")
    with pytest.raises(cn.ColonnadeError, match=r"'bank'.*changed while it was in use"):
        parties.fit(cn.Regression(), sampler=cn.ImportanceSampling(100), seed=1)
    with pytest.raises(cn.ColonnadeError, match="changed while it was in use"):
        parties.evaluate(run.model)


def test_prepared_rows_are_sent_with_what_prepares_them(tmp_path: Path) -> None:
    table = read_table("bank", ds.dataset(written(tmp_path)), prepare=cn.Prepare(RULES["all"]), label="y")
    assert table.preparing is not None
    prepared = table.prepared(table.preparing.fitted(None))
    assert isinstance(prepared, StreamedTable)
    sent = pickle.loads(pickle.dumps(prepared.rows)).seen_from_here()  # noqa: S301  # our own
    assert b"".join(block.values.tobytes() for block in sent.blocks([1, 2])) == b"".join(
        block.values.tobytes() for block in prepared.rows.blocks([1, 2])
    )


def test_large_files_stay_where_they_are_and_small_ones_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, prepare = written(tmp_path), cn.Prepare(RULES["levels"])
    assert isinstance(read_table("bank", path, prepare=prepare, key="id"), ArrayTable)
    monkeypatch.setattr(large_files, "STREAMED_BYTES", 1000)
    assert repr(cn.Party("bank", path, prepare=prepare, key="id")) == (
        f"Party('bank', {N_ROWS} rows, 3 columns to prepare, in its files)"
    )


CHILD = """
import sys
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.dataset as ds
from pyarrow import parquet
import colonnade as cn
from colonnade.data import filed_keys
from colonnade.kernels import per_row
from colonnade.preparation import measuring
per_row.KEPT_ROWS = filed_keys.MOST_HASHES = measuring.MOST_HELD = 1 << 18  # so that few rows are many
path, n_rows, some = sys.argv[1], int(sys.argv[2]), 200_000
rules = {"job": cn.Category(), "[a-i]": cn.Number(missing="mean", scale=True), "j": cn.Number(missing="median")}
writer = None
for part in range(n_rows // some):
    rng = np.random.default_rng(part)
    columns = {name: pa.array(rng.normal(size=some), mask=rng.random(some) < 0.05) for name in "abcdefghij"}
    columns["job"] = rng.choice(["clerk", "driver", "nurse"], some)
    columns["id"] = pa.array(rng.permutation(some) + part * some).cast(pa.string())
    columns |= {"x": rng.normal(size=some), "y": rng.normal(size=some)}
    table = pa.table(columns)
    writer = writer or parquet.ParquetWriter(path, table.schema)
    writer.write_table(table)
writer.close()
bank = cn.Party("bank", ds.dataset(path), key="id", prepare=cn.Prepare(rules))
shop = cn.Party("shop", ds.dataset(path), label="y", policy=cn.Policy(level="open", columns=["x", "y"]))
run = cn.Federation([bank, shop]).fit(cn.Regression(), sampler=cn.ImportanceSampling(500), split=cn.HoldOut(0.1))
status = Path("/proc/self/status").read_text()
print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_a_table_that_is_prepared_and_has_a_key(tmp_path: Path) -> None:
    """1.2 million rows are 115 MB of numbers and 36 MB of text, five times what they may take more than a sixth."""
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
    assert large - small < 30
