"""Put what benchmarks/coverage.py stored into docs/explanation/statistics.md: its table.

    python scripts/statistics_page.py [benchmarks/coverage.jsonl]

Everything comes from the stored lines; the text around the table is left alone.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

PROJECT = Path(__file__).parents[1]
STORED = PROJECT / "benchmarks" / "coverage.jsonl"
PAGE = PROJECT / "docs" / "explanation" / "statistics.md"

Line = dict[str, Any]


def read(path: Path) -> list[Line]:
    """Read the stored lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def coverage(lines: list[Line]) -> str:
    """Lay out how often intervals hold, a line for each way to learn, and its sizes side by side."""
    sizes = sorted({line["size"] for line in lines})
    columns = ("table", "intervals for", "draws", "rows as", "seeds", *(f"m = {size:,}" for size in sizes))
    rows = [f"| {' | '.join(columns)} |", "|---|---|---|---|---:" + "|---:" * len(sizes) + "|"]
    for place in dict.fromkeys(map(_place, lines)):
        found = {line["size"]: line for line in lines if _place(line) == place}
        cells = [_cell(found.get(size)) for size in sizes]
        rows.append(f"| {' | '.join([*map(str, place), *cells])} |")
    return "\n".join(rows)


def _place(line: Line) -> tuple[str, str, str, str, int]:
    return line["table"], f"the {line['of']}", line["draws"], line["wire"], line["seeds"]


def _cell(line: Line | None) -> str:
    if line is None:
        return ""
    return f"{100 * np.mean(line['covered']):.1f} % ({100 * min(line['covered']):.0f} %)"


def page(text: str, lines: list[Line]) -> str:
    """Put the table between its marks."""
    before, _, rest = text.partition("<!-- coverage -->\n")
    _, end, after = rest.partition("<!-- end of coverage -->")
    return f"{before}<!-- coverage -->\n{coverage(lines)}\n{end}{after}"


def main() -> None:
    """Read and write."""
    lines = read(Path(sys.argv[1]) if len(sys.argv) > 1 else STORED)
    PAGE.write_text(page(PAGE.read_text(), lines))


if __name__ == "__main__":
    main()
