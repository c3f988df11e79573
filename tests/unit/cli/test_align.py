"""`colonnade align` on a job file, whose parties are all here; between machines it is in tests/network."""

import json
from pathlib import Path

import pandas as pd
import pytest

from command import run

JOB = """
align = "{mode}"
task = {{ kind = "regression" }}
sampler = {{ kind = "all" }}

[[party]]
name = "bank"
file = "bank.csv"
key = ["carrier", "flight"]
label = "delay"

[[party]]
name = "shop"
file = "shop.csv"
key = ["carrier", "flight"]
duplicates = "{duplicates}"
"""


def job(folder: Path, mode: str = "curve", duplicates: str = "first") -> str:
    """Write three flights of one, four of the other, two of them common, one written twice."""
    bank = pd.DataFrame(
        {"carrier": ["AA", "UA", "DL"], "flight": ["007", "12", "3"], "x": [1, 2, 4], "delay": [3, 1, 2]}
    )
    shop = pd.DataFrame({"carrier": ["ua ", "aa", "aa", "AA"], "flight": [12, "007", "007", "7"], "z": [5, 6, 7, 9]})
    bank.to_csv(folder / "bank.csv", index=False)
    shop.to_csv(folder / "shop.csv", index=False)
    path = folder / "job.toml"
    path.write_text(JOB.format(mode=mode, duplicates=duplicates))
    return str(path)


@pytest.mark.parametrize("mode", ["clear", "aided", "curve"])
def test_it_says_what_matched(tmp_path: Path, mode: str) -> None:
    done = run("align", job(tmp_path, mode), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["mode"], report["matched"]) == (mode, 2)
    assert report["parties"] == {
        "bank": {"rows": 3, "unmatched": 1, "repeated": 0},
        "shop": {"rows": 4, "unmatched": 1, "repeated": 1},
    }
    assert "Unicode NFC" in report["rule"]


def test_in_words(tmp_path: Path) -> None:
    done = run("align", job(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "2 rows matched (curve)" in done.stdout
    assert "leading zeros stay" in " ".join(done.stdout.split())


def test_repeated_keys_are_an_error_that_shows_none(tmp_path: Path) -> None:
    done = run("align", job(tmp_path, duplicates="error"))
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 3
    assert "1 of 4 rows repeat the key of an earlier row, in row 2" in said
    assert "007" not in said


def test_a_file_that_aligns_nothing(tmp_path: Path) -> None:
    done = run("align", job(tmp_path, "exact"))
    assert done.returncode != 0
    said = " ".join((done.stdout + done.stderr).split())
    assert "1 of its rows repeat keys, and cannot be the same rows" in said
    assert "let them be matched by key: align = 'curve', 'aided' or 'clear'" in said


def test_plain_hashes_and_no_such_file(tmp_path: Path) -> None:
    assert run("align", job(tmp_path, "hash")).returncode == 3
    missing = run("align", str(tmp_path / "none.toml"))
    assert missing.returncode == 3
    assert "none.toml" in missing.stdout + missing.stderr
