"""The server's runs: a journal of inboxes for each unfinished one, and what became of the others.

A server that is started again replays the journaled inboxes into the same script: `ServerRun.recorded` gives them back
one by one, as long as the script asks what it asked before.

A run's end is one record of its journal, forced to the disk: all else follows from it, whenever the process is killed.
The journal of a run that is done stays until its result is said to be kept: a server that was killed before that makes
the result again of the journal, and asks nobody twice.
"""

import hashlib
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

import msgspec

from colonnade import disk
from colonnade.errors import ColonnadeError, LocalProtocolError
from colonnade.node.cancelling import forget_cancelling
from colonnade.node.journal import Journal
from colonnade.node.log import EventLog
from colonnade.node.state_folder import StateFolder, write_private
from colonnade.protocol.run_purpose import RunPurpose
from colonnade.transports.envelopes import LARGE, Status

STATUS = "status.json"
KEPT_OUTCOMES = 100
KEPT_UNFINISHED = 3
# Runs that are done, and whose results nobody said to be kept.
KEPT_DONE = 8
ABANDONED = "the server was asked for other runs instead"
# A hello has no result that is kept: the next server asks for cards again.
HELLO = "hello"
PREPARED = "prepare-"
# The status file is for people: so many seconds are soon enough.
STATUS_SECONDS = 0.5


class RunStatus(msgspec.Struct):
    """One run, as `colonnade status` shows it."""

    run: str
    verb: str
    task: str | None
    sampler: str | None
    solver: str | None
    started: str
    status: str = "running"
    phase: str = ""
    round: int = 0
    bytes_sent: dict[str, int] = {}
    bytes_received: dict[str, int] = {}
    error: str | None = None
    # How many there are, where that is known beforehand.
    rounds: int = 0
    ended: str = ""
    # Where its result was saved, if that was said.
    saved: str | None = None


class ServerStatus(msgspec.Struct):
    """The server and its newest runs, oldest first; `awaited` are parties that it waits for since a second or more."""

    connected: list[str] = []
    missing: list[str] = []
    owners_asked: list[str] = []
    awaited: list[str] = []
    runs: list[RunStatus] = []


# Records keep the tags that they had in the first journals: a server resumes its runs after an update.
class _Opening(msgspec.Struct, array_like=True, tag="_Opened"):
    purpose: RunPurpose


class _Round(msgspec.Struct, array_like=True, tag="_Round"):
    """A round; each party's reply follows in this order."""

    number: int
    digest: bytes
    lengths: dict[str, int]


class _End(msgspec.Struct, array_like=True, tag="_End"):
    status: Status
    reason: str


_decoder = msgspec.msgpack.Decoder(_Opening | _Round | _End)


class ServerRun:
    """A run under way, at the server."""

    def __init__(
        self, status: RunStatus, journal: Journal, rounds: Iterator[tuple[memoryview, memoryview]], *, is_done: bool
    ) -> None:
        self.status = status
        self.is_done = is_done
        self.number = 0
        self.numbers: Counter[str] = Counter()  # of requests, by party: not every round asks everybody
        self._journal = journal
        self._rounds = rounds
        self._unsynced = 0

    def recorded(self, requests: Mapping[str, bytes]) -> dict[str, bytes] | None:
        """Count one round, and give its replies if the journal has them."""
        self.number += 1
        self.numbers.update(requests.keys())
        record = next(self._rounds, None)
        if record is None:
            return None
        entry = _decoder.decode(record[0])
        if not isinstance(entry, _Round) or entry.number != self.number or entry.digest != _digest(requests):
            raise LocalProtocolError(
                f"Run {self.status.run} cannot be resumed: its round {self.number} differs from the journal's. "
                "It is ended for all sides: ask for the same again, and it begins afresh."
            )
        ends = zip(entry.lengths.items(), accumulate(entry.lengths.values()), strict=True)
        return {party: bytes(record[1][end - length : end]) for (party, length), end in ends}

    def record(self, requests: Mapping[str, bytes], replies: dict[str, bytes]) -> None:
        """Write a round's replies to the journal, before anything follows from them.

        Of one phase parties repeat the last replies only, so much of them as is not forced to the disk here.
        """
        lengths = {party: len(reply) for party, reply in replies.items()}
        self._journal.append(msgspec.msgpack.encode(_Round(self.number, _digest(requests), lengths)), *replies.values())
        self._unsynced += sum(lengths.values())
        if self._unsynced >= LARGE:
            self.sync()

    def sync(self) -> None:
        """Force the journal to the disk: from here on parties forget replies of the phase before."""
        self._journal.sync()
        self._unsynced = 0

    def end(self, status: Status, reason: str) -> None:
        """Write what became of it: from here on that is so, for all sides."""
        if not self.is_done:
            self._journal.append(msgspec.msgpack.encode(_End(status, reason)))
            self.sync()

    def remove(self) -> None:
        """Remove the journal."""
        self._journal.remove()

    def close(self) -> None:
        """Leave the journal to the next process."""
        self._journal.close()


class RunBook:
    """All runs of a server."""

    def __init__(self, folder: StateFolder, log: EventLog) -> None:
        self._folder = folder
        self._log = log
        self._unfinished: dict[str, RunPurpose] = {}
        self._done_before: dict[str, RunPurpose] = {}  # by a process that was killed: the results may be lost
        self._done: list[str] = []
        self._written = 0.0
        self.lost_writes = 0  # of the status
        self._writing, self._is_closed = threading.Lock(), False
        self.status = read_status(folder.path)
        for path in folder.journals():
            self._find(path)
        for run in self.status.runs:
            if run.status == "running":
                run.status = "interrupted" if run.run in self._unfinished else "failed"
            if run.run not in self._unfinished:
                forget_cancelling(folder.path, run.run)

    def open(self, purpose: RunPurpose) -> ServerRun:
        """Begin a run, or go on with one that is for exactly this: unfinished, or done with its result not kept."""
        found = {**self._done_before, **self._unfinished}
        name = next((name for name, other in found.items() if other == purpose), None)
        if name is None:
            return self._begin(purpose)
        is_done = self._done_before.pop(name, None) is not None
        journal = Journal(self._folder.journal(name))
        rounds = journal.records()
        next(rounds)
        status = self._status(name, purpose)
        if not is_done:
            status.status, status.error, status.ended = "running", None, ""
        status.bytes_sent, status.bytes_received = {}, {}  # replayed rounds are counted again
        self._log.write("run resumed", run=name, verb=purpose.verb)
        return ServerRun(status, journal, rounds, is_done=is_done)

    def end(self, run: ServerRun, status: Status, reason: str) -> None:
        """Note what became of a run, on the disk."""
        run.end(status, reason)
        name = run.status.run
        self._note_end(run.status, _End(status, reason))
        self._unfinished.pop(name, None)
        self._log.write("run ended", run=name, status=status, reason=reason)
        self.write_status(now=True)
        if status == "done" and run.status.verb != HELLO:
            self._done.append(name)
        if status == "failed":
            self._forget_prepared()

    def _forget_prepared(self) -> None:
        """Let columns be prepared anew after a run that failed: a party may have lost how it did that."""
        for name in [name for name in (*self._done_before, *self._done) if name.startswith(PREPARED)]:
            disk.remove(self._folder.journal(name))
        self._done_before = {name: each for name, each in self._done_before.items() if not name.startswith(PREPARED)}
        self._done = [name for name in self._done if not name.startswith(PREPARED)]

    def tidy(self, run: ServerRun) -> None:
        """Remove what is not needed for a result: the journal of a run that failed, and of those done long ago."""
        if run.status.run not in self._done:
            run.remove()
        while len(self._done) > KEPT_DONE:
            disk.remove(self._folder.journal(self._done.pop(0)))

    def forget_done(self, saved: str | None = None) -> None:
        """Remove the journals of runs that are done: their results are kept, and saved there, if that is said."""
        over = {*self._done_before, *self._done}
        if saved is not None and over:
            for run in self.status.runs:
                run.saved = saved if run.run in over else run.saved
            self.write_status(now=True)
        for name in over:
            disk.remove(self._folder.journal(name))
        if self._done_before or self._done:
            self._folder.sync()
        self._done_before, self._done = {}, []

    def knows(self, name: str) -> bool:
        """Tell whether a run is under way, or can be resumed."""
        return name in self._unfinished

    def outcome(self, name: str) -> tuple[Status, str]:
        """Tell a party that comes back what became of a run."""
        run = next((run for run in self.status.runs if run.run == name), None)
        if run is not None and run.status == "done":
            return "done", ""
        return "failed", (run.error if run is not None else None) or "the server does not know this run"

    def write_status(self, *, now: bool = False) -> None:
        """Write the status file, if it is time. If that fails it is logged once, and the server goes on."""
        if not now and time.monotonic() - self._written < STATUS_SECONDS:
            return
        with self._writing:  # streams come and go in threads of their own
            if self._is_closed:
                return
            self.status.runs = self.status.runs[-KEPT_OUTCOMES:]
            self._written = time.monotonic()
            try:
                write_private(self._folder.path / STATUS, msgspec.json.encode(self.status), durable=now)
            except OSError as error:
                self.lost_writes += 1
                if self.lost_writes == 1:
                    self._log.write("status not written", reason=error.strerror)
            else:
                if self.lost_writes:
                    self._log.write("status written again", lost=self.lost_writes)
                self.lost_writes = 0

    def close(self) -> None:
        """Write the status a last time: a stream that ends later finds the folder another server's."""
        self.write_status(now=True)
        with self._writing:
            self._is_closed = True

    def _begin(self, purpose: RunPurpose) -> ServerRun:
        name = f"{purpose.verb}-{secrets.token_hex(6)}"
        journal = Journal(self._folder.journal(name))
        journal.append(msgspec.msgpack.encode(_Opening(purpose)))
        self._folder.sync()
        self._unfinished[name] = purpose
        self._log.write("run opened", run=name, verb=purpose.verb, task=purpose.task, solver=purpose.solver)
        return ServerRun(self._listed(name, purpose), journal, iter(()), is_done=False)

    def _listed(self, name: str, purpose: RunPurpose) -> RunStatus:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        status = RunStatus(name, purpose.verb, purpose.task, purpose.sampler, purpose.solver, now)
        self.status.runs.append(status)
        return status

    def abandon(self, current: ServerRun) -> list[str]:
        """Give up other unfinished runs that are too many, oldest first, and name them: parties are to hear of it."""
        others = [name for name in self._unfinished if name != current.status.run]
        names = others[: max(0, len(others) + 1 - KEPT_UNFINISHED)]
        for name in names:
            purpose = self._unfinished.pop(name)
            self._note_end(self._status(name, purpose), _End("failed", ABANDONED))
            disk.remove(self._folder.journal(name))
            self._log.write("run abandoned", run=name)
        return names

    def _find(self, path: Path) -> None:
        try:
            journal = Journal(path)
            opening, last = _first_and_last(journal)
            journal.close()
        except (ColonnadeError, msgspec.MsgspecError) as error:
            self._log.write("run lost", run=path.stem, reason=str(error))
            opening = last = None
        if isinstance(opening, _Opening) and isinstance(last, _End):
            self._note_end(self._status(path.stem, opening.purpose), last)
            if last.status == "done" and opening.purpose.verb != HELLO:
                self._done_before[path.stem] = opening.purpose
                return
        elif isinstance(opening, _Opening) and self.outcome(path.stem)[0] != "done":
            self._unfinished[path.stem] = opening.purpose
            return
        disk.remove(path)

    def _status(self, name: str, purpose: RunPurpose) -> RunStatus:
        return next((run for run in self.status.runs if run.run == name), None) or self._listed(name, purpose)

    @staticmethod
    def _note_end(status: RunStatus, end: _End) -> None:
        status.status, status.error = end.status, None if end.status == "done" else end.reason
        status.ended = status.ended or datetime.now(UTC).isoformat(timespec="seconds")


def read_status(folder: Path) -> ServerStatus:
    """Read what a server last wrote of itself."""
    try:
        return msgspec.json.decode((folder / STATUS).read_bytes(), type=ServerStatus)
    except (OSError, ValueError):  # none yet, or of another version
        return ServerStatus()


def _first_and_last(journal: Journal) -> tuple[object, object]:
    first = last = None
    for last, _ in journal.records():
        first = first or last
    return first and _decoder.decode(first), last and _decoder.decode(last)


def _digest(requests: Mapping[str, bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for party, request in sorted(requests.items()):
        digest.update(msgspec.msgpack.encode((party, len(request))))
        digest.update(request)
    return digest.digest()
