"""Structured logs: one JSON object a line, with a time and, where there is one, a run. Never a data value."""

import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from colonnade.node.journal import PRIVATE
from colonnade.node.terminal import say

LOG = "log.jsonl"


class EventLog:
    """Appends events to a file that only its owner can read; without a path it keeps none."""

    def __init__(self, path: Path | None) -> None:
        self._file = -1 if path is None else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
        self._lock = threading.Lock()
        self.lost = 0

    def write(self, event: str, **facts: object) -> None:
        """Append one event: what happened in a few fixed words, with names and counts."""
        if self._file < 0:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = msgspec.json.encode({"time": now, "event": event, **facts}) + b"\n"
        with self._lock:
            try:
                os.write(self._file, line)
            except OSError as error:  # a full disk must not end who writes
                self.lost += 1
                if self.lost == 1:
                    say(f"The log cannot be written: {error.strerror}. It goes on without.")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1
