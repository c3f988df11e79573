"""The server's list of runs where its status cannot be written; the rest is tried with a network."""

import errno
from pathlib import Path

import pytest

from colonnade.node import runs
from colonnade.node.log import LOG, EventLog
from colonnade.node.runs import RunBook, read_status
from colonnade.node.state_folder import StateFolder
from colonnade.protocol.run_purpose import RunPurpose
from network_trial import events


def no_files(*_: object, **__: object) -> None:
    raise OSError(errno.EMFILE, "Too many open files")


def test_a_status_that_cannot_be_written_is_said_once_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = StateFolder(tmp_path)
    book = RunBook(folder, EventLog(tmp_path / LOG))
    with monkeypatch.context() as broken:
        broken.setattr(runs, "write_private", no_files)
        run = book.open(RunPurpose("fit", None, None, None, "print"))
        for _ in range(3):
            book.write_status(now=True)
        assert book.lost_writes == 3
    book.end(run, "done", "")
    assert book.lost_writes == 0
    assert [each.status for each in read_status(tmp_path).runs] == ["done"]
    said = [line for line in events(tmp_path / LOG) if "written" in line["event"]]
    assert [(line["event"], line.get("reason"), line.get("lost")) for line in said] == [
        ("status not written", "Too many open files", None),
        ("status written again", None, 3),
    ]
    folder.release()
