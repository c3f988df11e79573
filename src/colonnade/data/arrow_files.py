"""Parquet and Arrow IPC files, and folders of Parquet files; of each only the columns that are chosen."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from colonnade.errors import InputError

IPC_FILE = b"ARROW1"
# Of each column of a Parquet file; otherwise a whole file is in memory, packed, while it is read.
BUFFER_BYTES = 1 << 20
# Of a `pyarrow.Schema`, the names of the columns to be read.
ChooseOfSchema: TypeAlias = Callable[[Any], list[str]]


def parquet_files(where: str, folder: Path) -> list[Path]:
    """List the Parquet files of a folder, by name; hidden and empty ones do not count."""
    files = []
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        if linked := [name for name in folders if Path(at, name).is_symlink()]:
            raise InputError(
                f"{where}: {linked[0]!r} in it is a link to a folder, which is not followed. Copy or move the folder."
            )
        shown = [Path(at, name) for name in names if not name.startswith((".", "_"))]
        files += [file for file in shown if not file.is_file() or file.stat().st_size]
    if other := [file for file in files if file.suffix.lower() != ".parquet" or not file.is_file()]:
        raise InputError(
            f"{where}: {str(other[0].relative_to(folder))!r} in it is no .parquet file. A folder holds Parquet files "
            "only; name a single file, or move it elsewhere."
        )
    if not files:
        raise InputError(f"{where} holds no .parquet file. Name a folder that does, or a single file.")
    return sorted(files)


def open_parquet(where: str, files: Sequence[Path], choose: ChooseOfSchema) -> tuple[Any, int]:
    """Open Parquet files of one schema as one `pyarrow.RecordBatchReader`, one file after the other, and count rows."""
    import pyarrow as pa
    from pyarrow import parquet

    schemas, n_rows = [], 0
    for path in files:
        with naming(where, path), parquet.ParquetFile(path) as file:
            schemas.append(file.schema_arrow)
            n_rows += file.metadata.num_rows
    columns = choose(schemas[0])
    for path, schema in zip(files[1:], schemas[1:], strict=True):
        check_same(where, files[0], schemas[0], path, schema)
    selected = pa.schema([schemas[0].field(name) for name in columns])

    def batches() -> Iterator[Any]:
        for path in files:
            # Not read_table or a data set: they make columns of folder names.
            with naming(where, path), parquet.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
                for batch in file.iter_batches(columns=columns):
                    yield batch.select(columns)  # a dot in a name stands for a nested column, too

    return pa.RecordBatchReader.from_batches(selected, batches()), n_rows


def open_ipc(where: str, path: Path, choose: ChooseOfSchema) -> Any:
    """Open an Arrow IPC file, of the file or the stream form, as a `pyarrow.RecordBatchReader`."""
    import pyarrow as pa

    with naming(where, path):
        with path.open("rb") as file:
            opened = pa.ipc.open_file if file.read(len(IPC_FILE)) == IPC_FILE else pa.ipc.open_stream
        with pa.OSFile(str(path)) as source:
            schema = opened(source).schema
    columns = choose(schema)
    options = pa.ipc.IpcReadOptions(included_fields=sorted(map(schema.get_field_index, columns)))

    def batches() -> Iterator[Any]:
        with naming(where, path), pa.OSFile(str(path)) as source:
            for batch in _each_batch(opened(source, options=options)):
                chosen = batch.select(columns)
                chosen.validate(full=True)  # before anything follows an offset in it
                yield chosen

    return pa.RecordBatchReader.from_batches(pa.schema([schema.field(name) for name in columns]), batches())


def _each_batch(reader: Any) -> Iterator[Any]:
    """Give the batches of either form: that of a file has places, the other an order."""
    if hasattr(reader, "get_batch"):
        return map(reader.get_batch, range(reader.num_record_batches))
    return iter(reader)


@contextmanager
def naming(where: str, path: Path) -> Iterator[None]:
    """Say which file it is that cannot be read."""
    import pyarrow as pa

    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise InputError(
            f"{where}{'' if str(path) in where else f', {path.name!r} in it'} cannot be read ({reason}). "
            "Check that it is whole and of the kind its name says, or write it again."
        ) from error


def check_same(where: str, first: Path, expected: Any, file: Path, schema: Any) -> None:
    """Require that two files have the same columns, of the same types."""
    for name in [*expected.names, *schema.names]:
        kinds = [str(each.field(name).type) if name in each.names else "missing" for each in (expected, schema)]
        if kinds[0] != kinds[1]:
            raise InputError(
                f"{where}: its files have different columns. {name!r} is {kinds[0]} in {first.name!r}, and "
                f"{kinds[1]} in {file.name!r}. Write all files with the same columns and types."
            )
