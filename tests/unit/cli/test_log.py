"""`colonnade log verify` and `colonnade log export`, as people run them."""

import csv
import json
from pathlib import Path

import pytest

from colonnade.node.identity_files import new_identities, read_identity
from colonnade.node.log import EventLog
from command import run
from network_trial import identity_file, write_party_file


@pytest.fixture
def party(tmp_path: Path) -> Path:
    """A party.toml whose log has two runs, and nothing else that a party needs."""
    new_identities(tmp_path / "certs", ["bank", "shop"])
    (tmp_path / "bank-state").mkdir()
    log = EventLog(tmp_path / "bank-state" / "log.jsonl", read_identity("bank", identity_file(tmp_path, "bank")))
    for name in ("fit-1", "fit-2"):
        log.write("run opened", run=name, verb="fit", sheet="ab" * 32)
        log.write("answered", run=name, reply="Columns", reveals=["features"], rows=100)
        log.write("run ended", run=name, status="done", reason="")
    return write_party_file(tmp_path, "bank", 7143)


def test_a_log_that_nobody_changed(party: Path) -> None:
    done = run("log", "verify", str(party))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "Log of bank: 10 lines, 3 signed checkpoints.",
        "Nothing was changed up to line 10, the last signed checkpoint.",
    ]
    report = json.loads(run("log", "verify", str(party), "--json").stdout)
    assert report == {"party": "bank", "lines": 10, "checkpoints": 3, "signed_to": 10, "findings": []}


def test_what_was_changed_is_said_and_exits_3(party: Path, tmp_path: Path) -> None:
    path = tmp_path / "bank-state" / "log.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines).replace('"rows":100', '"rows":10', 1))
    done = run("log", "verify", str(party))
    assert (done.returncode, done.stdout.splitlines()[1:]) == (3, ["line 4 was changed after it was written"])
    path.write_text("".join(lines[:7]))
    done = run("log", "verify", str(party))
    assert done.returncode == 3
    assert done.stdout.splitlines()[1:] == ["line 7 is the last, where lines to 10 were written: the end was cut off"]


def test_a_copy_needs_pins(party: Path, tmp_path: Path) -> None:
    copy, pins = str(party.parent / "bank-state" / "log.jsonl"), str(tmp_path / "certs" / "pins.toml")
    done = run("log", "verify", copy)
    assert done.returncode == 3
    assert "Give --pins" in done.stderr
    assert run("log", "verify", copy, "--pins", pins).returncode == 0
    (tmp_path / "others.toml").write_text(Path(pins).read_text().replace("bank", "other"))
    done = run("log", "verify", copy, "--pins", str(tmp_path / "others.toml"))
    assert done.returncode == 3
    assert "line 2 has no signature of 'bank' on the lines above it" in done.stdout
    assert "Cannot read" in run("log", "verify", str(tmp_path / "none.jsonl"), "--pins", pins).stderr


def test_it_is_handed_over_as_csv_and_json(party: Path) -> None:
    table = run("log", "export", str(party), "--csv").stdout
    rows = [row for row in csv.DictReader(table.splitlines()) if row["event"] == "answered"]
    assert [(row["run"], row["reply"], row["rows"]) for row in rows] == [
        ("fit-1", "Columns", "100"),
        ("fit-2", "Columns", "100"),
    ]
    events = json.loads(run("log", "export", str(party), "--json").stdout)
    assert [event["event"] for event in events][:3] == ["started", "checkpoint", "run opened"]
    assert run("log", "export", str(party)).returncode == 2
