import errno
import os
from pathlib import Path

import pytest

from colonnade.node.log import EventLog
from network_trial import events


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
