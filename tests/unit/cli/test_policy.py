"""`colonnade policy new` and `colonnade policy explain`, as people run them."""

import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from colonnade.messages import UNCOUNTED, Reveals
from colonnade.node.files import PolicyFile
from colonnade.node.policy_template import RULES
from colonnade.node.policy_words import LIMITS
from colonnade.protocol.policy import LEVELS, Policy
from command import run

TABLE = "customer,name,income,age,card_spending\n" + "".join(f"c{i},Ann,{i}.5,{20 + i},{3 * i}\n" for i in range(40))
PARTY = """
name = "bank"
server = "127.0.0.1:7143"
state = "bank-state"
insecure_plaintext_on_loopback = true

[data]
file = "bank.csv"
key = "customer"
label = "card_spending"

[identity]
key = "not-there.identity"
pins = "not-there.toml"
"""


def party_file(folder: Path, policy: str) -> Path:
    (folder / "bank.csv").write_text(TABLE)
    path = folder / "bank.toml"
    path.write_text(PARTY + policy)
    return path


def read(text: str) -> PolicyFile:
    return msgspec.convert(tomllib.loads(text)["policy"], PolicyFile)


@pytest.mark.parametrize("level", LEVELS)
def test_a_new_policy_has_every_rule_of_its_level_and_a_line_on_each(level: Any) -> None:
    done = run("policy", "new", "--level", level)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    written = read(done.stdout)
    assert written.level == level
    rules = {**vars(written.policy()), "_written": None}
    assert rules == {**vars(Policy(level=level)), "_written": None}, "what is written is what the level is"
    assert written.a_day(1000) == PolicyFile(level=level).a_day(1000)
    for rule in RULES:
        (place,) = [i for i, line in enumerate(lines) if line.removeprefix("# ").startswith(f"{rule.name} = ")]
        assert lines[place - 1].startswith("# "), "a line on what it means stands above"
    assert {rule.name for rule in RULES} == set(PolicyFile.__struct_fields__) - {"level"}, "no rule is left out"
    assert max(map(len, lines)) <= 120


def test_every_rule_that_is_not_in_use_can_be_put_to_use() -> None:
    lines = run("policy", "new", "--level", "open").stdout.splitlines()
    used = [line.removeprefix("# ") if " = " in line else line for line in lines]
    rules = read("\n".join(used))
    assert rules.policy().least_rows == 10
    assert rules.never is not None
    assert set(rules.never) <= {str(kind) for kind in Reveals if kind not in UNCOUNTED}
    assert rules.a_day(200_000) == PolicyFile(level="usual").a_day(200_000)


def test_numbers_are_made_for_a_partys_table(tmp_path: Path) -> None:
    path = party_file(tmp_path, '\n[policy]\nlevel = "open"\nnever_columns = ["name"]\n')
    done = run("policy", "new", "--level", "strict", str(path))
    assert done.returncode == 0, done.stderr
    assert "For a table of 40 rows, 2 features and a label." in done.stdout.replace("\n# ", " ")
    rules = read(done.stdout)
    assert rules.models_in_all == 1, "a third of two columns, at least one"
    assert rules.never_columns == ["name"], "what it said of columns is kept"
    assert '# columns = ["income", "age", "card_spending", "customer"]' in done.stdout
    wide = (
        "customer,card_spending,"
        + ",".join(f"größe{i}" for i in range(9))
        + "\n"
        + "a,0,1,2,3,4,5,6,7,8,9\nb,0,1,2,3,4,5,6,7,8,9\n"
    )
    (tmp_path / "bank.csv").write_text(wide, encoding="utf-8")
    path.write_text(PARTY)
    done = run("policy", "new", "--level", "strict", str(path))
    assert read(done.stdout).models_in_all == 3
    assert '# never_columns = ["größe0"]' in done.stdout


def test_it_goes_to_a_new_file_only(tmp_path: Path) -> None:
    out = tmp_path / "policy.toml"
    done = run("policy", "new", "--level", "usual", "--out", str(out))
    assert (done.returncode, done.stdout) == (0, f"{out}\n")
    assert "policy explain" in done.stderr
    before = out.read_text()
    assert before == run("policy", "new", "--level", "usual").stdout
    again = run("policy", "new", "--level", "strict", "--out", str(out))
    assert (again.returncode, again.stdout) == (3, "")
    assert f"{out} is there already, and would be lost. Name another file with --out." in again.stderr
    assert out.read_text() == before


def test_a_new_policy_as_json(tmp_path: Path) -> None:
    out = tmp_path / "policy.toml"
    said = json.loads(run("policy", "new", "--level", "strict", "--json", "--out", str(out)).stdout)
    assert (said["level"], said["file"]) == ("strict", str(out))
    assert said["policy"]["solvers"] == ["gram"]
    assert json.loads(run("policy", "new", "--level", "open", "--json").stdout) == {
        "level": "open",
        "policy": {"open_runs": 4},
        "file": None,
    }


def test_wrong_use() -> None:
    assert run("policy", "new").returncode == 2
    assert run("policy", "new", "--level", "careful").returncode == 2
    assert run("policy", "new", "--level", "open", "nowhere.toml").returncode == 3
    nowhere = run("policy", "new", "--level", "open", "--out", "nowhere/policy.toml")
    assert (nowhere.returncode, "Cannot write nowhere/policy.toml" in nowhere.stderr) == (3, True)


def test_a_written_policy_can_be_explained(tmp_path: Path) -> None:
    written = run("policy", "new", "--level", "strict").stdout
    path = party_file(tmp_path, written.replace("# never_columns", "never_columns"))
    done = run("policy", "explain", str(path))
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert said.startswith("What a server could learn of 'bank' at worst (level strict):")
    assert "values of single rows: none: the policy never reveals features or labels." in said
    assert "the names of its 3 columns, how many rows it has (40), and a digest of its keys" in said, "not the name"
    assert all(words in said for words in LIMITS.values())
    told = json.loads(run("policy", "explain", str(path), "--json").stdout)
    assert (told["party"], told["level"], told["not_checked"]) == ("bank", "strict", LIMITS)
    assert {each["about"] for each in told["at_worst"]} >= {"values of single rows", "numbers about many rows"}


def test_columns_that_are_prepared_are_counted_as_such(tmp_path: Path) -> None:
    """Categories stand in the table: neither command may stumble over them."""
    path = party_file(tmp_path, '[prepare.columns]\nage = { kind = "category", rare = 1 }\n[policy]\nlevel = "usual"\n')
    done = run("policy", "explain", str(path))
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "the names of its 40 columns" in said, "39 levels but the most frequent, and the label"
    assert "for 2 choices of these, 10 rows apart or more. Levels and means stay here." in said
    assert "in all, for all time, of 39 columns" in said
    done = run("policy", "new", "--level", "strict", str(path))
    assert done.returncode == 0, done.stderr
    assert '# never_columns = ["age"]' in done.stdout, "a column of the file"
    assert "models_in_all = 13" in done.stdout


def test_a_party_without_a_policy_has_nothing_to_explain(tmp_path: Path) -> None:
    done = run("policy", "explain", str(party_file(tmp_path, "")))
    assert done.returncode == 3
    assert "no party starts without a policy" in done.stderr
    assert "`colonnade policy new` writes one" in done.stderr


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = run("policy", "explain", str(party_file(tmp_path, '[policy]\nnever_columns = ["nam"]\n')))
    assert done.returncode == 3
    assert "there is no column 'nam', which never_columns of its owner's policy names" in done.stderr
    assert "Did you mean 'name'?" in done.stderr


def test_a_party_that_prepares_its_columns_has_a_policy_as_others_have(tmp_path: Path) -> None:
    """Text stands in its table, and it was read as if there were no [prepare]."""
    prepare = '\n[prepare.columns]\nname = { kind = "category" }\nage = { kind = "number" }\n'
    path = party_file(tmp_path, prepare + '\n[policy]\nlevel = "usual"\n')
    done = run("policy", "explain", str(path))
    assert done.returncode == 0, done.stderr
    assert "columns that it prepares: how many it makes of each" in " ".join(done.stdout.split())
    assert run("policy", "new", "--level", "usual", str(path)).returncode == 0
