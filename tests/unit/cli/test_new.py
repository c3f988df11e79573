"""`colonnade new`, as people run it."""

import json
from pathlib import Path

import pytest

from colonnade.cli.job import read_job
from colonnade.node.files import read_federation_file, read_party_file
from command import run, run_afresh

PROJECT = Path(__file__).parents[3]
BANK = "customer,job,income,card_spending\n" + "".join(
    f"c{i},{('clerk', 'cook', '')[i % 3]},{i % 17}.5,{3 * i}\n" for i in range(60)
)


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    path = tmp_path / "bank.csv"
    path.write_text(BANK)
    return path


def test_a_party_file_for_a_table(bank: Path) -> None:
    path = bank.parent / "party.toml"
    done = run("new", "party", str(bank), "--label", "card_spending", "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(path)
    assert "key 'customer'" in done.stderr
    assert f"colonnade check {path}" in done.stderr
    file = read_party_file(path)
    assert (file.name, file.data.key, file.data.label, file.data.file) == (
        "bank",
        "customer",
        "card_spending",
        str(bank),
    )


def test_what_is_there_is_never_written_over(bank: Path) -> None:
    path = bank.parent / "bank.toml"
    path.write_text("mine")
    for arguments in (
        ("party", str(bank)),
        ("job", str(bank)),
        ("federation", "--party", "bank", "--party", "shop"),
    ):
        done = run("new", *arguments, "--out", str(path))
        assert done.returncode == 3
        assert "is there already" in done.stderr
        assert path.read_text() == "mine"


def test_names_and_paths_follow_from_the_table(bank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = bank.parent / "tables"
    folder.mkdir()
    bank.rename(folder / "The bank!.csv")
    monkeypatch.chdir(bank.parent)
    done = run_afresh("new", "party", "tables/The bank!.csv")
    assert done.returncode == 0, done.stderr
    file = read_party_file(bank.parent / "The-bank.toml")
    assert file.name == "The-bank"
    assert Path(file.data.file or "") == folder / "The bank!.csv"


def test_json_says_what_was_chosen(bank: Path) -> None:
    done = run("new", "party", str(bank), "--out", str(bank.parent / "a.toml"), "--json")
    told = json.loads(done.stdout)
    assert told["parties"][0]["key"] == ["customer"]
    assert told["parties"][0]["label"] is None
    assert told["parties"][0]["rules"]["job"] == {"kind": "category", "missing": "level"}


def test_the_example_tables_make_a_job(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    tables = [str(PROJECT / "examples" / "bank" / f"{name}.csv") for name in ("bank", "telephone", "shop")]
    done = run("new", "job", *tables, "--label", "card_spending", "--out", str(path))
    assert done.returncode == 0, done.stderr
    job = read_job(path, None)
    assert [(each.name, each.key, each.label) for each in job.party] == [
        ("bank", "customer", "card_spending"),
        ("telephone", "customer", None),
        ("shop", "customer", None),
    ]
    assert all((path.parent / (each.file or "nowhere")).exists() for each in job.party)
    assert run("check", str(path)).returncode == 0


def test_tables_of_one_name_make_parties_of_two(bank: Path) -> None:
    other = bank.parent / "other" / "bank.csv"
    other.parent.mkdir()
    other.write_text(BANK)
    path = bank.parent / "job.toml"
    done = run("new", "job", str(bank), str(other), "--label", "bank-2.card_spending", "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert [(each.name, each.label) for each in read_job(path, None).party] == [
        ("bank", None),
        ("bank-2", "card_spending"),
    ]


def test_a_label_of_no_table_or_of_two(bank: Path) -> None:
    out = ("--out", str(bank.parent / "job.toml"))
    done = run("new", "job", str(bank), "--label", "nosuch", *out)
    assert done.returncode == 3
    assert "No table has the column 'nosuch'" in done.stderr
    done = run("new", "job", str(bank), str(bank), "--label", "income", *out)
    assert "2 tables have the column 'income'" in done.stderr
    assert not (bank.parent / "job.toml").exists()


def test_a_federation_file(tmp_path: Path) -> None:
    path = tmp_path / "federation.toml"
    done = run("new", "federation", "--party", "bank", "--party", "shop", "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert read_federation_file(path).parties == ["bank", "shop"]


@pytest.mark.parametrize("names", [("bank", "bank"), ("bank", "server"), ("bank", " ")])
def test_parties_that_cannot_be(tmp_path: Path, names: tuple[str, str]) -> None:
    path = tmp_path / "federation.toml"
    done = run("new", "federation", "--party", names[0], "--party", names[1], "--out", str(path))
    assert done.returncode == 3
    assert not path.exists()


def test_the_files_of_a_trial_fit_together(bank: Path) -> None:
    """Certificates of `certs new`, paths of `new`: what one makes the other names."""
    pytest.importorskip("cryptography")
    folder = bank.parent
    run("new", "party", str(bank), "--out", str(folder / "bank.toml"))
    run("new", "federation", "--party", "bank", "--party", "shop", "--out", str(folder / "federation.toml"))
    run("certs", "new", str(folder / "certs"), "--party", "bank", "--party", "shop")
    for file in (read_party_file(folder / "bank.toml"), read_federation_file(folder / "federation.toml")):
        assert file.tls is not None
        assert file.revoked is not None
        paths = (
            file.tls.authority,
            file.tls.certificate,
            file.tls.key,
            file.identity.key,
            file.identity.pins,
            file.revoked,
        )
        assert all(Path(path).exists() for path in paths)


@pytest.mark.parametrize("name", ["party", "federation", "job"])
def test_help_teaches(name: str) -> None:
    done = run("new", name, "--help")
    assert done.returncode == 0
    assert f"Example: colonnade new {name}" in done.stdout
    assert "--json" in done.stdout
