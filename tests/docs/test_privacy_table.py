"""The table of attacks in docs/explanation/privacy.md names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(test_\w+\.py)::(test_\w+)`")


def test_every_cell_names_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "explanation" / "privacy.md").read_text()
    named = NAMED.findall(page)
    assert len(named) > 30
    missing = [
        f"{file}::{test}" for file, test in named if f"def {test}(" not in (ROOT / "tests/hostile" / file).read_text()
    ]
    assert not missing
    rows = [line for line in page.splitlines() if line.startswith(("| the server", "| a party alone"))]
    assert len(rows) >= 30
    assert not [row for row in rows if not NAMED.search(row)]
