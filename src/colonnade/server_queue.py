"""The queue of a server that was started with `--queue`: one small file a job, done in the order they were put there.

Who may write to the state folder may ask for a job; each is checked as the [[job]] tables of federation.toml are. What
came of a job is written down before its file is removed: a server that was killed does none twice.
"""

import os
import re
import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from colonnade import disk
from colonnade.disk import PRIVATE_FOLDER
from colonnade.errors import ColonnadeError, InputError
from colonnade.federation import Federation
from colonnade.node.cancelling import CANCELLED
from colonnade.node.files import read_federation_file
from colonnade.node.runs import read_status
from colonnade.node.state_folder import StateFolder, is_held, write_private
from colonnade.server_jobs import AnyJob, play_job, read_jobs
from colonnade.storage import read_file

QUEUE, FINISHED = "queue", "finished"
# Its number, for those who want to stop a server that a board has started.
PROCESS = "pid"
# A job is a few lines. So many may wait, and of so many it is kept what came of them.
MAX_JOB_BYTES, MAX_WAITING, KEPT_FINISHED = 1 << 16, 100, 100
LOOK_SECONDS = 0.5


class QueuedJob(msgspec.Struct):
    """A job that waits, or is under way since `begun`; `chance` decides what a spot check opens."""

    name: str
    job: dict[str, Any]
    asked: str = ""
    begun: str = ""
    chance: int = 0


class FinishedJob(msgspec.Struct):
    """What came of a job."""

    name: str
    job: dict[str, Any]
    asked: str
    begun: str
    ended: str
    status: Literal["done", "failed"]
    error: str | None = None
    result: dict[str, Any] = {}


class Queue:
    """The jobs in a state folder that wait, and those that were done."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._folder, self._finished = state / QUEUE, state / QUEUE / FINISHED

    @property
    def is_served(self) -> bool:
        """Whether a server does what stands here."""
        return is_held(self._folder)

    def hold(self) -> StateFolder:
        """Be the server that does what stands here."""
        self._make()
        held = StateFolder(self._folder)
        write_private(self._folder / PROCESS, f"{os.getpid()}\n".encode())
        return held

    def add(self, table: dict[str, Any]) -> str:
        """Put a job at the end, and give its name here."""
        self._make()
        if len(self._names()) >= MAX_WAITING:
            raise InputError(f"{MAX_WAITING} jobs wait already. Let the server do some of them, or take some off.")
        name = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
        job = QueuedJob(name, table, _now(), chance=secrets.randbits(62))
        encoded = msgspec.json.encode(job)
        if len(encoded) > MAX_JOB_BYTES:
            raise InputError(f"The job has {len(encoded):,} bytes; {MAX_JOB_BYTES:,} are the most. Make it smaller.")
        write_private(self._path(name), encoded)
        return name

    def waiting(self) -> list[QueuedJob]:
        """List the jobs that are not done yet, in their order."""
        return [self._read(name) for name in self._names() if not (self._finished / f"{name}.json").exists()]

    def finished(self) -> list[FinishedJob]:
        """List what came of the last jobs, the newest first."""
        found = []
        for path in sorted(self._finished.glob("*.json"), reverse=True)[:KEPT_FINISHED]:
            try:
                found.append(msgspec.json.decode(read_file(path, 4 * MAX_JOB_BYTES), type=FinishedJob))
            except (OSError, ValueError, RecursionError):  # of another version
                continue
        return found

    def remove(self, name: str) -> None:
        """Take a job off that is not begun."""
        job = next((job for job in self.waiting() if job.name == name), None)
        if job is None or job.begun:
            raise InputError(f"No job {name!r} waits here. It may be under way, or done: look again.")
        disk.remove(self._path(name))

    def begin(self, job: QueuedJob) -> None:
        """Note that a job is under way, unless a server that was killed did."""
        if not job.begun:
            job.begun = _now()
            write_private(self._path(job.name), msgspec.json.encode(job))

    def end(self, job: QueuedJob, error: str | None = None, result: dict[str, Any] | None = None) -> FinishedJob:
        """Note what came of a job, on the disk, and take it off."""
        status: Literal["done", "failed"] = "failed" if error is not None else "done"
        ended = FinishedJob(job.name, job.job, job.asked, job.begun, _now(), status, error, result or {})
        write_private(self._finished / f"{job.name}.json", msgspec.json.encode(ended))
        disk.remove(self._path(job.name))
        for path in sorted(self._finished.glob("*.json"))[:-KEPT_FINISHED]:
            disk.remove(path)
        return ended

    def _make(self) -> None:
        for folder in (self._state, self._folder, self._finished):
            disk.make_folder(folder, PRIVATE_FOLDER)

    def _names(self) -> list[str]:
        return sorted(path.stem for path in self._folder.glob("*.json") if _is_name(path.stem))

    def _path(self, name: str) -> Path:
        if not _is_name(name):
            raise InputError(f"{name!r} names no job of the queue. Look at the queue again.")
        return self._folder / f"{name}.json"

    def _read(self, name: str) -> QueuedJob:
        """Read a job; one that cannot be read is refused when its turn comes, as a table without content is."""
        try:
            job = msgspec.json.decode(read_file(self._path(name), MAX_JOB_BYTES), type=QueuedJob)
        except (OSError, ValueError, RecursionError):
            return QueuedJob(name, {})
        job.name = name
        return job


def queued_job(table: dict[str, Any], federation_file: Path) -> AnyJob:
    """Read a job of the queue as a [[job]] table; its plan is a file beside federation.toml, nowhere else."""
    plan = table.get("plan")
    if isinstance(plan, str) and (Path(plan).name != plan or (federation_file.parent / plan).is_symlink()):
        raise InputError(f"The plan {plan!r} is not a file beside {federation_file.name}. Put it there, and name it.")
    (job,) = read_jobs([table], federation_file)
    return job


class Stopping:
    """Lets a queue be left: at once where nothing is under way; else the run is interrupted, and can be resumed."""

    def __init__(self) -> None:
        self.is_asked = False
        self.is_busy = True  # until the parties are there

    def ask(self, *_signal: object) -> None:
        """Ask for the end; made to be called by a signal."""
        self.is_asked = True
        if self.is_busy:
            raise KeyboardInterrupt


def do_queue(federation_file: Path, stopping: Stopping) -> Iterator[FinishedJob]:
    """Do what stands in the queue, job by job, and wait for more; a job that fails does not stop those that follow."""
    file = read_federation_file(federation_file)
    queue = Queue(Path(file.state))
    held = queue.hold()
    try:
        with Federation.connect(federation_file) as federation:
            stopping.is_busy = False
            while not stopping.is_asked:
                job = next(iter(queue.waiting()), None)
                if job is not None:
                    yield _do(job, queue, federation, federation_file, stopping)
                    continue
                federation.acknowledge()  # where it was killed before it could say so
                time.sleep(LOOK_SECONDS)
    finally:
        held.release()


def _do(job: QueuedJob, queue: Queue, federation: Federation, federation_file: Path, stopping: Stopping) -> FinishedJob:
    state = Path(read_federation_file(federation_file).state)
    try:
        if job.begun and _was_cancelled(state, job.begun):  # and the server killed, before it could write that down
            return queue.end(job, error=CANCELLED)
        found = queued_job(job.job, federation_file)
        queue.begin(job)
        stopping.is_busy = True
        result = play_job(found, federation, federation_file.resolve().parent, lambda: job.chance)
    except ColonnadeError as error:
        stopping.is_busy = False
        ended = queue.end(job, error=str(error))
    else:
        stopping.is_busy = False
        ended = queue.end(job, result=result)
    federation.acknowledge(ended.result.get("saved"))
    return ended


def _was_cancelled(state: Path, begun: str) -> bool:
    runs = read_status(state).runs
    return any(run.started >= begun and (run.error or "").startswith(CANCELLED) for run in runs)


def _is_name(name: str) -> bool:
    return re.fullmatch(r"[0-9]{20}-[0-9a-f]{8}", name) is not None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
