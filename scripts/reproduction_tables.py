"""Put the numbers of a results file of `colonnade reproduce` into docs/explanation/reproduction.md.

    python scripts/reproduction_tables.py results.jsonl ...

Each table has both variants beside what the authors stored and printed; the text around it is left alone.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from colonnade.paper.tables import spread, tables
from colonnade.paper.trials import Cell, cells, read_trials

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "reproduction.md"
WRITTEN, RUN = "as-written", "as-run"
COLUMNS = ("method", "rows", "as written", "as run", "stored", "printed", "above all rows: as written", "as run")
HEADER = " | ".join((*COLUMNS, "theirs", "units", "bytes"))


def table(found: Sequence[Cell]) -> str:
    """Lay out one table with both variants in a line."""
    lines = [f"| {HEADER} |", "|---" + "|---:" * HEADER.count("|") + "|"]
    places = dict.fromkeys((cell.method, cell.size) for variant in tables(found) for cell in variant)
    return "\n".join([*lines, *(_line(found, *place) for place in places)])


def _line(found: Sequence[Cell], method: str, size: int) -> str:
    mine = {cell.variant: cell for cell in found if (cell.method, cell.size) == (method, size)}
    any_one = next(iter(mine.values()))
    # SAGA as run was not tried on all rows: it compares with Central.
    solver = "Central" if any_one.solver == "SAGA" else any_one.solver
    full = {cell.variant: cell for cell in found if cell.is_full and cell.solver == solver}
    stored = "-" if any_one.stored_mean is None else spread(any_one.stored_mean, any_one.stored_std or 0.0)
    theirs = next((cell.stored_mean for cell in full.values()), None)
    above = ["-"] * 3
    if not any_one.is_full:
        ours = [_above(mine[v].mean, full[v].mean) if v in mine and v in full else "-" for v in (WRITTEN, RUN)]
        above = [*ours, _above(any_one.stored_mean, theirs)]
    values = [
        method,
        f"{size:,}",
        *(_ours(mine.get(variant)) for variant in (WRITTEN, RUN)),
        stored,
        "-" if any_one.printed is None else f"{any_one.printed:.2f}",
        *above,
        f"{mine.get(WRITTEN, any_one).units:.1e}",
        f"{mine.get(WRITTEN, any_one).bytes:.1e}",
    ]
    return f"| {' | '.join(values)} |"


def _ours(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    few = "" if cell.is_full or cell.repeats == 20 else f" ({cell.repeats})"
    return spread(cell.mean, cell.std) + few


def _above(value: float | None, base: float | None) -> str:
    if value is None or base is None:
        return "-"
    return f"{value / base - 1:+z.1%}" if value < 10 * base else f"x {value / base:.0e}"


def main() -> None:
    """Replace the part of the page between its two marks."""
    trials = [trial for path in sys.argv[1:] for trial in read_trials(Path(path))]
    unique = list({(t.experiment, t.task, t.variant, t.data, t.method, t.size, t.repeat): t for t in trials}.values())
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells(unique):
        groups.setdefault((cell.experiment, cell.task, cell.data), []).append(cell)
    order = ["table1-regression", "table1-clustering", "parties", "regularisers", "centres", "kc-house"]
    sections = [
        f"### {experiment}: {task} ({data})\n\n{table(group)}\n"
        for (experiment, task, data), group in sorted(groups.items(), key=lambda item: order.index(item[0][0]))
    ]
    mark = "<!-- made by scripts/reproduction_tables.py -->"
    begin, end = f"{mark}\n", "<!-- end -->\n"
    pattern = re.escape(begin) + ".*" + re.escape(end)
    text = PAGE.read_text()
    PAGE.write_text(re.sub(pattern, lambda _: begin + "\n" + "\n".join(sections) + "\n" + end, text, flags=re.DOTALL))


if __name__ == "__main__":
    main()
