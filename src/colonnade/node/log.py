"""Structured logs: one JSON object a line, with a time and, where there is one, a run. Never a data value.

Lines are chained, and a party signs its log so far when it starts and stops, when a run ends, and every so many lines
(`colonnade.node.log_chain`). Where the log ends is kept in a file of its own, too: a cut is noticed at the next start.
"""

import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from colonnade import disk
from colonnade.disk import PRIVATE
from colonnade.node.log_chain import CHECKPOINT, DIFFERS, MAX_LINE, Head, chained, checkpoint_statement, head_of
from colonnade.node.log_chain import read_head as decoded_head
from colonnade.transports.terminal import say

LOG, HEAD, TORN, UNCHAINED = "log.jsonl", "log.head", "log.torn", "log.unchained"
# After these a signature follows, and after so many lines without one.
SIGNED_AFTER = frozenset({"started", "run ended", "run lost"})
SIGNED_EVERY = 1000


class Signer(Protocol):
    """Whose log it is."""

    @property
    def name(self) -> str:
        """The party's name."""

    def sign(self, statement: bytes) -> bytes:
        """Sign a statement."""


class EventLog:
    """Appends events to a file that only its owner can read, signed by the signer; without a path it keeps none."""

    def __init__(self, path: Path | None, signer: Signer | None = None) -> None:
        self._lock = threading.Lock()
        self._signer = signer
        self._last, self._n_unsigned = Head(), 0
        self._file = self._head = -1
        self.lost = 0
        if path is not None:
            self._open(path)

    def write(self, event: str, **facts: object) -> None:
        """Append one event: what happened in a few fixed words, with names and counts."""
        with self._lock:
            if self._file < 0:
                return
            try:
                self._append(event, facts)
                if self._n_unsigned >= SIGNED_EVERY or event in SIGNED_AFTER:
                    self._checkpoint()
            except OSError as error:
                self._fail(error)

    def close(self) -> None:
        """Sign what is not signed yet, and close the file."""
        with self._lock:
            if self._file >= 0:
                if self._n_unsigned:
                    self._checkpoint()
                os.close(self._file)
                os.close(self._head)
                self._file = self._head = -1

    def _append(self, event: str, facts: dict[str, object]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line, last = chained(self._last, {"time": now, "event": event, **facts})
        before = os.fstat(self._file).st_size
        try:
            disk.write(self._file, line)
        except OSError:
            os.ftruncate(self._file, before)  # where the disk is full: the next line must not follow half of this one
            raise
        self._last = last
        self._n_unsigned += 1
        os.lseek(self._head, 0, os.SEEK_SET)
        disk.write(self._head, last.encoded())

    def _fail(self, error: OSError) -> None:
        """Stop a party that cannot write down what it tells; a server goes on, and says so once."""
        if self._signer is not None:
            raise error
        self.lost += 1
        if self.lost == 1:
            say(f"The log cannot be written: {error.strerror or error}. It goes on without.")

    def _checkpoint(self) -> None:
        """Sign the log so far, and force it to the disk."""
        if self._signer is not None:
            signature = self._signer.sign(checkpoint_statement(self._signer.name, self._last)).hex()
            self._append(CHECKPOINT, {"party": self._signer.name, "signature": signature})
            disk.sync(self._file)
            disk.sync(self._head)
        self._n_unsigned = 0

    def _open(self, path: Path) -> None:
        """Find the end of the log, and set aside what is no line of it."""
        torn = b""
        if path.exists():
            self._last, torn = _end_of(path)
        kept = _read(path.with_name(HEAD))
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
        self._head = os.open(path.with_name(HEAD), os.O_RDWR | os.O_CREAT, PRIVATE)
        found = self._last
        if torn:
            self._append("log torn", {"bytes": len(torn)})
        if kept is not None and kept != found and kept.number != found.number - 1:
            self._append(DIFFERS, {"expected": kept.number, "found": found.number})
        if self._signer is not None:
            self._append("started", {"party": self._signer.name})
            self._checkpoint()


def read_head(path: Path) -> Head | None:
    """Read where the log at this path ended, as it was kept beside it."""
    return _read(path.with_name(HEAD))


def _read(path: Path) -> Head | None:
    try:
        return decoded_head(path.read_bytes())
    except OSError:
        return None


def _end_of(path: Path) -> tuple[Head, bytes]:
    """Give the head of a log; a torn last line is moved aside, and so is a log that is no chain."""
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 2 * MAX_LINE, 0))
        whole, newline, torn = file.read().rpartition(b"\n")
        if torn:
            _set_aside(path.with_name(TORN), torn)
            file.truncate(size - len(torn))
    last = whole.rpartition(b"\n")[2] + newline
    if not last:
        return Head(), torn
    head = head_of(last)
    if head is None:  # of an earlier version, or no log
        path.replace(path.with_name(f"{UNCHAINED}-{datetime.now(UTC):%Y%m%dT%H%M%S}"))
        return Head(), b""
    return head, torn


def _set_aside(path: Path, content: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
    try:
        disk.write(file, content + b"\n")
        disk.sync(file)
    finally:
        os.close(file)
