"""[data] of party.toml: a file, a folder, or a query whose address stands elsewhere."""

import sqlite3
from pathlib import Path

import pytest

from colonnade.data.dask_engine import DaskEngine
from colonnade.data.databases import Query
from colonnade.errors import InputError
from colonnade.node.files import read_party_table
from whole_tables import held

SECRET = "s3cret"  # noqa: S105  # of nothing


def table(folder: Path, data: str) -> Path:
    path = folder / "bank.toml"
    path.write_text(f'name = "bank"\n[data]\n{data}\n')
    return path


def test_a_query_in_a_file_beside_it(tmp_path: Path) -> None:
    pytest.importorskip("adbc_driver_sqlite", reason="the extra sqlite is not installed")
    with sqlite3.connect(tmp_path / "bank.sqlite") as connection:
        connection.execute("create table t as select 1 as id, 2.5 as x union select 2, 3.5")
    connection.close()
    read = read_party_table(
        table(tmp_path, 'query = "select * from t order by id"\ndatabase = "bank.sqlite"\nkey = "id"')
    )
    assert read.data.source() == Query("select * from t order by id", database=str(tmp_path / "bank.sqlite"))
    assert held(read.data.party("bank").table).tolist() == [[2.5], [3.5]]


def test_the_file_of_an_address_lies_beside_it(tmp_path: Path) -> None:
    read = read_party_table(table(tmp_path, 'query = "select 1"\ndatabase_file = "database.uri"'))
    assert read.data.database_file == str(tmp_path / "database.uri")


def test_a_cluster_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    read = read_party_table(table(tmp_path, 'file = "a.parquet"\nengine = "dask"\nscheduler = "tls://a:8786"'))
    assert read.data.own_engine() == DaskEngine("tls://a:8786")
    assert read_party_table(table(tmp_path, 'file = "a.parquet"')).data.own_engine() is None


def test_an_unknown_engine_is_answered_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="spark"):
        read_party_table(table(tmp_path, 'file = "a.parquet"\nengine = "spark"'))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("", "give one of `file` and `query`"),
        ('file = "a.csv"\nquery = "select 1"\ndatabase = "b"', "give one of `file` and `query`"),
        ('file = "a.csv"\ndatabase_env = "A"', "`database_env` belongs to a query"),
        ('query = "select 1"', "needs one of database"),
        ('query = "select 1"\ndatabase = "a"\ndatabase_env = "B"', "needs one of database"),
        ('query = "drop table t"\ndatabase = "a"', "one SELECT"),
        ('file = "a.parquet"\nengine = "dask"', "belong together"),
        ('file = "a.parquet"\nscheduler = "tls://a:1"', "belong together"),
        ('file = "a.parquet"\nengine = "dask"\nscheduler = "tcp://a:1"', "Set up TLS"),
        (f'query = "select 1"\ndatabase = "postgresql://a:{SECRET}@b/c"', "database_env or database_file"),
        (f'query = "select 1"\ndatabase_env = "postgresql://a:{SECRET}@b/c"', "database_env or database_file"),
    ],
)
def test_what_is_wrong_with_it(tmp_path: Path, data: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_party_table(table(tmp_path, data))
    assert says in str(caught.value)
    assert "`$.data`" in str(caught.value)
    assert SECRET not in f"{caught.value!r}{caught.value.__cause__!r}{caught.value.__context__!r}"
