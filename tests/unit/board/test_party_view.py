"""What a party's board says of a state folder, in words, and what its owner decides there."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from board_trial import MARKUP, board_here
from colonnade.board.app import Body
from colonnade.board.party_board import PartyBoard
from colonnade.errors import InputError
from colonnade.node.approvals import JobWords, PendingJob, Told, decision_on, pending_jobs
from colonnade.node.log import EventLog
from colonnade.protocol.sheet import JobSheet
from network_trial import until, write_party_file


def party_files(folder: Path) -> Path:
    (folder / "bank.csv").write_text("customer,age,card_spending\n" + "".join(f"{n},{n},{n}\n" for n in range(50)))
    (folder / "bank-state").mkdir()
    return write_party_file(folder, "bank", 7143, approve="ask", policy={"level": "usual"})


def ask(folder: Path, run: str = "fit-1", hours: float = 1.0) -> PendingJob:
    """Write what a party would write that asks its owner."""
    words = JobWords(
        {"verb": "fit", "task": "regression", "parties": ["bank", MARKUP]},
        50,
        (Told("labels", f"labels of single rows {MARKUP}", ("server",), 20, ("X",)),),
        {"rows": 20},
        ("sums_in_all: 1 of 2 numbers are left",),
    )
    now = datetime.now(UTC)
    sheet = JobSheet(verb="fit", parties=(), rows=50)
    job = PendingJob(run, "server", now, now + timedelta(hours=hours), words, sheet, "ab" * 16)
    (folder / "bank-state" / "approvals").mkdir(exist_ok=True)
    (folder / "bank-state" / "approvals" / f"{run}.job").write_bytes(msgspec.json.encode(job))
    return job


@pytest.fixture
def board(tmp_path: Path) -> PartyBoard:
    board = PartyBoard(party_files(tmp_path))
    until(lambda: "being read" not in board.snapshot()["policy_note"])
    return board


def test_a_party_that_was_never_asked(tmp_path: Path, board: PartyBoard) -> None:
    found = board.snapshot()
    assert found["headline"]["words"] == "bank is not running."
    assert (found["pending"], found["runs"], found["refusals"]) == ([], [], [])
    assert {"rows": "100,000 of 100,000", "row ids": "50 of 50"}.items() <= {
        each["name"]: each["words"] for each in found["budget"]
    }.items()
    assert [each["about"] for each in found["all_time"]] == ["models_in_all", "sums_in_all"]
    assert any("50 rows" in each["words"] for each in found["policy"])
    assert list((tmp_path / "bank-state").iterdir()) == [], "to look changes nothing"


def test_what_was_asked_answered_and_refused(tmp_path: Path, board: PartyBoard) -> None:
    log = EventLog(tmp_path / "bank-state" / "log.jsonl")
    log.write("run opened", run="fit-1", server="server", verb="fit", task="regression", sampler="importance")
    facts: dict[str, Any] = {"request": "AskRows", "rows": 20, "numbers": 60, "bytes": 1500}
    log.write("answered", run="fit-1", number=2, **facts)
    log.write("answered", run="fit-1", number=3, **facts)
    log.write("refused", run="fit-1", number=4, request="AskMore", cause="policy", reason=f"no {MARKUP}")
    log.write("run ended", run="fit-1", status="failed", reason="it refused")
    log.write("waiting for the owner", run="fit-2", verb="fit", task="kmeans")
    log.close()
    with (tmp_path / "bank-state" / "log.jsonl").open("a") as file:
        file.write('{"event": "answered", "half a li')
    waiting, run = board.snapshot()["runs"]
    assert (run["title"], run["status"], run["answered"]) == (
        "Learn a model: regression",
        "failed",
        "2 requests, 3.0 kB",
    )
    assert run["told"] == "40 rows; 120 numbers about single rows"
    assert (run["asked"], run["refused"], run["reason"]) == ("AskRows, AskMore", "1 request", "it refused")
    assert (waiting["title"], waiting["status"]) == ("Learn a model: k-means clustering", "waiting")
    (refusal,) = board.snapshot()["refusals"]
    assert (refusal["request"], refusal["reason"]) == ("AskMore", f"no {MARKUP}")


def test_what_was_spent_today_is_no_longer_left(tmp_path: Path, board: PartyBoard) -> None:
    today = datetime.now(UTC).date().isoformat()
    spent = {"day": today, "spent": {"server": {"rows": 99_000}}, "last": ""}
    (tmp_path / "bank-state" / "spent.json").write_text(json.dumps(spent))
    (rows,) = (each for each in board.snapshot()["budget"] if each["name"] == "rows")
    assert (rows["words"], rows["share"]) == ("1,000 of 100,000", 0.01)


def test_the_owner_decides_once(tmp_path: Path, board: PartyBoard) -> None:
    job = ask(tmp_path)
    (shown,) = board.snapshot()["pending"]
    assert shown["tells"] == [f"to server: labels of up to 20 rows. Labels of single rows {MARKUP}"]
    assert "99,980 after up to 20 for this job" in shown["today"]
    assert (shown["facts"], shown["decided"]) == (f"verb fit, task regression, parties bank + {MARKUP}", None)
    assert board.snapshot()["headline"]["words"] == "bank is not running. 1 job waits for you."
    decide = board.acts()["decide"]
    assert "refused" in decide(Body(run="fit-1", reason="not on Mondays", digest=shown["digest"]))
    decision = decision_on(tmp_path / "bank-state", job)
    assert decision is not None
    assert (decision.is_approved, decision.reason) == (False, "not on Mondays")
    with pytest.raises(InputError, match="decided on already"):
        decide(Body(run="fit-1", approve=True, digest=shown["digest"]))
    assert board.snapshot()["pending"][0]["decided"] == "no"


@pytest.mark.parametrize("run", ["../fit-1", "fit-2", "", "fit-1.job", "x" * 3000])
def test_only_what_waits_is_decided_on(tmp_path: Path, board: PartyBoard, run: str) -> None:
    job = ask(tmp_path)
    with pytest.raises(InputError):
        board.acts()["decide"](Body(run=run, approve=True))
    assert decision_on(tmp_path / "bank-state", job) is None


@pytest.mark.parametrize("digest", ["cd" * 16, "ab", ""])
def test_another_sheet_than_the_one_that_was_shown_is_not_approved(
    tmp_path: Path, board: PartyBoard, digest: str
) -> None:
    """A hostile server ends the run and opens another of its name, between the owner's look and the click."""
    job = ask(tmp_path)
    with pytest.raises(InputError, match="changed since you looked at it"):
        board.acts()["decide"](Body(run="fit-1", approve=True, digest=digest))
    assert decision_on(tmp_path / "bank-state", job) is None


def test_two_jobs_wait(tmp_path: Path, board: PartyBoard) -> None:
    ask(tmp_path)
    ask(tmp_path, "fit-2")
    assert board.snapshot()["headline"]["words"] == "bank is not running. 2 jobs wait for you."


def test_what_waited_too_long_is_not_approved(tmp_path: Path, board: PartyBoard) -> None:
    job = ask(tmp_path, hours=-1)
    with pytest.raises(InputError, match="time is over"):
        board.acts()["decide"](Body(run="fit-1", approve=True, digest=job.digest))


def test_a_yes_needs_the_page_it_comes_from(tmp_path: Path, board: PartyBoard) -> None:
    """A page of elsewhere that the owner's browser opens cannot say yes in the owner's name."""
    job = ask(tmp_path)
    yes = {"run": "fit-1", "approve": True, "digest": job.digest}
    with board_here(board) as caller:
        assert caller.post("/do/decide", yes).status == 401
        caller.log_in()
        assert caller.post("/do/decide", yes, Origin="https://evil.example").status == 403
        assert caller.post("/do/decide", yes, Authorization=None).status == 401
        assert decision_on(tmp_path / "bank-state", job) is None
        assert caller.post("/do/decide", yes).status == 200
    decision = decision_on(tmp_path / "bank-state", pending_jobs(tmp_path / "bank-state")[0])
    assert decision is not None
    assert decision.is_approved


def test_what_is_counted(tmp_path: Path, board: PartyBoard) -> None:
    pytest.importorskip("prometheus_client", reason="the extra metrics is not here")
    ask(tmp_path)
    text = board.metrics().decode()
    assert "\ncolonnade_approvals_pending 1.0\n" in text
    assert '\ncolonnade_left_today{amount="rows"} 100000.0\n' in text


def test_a_table_that_cannot_be_read_is_said_and_the_board_stays(tmp_path: Path) -> None:
    path = party_files(tmp_path)
    (tmp_path / "bank.csv").unlink()
    board = PartyBoard(path)
    until(lambda: "cannot be read" in board.snapshot()["policy_note"])
    assert board.snapshot()["all_time"] == []
    assert board.report("fit-1") is None
