"""The page on promises shows what the benchmark stored."""

import runpy
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(PROJECT / "scripts" / "promises_page.py"))
STORED = PROJECT / "benchmarks" / "promises.jsonl"
PAGE = (PROJECT / "docs" / "explanation" / "promises.md").read_text()

RUNS = {"bytes": [9000, 9100], "excess": [0.010, 0.012], "warnings": [], "seeds": 2, "pilot": 0, "rows": 1000}
LINES: list[dict[str, Any]] = [
    {
        **RUNS,
        "table": "houses",
        "half": "chosen",
        "place": "least",
        "budget": 9500,
        "planned": [0.01, 0.008, 0.013],
        "one_run": [0.01, 0.005, 0.02],
        "sampler": "ImportanceSampling(size=250, round_scores=0.2)",
        "solver": "CompactCentral(step=0.5)",
        "best": {"arm": "uniform", "excess": [0.01, 0.01]},
        "arms": {"paper": {"excess": [0.2, 0.3]}},
    },
    {
        **RUNS,
        "table": "bill",
        "half": "judged",
        "place": "all",
        "budget": 9500,
        "planned": None,
        "one_run": None,
        "sampler": "AllRows()",
        "solver": "Central()",
        "warnings": ["hidden"],
    },
    {"table": "limit", "half": "judged", "place": "all", "budget": 1, "pilot": 0, "error": "no"},
]


def test_what_was_measured_stands_between_the_marks() -> None:
    text = SCRIPT["page"](PAGE, LINES)
    assert (
        "| houses | chosen | 9,500 | importance 250 step 0.5 | 1 % | 0.8 % to 1.3 % | 0.5 % to 2 % | 1.1 % | 1.2 % |"
        in text
    )
    assert "| bill | judged | 9,500 | all rows exact (warned) | unknown |" in text
    assert "**missed**: 1 of 3" in text, "the plan that failed"
    assert "- **Judged**: `bill`, `limit`." in text
    assert SCRIPT["page"](text, LINES) == text
    assert text.count("## ") == PAGE.count("## ")


def test_the_figure_can_be_drawn_and_is_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        SCRIPT["draw"](LINES, tmp_path / name)
    drawn = (tmp_path / "one.svg").read_bytes()
    assert b"houses  9,500" in drawn
    assert drawn == (tmp_path / "two.svg").read_bytes()


@pytest.mark.skipif(not STORED.exists(), reason="nothing was measured yet: run benchmarks/promises.py")
def test_the_page_is_that_of_the_stored_lines() -> None:
    lines = SCRIPT["in_order"](SCRIPT["REPORT"]["read"](STORED))
    assert SCRIPT["page"](PAGE, lines) == PAGE, "run scripts/promises_page.py, and read the page again"
