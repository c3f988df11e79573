"""Queries: types as they should be, nothing written, and no secret in anything that is said."""

import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import colonnade as cn
from colonnade.errors import InputError, UnsupportedError
from colonnade.node.files import DataFile
from postgres_trial import PASSWORD, QUOTED
from whole_tables import held, read_whole

Execute = Callable[[str], object]
ENV = "BANK_DATABASE"
OF_BOTH = "select id, age, spent from customers order by id"


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    pytest.importorskip("adbc_driver_sqlite", reason="the extra sqlite is not installed")
    path = tmp_path / "bank 100%.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("create table customers (id text, age integer, spent numeric)")
        connection.executemany("insert into customers values (?, ?, ?)", [("a", 30, 1), ("b", 40, 2.5), ("c", 50, 3)])
    connection.close()
    return path


@pytest.fixture
def execute(postgres: str) -> Iterator[Execute]:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(postgres, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("drop table if exists customers")
        yield cursor.execute


def refusal(query: cn.Query) -> InputError:
    with pytest.raises(InputError) as caught:
        cn.Party("bank", query)
    return caught.value


# --- what a query is ---


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "insert into customers values (1)",
        "drop table customers",
        "attach database 'new.sqlite' as other",
        "copy (select 1) to program 'true'",
        "select 1; drop table customers",
        "select ';'; select 2",
        "-- select\ndrop table customers",
        "/* select */ pragma writable_schema = 1",
        "set transaction read write",
        "select a as [x]; drop table customers",
        "select '[' as x; drop table customers; select ']'",
        "select a as `x`; drop table customers",
    ],
)
def test_a_query_is_one_select(sql: str) -> None:
    with pytest.raises(InputError, match="one SELECT"):
        cn.Query(sql, database="bank.sqlite")


def test_a_query_is_text() -> None:
    with pytest.raises(InputError, match="must be text"):
        cn.Query(None, database="bank.sqlite")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1;",
        "\n select ';' as a ; \n",
        "with a as (select 1) select * from a",
        "(select 1) union (select 2)",
        "values (1)",
        "-- what we want; all of it\nselect 1",
        'select $a$;$a$ as x, ";" from t',
        "select a as [x;y], b as [--] from t",
        "select a as `x;y`, b as `--` from t",
        "select array['a]', 'b'] as x",
    ],
)
def test_what_is_one(sql: str) -> None:
    assert cn.Query(sql, database="bank.sqlite").sql == sql


@pytest.mark.parametrize(
    "places", [{}, {"database": "a", "database_env": "B"}, {"database_env": "A", "database_file": "b"}]
)
def test_one_place_of_the_address_is_named(places: dict[str, str]) -> None:
    with pytest.raises(InputError, match="one of database"):
        cn.Query("select 1", **places)


@pytest.mark.parametrize("address", [f"postgresql://a:{PASSWORD}@b/c", f"dbname=a password={PASSWORD}"])
def test_an_address_is_not_taken_where_it_would_be_shown(address: str) -> None:
    with pytest.raises(InputError, match="database_env or database_file") as caught:
        cn.Query("select 1", database=address)
    assert PASSWORD not in str(caught.value)
    with pytest.raises(ValueError, match="database_env or database_file") as again:
        DataFile(query="select 1", database=address)
    assert PASSWORD not in str(again.value)
    for place in ({"database_env": address}, {"database_file": address}):
        with pytest.raises(InputError, match="says where an address is kept") as caught:
            cn.Query("select 1", **place)
        assert "s3cret" not in str(caught.value)
    with pytest.raises(InputError, match="an address was given where a path belongs") as caught:
        cn.Party("bank", address)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql:joe:{PASSWORD}@machine/name",
        f"postgres//joe:{PASSWORD}/machine",
        f"/home/joe/postgresql:/joe:{PASSWORD}",
        f"joe:{PASSWORD}@machine/name",
        f"{PASSWORD}@machine",
        f"/folder/of/the/file/joe:{PASSWORD}@machine",
    ],
)
@pytest.mark.parametrize("place", ["database", "database_env", "database_file"])
def test_a_mistyped_address_is_not_quoted(address: str, place: str) -> None:
    with pytest.raises(InputError, match=f"{place} says where an address is kept") as caught:
        cn.Query("select 1", **{place: address})
    assert_no_secret(caught.value)


@pytest.mark.parametrize("name", ["s3cret!", "a b", "", "BANK\n", "1BANK"])
def test_what_is_no_variable_is_not_quoted(name: str) -> None:
    with pytest.raises(InputError, match="database_env is no name of an environment variable: letters") as caught:
        cn.Query("select 1", database_env=name)
    assert_no_secret(caught.value)


def test_a_path_may_have_an_at_sign_in_it(sqlite_file: Path, tmp_path: Path) -> None:
    home = tmp_path / "joe@corp"
    home.mkdir()
    moved = sqlite_file.rename(home / "bank.sqlite")
    assert cn.Party("bank", cn.Query(OF_BOTH, database=str(moved)), key="id").table.n_rows == 3


def test_a_path_in_a_secret_address_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV, f"sqlite:/nowhere?password={PASSWORD}")
    error = refusal(cn.Query("select 1", database_env=ENV))
    assert "there is no SQLite file where its address says" in str(error)
    assert_no_secret(error)


def test_a_missing_driver_names_the_command(sqlite_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_sqlite.dbapi", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'colonnade\[sqlite\]'"):
        cn.Party("bank", cn.Query(OF_BOTH, database=str(sqlite_file)))


# --- where its address is ---


def test_an_address_in_the_environment(sqlite_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = cn.Query(OF_BOTH, database_env=ENV)
    monkeypatch.delenv(ENV, raising=False)
    assert f"the environment variable {ENV} is not set" in str(refusal(query))
    monkeypatch.setenv(ENV, f"sqlite:{sqlite_file}")
    assert held(cn.Party("bank", query, key="id").table).tolist() == [[30, 1], [40, 2.5], [50, 3]]


def test_an_address_in_a_file_that_only_its_owner_reads(sqlite_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "database.uri"
    query = cn.Query(OF_BOTH, database_file=str(file))
    assert "cannot read its database_file" in str(refusal(query))
    file.write_text(f"sqlite:{sqlite_file}\n")
    file.chmod(0o644)
    assert "run chmod 600" in str(refusal(query))
    file.chmod(0o600)
    assert cn.Party("bank", query, key="id").table.n_rows == 3
    file.write_text(" \n")
    assert "is empty" in str(refusal(query))
    file.write_bytes(b"\xff" + PASSWORD.encode())
    assert "it is no text" in str(refusal(query))


@pytest.mark.parametrize("address", [f"mysql://a:{PASSWORD}@b/c", PASSWORD, f"host=b password={PASSWORD}"])
def test_an_address_of_an_unknown_kind_is_not_quoted(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV, address)
    error = refusal(cn.Query("select 1", database_env=ENV))
    assert "begins with neither postgresql:// nor sqlite:" in str(error)
    assert_no_secret(error)


# --- SQLite ---


def test_only_the_chosen_columns_of_a_query_are_kept(sqlite_file: Path) -> None:
    query = cn.Query(OF_BOTH, database=str(sqlite_file))
    table = read_whole(query, lambda names: [name for name in reversed(names) if name != "age"])
    assert table.column_names == ["spent", "id"]


def test_types_are_those_of_all_rows(tmp_path: Path) -> None:
    """SQLite's values have types, not its columns: the driver would go by the first thousand."""
    pytest.importorskip("adbc_driver_sqlite", reason="the extra sqlite is not installed")
    with sqlite3.connect(tmp_path / "bank.sqlite") as connection:
        connection.execute("create table t (whole numeric, gap real, slip integer)")
        connection.executemany(
            "insert into t values (?, ?, ?)", [(i, None, i) for i in range(3000)] + [(0.5, 1.5, "12k")]
        )
    connection.close()
    table = read_whole(cn.Query("select * from t", database=str(tmp_path / "bank.sqlite")))
    assert [str(kind) for kind in table.schema.types] == ["double", "double", "string"]
    assert "'slip' (string; row 3000 (rows count from 0): '12k')" in str(
        refusal(cn.Query("select slip from t", database=str(tmp_path / "bank.sqlite")))
    )


def test_the_end_of_a_query_may_have_a_comment(sqlite_file: Path) -> None:
    query = cn.Query("select age, '--;' as b from customers; -- all; of them", database=str(sqlite_file))
    assert read_whole(query)["age"].to_pylist() == [30, 40, 50]


@pytest.mark.parametrize("name", ["[x--y]", "[x;y]", "`x--y`", "`x;y`"])
def test_names_in_brackets_and_backticks(sqlite_file: Path, name: str) -> None:
    sql = OF_BOTH.replace("age", f"age as {name}") + " -- all"
    table = read_whole(cn.Query(sql, database=str(sqlite_file)))
    assert table.column_names == ["id", name[1:-1], "spent"]


def test_sqlite_is_only_read(sqlite_file: Path) -> None:
    before = sqlite_file.read_bytes()
    error = refusal(cn.Query("with a as (select 1) insert into customers select 'd', 1, 1", database=str(sqlite_file)))
    assert "does not answer the query" in str(error)
    assert sqlite_file.read_bytes() == before


@pytest.mark.parametrize(
    ("sql", "says"), [("select * from nowhere", "no such table: nowhere"), ("select from", "syntax error")]
)
def test_what_is_wrong_with_a_query_in_sqlite(sqlite_file: Path, sql: str, says: str) -> None:
    error = refusal(cn.Query(sql, database=str(sqlite_file)))
    assert says in str(error)
    assert str(error).endswith("Correct the query.")
    assert error.__cause__ is None
    assert error.__context__ is None


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    pytest.importorskip("adbc_driver_sqlite", reason="the extra sqlite is not installed")
    (tmp_path / "a.sqlite").write_bytes(b"hello" * 1000)
    assert "file is not a database" in str(refusal(cn.Query("select 1 as a", database=str(tmp_path / "a.sqlite"))))
    assert "there is no SQLite file" in str(refusal(cn.Query("select 1 as a", database=str(tmp_path / "b.sqlite"))))


# --- PostgreSQL ---


TYPES = {
    "small smallint": ("7", "int16"),
    "age integer": ("30", "int32"),
    "big bigint": ("5000000000", "int64"),
    "half real": ("0.5", "float"),
    "spent double precision": ("0.1", "double"),
    "price numeric(10, 2)": ("12.35", "double"),
    "number numeric(12, 0)": ("123456789012", "int64"),
    "free numeric": ("0.1", "double"),
    "owner boolean": ("true", "bool"),
    "opened date": ("'2020-01-02'", "date32[day]"),
    "seen timestamp": ("'2020-01-02 03:04:05'", "timestamp[us]"),
    "told timestamptz": ("'2020-01-02 03:04:05+00'", "timestamp[us, tz=UTC]"),
    "job text": ("'clerk'", "string"),
    "town varchar(20)": ("'Rome'", "string"),
    "who uuid": ("'00000000-0000-0000-0000-00000000000a'", "string"),
}


def test_types_of_postgres(postgres: str, execute: Execute, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV, postgres)
    execute(f"create table customers ({', '.join(TYPES)})")
    execute(f"insert into customers values ({', '.join(value for value, _ in TYPES.values())})")  # noqa: S608
    execute("insert into customers default values")
    table = read_whole(cn.Query("select * from customers", database_env=ENV))
    assert {name: str(kind) for name, kind in zip(table.column_names, table.schema.types, strict=True)} == {
        column.split()[0]: kind for column, (_, kind) in TYPES.items()
    }
    assert all(column.null_count == 1 for column in table.columns)
    first = table.slice(0, 1).to_pylist()[0]
    assert (first["price"], first["free"], first["number"]) == (12.35, 0.1, 123456789012)
    assert first["who"] == "00000000-0000-0000-0000-00000000000a"


def test_numbers_of_postgres_that_are_none(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV, postgres)
    assert "values are missing" in str(refusal(cn.Query("select 'NaN'::numeric as x", database_env=ENV)))
    assert "infinite" in str(refusal(cn.Query("select 'Infinity'::numeric as x", database_env=ENV)))
    error = str(refusal(cn.Query("select 5::money as x", database_env=ENV)))
    assert "'x' is of PostgreSQL's type money" in error


def test_keys_of_postgres(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV, postgres)
    for kind, value in (("numeric(10, 0)", "7"), ("char(5)", "'7'"), ("integer", "7"), ("text", "' 7'")):
        party = cn.Party("bank", cn.Query(f"select {value}::{kind} as id, 1 as x", database_env=ENV), key="id")
        assert party.table.keys is not None
        assert list(party.table.keys.values) == [b"7"]


def test_a_reader_of_adbc_is_a_table_like_others(postgres: str) -> None:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.execute("select 0.1::numeric as x, 2 as y")
        assert held(cn.Party("bank", cursor.fetch_record_batch()).table).tolist() == [[0.1, 2.0]]


def test_postgres_is_only_read(postgres: str, execute: Execute, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV, postgres)
    execute("create table customers (id integer)")
    error = refusal(
        cn.Query("with a as (insert into customers values (1) returning id) select * from a", database_env=ENV)
    )
    assert "read-only transaction" in str(error)
    assert read_whole(cn.Query("select count(*) as n from customers", database_env=ENV))["n"].to_pylist() == [0]


# --- secrets ---


def assert_no_secret(error: BaseException) -> None:
    """Look at all that a log could be made of."""
    seen = "".join(traceback.format_exception(error)) + repr(error) + repr(error.__cause__) + repr(error.__context__)
    for secret in (PASSWORD, QUOTED, "wr0ng", "s3cret", "no.such.example"):
        assert secret not in seen, seen


@pytest.mark.parametrize(
    ("change", "sql", "says"),
    [
        ((QUOTED, "wr0ng-s3cret"), "select 1 as a", "refuses the user or the password"),
        (("127.0.0.1", "no.such.example.invalid"), "select 1 as a", "cannot be reached"),
        (("127.0.0.1:", "127.0.0.1:1"), "select 1 as a", "cannot be reached"),
        ((QUOTED, "s3cret of the bank"), "select 1 as a", "cannot be reached"),
        ((QUOTED, "s3cret/of@the:bank"), "select 1 as a", "cannot be reached"),
        (("", ""), "select * from nothing", 'relation "nothing" does not exist'),
        (("", ""), "select 1 a from where", "syntax error"),
        (("", ""), f"select '{PASSWORD}'::integer as a", "its words hold the address"),
        (("", ""), "select 1 / 0 as a", "division by zero"),
        (("", ""), "select 1 / (2 - n) as a from generate_series(1, 100000) n", "division by zero"),
    ],
    ids=["password", "machine", "port", "blanks", "not quoted", "table", "syntax", "its own password", "zero", "late"],
)
def test_no_error_of_postgres_tells_a_secret(
    postgres: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    change: tuple[str, str],
    sql: str,
    says: str,
) -> None:
    monkeypatch.setenv(ENV, postgres.replace(*change) if change[0] else postgres)
    query = cn.Query(sql, database_env=ENV)
    error = refusal(query)
    assert says in str(error)
    if "its words" not in says:  # the test's own line has it there
        assert_no_secret(error)
    assert error.__context__ is None
    printed = capfd.readouterr()
    assert "s3cret" not in printed.out + printed.err + caplog.text
    assert QUOTED not in repr(query)


def test_a_connection_that_breaks_off_is_not_quoted(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV, postgres)
    error = refusal(cn.Query("select pg_terminate_backend(pg_backend_pid()) as x", database_env=ENV))
    assert "does not answer the query" in str(error)
    assert_no_secret(error)
    assert "127.0.0.1" not in str(error)


def test_what_is_kept_of_a_run_has_no_secret(postgres: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ENV, postgres)
    sql = "select n::float8 as x, (n * n % 17)::float8 as y from generate_series(1, 50) n order by n"
    party = cn.Party("bank", cn.Query(sql, database_env=ENV), label="y")
    run = cn.Federation([party, cn.Party("shop", pa.table({"z": [float(i % 7) for i in range(50)]}))]).fit(
        cn.Regression(), sampler=cn.UniformSampling(size=20)
    )
    run.save(tmp_path / "run")
    kept = b"".join(file.read_bytes() for file in (tmp_path / "run").iterdir())
    for secret in (PASSWORD, QUOTED, postgres, "generate_series"):
        assert secret not in repr(party) + repr(run) + str(run.ledger)
        assert secret.encode() not in kept
