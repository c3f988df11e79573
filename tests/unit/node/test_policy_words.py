"""What a server could learn at worst, in words: the numbers in them are those of the policy and the table."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import colonnade as cn
from colonnade.contracts import Table
from colonnade.node.files import PolicyFile
from colonnade.node.policy_words import LIMITS, pace, worst_case
from colonnade.protocol.policy import LEVELS

EVERYTHING = [
    "totals",
    "row ids",
    "scores",
    "sums of scores",
    "features",
    "labels",
    "predictions",
    "moments",
    "row weights",
    "model",
]


def table(n_rows: int = 1_000, n_features: int = 9, **roles: Any) -> Table:
    return cn.Party("bank", np.ones((n_rows, n_features)), label=np.ones(n_rows), **roles).table


def words(rules: PolicyFile, of: Table | None = None) -> dict[str, str]:
    return {each.about: each.words for each in worst_case(rules, of or table())}


@pytest.mark.parametrize(
    ("a_day", "said"),
    [
        (None, "all 569 rows on the first day"),
        (569, "all 569 rows on the first day"),
        (10, "up to 10 rows a day of 569; after 57 days all of them"),
        (568, "up to 568 rows a day of 569; after 2 days all of them"),
        (0, "no rows"),
    ],
)
def test_how_long_it_takes_until_all_rows_are_told(a_day: int | None, said: str) -> None:
    assert pace(a_day, 569) == said


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_put_into_words(level: Any) -> None:
    said = words(PolicyFile(level=level))
    assert list(said) == list(words(PolicyFile(level="open"))), "the same questions whatever the policy"
    assert all(text.endswith(".") and ".." not in text and "None" not in text for text in said.values())
    assert set(LIMITS) >= {"parties that join forces", "false data", "a lie under a mask", "patience", "many sums"}


def test_strict_says_that_values_stay_and_what_does_not() -> None:
    said = words(PolicyFile(level="strict"))
    assert said["values of single rows"] == "none: the policy never reveals features or labels."
    assert "solvers: gram; 3 parties or more; at most 0.1 parameters" in said["jobs"]
    assert said["models applied for others"].startswith("3 in all, for all time, of 9 columns: as many equations")
    assert "show it" not in said["models applied for others"]
    assert "scores (how unusual" not in said["other numbers about single rows"].replace("sums of scores", "sums")
    assert said["which rows were drawn"].startswith("all 1,000 rows on the first day")
    assert "every value of its rows: all 1,000 rows" in said["the server and another party together"]


def test_usual_says_that_rows_are_shown_and_how_fast() -> None:
    said = words(PolicyFile(level="usual", rows_a_day=300), table(weight=np.ones(1_000)))
    assert said["values of single rows"] == (
        "features and labels and row weights: up to 300 rows a day of 1,000; after 4 days all of them. A row counts "
        "each time it is told."
    )
    assert "and as many as it has columns show it" in said["models applied for others"], "100 models, 9 columns"
    assert "up to 1,000,000 a day, about up to 300 rows a day" in said["other numbers about single rows"]


def test_open_says_that_there_are_no_limits() -> None:
    said = words(PolicyFile(level="open"))
    assert said["jobs"] == "tasks: any; solvers: any."
    assert "any number of them" in said["other numbers about single rows"]
    assert "Sums may be over few rows" in said["numbers about many rows"]
    assert said["models applied for others"].startswith("any number: 9 of them")


def test_sums_are_counted_against_the_values_they_are_of() -> None:
    said = words(PolicyFile(moments_a_day=99))["numbers about many rows"]
    assert said.startswith("up to 99 a day")
    assert "at most 5,000 numbers in all, for all time, and as many equations about its 10,000 values" in said
    assert "each over 10 rows or more, and 10 rows apart" in said


def test_shares_show_a_server_and_a_party_as_many_rows_as_are_counted() -> None:
    said = words(PolicyFile(level="strict", moments_a_day=5_000))["the server and another party together"]
    assert "up to 500 rows a day of 1,000; after 2 days all of them" in said, "ten columns"
    assert "SecureGram" not in words(PolicyFile(solvers=["saga"]))["the server and another party together"]


def test_what_is_never_revealed_is_not_told() -> None:
    said = words(PolicyFile(never=EVERYTHING, phases=["framing"]))
    nothing = ["values of single rows", "other numbers about single rows", "which rows were drawn"]
    nothing += ["numbers about many rows", "models applied for others"]
    assert all(said[about].startswith("none") for about in nothing)
    assert "phases: framing" in said["jobs"]
    assert "SecureGram" not in said["the server and another party together"]


def test_columns_that_do_not_enter_are_not_counted() -> None:
    policy = cn.Policy(level="open", never_columns=["bank_0", "bank_1", "bank_2"])
    said = words(PolicyFile(level="strict"), table(policy=policy))
    assert said["always told"] == "the names of its 7 columns, how many rows it has (1,000)."
    assert said["models applied for others"].startswith("2 in all, for all time, of 6 columns")


def test_no_sums_are_told_of_a_table_with_too_few_rows() -> None:
    said = words(PolicyFile(level="usual", least_rows=5_000))["numbers about many rows"]
    assert said.startswith("no sums, which are over 5,000 rows or more, where the table has 1,000;")


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (PolicyFile("open"), "for any choice of these, and by many choices which rows share a rare level. Levels and"),
        (
            PolicyFile("usual"),
            "for 6 choices of these, 10 rows apart or more. Levels, too, as",
        ),
        (PolicyFile("usual", never=["levels"]), "10 rows apart or more. Levels and means stay here."),
    ],
)
def test_what_preparation_tells_is_said(rules: PolicyFile, said: str) -> None:
    raw = pa.table({"job": ["clerk", "nurse"] * 500})
    prepare = cn.Prepare({"job": cn.Category()}, tell_levels=rules.level == "usual")
    found = words(rules, cn.Party("bank", raw, prepare=prepare).table)
    assert said in found["columns that it prepares"]
    assert "columns that it prepares" not in words(rules)
