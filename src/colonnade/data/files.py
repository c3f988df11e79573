"""Named tables, from a frame or from a file, as Arrow; pyarrow is imported only when one comes in."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from colonnade.errors import InputError

ACCEPTED = (
    "Pass a 2-D array of numbers, a pandas, polars or pyarrow table (collect a lazy one first), "
    "or the path of a .parquet, .csv or .csv.gz file."
)


def to_arrow(party: str, data: object, keys: Sequence[str]) -> Any:
    """Read a frame or a file as a `pyarrow.Table`, without a pandas index."""
    import pyarrow as pa

    if isinstance(data, str | os.PathLike):
        table = _read_file(party, Path(data), keys)
    else:
        try:
            table = pa.table(data)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            # Only the last part, which names the column, and no cause: the rest of pyarrow's words quote values.
            raise InputError(
                f"Party {party!r}: this {type(data).__name__} cannot be read as a table ({error.args[-1]}). "
                f"Give each column a name of its own and one type. {ACCEPTED}"
            ) from None
    return table.drop_columns(_index_columns(table))


def _index_columns(table: Any) -> list[str]:
    """Name the columns that are a pandas index: it labels rows, the owner did not mean it as a feature."""
    try:
        metadata = table.schema.pandas_metadata or {}
        # A RangeIndex is described by a dict and has no column.
        return [name for name in metadata.get("index_columns", []) if name in table.column_names]
    except (ValueError, AttributeError, TypeError):
        return []  # a file may say anything about itself; what is not pandas' form names no index


def _read_file(party: str, path: Path, keys: Sequence[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv, parquet

    if not path.is_file():
        raise InputError(f"Party {party!r}: there is no file {str(path)!r}. Check the path. {ACCEPTED}")
    try:
        if path.name.lower().endswith(".parquet"):
            with parquet.ParquetFile(path) as file:  # not read_table: it makes columns of folder names
                return file.read()
        if path.name.lower().endswith((".csv", ".csv.gz")):
            # A key is read as text: "007" would otherwise be taken for a number.
            as_text = dict.fromkeys(keys, pa.string())
            return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=as_text))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"Party {party!r}: the file {str(path)!r} cannot be read ({error}). "
            "Check that it is whole and of the kind its name says, or write it again."
        ) from error
    raise InputError(f"Party {party!r}: the file {str(path)!r} is of an unknown kind. {ACCEPTED}")
