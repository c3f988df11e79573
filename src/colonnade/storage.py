"""Folders that are written whole or not at all, and read without trust: JSON and Arrow, never pickle."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from colonnade import disk
from colonnade.disk import PRIVATE_FOLDER
from colonnade.errors import InputError

AnyPath: TypeAlias = str | os.PathLike[str]
Folder: TypeAlias = Path
# Files come from anywhere. What is read is no larger than this, and takes a small multiple of it in memory.
MAX_JSON_BYTES = 256 << 20
MAX_ARROW_BYTES = 1 << 30
MAX_SECRET_BYTES = 1 << 20
ARROW = b"ARROW1"


@dataclass(frozen=True)
class Layout:
    """A kind of folder: how we know one of ours, which alone we replace.

    `thing` is what it keeps and `writer` the method that writes it, for error messages. `record` is the JSON file in it
    that has the format's number; `others` are all other files there may be. This version reads formats from `oldest` to
    `newest`, and writes the newest.
    """

    thing: str
    writer: str
    record: str
    others: frozenset[str]
    oldest: int
    newest: int


class _Header(msgspec.Struct):
    """What a record of any format has."""

    format: int
    versions: dict[str, str] = {}


def written_by() -> dict[str, str]:
    """Name the version that writes, for the record."""
    return {"colonnade": _version()}


@cache
def _version() -> str:
    """Ask only once: the answer is read from a file, which took a third of the time of a small run."""
    return version("colonnade")


def check_destination(path: AnyPath, layout: Layout) -> Folder:
    """Require a folder that may be written: a new or empty one, or one of the same kind, where we have the right to.

    Folders above it are made. Gives its absolute path.
    """
    try:
        folder = Path(path).resolve()
        foreign = folder.exists() and not _is_ours(folder, layout)
        if not foreign:
            disk.make_folder(folder.parent)
            tempfile.TemporaryFile(dir=folder.parent).close()
    except (OSError, ValueError) as error:
        raise InputError(
            f"A {layout.thing} cannot be saved to {path}: {_reason(error)}. Choose a folder you may write to."
        ) from error
    if foreign:
        raise InputError(f"{folder} exists and is not a saved {layout.thing}. Choose a new folder.")
    return folder


def check_file(path: Path) -> None:
    """Require a place where a file may be put, or a pipe; what is there stays as it is."""
    try:
        folder = path.resolve().parent
        has_place = folder.is_dir() and not path.is_dir()
        if has_place and (path.is_file() or not path.exists()):
            tempfile.TemporaryFile(dir=folder).close()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"Nothing can be written to {path}: {reason}. Choose another file.") from error
    if not has_place:
        raise InputError(
            f"Nothing can be written to {path}: it is a folder, or its folder does not exist. Choose another file."
        )


def _is_ours(folder: Path, layout: Layout) -> bool:
    """Tell whether a folder may be replaced: it is empty, or has our files and nothing else."""
    if not folder.is_dir():
        return False
    found = list(folder.iterdir())
    if not found:
        return True
    if any(file.name not in {layout.record, *layout.others} or not file.is_file() for file in found):
        return False
    try:
        read_json(folder / layout.record, _Header)
    except (OSError, ValueError):
        return False
    return True


def write_folder(path: AnyPath, layout: Layout, files: Mapping[str, bytes]) -> Folder:
    """Write a folder that only its owner can read: a new or empty one, or one of the same kind, which is replaced.

    It is there whole or not at all, also where the power goes, and on the disk when this returns.
    """
    folder = check_destination(path, layout)
    # Named after it, so that the next writer removes what a killed one has left.
    fresh, stale = folder.with_name(f".{folder.name}.fresh"), folder.with_name(f".{folder.name}.stale")
    try:
        if stale.exists() and not folder.exists():
            disk.rename(stale, folder)
        for left in (fresh, stale):
            if left.exists():
                shutil.rmtree(left)
        _write_files(fresh, files)
        _put_in_place(fresh, folder, stale)
        disk.sync_folder(folder.parent)
        shutil.rmtree(stale, ignore_errors=True)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise InputError(
            f"The {layout.thing} could not be saved to {folder}: {_reason(error)}. Choose another folder."
        ) from error
    return folder


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir(mode=PRIVATE_FOLDER)
    for name, content in files.items():
        disk.write_file(folder / name, content)
    disk.sync_folder(folder)


def _put_in_place(fresh: Path, folder: Path, stale: Path) -> None:
    if folder.exists():
        disk.rename(folder, stale)
    try:
        disk.rename(fresh, folder)
    except OSError:
        if stale.exists():
            disk.rename(stale, folder)
        raise


@contextmanager
def reading(path: AnyPath, layout: Layout) -> Iterator[Folder]:
    """Turn whatever is wrong with a folder's files into one clear error."""
    folder = Path(path)
    try:
        yield folder
    except InputError as error:
        raise InputError(f"{folder}: {error}") from error
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(
            f"{folder} is not a readable {layout.thing}: {_reason(error)}. Pass a folder that {layout.writer} wrote."
        ) from error


def _reason(error: Exception) -> str:
    return str(error).rstrip(".") or type(error).__name__


def json_bytes(record: msgspec.Struct) -> bytes:
    """Write a record as JSON that people can read; NumPy's numbers become plain ones."""
    return msgspec.json.format(msgspec.json.encode(record, enc_hook=lambda number: number.tolist()), indent=2)


def read_record(folder: Folder, layout: Layout, kind: Any) -> Any:
    """Read a folder's record as a struct of this kind, of a format that this version knows."""
    file = folder / layout.record
    header = read_json(file, _Header)
    saved = f"saved in {layout.thing} format {header.format} by colonnade {header.versions.get('colonnade', '?')}"
    if header.format > layout.newest:
        raise InputError(f"{saved}; this version reads up to {layout.newest}. Upgrade colonnade.")
    if header.format < layout.oldest:
        raise InputError(
            f"{saved}; this version reads from {layout.oldest}. Read it with the version that wrote it, or run again."
        )
    return read_json(file, kind)


def read_json(file: Path, kind: Any) -> Any:
    """Read a JSON file as a struct of this kind."""
    content = read_file(file, MAX_JSON_BYTES)
    try:
        return msgspec.json.decode(content, type=kind)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file.name}: {_reason(error)}") from error


def read_file(file: Path, most: int) -> bytes:
    """Read a plain file of so many bytes at most; a link, pipe or device could lead or last anywhere."""
    try:
        with open(file, "rb", opener=_open_plain) as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ValueError(f"{file.name}: it is no plain file")
            if status.st_size > most:
                raise ValueError(f"{file.name}: it has {status.st_size:,} bytes; {most:,} are the most that is read")
            return opened.read(most)
    except OSError as error:
        if file.is_symlink() or file.is_dir():
            raise ValueError(f"{file.name}: it is no plain file") from error
        raise


def read_private(file: Path) -> bytes:
    """Read a key or another secret, which nobody but its owner may read or change; a link to one will do."""
    content = read_file(file.resolve(), MAX_SECRET_BYTES)
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & 0o077 and os.name == "posix":
        raise ValueError(f"{file} is secret, and others can read or change it (mode {mode:03o}): run chmod 600 {file}")
    return content


def _open_plain(path: str, flags: int) -> int:
    """Open without following a link, or waiting for whoever writes to a pipe; Windows has neither flag."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def arrow_bytes(columns: Mapping[str, npt.NDArray[Any] | Sequence[str]]) -> bytes:
    """Write columns of one length as an Arrow file, which pandas, polars and others read."""
    import pyarrow as pa

    # Text is typed, because an empty column would not say that it is text.
    arrays = [pa.array(c) if isinstance(c, np.ndarray) else pa.array(c, pa.string()) for c in columns.values()]
    table = pa.table(arrays, names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def read_arrow(file: Path, kinds: Mapping[str, str], others: str | None = None) -> dict[str, npt.NDArray[Any]]:
    """Read an Arrow file whose columns have the types they should, and no gaps.

    `kinds` has Arrow's name of the type of each column that must be there; `others` that of all other columns, None
    where there may be none.
    """
    import pyarrow as pa

    data = read_file(file, MAX_ARROW_BYTES)
    try:
        table = _batches(data, kinds, others)
        table.validate(full=True)  # before anything follows an offset in it
        for name, column in zip(table.column_names, table.columns, strict=True):
            if column.null_count:
                raise ValueError(f"its column {name!r} has {column.null_count} gaps")
        # Copies: the file's bytes need not stay, and arrays may be written to.
        return {name: np.array(table[name].to_numpy()) for name in table.column_names}
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{file.name}: {_reason(error)}") from error


def _batches(data: bytes, kinds: Mapping[str, str], others: str | None) -> Any:
    """Read the batches as they lie in a file, none larger than there; its footer could list one a thousand times."""
    import pyarrow as pa

    if not (data.startswith(ARROW + b"\0\0") and data.endswith(ARROW)):
        raise ValueError("it is not a whole Arrow file")
    schema, batches = None, []
    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(data).slice(len(ARROW) + 2)):
        if schema is None:
            schema = pa.ipc.read_schema(message)
            _check_columns(schema, kinds, others)
        elif message.type != "record batch" or _is_compressed(message.metadata.to_pybytes()):
            raise ValueError(
                f"it has a {message.type} that is compressed, or not part of the columns; write it plainly"
            )
        else:
            batches.append(pa.ipc.read_record_batch(message, schema))
    if schema is None:
        raise ValueError("it has no columns")
    return pa.Table.from_batches(batches, schema)


def _is_compressed(metadata: bytes) -> bool:
    """Tell whether a record batch says it is compressed: field 3 of the header, which is field 2 of the message.

    Arrow's metadata are flatbuffers (format/Message.fbs): a table points back to where its fields are listed.
    """

    def number(at: int, width: int) -> int:
        return int.from_bytes(metadata[at : at + width], "little", signed=width == 4)

    def field(table: int, which: int) -> int:
        fields, slot = table - number(table, 4), 4 + 2 * which
        return number(fields + slot, 2) if slot < number(fields, 2) else 0

    message = number(0, 4)
    header = message + field(message, 2)
    return field(header + number(header, 4), 3) != 0


def _check_columns(schema: Any, kinds: Mapping[str, str], others: str | None) -> None:
    names = schema.names
    if missing := [name for name in kinds if name not in names]:
        raise ValueError(f"it has no column {missing[0]!r}")
    if len(set(names)) < len(names):
        raise ValueError("two of its columns have one name")
    for field in schema:
        kind = kinds.get(field.name, others)
        if kind is None:
            raise ValueError(f"it has a column {field.name!r}, which is none of {', '.join(kinds)}")
        if str(field.type) != kind:
            raise ValueError(f"its column {field.name!r} is {field.type}, not {kind}")
