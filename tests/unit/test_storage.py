"""Folders are ours or left alone, whole or not there, and nothing in them is taken on trust."""

import errno
import json
import stat
import tempfile
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade import disk, storage
from colonnade.errors import InputError
from colonnade.storage import Layout
from power_loss import power_loss

BOX = Layout("box", "Box.save", "box.json", frozenset({"lines.arrow"}), oldest=2, newest=3)
RECORD = b'{"format": 3, "versions": {"colonnade": "7.8"}}'
FILES = {"box.json": RECORD, "lines.arrow": b"lines"}
KINDS = {"party": "string", "weight": "double"}


class Box(msgspec.Struct):
    format: int
    versions: dict[str, str]


def names_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


# Writing


def test_a_new_folder_and_those_above_it_are_made(tmp_path: Path) -> None:
    folder = storage.write_folder(tmp_path / "above" / "box", BOX, FILES)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == FILES
    assert names_in(tmp_path / "above") == ["box"], "no scratch stays"


@pytest.mark.parametrize("before", [{}, FILES, {"box.json": b'{"format": 1}'}], ids=["empty", "same", "older"])
def test_an_empty_folder_and_one_of_ours_are_replaced(tmp_path: Path, before: dict[str, bytes]) -> None:
    folder = tmp_path / "box"
    folder.mkdir()
    for name, content in before.items():
        (folder / name).write_bytes(content)
    storage.write_folder(str(folder), BOX, {"box.json": RECORD})
    assert names_in(folder) == ["box.json"]
    assert names_in(tmp_path) == ["box"]


@pytest.mark.parametrize(
    "before",
    [
        {"thesis.txt": b"years of work"},
        {**FILES, "notes.txt": b"mine"},
        {"lines.arrow": b"no record"},
        {"box.json": b'{"name": "something of npm"}'},
        {"box.json": b'{"format": "ours?"}'},
        {"box.json": b"[" * 100_000},
        {"box.json": b"\xff"},
    ],
)
def test_what_is_not_ours_is_left_alone(tmp_path: Path, before: dict[str, bytes]) -> None:
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=r"exists and is not a saved box\. Choose a new folder"):
        storage.write_folder(tmp_path, BOX, FILES)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_file_and_a_folder_with_a_folder_in_it_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    (tmp_path / "box" / "lines.arrow").mkdir(parents=True)
    (tmp_path / "box" / "box.json").write_bytes(RECORD)
    for path in (tmp_path / "thesis.txt", tmp_path / "box"):
        with pytest.raises(InputError, match="exists and is not a saved box"):
            storage.write_folder(path, BOX, FILES)
    assert (tmp_path / "box" / "lines.arrow").is_dir()


@pytest.mark.parametrize("path", ["thesis.txt/box", "nul\0byte", "x" * 300 + "/box"])
def test_where_nothing_can_be_written(tmp_path: Path, path: str) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"A box cannot be saved to .*Choose a folder you may write to"):
        storage.check_destination(tmp_path / path, BOX)


def test_a_file_or_pipe_may_be_written_where_its_folder_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.csv").write_text("1")
    for path in (tmp_path / "new.csv", tmp_path / "old.csv", Path("/dev/null")):
        storage.check_file(path)
    assert [each.name for each in tmp_path.iterdir()] == ["old.csv"]
    assert (tmp_path / "old.csv").read_text() == "1"
    monkeypatch.setattr(tempfile, "TemporaryFile", Mock(side_effect=PermissionError(13, "Permission denied", "tmp1")))
    with pytest.raises(InputError, match=r"^Nothing can be written to .*/new.csv: Permission denied\. Choose another"):
        storage.check_file(tmp_path / "new.csv")


@pytest.mark.parametrize("name", ["x" * 300, "nul\0byte"])
def test_no_file_has_such_a_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"^Nothing can be written to .*: .*\w\. Choose another file"):
        storage.check_file(tmp_path / name)


def test_where_the_last_step_fails_the_old_folder_is_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = storage.write_folder(tmp_path / "box", BOX, FILES)
    rename = Path.rename

    def fail_for_fresh(self: Path, target: Path) -> Path:
        if self.name == ".box.fresh":
            raise OSError("the disk went away")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_fresh)
    with pytest.raises(InputError, match=r"The box could not be saved to .*the disk went away\. Choose another folder"):
        storage.write_folder(folder, BOX, {"box.json": RECORD})
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == FILES
    assert names_in(tmp_path) == ["box"]


def test_where_a_file_cannot_be_written_nothing_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_file: int, content: bytes) -> None:
        raise OSError(errno.ENOSPC, f"no room for {len(content)} bytes")

    monkeypatch.setattr(disk, "write", fail)
    with pytest.raises(InputError, match=r"no room for 47 bytes\. Choose another folder"):
        storage.write_folder(tmp_path / "box", BOX, FILES)
    assert names_in(tmp_path) == []


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    folder = storage.write_folder(tmp_path / "box", BOX, FILES)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("saved_before", [False, True], ids=["new", "replaced"])
def test_killed_or_without_power_at_any_step_it_is_the_old_one_or_the_new_one(
    tmp_path: Path, saved_before: bool
) -> None:
    """Between two renames the old one lies beside; whenever the last step is done, the new one is on the disk."""
    before, step = {"box.json": RECORD}, 0
    while True:
        home = tmp_path / f"{step}"
        home.mkdir()
        with power_loss(home) as power:
            if saved_before:
                storage.write_folder(home / "box", BOX, before)
            finished = power.cut_after(step, partial(storage.write_folder, home / "box", BOX, FILES))
        found = {file.name: file.read_bytes() for file in (home / "box").glob("*")}
        assert found == FILES or not finished
        assert found in ([FILES, before, {}] if saved_before else [FILES, {}])
        if not found and saved_before:
            assert (home / ".box.stale" / "box.json").read_bytes() == RECORD
        storage.write_folder(home / "box", BOX, FILES)
        assert names_in(home) == ["box"], "what was left behind is gone"
        if finished:
            break
        step += 1
    assert step >= 10


# Reading a record


def read(folder: Path) -> Box:
    with storage.reading(folder, BOX) as inside:
        found: Box = storage.read_record(inside, BOX, Box)
    return found


def test_a_record_comes_back(tmp_path: Path) -> None:
    written = Box(3, storage.written_by())
    storage.write_folder(tmp_path, BOX, {"box.json": storage.json_bytes(written)})
    assert read(tmp_path) == written
    assert (tmp_path / "box.json").read_text().count("\n") > 2, "people read it"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"format": 4, "versions": {"colonnade": "9.9"}}, "4 by colonnade 9.9; this version reads up to 3. Upgrade"),
        ({"format": 4, "all": "new"}, "4 by colonnade ?; this version reads up to 3. Upgrade colonnade."),
        ({"format": 1}, "1 by colonnade ?; this version reads from 2. Read it with the version that wrote it, or"),
    ],
)
def test_formats_this_version_does_not_know(tmp_path: Path, record: dict[str, Any], message: str) -> None:
    (tmp_path / "box.json").write_text(json.dumps(record))
    with pytest.raises(InputError) as caught:
        read(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}: saved in box format {message}")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"format": 3}',
        b'{"format": 3.5, "versions": {}}',
        b'{"format": true, "versions": {}}',
        b'{"format": 3, "versions": {"colonnade": 1}}',
        b'{"format": 1' + b"0" * 5000 + b', "versions": {}}',
        b'{"format": 3, "versions": {}, "more": ' + b"[" * 100_000,
        b'{"format": 3, "versions": {"\xff": ""}}',
    ],
)
def test_a_record_that_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "box.json").write_bytes(content)
    with pytest.raises(
        InputError, match=r"is not a readable box: box\.json: .*[^.]\. Pass a folder that Box\.save wrote\.$"
    ):
        read(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path, tmp_path / "nul\0byte"):
        with pytest.raises(InputError, match="is not a readable box"):
            read(path)


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("deep"), ValueError("odd."), OSError("gone")])
def test_whatever_goes_wrong_is_one_error_with_a_reason(error: Exception) -> None:
    reason = {"": "MemoryError"}.get(str(error), str(error).rstrip("."))
    with (
        pytest.raises(InputError, match=rf"^here is not a readable box: {reason}\. Pass a folder that"),
        storage.reading("here", BOX),
    ):
        raise error


# Arrow

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(lines=st.lists(st.tuples(TEXT, st.floats(), st.integers(-(2**63), 2**63 - 1)), max_size=20))
def test_any_columns_come_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[str, float, int]]
) -> None:
    party, weight, row = [line[0] for line in lines], np.array([line[1] for line in lines]), [line[2] for line in lines]
    file = tmp_path_factory.getbasetemp() / "any.arrow"
    file.write_bytes(storage.arrow_bytes({"party": party, "weight": weight, "row": np.array(row, dtype=np.int64)}))
    found = storage.read_arrow(file, {**KINDS, "row": "int64"})
    assert list(found) == ["party", "weight", "row"]
    assert found["party"].tolist() == party
    assert found["row"].tolist() == row
    assert found["weight"].tobytes() == weight.astype(np.float64).tobytes()
    found["weight"][:] = 0.0  # the caller's own


def arrow(columns: list[Any], names: list[str]) -> bytes:
    table = pa.table(columns, names=names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        ([["a"]], ["party"], "it has no column 'weight'"),
        ([["a"], [1.0], [2.0]], ["party", "weight", "more"], "it has a column 'more', which is none of party, weight"),
        ([["a"], [1.0], [2.0]], ["party", "weight", "weight"], "two of its columns have one name"),
        ([["a"], [1]], ["party", "weight"], "its column 'weight' is int64, not double"),
        ([["a"], ["1.0"]], ["party", "weight"], "its column 'weight' is string, not double"),
        ([["a"], [[1.0]]], ["party", "weight"], "its column 'weight' is list<.*>, not double"),
        ([[None, "b"], [1.0, 2.0]], ["party", "weight"], "its column 'party' has 1 gaps"),
        ([["a", "b"], [None, 2.0]], ["party", "weight"], "its column 'weight' has 1 gaps"),
        ([[b"a"], [1.0]], ["party", "weight"], "its column 'party' is binary, not string"),
    ],
)
def test_columns_that_are_not_those(tmp_path: Path, columns: list[Any], names: list[str], message: str) -> None:
    (tmp_path / "lines.arrow").write_bytes(arrow(columns, names))
    with pytest.raises(ValueError, match=f"^lines.arrow: {message}"):
        storage.read_arrow(tmp_path / "lines.arrow", KINDS)


def test_other_columns_where_they_may_be(tmp_path: Path) -> None:
    (tmp_path / "lines.arrow").write_bytes(arrow([["a"], [1.0], [2.0]], ["party", "weight", "more"]))
    assert storage.read_arrow(tmp_path / "lines.arrow", KINDS, others="double")["more"].tolist() == [2.0]
    (tmp_path / "lines.arrow").write_bytes(arrow([["a"], [1.0], [2]], ["party", "weight", "more"]))
    with pytest.raises(ValueError, match="its column 'more' is int64"):
        storage.read_arrow(tmp_path / "lines.arrow", KINDS, others="double")


def test_text_that_lies_about_where_it_ends(tmp_path: Path) -> None:
    """Offsets beyond the text: following one would read memory that is not the file's."""
    offsets = pa.array([0, 2_000_000, 2], pa.int32()).buffers()[1]
    lie = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab")])
    (tmp_path / "lines.arrow").write_bytes(arrow([lie, [1.0, 2.0]], ["party", "weight"]))
    with pytest.raises(ValueError, match=r"^lines.arrow: "):
        storage.read_arrow(tmp_path / "lines.arrow", KINDS)


WHOLE = arrow([["airline", "weather"], [1.0, 2.0]], ["party", "weight"])


@given(end=st.integers(0, len(WHOLE) - 1))
def test_a_file_cut_short_is_refused(tmp_path_factory: pytest.TempPathFactory, end: int) -> None:
    file = tmp_path_factory.getbasetemp() / "cut.arrow"
    file.write_bytes(WHOLE[:end])
    with pytest.raises(ValueError, match=r"^cut.arrow: ."):
        storage.read_arrow(file, KINDS)
