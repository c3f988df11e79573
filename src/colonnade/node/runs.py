"""The server's runs: a journal of inboxes for each unfinished one, and what became of the others.

A server that is started again replays the journaled inboxes into the same script: `ServerRun.recorded` gives them back
one by one, as long as the script asks what it asked before.
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

from colonnade.errors import ColonnadeError, LocalProtocolError
from colonnade.node.journal import Journal, sync_folder
from colonnade.node.log import EventLog
from colonnade.node.state_folder import StateFolder, write_private
from colonnade.protocol.run_purpose import RunPurpose
from colonnade.transports.envelopes import Status

STATUS = "status.json"
KEPT_OUTCOMES = 100
KEPT_UNFINISHED = 3
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


class ServerStatus(msgspec.Struct):
    """The server and its newest runs, oldest first."""

    connected: list[str] = []
    missing: list[str] = []
    runs: list[RunStatus] = []


# Records keep the tags that they had in the first journals: a server resumes its runs after an update.
class _Opening(msgspec.Struct, array_like=True, tag="_Opened"):
    purpose: RunPurpose


class _Round(msgspec.Struct, array_like=True, tag="_Round"):
    """A round; each party's reply follows in this order."""

    number: int
    digest: bytes
    lengths: dict[str, int]


_decoder = msgspec.msgpack.Decoder(_Opening | _Round)


class ServerRun:
    """A run under way, at the server."""

    def __init__(self, status: RunStatus, journal: Journal, rounds: Iterator[tuple[memoryview, memoryview]]) -> None:
        self.status = status
        self.number = 0
        self.numbers: Counter[str] = Counter()  # of requests, by party: not every round asks everybody
        self._journal = journal
        self._rounds = rounds

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
        """Write a round's replies to the journal, before anything follows from them."""
        lengths = {party: len(reply) for party, reply in replies.items()}
        self._journal.append(msgspec.msgpack.encode(_Round(self.number, _digest(requests), lengths)), *replies.values())

    def sync(self) -> None:
        """Force the journal to the disk: from here on parties forget replies of the phase before."""
        self._journal.sync()

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
        self._written = 0.0
        self.lost_writes = 0  # of the status
        self._writing = threading.Lock()
        self.status = read_status(folder.path)
        for path in folder.journals():
            self._find(path)
        for run in self.status.runs:
            if run.status == "running":
                run.status = "interrupted" if run.run in self._unfinished else "failed"

    def open(self, purpose: RunPurpose) -> ServerRun:
        """Begin a run, or go on with an unfinished one that is for exactly this."""
        name = next((name for name, other in self._unfinished.items() if other == purpose), None)
        if name is None:
            return self._begin(purpose)
        journal = Journal(self._folder.journal(name))
        rounds = journal.records()
        next(rounds)
        status = next((run for run in self.status.runs if run.run == name), None) or self._listed(name, purpose)
        status.status, status.error = "running", None
        status.bytes_sent, status.bytes_received = {}, {}  # replayed rounds are counted again
        self._log.write("run resumed", run=name, verb=purpose.verb)
        return ServerRun(status, journal, rounds)

    def end(self, run: ServerRun, status: Status, reason: str) -> None:
        """Note what became of a run, and remove its journal."""
        run.status.status, run.status.error = status, None if status == "done" else reason
        self._unfinished.pop(run.status.run, None)
        self.write_status(now=True)
        run.remove()
        self._log.write("run ended", run=run.status.run, status=status, reason=reason)

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

    def _begin(self, purpose: RunPurpose) -> ServerRun:
        while len(self._unfinished) >= KEPT_UNFINISHED:
            self._abandon(next(iter(self._unfinished)))
        name = f"{purpose.verb}-{secrets.token_hex(6)}"
        journal = Journal(self._folder.journal(name))
        journal.append(msgspec.msgpack.encode(_Opening(purpose)))
        sync_folder(self._folder.path)
        self._unfinished[name] = purpose
        self._log.write("run opened", run=name, verb=purpose.verb, task=purpose.task, solver=purpose.solver)
        return ServerRun(self._listed(name, purpose), journal, iter(()))

    def _listed(self, name: str, purpose: RunPurpose) -> RunStatus:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        status = RunStatus(name, purpose.verb, purpose.task, purpose.sampler, purpose.solver, now)
        self.status.runs.append(status)
        return status

    def _abandon(self, name: str) -> None:
        del self._unfinished[name]
        self._folder.journal(name).unlink(missing_ok=True)
        self._log.write("run abandoned", run=name)

    def _find(self, path: Path) -> None:
        try:
            journal = Journal(path)
            first = next(journal.records(), None)
            opening = None if first is None else _decoder.decode(first[0])
            journal.close()
        except (ColonnadeError, msgspec.MsgspecError) as error:
            self._log.write("run lost", run=path.stem, reason=str(error))
            opening = None
        if isinstance(opening, _Opening) and self.outcome(path.stem)[0] != "done":
            self._unfinished[path.stem] = opening.purpose
        else:
            path.unlink()


def read_status(folder: Path) -> ServerStatus:
    """Read what a server last wrote of itself."""
    try:
        return msgspec.json.decode((folder / STATUS).read_bytes(), type=ServerStatus)
    except (OSError, ValueError):  # none yet, or of another version
        return ServerStatus()


def _digest(requests: Mapping[str, bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for party, request in sorted(requests.items()):
        digest.update(msgspec.msgpack.encode((party, len(request))))
        digest.update(request)
    return digest.digest()
