import re
from pathlib import Path

import numpy as np
import pandas as pd
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
    assert f"Only drawn rows were used in it: {distinct} of 2,000." in text
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
    widths: dict[int, list[str]] = {}
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
        ("1. x", r"1\. x"),
        ("1.5 kB were sent", "1.5 kB were sent"),
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


def test_what_was_told_beside_the_run_is_said_not_to_be_counted() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    federation = cn.Federation(cn.split_columns(X, X.sum(axis=1) + rng.normal(size=600), [2, 1, 1]))
    run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=200), solver=cn.SecureGram())
    alone = sheet(run)
    assert "In this run no party's columns or labels left it for any row." in alone
    assert "not counted here" not in alone
    told = sheet(run.with_findings(federation.evaluate(run.model)))
    assert "What evaluations and certificates told since is not counted here" in told


def test_keys_that_were_matched_in_the_clear_are_not_denied() -> None:
    keys = [f"patient-{number}" for number in range(300)]
    rng = np.random.default_rng(0)
    tables = [pd.DataFrame({"key": keys, name: rng.normal(size=300)}) for name in "ab"]
    parties = [cn.Party("clinic", tables[0], key="key", label="a"), cn.Party("lab", tables[1], key="key")]
    run = cn.Federation(parties, align="clear").fit(cn.Regression(), sampler=cn.UniformSampling(size=50))
    text = sheet(run)
    assert "no row by name" not in text
    assert 'with align = "clear" the server was told all keys' in text


def test_all_rows_are_not_called_drawn() -> None:
    rng = np.random.default_rng(0)
    federation = cn.Federation(cn.split_columns(rng.normal(size=(200, 2)), rng.normal(size=200), [1, 1]))
    text = sheet(federation.fit(cn.Regression(), sampler=cn.AllRows(), split=cn.HoldOut(0.2)))
    assert "Only drawn rows" not in text
    assert "on all 160 rows not held out" in text
