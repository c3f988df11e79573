"""One table in many places: every source gives the same model, bit for bit."""

import gzip
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import colonnade as cn

N_ROWS = 300
SQL = "select id, age, spent, price, owner, y from customers order by place"
RNG = np.random.default_rng(17)
TABLE = pa.table(
    {
        "id": [f"c{i:03}" for i in RNG.permutation(N_ROWS)],
        "age": RNG.integers(18, 90, N_ROWS),
        "spent": RNG.lognormal(size=N_ROWS),
        "price": RNG.integers(1, 10**6, N_ROWS) / 100,
        "owner": RNG.integers(0, 2, N_ROWS),
        "y": RNG.normal(size=N_ROWS),
    }
)
OTHER = RNG.normal(size=(N_ROWS, 2))


class Place(NamedTuple):
    """Where a test may keep a table."""

    folder: Path
    postgres: Callable[[], str]
    setenv: Callable[[str, str], None]


def rows() -> list[tuple[Any, ...]]:
    return [(place, *row.values()) for place, row in enumerate(TABLE.to_pylist())]


def in_postgres(place: Place) -> cn.Query:
    import adbc_driver_postgresql.dbapi as driver

    address = place.postgres()
    with driver.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("drop table if exists customers")
        cursor.execute(
            "create table customers (place integer, id text, age smallint, spent double precision, "
            "price numeric(12, 2), owner boolean, y double precision)"
        )
        for row in rows():
            texts = ", ".join(repr(value) for value in row[:-2])
            cursor.execute(f"insert into customers values ({texts}, {bool(row[-2])}, {row[-1]!r})")  # noqa: S608
    place.setenv("BANK_DATABASE", address)
    return cn.Query(SQL, database_env="BANK_DATABASE")


def in_sqlite(place: Place) -> cn.Query:
    pytest.importorskip("adbc_driver_sqlite", reason="the extra sqlite is not installed")
    with sqlite3.connect(place.folder / "bank.sqlite") as connection:
        connection.execute("create table customers (place integer, id text, age, spent, price numeric, owner, y)")
        connection.executemany("insert into customers values (?, ?, ?, ?, ?, ?, ?)", reversed(rows()))
    connection.close()
    return cn.Query(SQL, database=str(place.folder / "bank.sqlite"))


def in_a_folder(place: Place) -> Path:
    for start in range(0, N_ROWS, 100):
        (place.folder / f"part={start}").mkdir()
        parquet.write_table(TABLE.slice(start, 100), place.folder / f"part={start}" / "rows.parquet")
    return place.folder


def in_csv(place: Place) -> Path:
    csv.write_csv(TABLE, place.folder / "bank.csv")
    return place.folder / "bank.csv"


def in_gzip(place: Place) -> Path:
    (place.folder / "bank.csv.gz").write_bytes(gzip.compress(in_csv(place).read_bytes()))
    return place.folder / "bank.csv.gz"


def in_csv_of_elsewhere(place: Place) -> Path:
    text = TABLE.to_pandas().to_csv(sep=";", decimal=",", index=False)
    (place.folder / "bank.csv").write_text(text, encoding="utf-16")
    return place.folder / "bank.csv"


def in_arrow(place: Place) -> Path:
    with pa.OSFile(str(place.folder / "bank.arrow"), "wb") as sink, pa.ipc.new_file(sink, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=77)
    return place.folder / "bank.arrow"


def in_feather(place: Place) -> Path:
    pd.DataFrame(TABLE.to_pandas()).to_feather(place.folder / "bank.feather")
    return place.folder / "bank.feather"


SOURCES: dict[str, Callable[[Place], object]] = {
    "pandas": lambda _: TABLE.to_pandas(),
    "polars": lambda _: pl.from_arrow(TABLE),
    "reader": lambda _: TABLE.to_reader(max_chunksize=77),
    "duckdb": lambda _: duckdb.from_arrow(TABLE).select(
        "id, age, spent, price::decimal(12, 2) as price, owner = 1 as owner, y"
    ),
    "folder": in_a_folder,
    "csv": in_csv,
    "gzip": in_gzip,
    "csv of elsewhere": in_csv_of_elsewhere,
    "arrow": in_arrow,
    "feather": in_feather,
    "sqlite": in_sqlite,
    "postgres": in_postgres,
}


def fitted(data: object) -> cn.Run[Any]:
    parties = [cn.Party("bank", data, label="y", key="id"), cn.Party("shop", OTHER)]
    return cn.Federation(parties).fit(cn.Regression(l2=0.01), sampler=cn.ImportanceSampling(size=80), seed=5)


@pytest.fixture(scope="module")
def expected() -> cn.Run[Any]:
    return fitted(TABLE)


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_model(
    name: str,
    expected: cn.Run[Any],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Place(tmp_path, lambda: request.getfixturevalue("postgres"), monkeypatch.setenv)
    run = fitted(SOURCES[name](place))
    assert run.model.coef_.tobytes() == expected.model.coef_.tobytes()
    assert run.model.intercept_ == expected.model.intercept_
    assert run.model.feature_names_in_ == expected.model.feature_names_in_
    np.testing.assert_array_equal(run.coreset.rows, expected.coreset.rows)
    assert run.coreset.weights.tobytes() == expected.coreset.weights.tobytes()


def test_another_table_gives_another_model(expected: cn.Run[Any]) -> None:
    """The comparison can fail: values of drawn rows are changed by their last bits."""
    spent, rows = TABLE["spent"].to_numpy().copy(), expected.coreset.rows
    spent[rows] = np.nextafter(spent[rows], np.inf)
    changed = TABLE.set_column(2, "spent", pa.array(spent))
    assert fitted(changed).model.coef_.tobytes() != expected.model.coef_.tobytes()
