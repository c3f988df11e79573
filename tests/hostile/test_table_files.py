"""A party's table from a file of others: whatever lies there is read, or is one clear error, within bounds."""

import gzip
import os
import resource
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import colonnade as cn
from colonnade.data import csv_files, streams
from colonnade.protocol.hello import MAX_ROWS
from harness import bent

NAMES = ["bank.csv", "bank.csv.gz", "bank.parquet", "bank.arrow", "bank.feather"]
ZEROS = b"0,0\n" * (1 << 20)


def refusal(path: Path, **roles: Any) -> str:
    with pytest.raises(cn.InputError) as caught:
        cn.Party("bank", path, **roles)
    message = str(caught.value)
    assert message.startswith("Party 'bank'")
    assert message.endswith(".")
    return message


def put_device(file: Path) -> None:
    file.symlink_to("/dev/zero")


def put_loop(file: Path) -> None:
    file.symlink_to(file)


def put_dangling(file: Path) -> None:
    file.symlink_to("nowhere")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("put", "says"),
    [
        (os.mkfifo, "is neither a plain file nor a folder"),
        (put_device, "is neither a plain file nor a folder"),
        (put_loop, "there is no file"),
        (put_dangling, "there is no file"),
        (Path.mkdir, "holds no .parquet file"),
    ],
    ids=["pipe", "device", "loop", "dangling", "folder"],
)
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, name: str, put: Callable[[Path], None], says: str) -> None:
    put(tmp_path / name)
    assert says in refusal(tmp_path / name)


@pytest.mark.parametrize("name", ["a\0b.csv", "x" * 5000 + ".csv", "", "."])
def test_paths_that_are_none(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refusal(Path(name) if name != "" else Path())


def test_a_folder_does_not_lead_elsewhere(tmp_path: Path) -> None:
    """A link to the folder above would be read for ever; one to another folder is not what its owner named."""
    parquet.write_table(pa.table({"x": [1.0]}), tmp_path / "a.parquet")
    (tmp_path / "again").symlink_to(tmp_path)
    assert "'again' in it is a link to a folder" in refusal(tmp_path)
    (tmp_path / "again").unlink()
    os.mkfifo(tmp_path / "pipe.parquet")
    assert "'pipe.parquet' in it is no .parquet file" in refusal(tmp_path)
    (tmp_path / "pipe.parquet").unlink()
    (tmp_path / "loop.parquet").symlink_to("loop.parquet")
    assert "'loop.parquet' in it is no .parquet file" in refusal(tmp_path)


def test_a_gzip_bomb_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousandfold: 64 MB in 64 kB. A file that is as repetitive, and small, is read."""
    monkeypatch.setattr(csv_files, "FREE_BYTES", 8 << 20)
    member = gzip.compress(ZEROS)
    (tmp_path / "bank.csv.gz").write_bytes(gzip.compress(b"a,b\n") + member * 16)
    assert "unfolds to more than" in refusal(tmp_path / "bank.csv.gz")
    (tmp_path / "bank.csv.gz").write_bytes(gzip.compress(b"a,b\n") + member)
    assert cn.Party("bank", tmp_path / "bank.csv.gz").table.n_rows == 1 << 20


def test_a_bomb_of_one_line_stops_at_once(tmp_path: Path) -> None:
    (tmp_path / "bank.csv.gz").write_bytes(gzip.compress(bytes(64 << 20)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "is empty" in refusal(tmp_path / "bank.csv.gz")
    (tmp_path / "bank.csv.gz").write_bytes(gzip.compress(b"a" * (64 << 20)))
    assert "its first line is longer" in refusal(tmp_path / "bank.csv.gz")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10  # kB: the line is not unfolded


def test_a_line_that_never_ends_is_named(tmp_path: Path) -> None:
    (tmp_path / "bank.csv").write_bytes(b"a,b\n1,2\n3," + b"4" * (20 << 20) + b"\n5,6\n")
    assert ", after line 2" in refusal(tmp_path / "bank.csv")


def test_a_hundred_thousand_columns(tmp_path: Path) -> None:
    names = ",".join(f"c{i}" for i in range(100_000))
    (tmp_path / "bank.csv").write_text(f"{names}\n1,2\n")
    assert ", line 2: it has 2 value(s), where the header names 100000" in refusal(tmp_path / "bank.csv")


def ipc(columns: dict[str, Any], compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table(columns)
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def huge_metadata() -> bytes:
    return b"\xff\xff\xff\xff" + struct.pack("<i", 2**31 - 1) + b"x"


def huge_body() -> bytes:
    """Say that a buffer unfolds to an exabyte."""
    content = bytearray(ipc({"x": np.zeros(1000)}, "zstd"))
    at = content.index(struct.pack("<q", 8000))
    content[at : at + 8] = struct.pack("<q", 1 << 60)
    return bytes(content)


def wrong_offsets() -> bytes:
    """Let a text begin a gigabyte behind the file."""
    content = bytearray(ipc({"x": ["abc", "def"]}))
    at = content.index(struct.pack("<iii", 0, 3, 6))
    content[at : at + 12] = struct.pack("<iii", 0, 1 << 30, (1 << 30) + 3)
    return bytes(content)


@pytest.mark.parametrize("content", [huge_metadata, huge_body, wrong_offsets])
@pytest.mark.parametrize("name", ["bank.arrow", "bank.feather"])
def test_sizes_that_an_arrow_file_claims(tmp_path: Path, name: str, content: Callable[[], bytes]) -> None:
    (tmp_path / name).write_bytes(content())
    assert "cannot be read" in refusal(tmp_path / name)


def test_a_billion_rows_of_nothing(tmp_path: Path) -> None:
    """A column without values takes no room in a file: it takes none in memory either."""
    nothing = pa.Array.from_buffers(pa.null(), 1 << 30, [None])
    (tmp_path / "bank.arrow").write_bytes(ipc({"x": nothing}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "1073741824 of 1073741824 values are missing" in refusal(tmp_path / "bank.arrow")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def in_a_footer(number: int) -> bytes:
    """Write a number as Parquet does: zigzag, seven bits a byte."""
    rest, written = (number << 1) ^ (number >> 63), b""
    while rest > 127:
        rest, written = rest >> 7, written + bytes([rest & 127 | 128])
    return written + bytes([rest])


@pytest.mark.parametrize("claimed", [-(1 << 62), -1, MAX_ROWS + 1, 1 << 50, (1 << 63) - 1])
def test_rows_that_a_parquet_file_claims(tmp_path: Path, claimed: int) -> None:
    """Blocks of so many rows were counted one by one, for hours, before the first was read."""
    content = as_parquet(pa.table({"x": np.arange(20_011.0)}))
    footer = len(content) - 8 - struct.unpack("<I", content[-8:-4])[0]
    lie = content[footer:-8].replace(in_a_footer(20_011), in_a_footer(claimed))
    (tmp_path / "bank.parquet").write_bytes(content[:footer] + lie + struct.pack("<I", len(lie)) + content[-4:])
    assert f"'bank.parquet' in it says that it has a group of {claimed:,} rows" in refusal(tmp_path / "bank.parquet")


def test_files_that_claim_too_many_rows_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_ROWS", 20)
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / name).write_bytes(as_parquet(pa.table({"x": np.arange(10.0)})))
    cn.Party("bank", tmp_path)
    (tmp_path / "c.parquet").write_bytes(as_parquet(pa.table({"x": [1.0]})))
    assert "'c.parquet' in it says that it has a group of 1 rows, after 20" in refusal(tmp_path)


def as_csv(_: Any) -> bytes:
    return "näme;x;y\n".encode() + b"".join(b'"a;%d";%d,5;%d\n' % (i, i, i * i) for i in range(40))


def as_gzip(_: Any) -> bytes:
    return gzip.compress(as_csv(_), mtime=0)


def as_parquet(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    return bytes(sink.getvalue())


def as_arrow(table: Any) -> bytes:
    return ipc(dict(zip(table.column_names, table.columns, strict=True)))


@pytest.mark.parametrize(
    ("name", "write"), list(zip(NAMES[:4], [as_csv, as_gzip, as_parquet, as_arrow], strict=True)), ids=NAMES[:4]
)
def test_no_byte_of_a_table_brings_a_surprise(tmp_path: Path, name: str, write: Callable[[Any], bytes]) -> None:
    """Flip, cut and swell: it loads, or it is an InputError."""
    rng = np.random.default_rng(len(name))
    table = pa.table({"näme": [f"a;{i}" for i in range(40)], "x": np.arange(40) + 0.5, "y": np.arange(40) ** 2})
    whole, path, loaded = write(table), tmp_path / name, 0
    said: list[str] = []
    for trial in range(150):
        path.write_bytes(bent(whole, trial, rng))
        try:
            cn.Party("bank", path, key="näme", duplicates="first")
            loaded += 1
        except cn.InputError as error:
            said.append(str(error))
    assert loaded < 130
    assert not [words for words in said if "a;1" in words], "a key is shown"
