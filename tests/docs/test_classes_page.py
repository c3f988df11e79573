"""The page on classes shows what the benchmark stored, and what it stored holds the bars."""

import runpy
from pathlib import Path

import numpy as np
import pytest

PROJECT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(PROJECT / "scripts" / "classes_page.py"))
LINES = SCRIPT["read"](PROJECT / "benchmarks" / "classification.jsonl")


def test_the_tables_are_those_of_the_stored_lines() -> None:
    text = (PROJECT / "docs" / "explanation" / "classes.md").read_text()
    assert SCRIPT["page"](text, LINES) == text, "run scripts/classes_page.py, and read the page again"


@pytest.mark.parametrize(("table", "arm", "limit", "bar"), SCRIPT["BARS"])
def test_what_was_stored_holds_the_bars(table: str, arm: str, limit: dict[str, int], bar: float) -> None:
    line = SCRIPT["within"](LINES, table, arm, limit)
    assert len(line["excess"]) >= 20
    assert 100 * np.mean(line["excess"]) <= bar


def test_the_area_is_nearly_that_of_all_rows() -> None:
    line = SCRIPT["within"](LINES, "credit default", "sharpened", {"size": 2000})
    whole = next(line for line in LINES if line["table"] == "credit default" and "arm" not in line)
    assert np.mean(line["auc"]) >= whole["auc"] - 0.005


@pytest.mark.parametrize(("table", "budget"), SCRIPT["COMPARED"])
def test_rounded_rows_lose_far_less_than_float_rows_of_the_same_bytes(table: str, budget: int) -> None:
    assert SCRIPT["gain"](LINES, table, budget) >= 25


def test_the_figure_can_be_drawn_from_them(tmp_path: Path) -> None:
    SCRIPT["draw"](LINES, tmp_path / "classes.svg")
    assert "sharpened, rounded" in (tmp_path / "classes.svg").read_text()
