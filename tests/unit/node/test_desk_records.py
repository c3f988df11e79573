"""Journals of parties and servers that earlier versions wrote are still read: tags and positions stay."""

from pathlib import Path

import msgspec
import pytest

import colonnade as cn
from colonnade.node.desk_records import AnswerRecord, ChecksumRecord, OpeningRecord, read_records
from colonnade.node.journal import Journal
from colonnade.node.log import EventLog
from colonnade.node.runs import RunBook
from colonnade.node.state_folder import StateFolder
from colonnade.protocol.run_purpose import RunPurpose

PURPOSE = ["fit", "regression", "importance", "saga", "0" * 64]


def write_journal(path: Path, *records: list[object]) -> None:
    journal = Journal(path)
    for record in records:
        journal.append(msgspec.msgpack.encode(record))
    journal.close()


def test_a_partys_journal(tmp_path: Path) -> None:
    path = tmp_path / "fit-1.journal"
    write_journal(
        path,
        ["Begun", b"nonce"],
        ["Answered", 1, b"request", b"reply"],
        ["Answered", 2, b"request", None],
        ["Checked", 2, 7],
    )
    assert list(read_records(Journal(path))) == [
        OpeningRecord(b"nonce"),
        AnswerRecord(1, b"request", b"reply"),
        AnswerRecord(2, b"request", None),
        ChecksumRecord(2, 7),
    ]


def test_a_partys_journal_of_a_run_that_no_sheet_opened(tmp_path: Path) -> None:
    """Such a run cannot go on: what the server may ask in it was never agreed on."""
    path = tmp_path / "fit-1.journal"
    write_journal(path, ["Opened", PURPOSE], ["Answered", 1, b"request", b"reply"])
    with pytest.raises(cn.LocalProtocolError, match="was begun by another version of Colonnade"):
        list(read_records(Journal(path)))


def test_a_servers_journal(tmp_path: Path) -> None:
    asked = {"bank": b"request"}
    digest = bytes.fromhex("17970ce0600173915161a71aa8efbccf")
    write_journal(tmp_path / "fit-1.journal", ["_Opened", PURPOSE])
    journal = Journal(tmp_path / "fit-1.journal")
    journal.append(msgspec.msgpack.encode(["_Round", 1, digest, {"bank": 5}]), b"reply")
    journal.close()
    book = RunBook(StateFolder(tmp_path), EventLog(None))
    run = book.open(RunPurpose(*PURPOSE))
    assert run.status.run == "fit-1"
    assert run.recorded(asked) == {"bank": b"reply"}
