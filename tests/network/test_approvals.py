"""Jobs that wait for their owner, between real processes: yes, no, no word in time, a command that decides, kills."""

import json
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import colonnade as cn
from command import run
from network_trial import Trial, events, until, write_party_file

FIT: dict[str, object] = {
    "do": "fit",
    "task": {"kind": "regression", "l2": 0.1},
    "sampler": {"kind": "importance", "size": 100},
    "out": "run",
}


class Asking(Trial):
    """A trial in which the bank's owner is asked for each job."""

    def __init__(self, folder: Path, **approval: object) -> None:
        super().__init__(folder, [FIT], wait_seconds=60.0)
        rules = {"approve": "ask", "policy": {"level": "usual"}, "wait_seconds": 60.0, **approval}
        self.party_files["bank"] = write_party_file(folder, "bank", self.port, **rules)
        self.state = folder / "bank-state"

    def start_all(self) -> tuple[subprocess.Popen[str], dict[str, subprocess.Popen[str]]]:
        return self.start_server(), {name: self.start_party(name) for name in self.names}

    def approve(self, *arguments: str) -> Any:
        done = run("approve", str(self.party_files["bank"]), *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def status(self) -> str:
        return run("status", str(self.folder / "federation.toml")).stdout

    def waiting(self) -> dict[str, Any]:
        """Wait for the job that waits."""
        until(lambda: bool(list(self.state.glob("approvals/*.job"))))
        found: dict[str, Any] = self.approve()[0]
        return found

    def log(self, name: str, event: str) -> list[dict[str, Any]]:
        return [line for line in events(self.folder / f"{name}-state" / "log.jsonl") if line["event"] == event]

    def assert_nothing_waits(self) -> None:
        assert self.approve() == []
        assert list((self.state / "approvals").iterdir()) == []


def test_a_run_waits_until_its_owner_says_yes(tmp_path: Path) -> None:
    with Asking(tmp_path) as trial:
        server, parties = trial.start_all()
        found = trial.waiting()
        job = found["job"]
        assert (found["decision"], job["server"], job["words"]["job"]["verb"]) == (None, "server", "fit")
        assert job["words"]["takes"]["rows"] >= 100
        assert {"features", "labels", "row ids"} <= {told["what"] for told in job["words"]["tells"]}
        until(lambda: "the owners of these parties approve: bank." in trial.status())
        words = " ".join(run("approve", str(trial.party_files["bank"])).stdout.split())
        for part in (
            "bank would tell",
            "to server: labels of up to 100 rows",
            "sums_in_all",
            "800 row ids left",
        ):
            assert part in words
        for path in (trial.state / "approvals").iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert server.poll() is None
        assert trial.log("bank", "answered")[-1]["request"] == "Hello", "nothing of the job is answered before"
        decided = trial.approve(job["run"], "--yes")
        assert (decided["decision"]["is_approved"], decided["decision"]["by"]) == (True, "the owner")
        said, _ = server.communicate(timeout=120)
        assert server.returncode == 0, said
        assert "waiting for the owner of bank to approve" in said
        for each in parties.values():
            assert each.wait(60) == 0
        assert [line["approved"] for line in trial.log("bank", "owner decided")] == [True]
        trial.assert_nothing_waits()
        assert "waits for its owner until" in parties["bank"].communicate()[0]
        assert run("log", "verify", str(trial.party_files["bank"])).returncode == 0
    assert cn.Run.load(tmp_path / "run").coreset is not None


def test_a_no_reaches_all_sides_with_its_reason(tmp_path: Path) -> None:
    with Asking(tmp_path) as trial:
        server, parties = trial.start_all()
        name = trial.waiting()["job"]["run"]
        for arguments, code, why in (
            ((name,), 2, "Give --yes"),
            ((name, "--yes", "--no", "why"), 2, "Give --yes"),
            (("--yes",), 2, "Name the run"),
            (("fit-000000", "--yes"), 3, "No run 'fit-000000' waits"),
            (("../fit", "--yes"), 3, "waits"),
        ):
            done = run("approve", str(trial.party_files["bank"]), *arguments)
            assert done.returncode == code
            assert why in done.stderr
        trial.approve(name, "--no", "ask the ethics board first")
        said, _ = server.communicate(timeout=120)
        reason = "Party 'bank' did not answer OpenJob: its owner said no: ask the ethics board first. Ask its owner."
        assert (server.returncode, reason in said) == (6, True)
        for each in parties.values():
            assert each.wait(60) == 6
        for party in trial.names:
            ended = [(line["status"], line["reason"]) for line in trial.log(party, "run ended") if line["run"] == name]
            assert ended == [("failed", reason)]
        trial.assert_nothing_waits()


def test_no_word_in_time_is_a_no(tmp_path: Path) -> None:
    with Asking(tmp_path, approve_within=1.5) as trial:
        server, parties = trial.start_all()
        said, _ = server.communicate(timeout=120)
        assert server.returncode == 6
        assert "'bank' did not answer OpenJob: its owner did not approve: nobody decided in" in said
        for each in parties.values():
            assert each.wait(60) == 6
        trial.assert_nothing_waits()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "exit_code", "why"),
    [
        ("sys.exit(sheet['words']['job']['verb'] != 'fit')", 0, ""),
        ("print('not on Tuesdays'); sys.exit(1)", 6, "its owner's command said no: not on Tuesdays. Ask its owner."),
        ("sys.exit(3)", 6, "its owner's command said no: exit code 3."),
        ("import time; time.sleep(60)", 6, "its owner did not approve: nobody decided in"),
        ("assert 'SECRET' in os.environ", 6, "its owner's command said no: exit code 1."),
    ],
)
def test_a_command_of_the_owners_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, exit_code: int, why: str
) -> None:
    monkeypatch.setenv("SECRET", "of the party's process, and nobody else's")
    hook = [sys.executable, "-c", f"import json, os, sys; sheet = json.load(sys.stdin); {code}"]
    with Asking(tmp_path, approve_hook=hook, approve_within=3.0 if "sleep" in code else 60.0) as trial:
        server, parties = trial.start_all()
        said, _ = server.communicate(timeout=120)
        assert server.returncode == exit_code, said
        assert why in said
        for each in parties.values():
            assert each.wait(60) == exit_code
        trial.assert_nothing_waits()


def test_a_command_that_is_not_there_is_a_no(tmp_path: Path) -> None:
    with Asking(tmp_path, approve_hook=["./no-such-command"]) as trial:
        server, parties = trial.start_all()
        said, _ = server.communicate(timeout=120)
        assert server.returncode == 6
        assert "its owner's command said no: its command for approvals cannot be started" in said
        assert str(tmp_path) not in said.partition("did not answer")[2].partition("\n")[0], "no path is told"
        assert "no-such-command" in parties["bank"].communicate(timeout=60)[0], "but to the owner"


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("who", ["party", "server"])
def test_a_kill_while_a_run_waits_loses_nothing(tmp_path: Path, who: str, when: str) -> None:
    """The owner decides before, or after, the killed side comes back: once, and the run goes on."""
    with Asking(tmp_path) as trial:
        server, parties = trial.start_all()
        name = trial.waiting()["job"]["run"]
        killed = parties["bank"] if who == "party" else server
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        if when == "before":
            trial.approve(name, "--yes")
        if who == "party":
            parties["bank"] = trial.start_party("bank")
        else:
            server = trial.start_server()
        if when == "after":
            until(lambda: len(trial.log("bank", "line up")) == 2)
            assert trial.waiting()["job"]["run"] == name, "it is the same run, and waits still"
            trial.approve(name, "--yes")
        said, _ = server.communicate(timeout=120)
        assert server.returncode == 0, said
        for each in parties.values():
            assert each.wait(60) == 0
        assert [line["run"] for line in trial.log("bank", "waiting for the owner")] == [name]
        trial.assert_nothing_waits()
        assert run("log", "verify", str(trial.party_files["bank"])).returncode == 0


def test_a_run_that_the_server_gave_up_waits_no_longer(tmp_path: Path) -> None:
    with Asking(tmp_path) as trial:
        text = trial.federation_file.read_text()
        trial.federation_file.write_text(f"answer_seconds = 1.5\n{text}")
        server, parties = trial.start_all()
        said, _ = server.communicate(timeout=120)
        assert server.returncode == 5
        assert "gave no answer for 1.5 s, because its owner did not decide" in said
        for each in parties.values():
            assert each.wait(60) == 5
        trial.assert_nothing_waits()


def test_the_command_of_the_how_to_decides() -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "decide-about-jobs.md"
    command = page.read_text().partition("```py\n")[2].partition("```")[0]
    for told, code in (("features", 1), ("moments", 0)):
        job = json.dumps({"words": {"tells": [{"what": told}]}})
        done = subprocess.run([sys.executable, "-c", command], input=job, text=True, capture_output=True, check=False)
        assert (done.returncode, bool(done.stdout)) == (code, bool(code))
