from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import browser_trial as trial
import colonnade as cn
from colonnade.cells import LONGEST, MOST_LINES, html_table, in_a_line


class Reader(HTMLParser):
    """Which elements a text has."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, _attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)


def tags(text: str) -> set[str]:
    reader = Reader()
    reader.feed(text)
    return reader.tags


def test_names_of_anyones_making_take_one_line_and_not_much_of_that() -> None:
    assert in_a_line("a\u202eb\n") == "'a\\u202eb\\n'"
    assert in_a_line("x" * 1000, 20) == "x" * 17 + "..."
    assert in_a_line("plain") == "plain"


@pytest.mark.parametrize("name", trial.HOSTILE)
def test_a_table_has_its_own_elements_only(name: str) -> None:
    text = html_table(name, [name], [[name]], (), [name])
    assert tags(text) <= {"p", "table", "thead", "tbody", "tr", "th", "td"}
    assert len(text) < 5 * (2 * LONGEST + 500)


def test_long_tables_say_that_they_are_cut() -> None:
    text = html_table("t", ["a"], [[str(i)] for i in range(500)], {0})
    assert text.count("<tr>") == MOST_LINES + 1
    assert "The first 50 of 500 lines." in text


@pytest.fixture(scope="module")
def shown() -> list[Any]:
    found: list[Any] = []
    for run in (trial.regression(), trial.classification(), trial.clustering(), trial.hostile()):
        found += [run, run.ledger, run.coreset, run.disclosure, run.model, run.findings.certificate]
    X, y = trial.columns(8000)
    federation = cn.Federation(cn.split_columns(X, y, [3, 3]))
    return [*found, federation.plan(cn.Regression(), budget_bytes=20_000)]


def test_everything_shows_itself_in_a_notebook_without_script(shown: list[Any]) -> None:
    for each in shown:
        text = each._repr_html_()
        assert tags(text) <= {"p", "table", "thead", "tbody", "tr", "th", "td"}, type(each)
        assert len(text) < 200_000


def test_a_run_prints_in_ten_lines() -> None:
    text = str(trial.regression())
    assert len(text.splitlines()) <= 11
    assert "Rows: 300 drawn of" in text
    X, y = np.eye(9, 4), np.arange(9.0)
    bare = cn.Federation(cn.split_columns(X, y, [2, 2])).coreset(cn.Regression(), cn.UniformSampling(size=20))
    assert str(bare).startswith("A coreset for Regression().")
