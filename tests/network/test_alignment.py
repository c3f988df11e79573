"""Alignments between processes: made once, found again after restarts and sorts, made anew; also if somebody dies."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import Ridge

import colonnade as cn
from colonnade.node.alignment_file import ALIGNMENT
from network_trial import BANK, Trial, events, until

FIT: dict[str, object] = {
    "do": "fit",
    "task": {"kind": "regression", "l2": 0.1},
    "sampler": {"kind": "all"},
    "out": "fitted",
}
TASK = cn.Regression(l2=0.1)
SLOW = pytest.mark.slow(sampled=False)


class Town(Trial):
    """The bank example, where each party has its customers in an order of its own, and lacks some."""

    def __init__(self, folder: Path, mode: str = "aided", jobs: list[dict[str, object]] | None = None) -> None:
        super().__init__(folder, jobs or [FIT], align={"mode": mode}, wait_seconds=60.0)
        for seed, name in enumerate(self.names):
            self.write(name, pd.read_csv(BANK / f"{name}.csv").sample(700, random_state=seed))

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.folder / f"{name}.csv")

    def write(self, name: str, table: pd.DataFrame) -> None:
        table.to_csv(self.folder / f"{name}.csv", index=False)

    def sort(self, name: str) -> None:
        self.write(name, self.table(name).sort_values("customer", ascending=False))

    def merged(self) -> pd.DataFrame:
        bank, telephone, shop = (self.table(name) for name in self.names)
        return bank.merge(telephone, on="customer").merge(shop, on="customer")

    def ask(self, *arguments: str) -> tuple[int, str]:
        """Let the parties take part in one command of the server."""
        parties = [self.start_party(name) for name in self.names]
        process = self.start(*arguments)
        said, _ = process.communicate(timeout=90)
        for party in parties:
            party.communicate(timeout=60)
        return process.returncode, said

    def align(self, *options: str) -> dict[str, Any]:
        code, said = self.ask("align", str(self.federation_file), "--json", *options)
        assert code == 0, said
        report: dict[str, Any] = json.loads(said[said.index("{") :])
        return report

    def fit(self) -> cn.Run[cn.LinearModel]:
        code, said = self.ask("server", str(self.federation_file))
        assert code == 0, said
        return cn.Run.load(self.folder / "fitted")

    def verbs(self) -> list[str]:
        """List the runs that the bank has been in."""
        log = events(self.folder / "bank-state" / "log.jsonl")
        return [line["verb"] for line in log if line["event"] == "run opened"]

    def positions(self, name: str) -> dict[bytes, int]:
        table = pa.ipc.open_file(self.folder / f"{name}-state" / ALIGNMENT).read_all()
        pairs = zip(table["key"].to_pylist(), table["position"].to_pylist(), strict=True)
        return {key: position for key, position in pairs if position >= 0}

    def check_aligned(self) -> None:
        """See that all parties have the merge's customers, in one order."""
        found = [self.positions(name) for name in self.names]
        assert found[0] == found[1] == found[2]
        assert found[0].keys() == {customer.encode() for customer in self.merged()["customer"]}
        assert sorted(found[0].values()) == list(range(len(found[0])))

    def check_fit(self, run: cn.Run[cn.LinearModel]) -> None:
        table = self.merged()
        features = table.drop(columns=["customer", "card_spending"])
        theirs = Ridge(alpha=0.1 * len(table), solver="svd").fit(features, table["card_spending"])
        np.testing.assert_allclose(run.model.predict(features.to_numpy()), theirs.predict(features), rtol=1e-6)


@pytest.mark.parametrize("mode", ["curve", *(pytest.param(mode, marks=SLOW) for mode in ("clear", "aided"))])
def test_align_fit_restart_sort(tmp_path: Path, mode: str) -> None:
    """The second server finds the alignment, though a party has sorted its table; `align` says so without a run."""
    with Town(tmp_path, mode) as town:
        report = town.align()
        assert (report["mode"], report["matched"]) == (mode, len(town.merged()))
        assert report["parties"]["shop"] == {"rows": 700, "unmatched": 700 - len(town.merged()), "repeated": 0}
        assert "leading zeros stay" in report["rule"]
        town.check_aligned()
        assert town.verbs() == ["hello", "align", "hello"]
        first = town.fit()
        town.check_fit(first)
        town.sort("telephone")
        again = town.fit()
        assert again.model.coef_.tobytes() == first.model.coef_.tobytes()
        assert town.align()["fingerprint"] == report["fingerprint"]
        assert town.verbs().count("align") == 1


def test_a_server_aligns_where_nobody_has(tmp_path: Path) -> None:
    with Town(tmp_path) as town:
        town.check_fit(town.fit())
        assert town.verbs() == ["hello", "align", "hello", "fit"]
        assert not list(tmp_path.rglob("*.journal"))


def test_parties_that_lost_their_files_are_aligned_and_not_told_of_before(tmp_path: Path) -> None:
    """The server's job failed after the alignment, so that its journals stayed: that of the alignment is of no use."""
    with Town(tmp_path, jobs=[{**FIT, "split": {"kind": "column", "party": "shop"}}]) as town:
        code, said = town.ask("server", str(town.federation_file))
        assert code != 0
        assert "no column to split by" in " ".join(said.split())
        for name in town.names:
            (tmp_path / f"{name}-state" / ALIGNMENT).unlink()
        town.align()
        town.check_aligned()


def test_a_table_with_other_keys_is_named_and_aligned_again(tmp_path: Path) -> None:
    with Town(tmp_path) as town:
        before = town.align()
        changed = town.table("shop").iloc[5:]
        new = changed.iloc[:3].assign(customer=["new1", "new2", "new3"])
        town.write("shop", pd.concat([changed, new]))
        parties = {name: town.start_party(name, "--once") for name in town.names}
        server = town.start_server()
        said, _ = server.communicate(timeout=90)
        told = {name: party.communicate(timeout=60)[0] for name, party in parties.items()}
        assert server.returncode != 0
        for words in (said, told["shop"]):
            flat = " ".join(words.split())
            assert "3 are new, and 5 are gone" in flat
            assert "--again" in flat
            assert "new1" not in flat
        after = town.align("--again")
        assert after["fingerprint"] != before["fingerprint"]
        assert after["parties"]["shop"]["rows"] == 698
        town.check_aligned()
        town.check_fit(town.fit())


def test_a_broken_file_is_named_and_aligned_again(tmp_path: Path) -> None:
    with Town(tmp_path, "curve") as town:
        town.align()
        (tmp_path / "shop-state" / ALIGNMENT).write_bytes(b"broken")
        code, said = town.ask("align", str(town.federation_file))
        assert code != 0
        assert "alignment.arrow, cannot be read" in " ".join(said.split())
        town.align("--again")
        town.check_aligned()


@SLOW
def test_a_party_that_lost_its_file_is_named(tmp_path: Path) -> None:
    with Town(tmp_path) as town:
        town.align()
        (tmp_path / "shop-state" / ALIGNMENT).unlink()
        code, said = town.ask("align", str(town.federation_file))
        assert code != 0
        flat = " ".join(said.split())
        assert "Parties go by different alignments" in flat
        assert "shop none" in flat
        town.align("--again")
        town.check_aligned()


def test_nobody_keeps_what_the_others_do_not(tmp_path: Path) -> None:
    """A party whose policy wants more rows than are common refuses, and no file is written anywhere."""
    with Town(tmp_path) as town:
        text = town.party_files["shop"].read_text().replace('level = "open"', 'level = "usual", least_rows = 690')
        town.party_files["shop"].write_text(text)
        code, said = town.ask("align", str(town.federation_file))
        assert code != 0
        assert "690 rows at least" in " ".join(said.split())
        assert not list(tmp_path.rglob(ALIGNMENT))


def start_all(town: Town) -> dict[str, subprocess.Popen[str]]:
    return {name: town.start_party(name, "--json") for name in town.names}


# The rounds of an alignment: sheet, keys, dealing, opening, lists (two more on a curve), matches, keeping.
LAST = {"aided": 7, "curve": 9}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["curve", "aided"])
@pytest.mark.parametrize("from_the_end", [0, 1, 2, 4])
def test_a_party_is_killed(tmp_path: Path, mode: str, from_the_end: int) -> None:
    """Killed before a round, and started again: its secrets are the same, and the alignment goes on."""
    with Town(tmp_path, mode) as town:
        processes = start_all(town)
        killed: list[int] = []

        def on_round(phase: str, number: int) -> None:
            if phase == "aligning" and number == LAST[mode] - from_the_end and not killed:
                killed.append(number)
                processes["telephone"].send_signal(signal.SIGKILL)
                processes["telephone"].wait()
                town.start_party("telephone", "--json")

        with cn.Federation.connect(town.federation_file, on_round=on_round) as federation:
            run = federation.fit(TASK, sampler=cn.AllRows())
        assert killed
        town.check_aligned()
        town.check_fit(run)
        assert town.verbs().count("align") == 1


SERVER = """
import os, signal, sys
import colonnade as cn

def on_round(phase, number):
    if (phase, number) == ("aligning", int(sys.argv[2])):
        os.kill(os.getpid(), signal.SIGKILL)

cn.Federation.connect(sys.argv[1], on_round=on_round)
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["curve", "aided"])
@pytest.mark.parametrize("from_the_end", [0, 1, 2, 4])
def test_the_server_is_killed(tmp_path: Path, mode: str, from_the_end: int) -> None:
    """kill -9, and another server that asks for the same: the alignment is resumed, not made anew."""
    with Town(tmp_path, mode) as town:
        start_all(town)
        command = [sys.executable, "-c", SERVER]
        first = town.start(str(town.federation_file), str(LAST[mode] - from_the_end), command=command)
        first.wait(timeout=60)
        assert first.returncode == -signal.SIGKILL
        with cn.Federation.connect(town.federation_file) as federation:
            run = federation.fit(TASK, sampler=cn.AllRows())
        town.check_aligned()
        town.check_fit(run)
        resumed = [
            line["verb"] for line in events(tmp_path / "server-state" / "log.jsonl") if "resumed" in line["event"]
        ]
        assert resumed == ["align"]


@SLOW
def test_a_server_that_dies_when_some_have_kept_says_so(tmp_path: Path) -> None:
    """One party has the new alignment, the others the old one, or none: an error, and `--again` mends it."""
    with Town(tmp_path) as town:
        town.align()
        kept = {name: (tmp_path / f"{name}-state" / ALIGNMENT).read_bytes() for name in town.names}
        town.align("--again")
        (tmp_path / "bank-state" / ALIGNMENT).write_bytes(kept["bank"])
        code, said = town.ask("server", str(town.federation_file))
        assert code != 0
        assert "Parties go by different alignments" in " ".join(said.split())
        town.align("--again")
        town.check_aligned()
        town.check_fit(town.fit())


def test_status_and_logs_show_no_key(tmp_path: Path) -> None:
    with Town(tmp_path, "curve") as town:
        town.align()
        until(lambda: not list(tmp_path.rglob("*.journal")))
        customers = set(town.merged()["customer"])
        for path in tmp_path.glob("*-state/*"):
            words = set(re.findall(r"\w+", path.read_bytes().decode("latin-1").lower()))  # digests are longer words
            if path.name != ALIGNMENT:
                assert not customers & words, path.name
        assert not list((tmp_path / "server-state").rglob(ALIGNMENT))
