"""Tables from databases: one SELECT, read through ADBC, from an address that is told by where it is kept."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec

from colonnade.data.sqlite_types import sqlite_batches
from colonnade.errors import InputError, UnsupportedError
from colonnade.storage import read_private

READING = ("select", "values", "with")
# What of SQL is no statement: texts, names (SQLite takes three kinds of marks), comments.
QUOTED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|\[[^\]']*\]|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$", re.DOTALL)
# What is an address, or a part of one: it is not repeated in an error.
ADDRESS = re.compile(r"://|password\s*=|postgres(ql)?(:|//)", re.IGNORECASE)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PLACES = ("database", "database_env", "database_file")


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table in a database: one SELECT, read in a read-only transaction.

    Parameters
    ----------
    sql : str
        One SELECT; `order by` makes rows come in the same order each time.
    database : str, optional
        A SQLite file.
    database_env : str, optional
        Or the environment variable that has the address, ``postgresql://user:password@machine/name`` or
        ``sqlite:file``.
    database_file : str, optional
        Or the file that has it, which nobody but its owner may read. An address has a password in it: it is kept
        nowhere else, and no error quotes it.

    Examples
    --------
    >>> import colonnade as cn
    >>> cn.Query("select age, income from customers order by id", database_env="BANK")  # doctest: +ELLIPSIS
    Query(sql='select age, income from customers order by id', database=None, database_env='BANK', ...)
    """

    sql: str
    database: str | None = None
    database_env: str | None = None
    database_file: str | None = None

    def __post_init__(self) -> None:
        given = [name for name in PLACES if getattr(self, name) is not None]
        if len(given) != 1:
            raise InputError(
                f"A query needs one of database (a SQLite file), database_env and database_file, got "
                f"{' and '.join(given) or 'none'}. Name one."
            )
        if _is_address(str(getattr(self, given[0]))):
            raise InputError(
                f"{given[0]} says where an address is kept, and this is an address, which has a password in it. Put it "
                "into an environment variable or a file of its own, and name that: database_env or database_file."
            )
        if self.database_env is not None and not VARIABLE.fullmatch(str(self.database_env)):
            raise InputError(
                "database_env is no name of an environment variable: letters, digits and _. Name one that has the "
                "address."
            )
        if not isinstance(self.sql, str):
            raise InputError(f"The query is {self.sql!r}, and must be text. Write one SELECT.")
        bare = QUOTED.sub(" ", self.sql).strip().rstrip("; \r\n\t")
        if ";" in bare or not bare.lstrip("( \n\t").lower().startswith(READING):
            raise InputError(
                "A query is one SELECT (or WITH, or VALUES), and this is something else, or several statements. Write "
                "one; tables are only read."
            )


def _is_address(text: str) -> bool:
    """Whether it is an address, even a mistyped one; of files, only an absolute path may have an @ in it, and no colon.

    The home of joe@corp may be called so.
    """
    path = os.path.splitdrive(text)[1]
    return bool(ADDRESS.search(text)) or ("@" in path and (":" in path or not Path(text).is_absolute()))


def open_query(where: str, query: Query, choose: Callable[[Any], list[str]], most: float) -> Any:
    """Open the columns that are chosen of the schema, as a `pyarrow.RecordBatchReader`.

    What takes more bytes than `most` is never in memory whole. What a driver says may quote the address: it is not
    handed on, not even as a cause.
    """
    import pyarrow as pa

    address = _address(where, query)
    given = _in_our_words(where, address, _read(where, address, query.sql, choose, most))
    return pa.RecordBatchReader.from_batches(next(given), given)


def _in_our_words(where: str, address: str, given: Iterator[Any]) -> Iterator[Any]:
    while True:
        try:
            each = next(given)
        except StopIteration:
            return
        except InputError:
            raise
        except Exception as error:  # whatever a driver raises, OSError among it
            problem = _problem(error, address)
        else:
            yield each
            continue
        raise InputError(f"{where}: {problem}")


def _address(where: str, query: Query) -> str:
    """Look up where the database is."""
    if query.database is not None:
        if not Path(query.database).is_file():
            raise InputError(f"{where}: there is no SQLite file {query.database!r}. Check the path.")
        return f"sqlite:{query.database}"
    if query.database_env is not None:
        found = os.environ.get(query.database_env, "").strip()
        if not found:
            raise InputError(f"{where}: the environment variable {query.database_env} is not set. Set it.")
        return found
    try:
        found = read_private(Path(query.database_file or "")).decode().strip()
    except (OSError, ValueError) as error:
        reason = "it is no text" if isinstance(error, UnicodeDecodeError) else str(error)
        raise InputError(f"{where}: cannot read its database_file: {reason}. Correct that.") from None
    if not found:
        raise InputError(f"{where}: its database_file is empty. Write the address into it.")
    return found


def _read(where: str, address: str, sql: str, choose: Callable[[Any], list[str]], most: float) -> Iterator[Any]:
    """Give the schema of the columns that are chosen, and then their batches, while the database is connected."""
    import pyarrow as pa

    is_postgres = address.startswith(("postgresql://", "postgres://"))
    if not is_postgres and not address.startswith("sqlite:"):
        raise InputError(
            f"{where}: its address begins with neither postgresql:// nor sqlite:. Write it as "
            "postgresql://user:password@machine/name, with %40 and the like for @ : / in a password."
        )
    with _connected(where, address, is_postgres) as connection, connection.cursor() as cursor:
        reader = _postgres(cursor, sql) if is_postgres else sqlite_batches(cursor, _without_comments(sql), most)
        columns = choose(reader.schema)
        yield pa.schema([reader.schema.field(name) for name in columns], reader.schema.metadata)
        for batch in reader:
            yield batch.select(columns)


def _postgres(cursor: Any, sql: str) -> Any:
    cursor.execute("set transaction read only")
    cursor.execute(sql)
    return cursor.fetch_record_batch()


def _without_comments(sql: str) -> str:
    """Leave out comments, and the semicolon at the end."""
    return QUOTED.sub(lambda found: " " if found[0].startswith(("--", "/*")) else found[0], sql).rstrip("; \r\n\t")


def _connected(where: str, address: str, is_postgres: bool) -> Any:
    if is_postgres:
        return _driver("adbc_driver_postgresql", "postgres").connect(address)
    path = Path(address.removeprefix("sqlite:"))
    if not path.is_file():
        raise InputError(f"{where}: there is no SQLite file where its address says. Check the path after sqlite:.")
    return _driver("adbc_driver_sqlite", "sqlite").connect(f"file:{quote(str(path.absolute()))}?mode=ro")


def _driver(name: str, extra: str) -> Any:
    from importlib import import_module

    try:
        return import_module(f"{name}.dbapi")
    except ImportError:
        raise UnsupportedError(
            f"This database needs a driver that is not installed. Run: pip install 'colonnade[{extra}]'"
        ) from None


def _secrets(address: str) -> list[str]:
    """List what no word to anybody may hold."""
    try:
        parts = urlsplit(address)
        found = [parts.password, parts.netloc, parts.query]
    except ValueError:
        found = []
    return [text for each in [address, *found] if each for text in (each, unquote(each))]


def _problem(error: Exception, address: str) -> str:
    """Put what a driver says into words without a secret; of a connection that fails it could be all of it."""
    text = str(error)
    if "Failed to connect" in text or "failed to open" in text:
        if "authentication failed" in text or "no password" in text:
            return "the database refuses the user or the password. Correct the address where it is kept."
        return "the database cannot be reached at its address. Check the address where it is kept, and that it runs."
    reason = _of_sqlite(text) if address.startswith("sqlite:") else _of_postgres(error)
    if any(secret in reason for secret in _secrets(address)):
        reason = "its words hold the address"
    return f"the database does not answer the query: {reason}. Correct the query."


def _of_sqlite(text: str) -> str:
    """Leave out the driver's own words at the beginning, and the query at the end."""
    return re.sub(r"^([A-Z_]+: )?(\[SQLite\] )?(Failed to \w+ query: )?", "", text.split("\n")[0])


def _of_postgres(error: Exception) -> str:
    """Find what the database itself says; the driver's own words may name the machine."""
    told = dict(getattr(error, "details", ())).get(b"PG_DIAG_MESSAGE_PRIMARY")
    if told is not None:
        return str(told.decode(errors="replace"))
    found = re.search(r"\bERROR: +([^\n]+)", str(error))  # of a batch: Arrow's stream has no details
    return found[1] if found else "the connection broke off"
