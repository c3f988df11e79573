"""Figures that benchmarks put into pages of the documentation, between marks that are named there."""

from pathlib import Path
from typing import Any

Row = dict[str, Any]


def table(rows: list[Row]) -> str:
    """Write rows as a table."""
    heads = list(rows[0])
    lines = [heads, ["---"] * len(heads), *([_cell(row[head]) for head in heads] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def show(measured: dict[str, str], page: Path | None) -> None:
    """Print tables, or put each into a page between the marks of its name."""
    if page is None:
        print("\n".join(measured.values()))
        return
    text = page.read_text()
    for name, lines in measured.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        text = text.partition(start)[0] + start + "\n" + lines + "\n" + end + text.partition(end)[2]
    page.write_text(text)


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{item:g} {name}" for name, item in value.items())
    return f"{value:.3g}" if isinstance(value, float) else str(value)
