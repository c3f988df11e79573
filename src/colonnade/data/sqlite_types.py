"""What SQLite's driver is told of types: it takes them from the first rows, and any row may have others."""

from collections.abc import Iterator, Sequence
from typing import Any

BATCH_ROWS = "adbc.sqlite.query.batch_rows"
# Rows at a time of what does not come all at once.
SOME_ROWS = 65_536
# Of each kind of value that SQLite has, one that stands for it.
SAMPLES = {"integer": "0", "real": "0.5", "text": "''", "blob": "x''"}


def sqlite_batches(cursor: Any, sql: str, most: float) -> Any:
    """Read a query, which has no comments, as a `pyarrow.RecordBatchReader`.

    In one batch, so that types are those of all rows: by the first 1,024, a fraction after many integers is an error.
    If that would take more bytes than `most`, types are asked for, and a row that has them all comes first.
    """
    n_rows, n_columns = _size(cursor, sql)
    if n_rows * n_columns * 8 <= most:
        return _executed(cursor, sql, max(n_rows, 1))
    names = [f"c{place}" for place in range(n_columns)]
    given = f"with given({', '.join(names)}) as ({sql})"
    kinds = _kinds(cursor, given, names)
    columns = [_as(kind, name) for name, kind in zip(names, kinds, strict=True)]
    first = ", ".join(SAMPLES[kind] for kind in kinds)
    schema = _executed(cursor, sql, 1).schema  # which has the names
    typed = f"{given} select {first} union all select {', '.join(columns)} from given"  # noqa: S608
    reader = _executed(cursor, typed, SOME_ROWS)
    return _renamed(schema.names, reader)


def _size(cursor: Any, sql: str) -> tuple[int, int]:
    cursor.execute(f"select count(*) from ({sql})")  # noqa: S608  # it is the owner's own query
    n_rows: int = cursor.fetchone()[0]
    cursor.execute(f"select * from ({sql}) limit 0")  # noqa: S608
    return n_rows, len(cursor.fetch_record_batch().schema)


def _kinds(cursor: Any, given: str, names: Sequence[str]) -> list[str]:
    """Tell of each column the last of the kinds that its values have."""
    kinds = list(SAMPLES)
    each = " ".join(f"when '{kind}' then {place}" for place, kind in enumerate(kinds))
    found = ", ".join(f"max(case typeof({name}) {each} end)" for name in names)
    cursor.execute(f"{given} select {found} from given")  # noqa: S608
    return [kinds[place or 0] for place in cursor.fetchone()]  # where all are missing, integers, as the driver has it


def _as(kind: str, name: str) -> str:
    """Select a column: one that has text, or bytes, is that in each row, with numbers as the driver writes them."""
    if kind not in ("text", "blob"):
        return name
    return f"cast(case typeof({name}) when 'real' then printf('%e', {name}) else {name} end as {kind})"


def _executed(cursor: Any, sql: str, batch_rows: int) -> Any:
    cursor.adbc_statement.set_options(**{BATCH_ROWS: str(batch_rows)})
    cursor.execute(sql)
    return cursor.fetch_record_batch()


def _renamed(names: Sequence[str], reader: Any) -> Any:
    """Give columns the names that the query has for them, and leave out the first row."""
    import pyarrow as pa

    schema = pa.schema(list(zip(names, reader.schema.types, strict=True)))

    def batches() -> Iterator[Any]:
        skipped = 1
        for batch in reader:
            yield pa.RecordBatch.from_arrays(batch.slice(skipped).columns, schema=schema)
            skipped = 0

    return pa.RecordBatchReader.from_batches(schema, batches())
