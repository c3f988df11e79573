import re
from pathlib import Path

import pytest

import browser_trial as trial
import colonnade as cn
from colonnade.report import write_dpia
from colonnade.report.dpia import escaped, sheet
from colonnade.report.sheet import rows_of


def test_the_sheet_says_what_a_privacy_officer_asks() -> None:
    run = trial.regression()
    text = sheet(run)
    assert re.findall(r"^## (.*)$", text, re.M) == [
        "What is processed",
        "Who learned what about whom",
        "Safeguards",
        "Limits",
        "How it was made",
    ]
    distinct = len(set(run.coreset.rows.tolist()))
    assert (
        "| server | party1 | values of its columns for single rows: raw, rounded, averaged, or in a basis that it "
        in text
    )
    assert f"| at most 600 | at most {distinct} |" in text
    assert f"Only drawn rows were used: {distinct} of 2,000." in text
    assert "| seed | 1 |" in text
    for party, mark in run.tables.fingerprints.items() if run.tables else ():
        assert f"| table of {party} | {mark} |" in text


def test_rows_that_were_told_of_are_never_more_than_there_are() -> None:
    run = trial.clustering()
    for line in run.disclosure.lines:
        rows = rows_of(run, line)
        assert rows is None or rows <= min(line.numbers, 2000)


def test_names_stand_for_themselves_in_markdown() -> None:
    text = sheet(trial.hostile())
    lines = text.splitlines()
    bare = re.compile(r"(?<!\\)(?:\\\\)*[<`\[]")
    assert not [line[:200] for line in lines[1:] if bare.search(line)], "no tag, code or link begins"
    widths = {}
    for line in lines:
        if line.startswith("|"):
            widths.setdefault(len(re.findall(r"(?<!\\)\|", line)), []).append(line)
    assert set(widths) <= {3, 6}, "no name adds a cell"
    assert not re.search(r"[\u202a-\u202e\x00\x1b]", text)
    assert len(text) < 1_000_000


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a|b", r"a\|b"),
        ("# x", r"\# x"),
        ("- x", r"\- x"),
        ("1. x", r"\1. x"),
        ("https://x.example", r"https\://x.example"),
        ("www.x.example", r"www\.x.example"),
        ("a\nb", "a\ufffdb"),
    ],
)
def test_what_markdown_would_obey_is_escaped(name: str, shown: str) -> None:
    assert escaped(name) == shown


def test_a_sheet_replaces_a_sheet_and_nothing_else(tmp_path: Path) -> None:
    run = trial.clustering()
    file = write_dpia(run, tmp_path / "sheet.md")
    assert write_dpia(run, file).read_text().startswith("<!-- Colonnade disclosure sheet -->\n# Disclosure sheet")
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(cn.InputError, match="would be lost"):
        write_dpia(run, tmp_path / "README.md")
