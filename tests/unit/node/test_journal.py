import errno
import os
import stat
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import colonnade as cn
from colonnade.node.journal import HEAD, MAGIC, Journal


def contents(path: Path) -> list[bytes]:
    journal = Journal(path)
    try:
        return [bytes(first) + bytes(rest) for first, rest in journal.records()]
    finally:
        journal.close()


def written(path: Path, records: list[bytes]) -> None:
    journal = Journal(path)
    for record in records:
        journal.append(record)
    journal.close()


def test_what_was_appended_is_read_again_and_only_by_its_owner(tmp_path: Path) -> None:
    records = [b"", b"one", bytes(200_000), b"last"]
    written(tmp_path / "a.journal", records)
    assert contents(tmp_path / "a.journal") == records
    assert stat.S_IMODE((tmp_path / "a.journal").stat().st_mode) == 0o600


@given(records=st.lists(st.binary(max_size=50), max_size=5), data=st.data())
def test_torn_at_any_byte_the_whole_records_remain(
    tmp_path_factory: pytest.TempPathFactory, records: list[bytes], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("torn") / "a.journal"
    written(path, records)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    ends = [len(MAGIC) + sum(HEAD.size + len(record) for record in records[: n + 1]) for n in range(len(records))]
    kept = records[: sum(end <= cut for end in ends)]
    assert contents(path) == kept
    written(path, [b"next"])
    assert contents(path) == [*kept, b"next"], "what is appended after a torn record is not lost"


def test_parts_of_a_record_are_told_apart(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a.journal")
    journal.append(b"head", b"one", b"", b"two")
    assert [(bytes(first), bytes(rest)) for first, rest in journal.records()] == [(b"head", b"onetwo")]
    journal.close()


def test_a_last_record_of_which_only_the_length_arrived_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    written(path, [b"first", b"second"])
    whole = path.read_bytes()
    path.write_bytes(whole[: -len(b"second")] + bytes(len(b"second")))
    assert contents(path) == [b"first"]


def test_damage_before_the_end_is_no_torn_record(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    written(path, [b"first", b"second"])
    broken = bytearray(path.read_bytes())
    broken[len(MAGIC) + HEAD.size] ^= 1
    path.write_bytes(broken)
    with pytest.raises(cn.TransportError, match=f"is damaged at byte {len(MAGIC)}"):
        Journal(path)
    path.write_bytes(b"something else entirely, and long enough")
    with pytest.raises(cn.TransportError, match="is damaged at byte 0"):
        Journal(path)


def test_compaction_replaces_all_and_appending_goes_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a.journal")
    for number in range(10):
        journal.append(b"%d" % number)
    journal.compact(bytes(record) for record, _ in journal.records() if int(record) % 2)
    journal.append(b"11")
    journal.close()
    assert contents(tmp_path / "a.journal") == [b"1", b"3", b"5", b"7", b"9", b"11"]
    assert [file.name for file in tmp_path.iterdir()] == ["a.journal"]


def test_a_record_that_cannot_be_forced_to_the_disk_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "a.journal")
    journal.append(b"first", durable=True)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", Mock(side_effect=OSError(errno.EIO, "Input/output error")))
        with pytest.raises(OSError, match="Input/output"):
            journal.append(b"second", durable=True)
    journal.append(b"third")
    journal.close()
    assert contents(tmp_path / "a.journal") == [b"first", b"third"]


def test_a_disk_that_is_full_leaves_no_half_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written once there is room again follows the last whole one."""
    journal, write = Journal(tmp_path / "a.journal"), os.write
    journal.append(b"first")

    def write_some(file: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[: len(data) - 10])

    monkeypatch.setattr(os, "write", write_some)
    for size in (5, 100, 1 << 17):
        with pytest.raises(OSError, match="No space"):
            journal.append(bytes(size))
        with pytest.raises(OSError, match="No space"):
            journal.compact([b"first", bytes(size)])
    monkeypatch.setattr(os, "write", write)
    journal.append(b"second")
    journal.close()
    assert contents(tmp_path / "a.journal") == [b"first", b"second"]
    assert [file.name for file in tmp_path.iterdir()] == ["a.journal"]
