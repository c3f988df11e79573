"""The page on bytes shows what the benchmark stored, and what it stored holds the bars."""

import runpy
from pathlib import Path

import numpy as np
import pytest

PROJECT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(PROJECT / "scripts" / "wire_page.py"))
LINES = SCRIPT["read"](PROJECT / "benchmarks" / "wire.jsonl")
JOBS = [line for line in LINES if "bar" in line]


def test_the_tables_are_those_of_the_stored_lines() -> None:
    text = (PROJECT / "docs" / "explanation" / "wire.md").read_text()
    assert SCRIPT["page"](text, LINES) == text, "run scripts/wire_page.py, and read the page again"


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job["job"])
def test_what_was_stored_holds_the_bar_within_the_bytes(job: dict[str, float]) -> None:
    arms = {line["arm"]: line for line in SCRIPT["runs"](LINES, job) if line["budget"] == job["budget"]}
    assert len(arms["paper"]["excess"]) == len(arms["ours"]["excess"]) == len(arms["uniform"]["excess"]) == 20
    assert max(arms["ours"]["bytes"] + arms["uniform"]["bytes"]) <= job["budget"]
    assert np.mean(arms["ours"]["excess"]) <= job["bar"] * np.mean(arms["paper"]["excess"])


def test_the_figure_can_be_drawn_from_them(tmp_path: Path) -> None:
    SCRIPT["draw"](LINES, tmp_path / "wire.svg")
    assert (tmp_path / "wire.svg").read_text().count("everything (no excess)") >= 1
