"""The page on intervals shows what the benchmark stored, and what it stored holds the bars."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PROJECT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(PROJECT / "scripts" / "statistics_page.py"))
LINES = SCRIPT["read"](PROJECT / "benchmarks" / "coverage.jsonl")
BARRED = [line for line in LINES if line["barred"]]


def test_the_table_is_that_of_the_stored_lines() -> None:
    text = (PROJECT / "docs" / "explanation" / "statistics.md").read_text()
    assert SCRIPT["page"](text, LINES) == text, "run scripts/statistics_page.py, and read the page again"


@pytest.mark.parametrize("line", BARRED, ids=lambda line: "-".join(str(line[name]) for name in list(line)[:5]))
def test_what_was_stored_holds_the_bar(line: dict[str, Any]) -> None:
    assert 0.935 <= np.mean(line["covered"]) <= 0.965
    assert line["seeds"] < 200 or min(line["covered"]) >= 0.90


def test_all_that_has_a_bar_was_counted() -> None:
    """Three tables, two draws, two wires and three sizes; and the population of one."""
    assert len(BARRED) == 3 * 2 * 2 * 3 + 2 * 3
