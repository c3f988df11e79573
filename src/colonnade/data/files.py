"""The one door: whatever a caller hands in as a named table, opened as Arrow record batches of the columns wanted.

pyarrow is imported only when one comes in, a database's driver only for a query.
"""

import math
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from colonnade.data.arrow_files import open_ipc, open_parquet, parquet_files
from colonnade.data.csv_files import CsvFile, sniff
from colonnade.data.csv_reading import open_csv
from colonnade.data.databases import ADDRESS, Query, open_query
from colonnade.data.plain_types import plain_types
from colonnade.errors import InputError
from colonnade.options import listed
from colonnade.preparation.reading import BY_NUMBER, Place

ACCEPTED = (
    "Pass a 2-D array of numbers; a pandas, polars or pyarrow table, or whatever else gives an Arrow stream (collect a "
    "lazy one first); the path of a .parquet, .csv, .csv.gz, .arrow or .feather file, or of a folder of Parquet files; "
    "a pyarrow data set, also of several paths; or a Query."
)
PARQUET = (".parquet",)
CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
IPC = (".arrow", ".feather")
# Where files lie that this machine sees no path of.
ELSEWHERE = re.compile(r"(?<![a-z])(s3a?|gs|gcs|az|abfss?|wasbs?|hdfs|https?|ftp)://", re.IGNORECASE)
# Of a data set: how much is read ahead, which pyarrow's own numbers would make a gigabyte of sixty columns.
_SCANNING = {"batch_size": 65_536, "batch_readahead": 2, "fragment_readahead": 1}
# Of all columns, those to be read, in the order wanted.
Choose: TypeAlias = Callable[[Sequence[str]], Sequence[str]]


def _none(_names: Sequence[str]) -> list[str]:
    return []


@dataclass(frozen=True, eq=False)
class Opened:
    """A table to be read once.

    Attributes
    ----------
    batches : pyarrow.RecordBatchReader
        Its rows, with the columns that were chosen.
    n_rows : int or None
        How many they are; None where that is not known before they are read.
    notes : tuple of str
        What whoever handed it in should know of how it is read.
    place : callable
        Says where a row, counted from 0, stands.
    is_held : bool
        Whether it was in memory already when it was handed in.
    """

    batches: Any
    n_rows: int | None = None
    notes: tuple[str, ...] = ()
    place: Place = BY_NUMBER
    is_held: bool = False


def open_table(
    party: str,
    data: object,
    choose: Choose = list,
    *,
    keys: Sequence[str] = (),
    as_text: Choose = _none,
    most: float = math.inf,
) -> Opened:
    """Open a frame, a file, a folder or a query; nothing but the columns that `choose` returns is read.

    `choose` is given the names of all columns, each of its own, without a pandas index; `as_text` those that it chose,
    and says which are read as text, as `keys` are, where a file does not say what they are. "NA" is missing in a text,
    but not in a key. Of a CSV file, `most` bytes are read before anything is given, so that types are known: if later
    rows are of others, whoever reads them is told so by a `RereadError`, and opens what it names.
    """
    where = f"Party {party!r}"
    if isinstance(data, CsvFile):
        opened = _open_csv(party, data, choose, keys, as_text, most)
    elif isinstance(data, str | os.PathLike):
        opened = _open_path(party, Path(data), choose, keys, as_text, most)
    elif isinstance(data, Query):
        opened = Opened(open_query(where, data, lambda schema: chosen_columns(where, schema, choose), most))
    else:
        opened = Opened(_stream(where, data, choose), is_held=hasattr(data, "__len__"))
    return replace(opened, batches=plain_types(where, opened.batches))


def parquet_paths(party: str, data: object) -> list[Path] | None:
    """List the Parquet files that a path, or a data set of pyarrow's on this machine, stands for; None of all else."""
    if is_data_set(data):
        return [Path(file) for file in data.files]  # type: ignore[attr-defined]  # pyarrow has no types
    if not isinstance(data, str | os.PathLike):
        return None
    path = Path(data)
    if _is_folder(party, path):
        return parquet_files(f"Party {party!r}: the folder {str(path)!r}", path)
    return [path] if path.name.lower().endswith(PARQUET) else None


def is_data_set(data: object) -> bool:
    """Tell whether it is a `pyarrow.dataset.Dataset` of Parquet files on this machine."""
    files, kind, system = (getattr(data, name, None) for name in ("files", "format", "filesystem"))
    return (
        files is not None
        and getattr(kind, "default_extname", "") == "parquet"
        and getattr(system, "type_name", "") == "local"
    )


def _open_path(party: str, path: Path, choose: Choose, keys: Sequence[str], as_text: Choose, most: float) -> Opened:
    where, name = f"Party {party!r}: the file {str(path)!r}", path.name.lower()

    def chosen(schema: Any) -> list[str]:
        return chosen_columns(where, schema, choose)

    if _is_folder(party, path):
        where = f"Party {party!r}: the folder {str(path)!r}"
        return Opened(*open_parquet(where, parquet_files(where, path), chosen))
    if name.endswith(PARQUET):
        return Opened(*open_parquet(where, [path], chosen))
    if name.endswith(IPC):
        return Opened(open_ipc(where, path, chosen))
    if name.endswith(CSV):
        return _open_csv(party, sniff(where, path), choose, keys, as_text, most)
    raise InputError(f"{where} is of an unknown kind. {ACCEPTED}")


def _open_csv(party: str, file: CsvFile, choose: Choose, keys: Sequence[str], as_text: Choose, most: float) -> Opened:
    where = f"Party {party!r}: the file {str(file.path)!r}"
    columns = _checked(where, file.header, choose)
    batches, file = open_csv(where, file, columns, keys, as_text(columns), most)
    note = file.note()
    return Opened(batches, notes=(note,) if note else (), place=file.place)


def _is_folder(party: str, path: Path) -> bool:
    """Tell a folder from a plain file, and refuse whatever is neither: a pipe or a device could last for ever."""
    address = str(path).replace(":/", "://")  # a path has one slash for two
    if elsewhere := ELSEWHERE.search(address):
        raise InputError(
            f"Party {party!r}: an address, {elsewhere[0]}..., was given where a path belongs. Mount or copy what is "
            "elsewhere, and pass its path; or, in Python, pass pyarrow.dataset.dataset(path, filesystem=...), which is "
            f"read once. {ACCEPTED}"
        )
    if ADDRESS.search(address):
        raise InputError(
            f"Party {party!r}: an address was given where a path belongs. A database is read by a Query, which names "
            f"the environment variable or the file that has the address. {ACCEPTED}"
        )
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        why = "" if isinstance(error, FileNotFoundError | ValueError) else f" that can be read ({error.strerror})"
        raise InputError(f"Party {party!r}: there is no file {str(path)!r}{why}. Check the path. {ACCEPTED}") from None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InputError(f"Party {party!r}: {str(path)!r} is neither a plain file nor a folder. {ACCEPTED}")
    return stat.S_ISDIR(mode)


def _stream(where: str, data: object, choose: Choose) -> Any:
    """Open what exports an Arrow stream, or one batch."""
    import pyarrow as pa
    from pyarrow.dataset import Dataset

    try:
        if hasattr(data, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(data)
        elif hasattr(data, "scanner"):
            reader = data.scanner(**_SCANNING if isinstance(data, Dataset) else {}).to_reader()
        else:
            reader = pa.table(data).to_reader()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        # Only the last part, which names the column, and no cause: the rest of pyarrow's words quote values.
        raise _unreadable(where, data, error.args[-1] if error.args else "") from None
    except Exception as error:  # of any library
        raise _unreadable(where, data, type(error).__name__) from None
    columns = chosen_columns(where, reader.schema, choose)

    def batches() -> Iterator[Any]:
        try:
            for batch in reader:
                yield batch.select(columns)
        except Exception as error:
            raise _unreadable(where, data, type(error).__name__) from None

    return pa.RecordBatchReader.from_batches(pa.schema([reader.schema.field(name) for name in columns]), batches())


def _unreadable(where: str, data: object, reason: str) -> InputError:
    return InputError(
        f"{where}: this {type(data).__name__} cannot be read as a table ({reason}). "
        f"Give each column a name of its own and one type. {ACCEPTED}"
    )


def chosen_columns(where: str, schema: Any, choose: Choose) -> list[str]:
    """Choose of the columns of a schema, each of which has a name of its own; a pandas index is none."""
    try:
        names = schema.names
    except UnicodeDecodeError:
        raise InputError(f"{where}: the name of a column is not UTF-8. Write it again.") from None
    index = _index_columns(schema)
    return _checked(where, [name for name in names if name not in index], choose)


def _checked(where: str, names: Sequence[str], choose: Choose) -> list[str]:
    """Choose of columns that each have a name of their own."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if "" in names:
        raise InputError(
            f"{where}: its column {list(names).index('') + 1} has no name. Name it, or leave it out; pandas writes no "
            "index with to_csv(index=False)."
        )
    if repeated:
        raise InputError(
            f"{where}: column name(s) {listed([repr(name) for name in repeated])} occur more than once. "
            "Rename or drop the repeated columns."
        )
    return list(choose(list(names)))


def _index_columns(schema: Any) -> list[str]:
    """Name the columns that are a pandas index: it labels rows, the owner did not mean it as a feature."""
    try:
        metadata = schema.pandas_metadata or {}
        # A RangeIndex is described by a dict and has no column.
        return [name for name in metadata.get("index_columns", []) if isinstance(name, str)]
    except (ValueError, AttributeError, TypeError):
        return []  # a file may say anything about itself; what is not pandas' form names no index
