"""A party's log: whatever is changed, cut, added or moved in it is found, and said where."""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.node.log import HEAD, LOG, SIGNED_EVERY, TORN, EventLog, read_head
from colonnade.node.log_chain import Head, LogReport, chained, facts_of, raw_lines, verify
from colonnade.privacy.identities import PinnedIdentity, signing_key
from network_trial import events

SECRET, OTHER = bytes(range(32)), bytes(32)
PINS = {"bank": signing_key(SECRET), "shop": signing_key(OTHER)}
BANK = PinnedIdentity("bank", SECRET, PINS, os.urandom)


def written(folder: Path) -> Path:
    """Write a log of two runs: 11 lines, of which 1 to 10 are signed for by others than themselves."""
    log = EventLog(folder / LOG, BANK)
    for run in ("fit-1", "fit-2"):
        log.write("run opened", run=run)
        log.write("answered", run=run, rows=100)
        log.write("run ended", run=run)
    log.write("line up")
    log.close()
    return folder / LOG


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    return written(tmp_path_factory.mktemp("log")).read_bytes().splitlines(keepends=True)


def looked_at(path: Path) -> LogReport:
    with path.open("rb") as file:
        return verify(raw_lines(file), PINS, read_head(path))


def test_a_log_that_nobody_touched(tmp_path: Path) -> None:
    path = written(tmp_path)
    report = looked_at(path)
    assert (report.party, report.lines, report.findings) == ("bank", 12, [])
    assert (report.checkpoints, report.signed_to) == (4, 12)
    events = [line["event"] for line in facts_of(path.read_bytes().splitlines(keepends=True))]
    assert events[:3] == ["started", "checkpoint", "run opened"]
    assert path.stat().st_mode & 0o777 == (tmp_path / HEAD).stat().st_mode & 0o777 == 0o600


def test_it_goes_on_where_it_ended(tmp_path: Path) -> None:
    written(tmp_path)
    report = looked_at(written(tmp_path))
    assert (report.lines, report.findings) == (24, [])


@given(st.data())
def test_any_edit_of_a_line_that_is_signed_is_found_there(lines: list[bytes], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(lines) - 2))
    line = bytearray(lines[place])
    where = data.draw(st.integers(0, len(line) - 2))
    line[where] ^= data.draw(st.integers(1, 255))
    changed = [*lines[:place], bytes(line), *lines[place + 1 :]]
    again = b"".join(changed).splitlines(keepends=True)  # it may have become two lines
    found = [finding.line for finding in verify(again, PINS).findings]
    assert found
    assert min(found) == place + 1


@given(st.data())
def test_any_cut_is_found_there(lines: list[bytes], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(lines) - 2))
    last = data.draw(st.integers(first + 1, len(lines) - 1))
    findings = verify([*lines[:first], *lines[last:]], PINS).findings
    assert [finding.line for finding in findings] == [first + 1]
    assert findings[0].what == f"follows a gap: lines {first + 1} to {last} are missing before it"


@given(st.data())
def test_any_reordering_is_found_at_the_first_line_that_moved(lines: list[bytes], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(lines))))
    moved = [place for place, line in enumerate(order) if place != line]
    findings = verify([lines[line] for line in order], PINS).findings
    assert bool(findings) == bool(moved)
    if moved:
        assert findings[0].line == moved[0] + 1


@given(st.data())
def test_a_line_that_is_added_is_found(lines: list[bytes], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(lines) - 1))
    before = Head(place, json.loads(lines[place])["before"])
    forged, _ = chained(before, {"time": "now", "event": "answered", "rows": 0})
    copied = data.draw(st.sampled_from(lines))
    for added in (forged, copied):
        found = verify([*lines[:place], added, *lines[place:]], PINS).findings
        assert found
        assert found[0].line in (place + 1, place + 2)


@given(st.data())
def test_a_chain_that_is_made_anew_lacks_signatures(lines: list[bytes], data: st.DataObject) -> None:
    """Who changes a line and makes all digests after it anew cannot sign the checkpoints after it."""
    place = data.draw(st.integers(0, len(lines) - 2))
    again = list(_rechained(lines, place))
    findings = verify(again, PINS).findings
    later = next(n for n, line in enumerate(lines) if n > place and b'"event":"checkpoint"' in line)
    if b'"event":"checkpoint"' in lines[place]:
        assert findings  # the changed one itself, or what is after it
    else:
        assert findings[0].line == later + 1
        assert "no signature of 'bank'" in findings[0].what


def _rechained(lines: list[bytes], place: int) -> Iterator[bytes]:
    head = Head()
    for number, raw in enumerate(lines):
        facts = {name: value for name, value in json.loads(raw).items() if name not in ("line", "before")}
        line, head = chained(head, {**facts, "rows": 0} if number == place else facts)
        yield line


def test_the_end_is_signed_for_up_to_the_last_checkpoint_and_known_on_the_same_machine(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes().splitlines(keepends=True)
    for kept in range(len(whole)):
        path.write_bytes(b"".join(whole[:kept]))
        findings = looked_at(path).findings
        assert [finding.line for finding in findings] == [kept], "the head knows"
        assert verify(whole[:kept], PINS).findings == [], "a log alone does not tell that there was more"
    path.write_bytes(b"".join([*whole[:-1], whole[-1].replace(b"bank", b"shop")]))
    assert "was changed" in looked_at(path).findings[-1].what


def test_a_cut_is_remembered_by_the_next_start(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:5]))
    EventLog(path, BANK).close()
    findings = looked_at(path).findings
    assert [finding.line for finding in findings] == [6]
    assert "lines to 12 had been written and lines to 5 were found" in findings[0].what
    path.unlink()
    EventLog(path, BANK).close()
    assert [finding.line for finding in looked_at(path).findings] == [1], "also where the whole log is gone"


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_a_line_that_was_torn_by_a_kill_is_set_aside_and_the_chain_goes_on(tmp_path: Path, kept: int) -> None:
    path = written(tmp_path)
    torn = chained(Head(), {"event": "answered"})[0][:kept]
    with path.open("ab") as file:
        file.write(torn)
    EventLog(path, BANK).close()
    report = looked_at(path)
    assert report.findings == []
    assert [line["bytes"] for line in facts_of(path.read_bytes().splitlines(keepends=True)) if "bytes" in line] == [
        len(torn)
    ]
    assert (tmp_path / TORN).read_bytes() == torn + b"\n"


def test_a_kill_between_a_line_and_the_head_is_no_cut(tmp_path: Path) -> None:
    path = written(tmp_path)
    before = (tmp_path / HEAD).read_bytes()
    log = EventLog(path)
    log.write("answered")
    (tmp_path / HEAD).write_bytes(before)  # the process was killed before it wrote the head
    EventLog(path, BANK).close()
    assert looked_at(path).findings == []


def test_a_log_of_an_earlier_version_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / LOG
    path.write_text('{"time":"2026-01-01","event":"line up"}\n')
    EventLog(path, BANK).close()
    assert looked_at(path).findings == []
    assert len(list(tmp_path.glob("log.unchained-*"))) == 1


def test_signatures_come_every_so_many_lines(tmp_path: Path) -> None:
    log = EventLog(tmp_path / LOG, BANK)
    for _ in range(SIGNED_EVERY):
        log.write("repeated")
    assert looked_at(tmp_path / LOG).checkpoints == 2
    log.close()
    log.write("answered")
    assert looked_at(tmp_path / LOG).checkpoints == 2, "nothing is left to sign, and what is closed takes nothing"


def test_another_partys_signature_is_none(lines: list[bytes]) -> None:
    report = verify(lines, {"bank": PINS["shop"]})
    assert (report.checkpoints, report.signed_to, len(report.findings)) == (0, 0, 4)


class FullDisk:
    """Takes a part of a line, then nothing, then all again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self._write = 20, os.write
        monkeypatch.setattr(os, "write", self)

    def __call__(self, file: int, data: bytes) -> int:
        if not self.left:
            raise OSError(28, "No space left on device")
        taken, self.left = min(self.left, len(data)), max(self.left - len(data), 0)
        return self._write(file, data[:taken])


def test_a_full_disk_stops_a_party_and_no_server_and_breaks_no_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "server").mkdir()
    logs = [EventLog(tmp_path / LOG, BANK), EventLog(tmp_path / "server" / LOG)]
    logs[1].write("listening")
    for log in logs:
        disk = FullDisk(monkeypatch)
        for _ in range(2):
            if log is logs[0]:
                with pytest.raises(OSError, match=r"Is the disk full|No space left"):
                    log.write("answered")
            else:
                log.write("joined")
        disk.left = 1 << 20
        log.write("line up")
        monkeypatch.undo()
        log.close()
    assert capsys.readouterr().err.count("The log cannot be written") == 1
    assert looked_at(tmp_path / LOG).findings == []
    report = looked_at(tmp_path / "server" / LOG)
    assert (report.lines, report.findings) == (2, [])


def test_lines_that_cannot_be_written_are_said_once_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    log = EventLog(tmp_path / "log.jsonl")
    with monkeypatch.context() as broken:
        broken.setattr(os, "write", full)
        for _ in range(3):
            log.write("joined")
    log.write("left")
    log.close()
    assert log.lost == 3
    assert capsys.readouterr().err == "The log cannot be written: No space left on device. It goes on without.\n"
    assert [line["event"] for line in events(tmp_path / "log.jsonl")] == ["left"]
