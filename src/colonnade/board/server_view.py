"""What a server's board shows, read from its state folder: parties, runs, the queue, what can be started."""

import re
import time
from pathlib import Path
from typing import Any

from colonnade.board.logs import LogTail
from colonnade.board.saved_jobs import job_facts, saved_jobs, saved_plans
from colonnade.board.words import counted, listed, seconds_since, span_in_words, time_left, title_of
from colonnade.node.cancelling import CANCELLED, is_being_cancelled
from colonnade.node.files import FederationFile, read_federation_file
from colonnade.node.runs import RunStatus, ServerStatus, read_status
from colonnade.node.server import MAX_REASON
from colonnade.node.state_folder import is_held
from colonnade.number_words import in_bytes
from colonnade.protocol.refusal import without_paths
from colonnade.run import RUN
from colonnade.server_queue import FinishedJob, Queue, QueuedJob

SAID = "server.out"
SHOWN_RUNS, SHOWN_FINISHED, SHOWN_SAID = 30, 10, 2000
# A party that is there and gives no answer for so long is called late.
LATE_SECONDS = 30.0
REFUSED = re.compile(r"Party '(.{1,64}?)' did not answer \w+: (.*)", re.DOTALL)
UNDER_WAY = ("running", "interrupted")
NOT_TOLD = "not told to a server; it has refused nothing so far"


class ServerView:
    """Reads a server's state folder; changes nothing."""

    def __init__(self, federation_file: Path) -> None:
        self.path = federation_file
        self._log = LogTail(Path(self.file().state))
        self._awaited: dict[tuple[str, str, int], float] = {}

    def file(self) -> FederationFile:
        """Read federation.toml as it is now."""
        return read_federation_file(self.path)

    def snapshot(self) -> dict[str, Any]:
        """Put into words what is there now."""
        file = self.file()
        state = Path(file.state)
        is_up, status, queue = is_held(state), read_status(state), Queue(state)
        waiting, is_served = queue.waiting(), queue.is_served
        runs = [self._run(run, state, is_up=is_up) for run in reversed(status.runs[-SHOWN_RUNS:])]
        parties = self._parties(file, status, is_up=is_up)
        return {
            "kind": "server",
            "headline": _headline(file, status, waiting, is_up=is_up),
            "parties": parties,
            "runs": [run for run in runs if run["verb"] != "hello" or run["status"] != "done"],
            "approvals": [{"party": party} for party in (status.owners_asked if is_up else [])],
            "queue": [_queued(job) for job in waiting],
            "queue_note": _queue_note(waiting, is_up=is_up, is_served=is_served),
            "finished": [_finished(job) for job in _failed(queue.finished(), status)[:SHOWN_FINISHED]],
            "jobs": saved_jobs(file, self.path),
            "plans": saved_plans(self.path),
            "said": "" if is_up else _said(state),
        }

    def saved_run(self, name: str) -> Path | None:
        """Find the folder that a run was saved to, if it was; names come from outside and are looked up only."""
        found = next((run for run in read_status(Path(self.file().state)).runs if run.run == name), None)
        return _saved(found) if found is not None else None

    def under_way(self, name: str) -> bool:
        """Tell whether a run can be cancelled."""
        runs = read_status(Path(self.file().state)).runs
        return any(run.run == name and run.status in UNDER_WAY for run in runs)

    def _parties(self, file: FederationFile, status: ServerStatus, *, is_up: bool) -> list[dict[str, Any]]:
        seen: dict[str, str] = {}
        for event in self._log.events():
            if event.get("event") in ("joined", "left") and isinstance(event.get("party"), str):
                seen[event["party"]] = str(event.get("time", ""))
        refused = _refusals(status)
        late = self._late(status) if is_up else {}
        return [
            {
                "name": party,
                **_presence(party, status, late, is_up=is_up),
                "is_here": is_up and party in status.connected,
                "seen": None if is_up and party in status.connected else seen.get(party),
                "policy": refused.get(party, NOT_TOLD),
            }
            for party in file.parties
        ]

    def _late(self, status: ServerStatus) -> dict[str, float]:
        """Tell since how many seconds each party is waited for, in the round that is under way."""
        run = next((run for run in reversed(status.runs) if run.status == "running"), None)
        keys = [] if run is None else [(party, run.run, run.round) for party in status.awaited]
        now = time.monotonic()
        self._awaited = {key: self._awaited.get(key, now) for key in keys}
        return {key[0]: now - since for key, since in self._awaited.items()}

    def _run(self, run: RunStatus, state: Path, *, is_up: bool) -> dict[str, Any]:
        status = "interrupted" if run.status == "running" and not is_up else run.status
        is_cancelled = status == "failed" and (run.error or "").startswith(CANCELLED)
        shown = "cancelled" if is_cancelled else status
        elapsed = seconds_since(run.started) or 0.0
        sent, received = run.bytes_sent, run.bytes_received
        total = sum(sent.values()) + sum(received.values())
        return {
            "run": run.run,
            "verb": run.verb,
            "title": title_of(run.verb, run.task),
            "how": ", ".join(filter(None, [run.sampler, run.solver])),
            "status": shown,
            "phase": run.phase,
            "round": run.round,
            "rounds": run.rounds,
            "progress": round((run.round - 1) / run.rounds, 3) if run.rounds and run.round else None,
            "left": time_left(run.round, run.rounds, elapsed) if status == "running" else None,
            "started": run.started,
            "ended": run.ended or None,
            "took": _took(run),
            "bytes": [
                {
                    "party": each,
                    "sent": in_bytes(sent.get(each, 0)),
                    "received": in_bytes(received.get(each, 0)),
                }
                for each in dict.fromkeys((*sent, *received))
            ],
            "total": in_bytes(total),
            "error": run.error,
            "can_cancel": run.status in UNDER_WAY,
            "is_cancelling": run.status in UNDER_WAY and is_being_cancelled(state, run.run),
            "has_report": run.status == "done" and _saved(run) is not None,
        }


def _took(run: RunStatus) -> str | None:
    start, end = seconds_since(run.started), seconds_since(run.ended)
    return None if start is None or end is None else span_in_words(start - end)


def _saved(run: RunStatus) -> Path | None:
    if run.saved is None or run.verb not in ("fit", "coreset"):
        return None
    folder = Path(run.saved)
    return folder if (folder / RUN.record).is_file() else None


def _presence(party: str, status: ServerStatus, late: dict[str, float], *, is_up: bool) -> dict[str, str]:
    """Say whether a party is there, in one word for the look and a few for people."""
    if not is_up:
        return {"tone": "unknown", "state": "not known"}
    if party in status.owners_asked:
        return {"tone": "waiting", "state": "waits for its owner to approve"}
    if party not in status.connected:
        return {"tone": "late", "state": "late: the run waits for it"} if party in late else _away()
    if late.get(party, 0.0) >= LATE_SECONDS:
        return {"tone": "late", "state": f"late: no answer for {span_in_words(late[party])}"}
    return {"tone": "good", "state": "connected, at work" if party in late else "connected"}


def _away() -> dict[str, str]:
    return {"tone": "away", "state": "not connected"}


def _refusals(status: ServerStatus) -> dict[str, str]:
    """Give what each party's policy was last heard to say: a refusal tells a part of it, and nothing else does."""
    found = {}
    for run in status.runs:
        if run.error and (match := REFUSED.match(run.error)):
            found[match[1]] = f"in {run.run} it refused: {match[2]}"
    return found


def _headline(file: FederationFile, status: ServerStatus, waiting: list[QueuedJob], *, is_up: bool) -> dict[str, str]:
    """Say in one sentence how things are."""
    if not is_up:
        left = f" {counted(len(waiting), 'job')} in the queue." if waiting else ""
        return {"tone": "unknown", "words": f"The server is not running.{left}"}
    missing = [party for party in file.parties if party not in status.connected]
    running = next((run for run in reversed(status.runs) if run.status == "running" and run.verb != "hello"), None)
    if status.owners_asked:
        return {"tone": "waiting", "words": f"Waiting for the owner of {listed(status.owners_asked)} to approve."}
    if missing:
        return {"tone": "late", "words": f"Waiting for {listed(missing)} to connect."}
    there = f"All {len(file.parties)} parties are connected." if len(file.parties) > 1 else "The party is connected."
    if running is not None:
        return {
            "tone": "busy",
            "words": f"{there} {title_of(running.verb, running.task)}: {running.phase} is under way.",
        }
    return {"tone": "good", "words": f"{there} Nothing is under way."}


def _queued(job: QueuedJob) -> dict[str, Any]:
    return {"name": job.name, **job_facts(job.job), "asked": job.asked, "is_begun": bool(job.begun)}


def _failed(jobs: list[FinishedJob], status: ServerStatus) -> list[FinishedJob]:
    """List the jobs that failed before or beside a run; what became of a run is shown with it."""
    told = {run.error for run in status.runs}
    failed = [job for job in jobs if job.status == "failed" and not (job.error or "").startswith(CANCELLED)]
    return [job for job in failed if without_paths(job.error or "")[:MAX_REASON] not in told]


def _finished(job: FinishedJob) -> dict[str, Any]:
    return {"name": job.name, **job_facts(job.job), "status": job.status, "ended": job.ended, "error": job.error}


def _queue_note(waiting: list[QueuedJob], *, is_up: bool, is_served: bool) -> str:
    if is_up and not is_served:
        return "The server that is running does the jobs of its file. The queue waits for one with --queue."
    if waiting and not is_up:
        return "No server is running. Start a job here, or run `colonnade server FEDERATION.toml --queue`."
    return ""


def _said(state: Path) -> str:
    """Give the last words of a server that this board started."""
    try:
        return (state / SAID).read_bytes()[-SHOWN_SAID:].decode("utf-8", "replace")
    except OSError:
        return ""
