"""`colonnade approve --sheet`: a decision for the job sheet that was read, and for no other."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from colonnade.node.approvals import JobWords, PendingJob, decision_on
from colonnade.protocol.sheet import JobSheet
from command import run
from network_trial import write_party_file

DIGEST = "0123456789abcdef" * 4


@pytest.fixture
def job(tmp_path: Path) -> PendingJob:
    """Write what a party would write that asks its owner."""
    (tmp_path / "bank.csv").write_text("customer,age\n1,2\n")
    write_party_file(tmp_path, "bank", 7143, approve="ask", policy={"level": "usual"})
    now = datetime.now(UTC)
    words, sheet = JobWords({"verb": "fit"}, 50, (), {}, ()), JobSheet(verb="fit", parties=(), rows=50)
    job = PendingJob("fit-1", "server", now, now + timedelta(hours=1), words, sheet, DIGEST)
    (tmp_path / "bank-state" / "approvals").mkdir(parents=True)
    (tmp_path / "bank-state" / "approvals" / "fit-1.job").write_bytes(msgspec.json.encode(job))
    return job


def test_the_list_shows_the_whole_digest(tmp_path: Path, job: PendingJob) -> None:
    assert f"\n  sheet: {job.digest}\n" in run("approve", str(tmp_path / "bank.toml")).stdout


@pytest.mark.parametrize(
    ("sheet", "code", "words"),
    [
        (DIGEST[:11], 2, "too short"),
        ("", 2, "too short"),
        ("f" * 12, 3, "changed since you looked at it"),
        (DIGEST + "0", 3, "changed since you looked at it"),
    ],
)
def test_another_sheet_is_not_decided_on(tmp_path: Path, job: PendingJob, sheet: str, code: int, words: str) -> None:
    done = run("approve", str(tmp_path / "bank.toml"), "fit-1", "--yes", "--sheet", sheet)
    assert (done.returncode, words in " ".join(done.stderr.split())) == (code, True), done.stderr
    assert decision_on(tmp_path / "bank-state", job) is None


@pytest.mark.parametrize("length", [12, 64])
def test_the_sheet_that_waits_is_decided_on(tmp_path: Path, job: PendingJob, length: int) -> None:
    done = run("approve", str(tmp_path / "bank.toml"), "fit-1", "--yes", "--sheet", DIGEST[:length])
    assert done.returncode == 0, done.stderr
    decision = decision_on(tmp_path / "bank-state", job)
    assert decision is not None
    assert decision.is_approved
