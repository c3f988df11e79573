"""Tables that change between a fit and an evaluation, at parties that are real processes: all sides hear of it."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import colonnade as cn
from colonnade.node.identity_files import new_identity
from command import run
from network_trial import BANK, BANK_FIT, Trial, events

EVALUATE: dict[str, object] = {"do": "evaluate", "model": "fitted", "out": "evaluation.json"}
CERTIFY: dict[str, object] = {"do": "certify", "run": "fitted", "out": "certificate.json"}
ALLOWED = {"changed": "allow"}


class Served:
    """What a server and three parties of one start and stop said."""

    def __init__(
        self, folder: Path, *jobs: dict[str, object], change: Callable[[Path], object] = lambda _: None
    ) -> None:
        with Trial(folder, list(jobs)) as trial:
            change(folder)
            parties = {name: trial.start_party(name) for name in trial.names}
            server = trial.start_server()
            self.said = server.communicate(timeout=120)[0]
            self.code = server.returncode
            self.heard = {name: each.communicate(timeout=60)[0] for name, each in parties.items()}
            self.party_codes = {each.returncode for each in parties.values()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fit, and evaluate and certify at once."""
    made = tmp_path_factory.mktemp("bank")
    served = Served(made, BANK_FIT, EVALUATE, CERTIFY)
    assert served.code == 0, served.said
    assert "table same" in served.said
    assert "of the table that the run learned from" in served.said
    return made


def table(folder: Path, name: str = "evaluation.json") -> Any:
    return json.loads((folder / name).read_text())["table"]


def dearer(folder: Path) -> None:
    """Change one value of one row."""
    path = folder / "shop.csv"
    lines = path.read_text().splitlines()
    cells = lines[3].split(",")
    lines[3] = ",".join([*cells[:-1], str(float(cells[-1]) + 1.0)])
    path.write_text("\n".join(lines) + "\n")


def fewer(folder: Path) -> None:
    for path in folder.glob("*.csv"):
        if (BANK / path.name).exists():
            path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")


def log_of(folder: Path, name: str) -> list[dict[str, Any]]:
    return events(folder / f"{name}-state" / "log.jsonl")


@pytest.mark.parametrize("job", [EVALUATE, CERTIFY], ids=["evaluate", "certify"])
def test_a_table_that_changed_is_an_error_that_names_its_party_on_all_sides(folder: Path, job: Any) -> None:
    served = Served(folder, {**job, "out": "not.json"}, change=dearer)
    why = "The table of shop changed since the model was learned, with as many rows as before"
    assert (served.code, served.party_codes) == (3, {3}), served.said
    assert f"AlignmentError\n{why}" in served.said
    assert not (folder / "not.json").exists()
    for name, heard in served.heard.items():
        assert why in heard, "its owner sees it"
        ended = [line for line in log_of(folder, name) if line["event"] == "run ended"]
        assert why in ended[-1]["reason"]
        opened = max(number for number, line in enumerate(log_of(folder, name)) if line["event"] == "run opened")
        told = [line["request"] for line in log_of(folder, name)[opened:] if line["event"] == "answered"]
        assert told == ["OpenJob"], "it was noticed before anything was told"


def test_where_asked_for_it_goes_on_and_says_so(folder: Path) -> None:
    served = Served(folder, EVALUATE | ALLOWED, CERTIFY | ALLOWED, change=dearer)
    assert served.code == 0, served.said
    assert "table changed" in served.said
    assert (table(folder), table(folder, "certificate.json")) == ("changed", "changed")
    assert "of a table that CHANGED since the run" in served.said


@pytest.mark.slow
def test_other_rows_are_new_rows(folder: Path) -> None:
    served = Served(folder, EVALUATE, change=fewer)
    assert served.code == 0, served.said
    assert table(folder) == "new rows"


@pytest.mark.slow
def test_a_new_identity_changes_no_fingerprint(folder: Path) -> None:
    pins, key = folder / "certs" / "pins.toml", folder / "certs" / "shop.identity"
    kept = pins.read_text(), key.read_bytes()
    key.unlink()
    line = new_identity(folder / "certs", "shop")
    pins.write_text("".join(f"{line}\n" if each.startswith('"shop"') else f"{each}\n" for each in kept[0].splitlines()))
    try:
        assert Served(folder, EVALUATE).code == 0
    finally:
        pins.write_text(kept[0])
        key.write_bytes(kept[1])
    assert table(folder) == "same"


def test_without_its_secret_nobody_can_tell(folder: Path) -> None:
    """A party whose memory was lost says nothing false: neither that its table changed, nor that it did not."""
    memory = folder / "shop-state" / "memory.notes"
    kept = memory.read_bytes()
    memory.unlink()
    try:
        served = Served(folder, EVALUATE, change=dearer)
    finally:
        memory.write_bytes(kept)
    assert served.code == 0, served.said
    assert table(folder) is None


@pytest.mark.slow
def test_what_was_learned_in_one_process_is_not_known_between_machines(folder: Path) -> None:
    parties = [cn.Party(name, BANK / f"{name}.csv", key="customer") for name in ("telephone", "shop")]
    bank = cn.Party("bank", BANK / "bank.csv", label="card_spending", key="customer")
    here = cn.Federation([bank, *parties]).fit(cn.Regression(), sampler=cn.AllRows())
    here.save(folder / "here")
    assert Served(folder, {**EVALUATE, "model": "here"}).code == 0
    assert table(folder) is None


def test_logs_and_runs_have_the_same_fingerprints(folder: Path) -> None:
    tables = cn.Run.load(folder / "fitted").tables
    assert tables is not None
    for name, told in tables.fingerprints.items():
        path = folder / f"{name}.toml"
        opened = [line for line in log_of(folder, name) if line["event"] == "run opened"]
        assert next(line["table"] for line in opened if line["verb"] == "fit") == told
        assert all("table" not in line for line in opened if line["verb"] == "hello")
        exported = csv.DictReader(io.StringIO(run("log", "export", str(path), "--csv").stdout))
        assert [line["table"] for line in exported if line["verb"] == "fit"] == [told]
    reported = json.loads(run("report", str(folder / "fitted"), "--json").stdout)
    assert reported["tables"] == msgspec.to_builtins(tables)
    assert (tables.rows, tables.alignment, tables.prepared) == (800, None, {})
