"""`colonnade check`, as people run it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from command import run

PROJECT = Path(__file__).parents[3]
# Whoever opens a socket, or looks a name up, is stopped; so is who loads gRPC, whose sockets Python does not see.
WITHOUT_NETWORK = """
import sys

def hook(event, _):
    if event.startswith("socket."):
        print("opened", event, file=sys.stderr)
        import os
        os._exit(99)

sys.addaudithook(hook)
{}
assert "grpc" not in sys.modules
"""
COMMAND = """
from colonnade.cli.main import app
sys.argv = ["colonnade", *sys.argv[1:]]
app(standalone_mode=False)
"""
ROWS = [f"c{i},{('clerk', 'cook')[i % 2]},{i % 17}.5,{3 * i}" for i in range(60)]
PARTY = """
name = "bank"
{prepare}
[data]
file = "bank.csv"
key = "customer"
label = "card_spending"
"""


def party_file(folder: Path, prepare: str = "", rows: list[str] = ROWS) -> str:
    (folder / "bank.csv").write_text("\n".join(["customer,job,income,card_spending", *rows]) + "\n")
    (folder / "bank.toml").write_text(PARTY.format(prepare=prepare))
    return str(folder / "bank.toml")


def test_a_party_that_can_start_exits_0(tmp_path: Path) -> None:
    done = run("check", party_file(tmp_path, 'prepare = "auto"'))
    assert done.returncode == 0, done.stderr
    assert "bank: 60 rows, 4 columns. Nothing stops it." in done.stdout
    assert "Label 'card_spending': mean" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_findings_alone_exit_0(tmp_path: Path) -> None:
    done = run("check", party_file(tmp_path, 'prepare = "auto"', ["c0,diver,1e9,4", *ROWS[1:]]))
    assert done.returncode == 0
    assert "look   'income': 1 row stands far out" in done.stdout


def test_a_party_that_would_not_start_exits_3_without_a_traceback(tmp_path: Path) -> None:
    done = run("check", party_file(tmp_path, rows=["c0,clerk,,4", *ROWS[1:]]))
    assert done.returncode == 3
    assert "would not start, for 2 reasons" in done.stdout
    assert "STOPS  'income': 1 of 60 values are missing, the first in row 0 (line 2" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_keys_are_shown_only_if_asked(tmp_path: Path) -> None:
    path = party_file(tmp_path, 'prepare = "auto"', ["hidden,clerk,1e9,4", "hidden,clerk,2.5,4", *ROWS[2:]])
    for arguments in (("check", path), ("check", path, "--json")):
        assert "hidden" not in run(*arguments).stdout
    assert "hidden" in run("check", path, "--show-keys").stdout


def test_json_has_stable_names(tmp_path: Path) -> None:
    done = run("check", party_file(tmp_path, 'prepare = "auto"'), "--json")
    told = json.loads(done.stdout)
    assert set(told) == {
        "party",
        "rows",
        "starts",
        "columns",
        "key",
        "label",
        "prepared_columns",
        "condition",
        "dependences",
        "n_outliers",
        "outliers",
        "findings",
    }
    assert told["starts"]
    assert [(each["name"], each["role"]) for each in told["columns"]] == [
        ("customer", "key"),
        ("job", None),
        ("income", None),
        ("card_spending", "label"),
    ]
    assert told["columns"][2]["rule"]["kind"] == "number"
    stopped = run("check", party_file(tmp_path), "--json")
    assert stopped.returncode == 3
    (finding,) = [each for each in json.loads(stopped.stdout)["findings"] if each["severity"] == "stops"]
    assert set(finding) == {"severity", "kind", "columns", "words", "advice", "rows"}
    assert (finding["kind"], finding["columns"]) == ("unprepared", ["job"])


def test_a_table_as_it_is(tmp_path: Path) -> None:
    party_file(tmp_path)
    done = run("check", str(tmp_path / "bank.csv"), "--key", "customer", "--label", "income")
    assert done.returncode == 0, done.stderr
    assert "Label 'income'" in done.stdout
    assert "names each row" in done.stdout


def test_the_example_job_and_parties() -> None:
    done = run("check", str(PROJECT / "examples" / "bank" / "job.toml"), "--json")
    assert done.returncode == 0
    assert [each["party"] for each in json.loads(done.stdout)] == ["bank", "telephone", "shop"]
    assert run("check", str(PROJECT / "examples" / "network" / "bank.toml")).returncode == 0


def test_names_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('"a\x1b[2J\nb",y\n' + "".join(f"{i},{i % 7}\n" for i in range(30)))
    done = run("check", str(tmp_path / "t.csv"))
    assert "\x1b[2J" not in done.stdout + done.stderr
    assert "2 columns" in done.stdout


@pytest.mark.parametrize("name", ["nosuch.csv", "nosuch.toml", "nosuch"])
def test_files_that_are_not_there_exit_3(tmp_path: Path, name: str) -> None:
    done = run("check", str(tmp_path / name))
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


def test_roles_of_a_party_file_stand_in_it(tmp_path: Path) -> None:
    done = run("check", party_file(tmp_path), "--label", "income")
    assert done.returncode == 3
    assert "names its own" in done.stderr


def without_network(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_NETWORK.format(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_no_socket_is_opened(tmp_path: Path) -> None:
    path = party_file(tmp_path, 'prepare = "auto"')
    for arguments in (
        ("check", path),
        ("new", "party", str(tmp_path / "bank.csv"), "--out", str(tmp_path / "new.toml")),
    ):
        done = without_network(COMMAND, *arguments)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "new.toml").exists()
    assert without_network("import socket; socket.socket()").returncode == 99, "whoever opens one is found out"


def test_help_teaches() -> None:
    done = run("check", "--help")
    assert "Example: colonnade check bank.toml" in done.stdout
    assert "--json" in done.stdout
