"""Jobs that wait until their owner says yes or no: each is a file in the state folder, and is decided once.

The process that answers for the party writes what it was asked. A person (`colonnade approve`), a command of the
owner's, or the time that runs out decides: the first decision on a run and its sheet stands, also after kill -9.
"""

import os
import re
import secrets
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from colonnade import disk
from colonnade.errors import InputError
from colonnade.node.state_folder import write_private
from colonnade.options import learn_types
from colonnade.protocol.sheet import JobSheet, OpenJob
from colonnade.routes import Route
from colonnade.signing import digest

APPROVALS = "approvals"
By = Literal["the owner", "the owner's command", "the time"]
# A reason is a sentence that all sides are told.
MAX_REASON = 300
# What the owner's command finds in its environment, where this process has it.
ENVIRONMENT = ("HOME", "LANG", "PATH", "TZ")


class Told(msgspec.Struct, frozen=True):
    """One kind of thing that the party would tell: to whom, of how many rows at most, in which replies."""

    what: str
    meaning: str
    to: tuple[str, ...]
    rows: int | None
    replies: tuple[str, ...]


class JobWords(msgspec.Struct, frozen=True):
    """A job in words: what its sheet says, what the party would tell, what that would take of what the owner allows."""

    job: dict[str, object]
    n_rows: int
    tells: tuple[Told, ...]
    takes: dict[str, int]
    in_all: tuple[str, ...]


class PendingJob(msgspec.Struct, frozen=True):
    """A job that waits: its job sheet and the digest of it, when it is refused, and what it is in words."""

    run: str
    server: str
    since: datetime
    until: datetime
    words: JobWords
    sheet: JobSheet
    digest: str


class Decision(msgspec.Struct, frozen=True):
    """What was decided on a job, by whom; a reason for all sides, where it is no."""

    is_approved: bool
    by: By
    reason: str
    time: datetime

    def in_words(self) -> str:
        """Say why not, for all sides."""
        who = {"the owner": "its owner said no", "the owner's command": "its owner's command said no"}
        why = f"{who.get(self.by, 'its owner did not approve')}: {self.reason or 'without a reason'}"
        return f"{why.removesuffix('.')}. Ask its owner."


class ApprovalRules(NamedTuple):
    """How long a job may wait, and the owner's command, if there is one."""

    within_seconds: float
    hook: Sequence[str] = ()


Describe = Callable[[OpenJob, Route], JobWords]
_jobs: msgspec.json.Decoder[PendingJob] = msgspec.json.Decoder(PendingJob)
_decisions: msgspec.json.Decoder[Decision] = msgspec.json.Decoder(Decision)
learn_types(PendingJob, Decision)


class Approvals:
    """The jobs of one party that wait for its owner; `describe` puts a job into words."""

    def __init__(
        self, state: Path, rules: ApprovalRules, server: str, describe: Describe, say: Callable[[str], None]
    ) -> None:
        self._folder = state / APPROVALS
        self._rules = rules
        self._server = server
        self._describe = describe
        self._say = say
        self._commands: dict[str, subprocess.Popen[bytes]] = {}
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._pending = {job.run: job for job in pending_jobs(state)}
        kept = {path for job in self._pending.values() for path in _paths(self._folder, job)}
        for path in set(self._folder.iterdir()) - kept:  # drafts and decisions that a kill left behind
            path.unlink()
        for job in self._pending.values():
            self._start_command(job)

    @property
    def runs(self) -> tuple[str, ...]:
        """Runs that wait, or were decided on and go on."""
        return tuple(self._pending)

    def ask(self, run: str, request: OpenJob, route: Route) -> PendingJob | None:
        """Ask the owner for a job; None if that was done before."""
        if run in self._pending:
            return None
        now = datetime.now(UTC)
        until = now + timedelta(seconds=self._rules.within_seconds)
        words = self._describe(request, route)
        job = PendingJob(run, self._server, now, until, words, request.read(), digest(request.sheet).hex())
        _decision_path(self._folder, job).unlink(missing_ok=True)  # of an earlier run of this name
        write_private(_job_path(self._folder, run), msgspec.json.encode(job))
        self._pending[run] = job
        self._start_command(job)
        self._say(f"Run {run} waits for its owner until {until:%Y-%m-%d %H:%M} UTC: see `colonnade approve`.")
        return job

    def is_other_sheet(self, run: str, request: OpenJob) -> bool:
        """Tell whether a run waits, or was decided on, with another sheet than this."""
        return run in self._pending and self._pending[run].digest != digest(request.sheet).hex()

    def decision(self, run: str) -> Decision | None:
        """Give what was decided, if it was; a job that has waited too long is refused."""
        job = self._pending[run]
        found = _read_decision(self._folder, job)
        if found is None and datetime.now(UTC) >= job.until:
            limit = f"{self._rules.within_seconds / 3600:.3g} hours"
            found = decide(self._folder, job, is_approved=False, by="the time", reason=f"nobody decided in {limit}")
        return found

    def forget(self, run: str) -> bool:
        """Remove what is kept of a run that is over; tell whether there was something."""
        self._stop_command(run)
        job = self._pending.pop(run, None)
        if job is not None:
            for path in _paths(self._folder, job):
                path.unlink(missing_ok=True)
        return job is not None

    def close(self) -> None:
        """Stop commands that are under way; the next process starts them again."""
        for run in list(self._commands):
            self._stop_command(run)

    def _start_command(self, job: PendingJob) -> None:
        if self._rules.hook and _read_decision(self._folder, job) is None:
            threading.Thread(target=self._run_command, args=(job,), daemon=True).start()

    def _run_command(self, job: PendingJob) -> None:
        """Let the owner's command decide: its exit code is yes or no, the first line it prints the reason."""
        try:
            command = subprocess.Popen(  # noqa: S603  # the owner's own, of party.toml, and through no shell
                list(self._rules.hook),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
                start_new_session=True,
            )
        except OSError as error:
            self._say(f"The command of approve_hook cannot be started: {error}")
            self._decide(job, 1, "its command for approvals cannot be started")
            return
        self._commands[job.run] = command
        left = (job.until - datetime.now(UTC)).total_seconds()
        try:
            said, _ = command.communicate(msgspec.json.encode(job), timeout=max(left, 0.0))
        except subprocess.TimeoutExpired:
            self._stop_command(job.run)  # `decision` says that the time is over
        except (OSError, ValueError) as error:  # it was stopped with the party
            self._say(f"The command of approve_hook was left: {error}")
        else:
            if self._commands.pop(job.run, None) is not None:  # else the run ended, or the party
                self._decide(job, command.returncode, said.decode("utf-8", "replace").partition("\n")[0])

    def _decide(self, job: PendingJob, code: int, words: str) -> None:
        reason = words.strip() or f"exit code {code}"
        with suppress(OSError):  # the run ended meanwhile, or the disk is full: then the time decides
            decide(self._folder, job, is_approved=code == 0, by="the owner's command", reason=reason)

    def _stop_command(self, run: str) -> None:
        command = self._commands.pop(run, None)
        if command is not None:
            with suppress(ProcessLookupError):
                os.killpg(command.pid, signal.SIGKILL)
            command.wait()


def forget_all(state: Path) -> None:
    """Remove what waits: its owner is asked no longer."""
    for path in (state / APPROVALS).glob("*"):
        path.unlink()


def pending_jobs(state: Path) -> list[PendingJob]:
    """List the jobs in a party's state folder that wait, or were decided on and go on; the oldest first."""
    jobs = []
    for path in (state / APPROVALS).glob("*.job"):
        try:
            jobs.append(_jobs.decode(path.read_bytes()))
        except (FileNotFoundError, msgspec.MsgspecError):  # its run has just ended; or of another version: asked again
            continue
    return sorted(jobs, key=lambda job: job.since)


def decision_on(state: Path, job: PendingJob) -> Decision | None:
    """Give what was decided on a job, if it was."""
    return _read_decision(state / APPROVALS, job)


def decide_for_owner(
    state: Path, run: str, *, is_approved: bool, reason: str = "", digest: str | None = None
) -> Decision:
    """Let the owner decide on a run that waits; `digest` is that of the job sheet that the owner has seen."""
    jobs = {job.run: job for job in pending_jobs(state)}
    if run not in jobs:
        waiting = ", ".join(jobs) or "none"
        raise InputError(f"No run {run!r} waits for its owner; those that wait: {waiting}. It may be over already.")
    if digest is not None and digest != jobs[run].digest:  # a server may end a run and open another of its name
        raise InputError(f"The job of this run changed since you looked at it: run {run!r}. Look again.")
    if decision_on(state, jobs[run]) is not None or datetime.now(UTC) >= jobs[run].until:
        raise InputError(f"Run {run} is decided on already, or its time is over. `colonnade approve` lists what waits.")
    return decide(state / APPROVALS, jobs[run], is_approved=is_approved, by="the owner", reason=reason)


def decide(folder: Path, job: PendingJob, *, is_approved: bool, by: By, reason: str) -> Decision:
    """Write a decision down, unless there is one; give the one that stands."""
    decision = Decision(is_approved, by, reason[:MAX_REASON], datetime.now(UTC))
    draft = folder / f".{secrets.token_hex(8)}.draft"
    write_private(draft, msgspec.json.encode(decision))
    try:
        disk.link(draft, _decision_path(folder, job))  # fails where there is one
    except FileExistsError:
        return _read_decision(folder, job) or decision
    finally:
        draft.unlink(missing_ok=True)
    disk.sync_folder(folder)
    return decision


def _read_decision(folder: Path, job: PendingJob) -> Decision | None:
    try:
        return _decisions.decode(_decision_path(folder, job).read_bytes())
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError:
        return Decision(False, "the owner", "the decision cannot be read", datetime.now(UTC))


def _job_path(folder: Path, run: str) -> Path:
    return folder / f"{_checked(run)}.job"


def _decision_path(folder: Path, job: PendingJob) -> Path:
    return folder / f"{_checked(job.run)}.{_checked(job.digest)}.decision"


def _paths(folder: Path, job: PendingJob) -> tuple[Path, Path]:
    return _job_path(folder, job.run), _decision_path(folder, job)


def _checked(name: str) -> str:
    """Require what may name a file."""
    if not re.fullmatch(r"[a-z0-9-]{1,64}", name):
        raise InputError(f"{name!r} names no run. `colonnade approve PARTY.toml` lists those that wait.")
    return name
