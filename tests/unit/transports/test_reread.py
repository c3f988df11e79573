"""A file that is broken, gone or half written while an end runs: what it said before counts, and a person is told."""

import os
from pathlib import Path

import pytest

import colonnade as cn
from colonnade.transports.reread import Reread


def number(content: bytes, _before: int | None) -> int:
    return int(content)


def reread(path: Path, said: list[str]) -> Reread[int]:
    return Reread(path, number, said.append, "Write a number.")


def test_a_change_counts_from_the_next_look(tmp_path: Path) -> None:
    path, said = tmp_path / "file", list[str]()
    path.write_text("1")
    file = reread(path, said)
    assert (file.now(), said) == (1, [])
    path.write_text("2")
    assert file.now() == 2
    assert said == ["file was read again: it has changed."]


def test_a_change_that_leaves_size_and_time_as_they_were_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("1")
    file, status = reread(path, []), path.stat()
    path.write_text("2")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.now() == 2


@pytest.mark.parametrize("how", ["emptied", "cut", "gone", "folder", "pipe", "huge", "unreadable"])
def test_a_broken_file_changes_nothing_and_is_said_once(tmp_path: Path, how: str) -> None:
    path, said = tmp_path / "file", list[str]()
    path.write_text("1")
    file = reread(path, said)
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how != "gone":
        path.write_text({"emptied": "", "cut": "1 of", "huge": "1" * (2 << 20), "unreadable": "\0"}[how])
    assert [file.now(), file.now()] == [1, 1]
    assert len(said) == 1
    assert said[0].startswith("Warning: file cannot be read: ")
    assert "What it said before still counts. Write a number." in said[0]
    assert str(tmp_path) not in said[0]
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    path.write_text("3")
    assert file.now() == 3, "it is read again when it is mended"


@pytest.mark.parametrize("content", [None, "", "one"])
def test_to_begin_with_it_is_an_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_text(content)
    with pytest.raises(cn.InputError, match=r"Cannot read .*file: .*\. Write a number\."):
        reread(path, [])
