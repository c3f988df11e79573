"""What a party's board shows, read from its state folder: what was asked, answered, refused; what is left."""

import threading
from collections import Counter
from pathlib import Path
from typing import Any

from colonnade.board.logs import LogTail
from colonnade.board.words import counted, listed, title_of
from colonnade.contracts import Table
from colonnade.errors import ColonnadeError
from colonnade.node.allowance import COUNTED, Allowance
from colonnade.node.approval_words import day_in_words, facts_in_words, left_for_all_time, told_in_words
from colonnade.node.approvals import PendingJob, decision_on, pending_jobs
from colonnade.node.files import PartyFile, read_party_file
from colonnade.node.memory_file import MEMORY, notes_in
from colonnade.node.policy_words import worst_case
from colonnade.node.state_folder import is_held
from colonnade.number_words import in_bytes

SHOWN_RUNS, SHOWN_REFUSALS = 30, 20
AMOUNTS = ("rows", "row_ids", "keys", "numbers", "moments", "models")


class OwnTable:
    """The party's table, read once and in the background: a policy in words has its numbers."""

    def __init__(self, file: PartyFile) -> None:
        self.table: Table | None = None
        self.policy: list[dict[str, str]] = []
        self.note = "The party's table is being read."
        self._file = file
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        file = self._file
        try:
            table = file.data.party(file.name, file.policy.policy(), prepare=file.prepare).table
            self.policy = [{"about": each.about, "words": each.words} for each in worst_case(file.policy, table)]
        except (ColonnadeError, OSError) as error:
            self.note = f"The party's table cannot be read: {error}"
        else:
            self.table, self.note = table, ""


class PartyView:
    """Reads a party's state folder; changes nothing."""

    def __init__(self, party_file: Path) -> None:
        self.path = party_file
        file = self.file()
        self.name = file.name
        self._log = LogTail(Path(file.state))
        self._own = OwnTable(file)

    def file(self) -> PartyFile:
        """Read party.toml as it is now."""
        return read_party_file(self.path)

    def snapshot(self) -> dict[str, Any]:
        """Put into words what is there now."""
        file = self.file()
        state, events = Path(file.state), self._log.events()
        is_up, pending = is_held(state), pending_jobs(state)
        waiting = [job for job in pending if decision_on(state, job) is None]
        return {
            "kind": "party",
            "headline": _headline(file, events, waiting, is_up=is_up),
            "pending": [self._pending(file, job) for job in pending],
            "budget": self._budget(file),
            "all_time": self._all_time(file),
            "runs": _runs(events)[:SHOWN_RUNS],
            "refusals": _refusals(events)[:SHOWN_REFUSALS],
            "policy": self._own.policy,
            "policy_note": self._own.note or f"Level {file.policy.level}, for this party's table.",
        }

    def left(self, file: PartyFile, rows: int | None = None) -> dict[str, int]:
        """Say what is left of the day's amounts; some depend on how many rows the table has, where that is known."""
        known = self._own.table.n_rows if rows is None and self._own.table is not None else rows
        a_day = file.policy.a_day(1 << 62 if known is None else known)
        return Allowance(Path(file.state) / "spent.json", file.server_name, a_day, None).left()

    def counts(self) -> Counter[str]:
        """Count what the log has of answers and refusals."""
        kinds = ("answered", "refused", "repeated", "run opened", "run ended", "failed")
        return Counter(str(event["event"]) for event in self._log.events() if event.get("event") in kinds)

    def _pending(self, file: PartyFile, job: PendingJob) -> dict[str, Any]:
        decision, facts = decision_on(Path(file.state), job), job.words.job
        decided = None if decision is None else ("yes" if decision.is_approved else "no")
        return {
            "run": job.run,
            "digest": job.digest,
            "server": job.server,
            "title": title_of(str(facts.get("verb", "")), _text(facts.get("task"))),
            "facts": facts_in_words(facts),
            "since": job.since.isoformat(),
            "until": job.until.isoformat(),
            "tells": [told_in_words(told) for told in job.words.tells],
            "today": day_in_words(job.words.takes, self.left(file, job.words.n_rows)),
            "in_all": list(job.words.in_all),
            "decided": decided,
        }

    def _budget(self, file: PartyFile) -> list[dict[str, Any]]:
        own = self._own.table
        a_day = file.policy.a_day(1 << 62 if own is None else own.n_rows)
        found = []
        for name, left in self.left(file).items():
            most = getattr(a_day, name)
            words = f"{left:,} of {most:,}"
            found.append({"name": COUNTED[name], "words": words, "share": round(left / most, 4) if most else 0.0})
        return found

    def _all_time(self, file: PartyFile) -> list[dict[str, str]]:
        own = self._own.table
        if own is None:
            return []
        names, has_label = len(own.feature_names), own.label_name is not None
        notes = notes_in(Path(file.state) / MEMORY)
        left = left_for_all_time(file.policy.policy(), notes, own.n_rows, names, has_label)
        return [{"about": name, "words": words.partition(": ")[2]} for name, words in left.items()]


def _headline(
    file: PartyFile, events: list[dict[str, Any]], waiting: list[PendingJob], *, is_up: bool
) -> dict[str, str]:
    """Say in one sentence how things are."""
    wait = "waits" if len(waiting) == 1 else "wait"
    if not is_up:
        left = f" {counted(len(waiting), 'job')} {wait} for you." if waiting else ""
        return {"tone": "unknown", "words": f"{file.name} is not running.{left}"}
    if waiting:
        return {"tone": "waiting", "words": f"{counted(len(waiting), 'job')} {wait} for you to approve or refuse."}
    lines = [event for event in events if event.get("event") in ("line up", "line broke", "no line", "started")]
    if lines and lines[-1]["event"] != "line up":
        return {"tone": "late", "words": f"{file.name} is running, and has no line to {file.server}."}
    open_runs = [run["title"] for run in _runs(events) if run["status"] == "running" and run["verb"] != "hello"]
    if open_runs:
        return {"tone": "busy", "words": f"{file.name} takes part: {listed(open_runs)}."}
    return {"tone": "good", "words": f"{file.name} is connected to {file.server}. Nothing is asked of it."}


def _runs(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put together what the log has of each run, the newest first."""
    by_run: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if isinstance(event.get("run"), str):
            by_run.setdefault(event["run"], []).append(event)
    found = [_run(name, lines) for name, lines in by_run.items()]
    return [run for run in reversed(found) if run["verb"] != "hello" or run["status"] == "failed"]


def _run(name: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Say what was asked in a run, and what of it was answered and refused; never more than the log does."""
    named = next((line for line in lines if "verb" in line), {})
    end = next((line for line in reversed(lines) if line["event"] == "run ended"), None)
    answers = [line for line in lines if line["event"] == "answered"]
    refused = [line for line in lines if line["event"] == "refused"]
    verb, is_waiting = str(named.get("verb", name.rpartition("-")[0])), lines[-1]["event"] == "waiting for the owner"
    sums = {each: sum(_number(line.get(each)) for line in answers) for each in (*AMOUNTS, "bytes")}
    told = [f"{sums[each]:,} {COUNTED[each]}" for each in AMOUNTS if sums[each]]
    how = [_text(named.get(each)) for each in ("sampler", "solver")]
    return {
        "run": name,
        "verb": verb,
        "title": title_of(verb, _text(named.get("task"))),
        "how": ", ".join(filter(None, how)),
        "status": str(end.get("status", "")) if end is not None else "waiting" if is_waiting else "running",
        "reason": str(end.get("reason", "")) if end is not None else "",
        "asked": ", ".join(dict.fromkeys(str(line.get("request")) for line in [*answers, *refused])),
        "answered": f"{counted(len(answers), 'request')}, {in_bytes(sums['bytes'])}" if answers else None,
        "told": "; ".join(told) or None,
        "refused": counted(len(refused), "request") if refused else None,
        "began": str(lines[0].get("time", "")),
        "ended": str(end.get("time", "")) if end is not None else None,
    }


def _refusals(events: list[dict[str, Any]]) -> list[dict[str, str]]:
    lines = [event for event in reversed(events) if event.get("event") == "refused"]
    return [{name: str(line.get(name) or "") for name in ("time", "run", "request", "reason")} for line in lines]


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
