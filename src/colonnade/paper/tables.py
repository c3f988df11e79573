"""The paper's tables with ours, printed and stored numbers side by side, as text, Markdown and HTML."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from colonnade.ledger import aligned
from colonnade.paper.trials import Cell

HEADER = (
    "method",
    "size",
    "repeats",
    "ours",
    "printed",
    "stored",
    "difference",
    "in stds",
    "above all rows",
    "theirs",
    "units",
    "by formula",
    "bytes",
)
LEGEND = (
    "ours, stored: mean ± standard deviation of the cost a row; difference: ours against stored, relative and in "
    "pooled standard deviations; above all rows: our mean against our fit of all rows, theirs against their own; "
    "units, bytes: counted from messages; by formula: units as the paper computes them."
)


@dataclass(frozen=True)
class Layout:
    """One table: its title, and a line of words a cell."""

    title: str
    lines: Sequence[Sequence[str]]

    def text(self) -> str:
        """Lay it out for a terminal."""
        return f"{self.title}\n{aligned([HEADER, *self.lines], range(1, len(HEADER)))}"

    def markdown(self) -> str:
        """Write it in Markdown."""
        rule = ["---", *["---:"] * (len(HEADER) - 1)]
        return f"**{self.title}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in (HEADER, rule, *self.lines))

    def html(self) -> str:
        """Write it in HTML."""
        head = "".join(f"<th>{escape(name)}</th>" for name in HEADER)
        body = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in line)}</tr>" for line in self.lines)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f'<h3>{escape(self.title)}</h3><div class="wide">{table}</div>'


def layouts(found: Sequence[Cell]) -> list[Layout]:
    """Lay out a table for each task, variant and data set, in the order they were run."""
    return [Layout(title(table[0]), [_line(cell, _all_rows(cell, table)) for cell in table]) for table in tables(found)]


def tables(found: Sequence[Cell]) -> list[list[Cell]]:
    """Put the cells of a table together: all rows first, then coresets, then uniform samples, by size."""
    groups: dict[tuple[str, str, str, str], list[Cell]] = {}
    for cell in found:
        groups.setdefault((cell.experiment, cell.task, cell.variant, cell.data), []).append(cell)
    return [_sorted(group) for group in groups.values()]


def _sorted(table: list[Cell]) -> list[Cell]:
    solvers = list(dict.fromkeys(cell.solver for cell in table))
    return sorted(table, key=lambda c: (solvers.index(c.solver), not c.is_full, c.method, c.size))


def _all_rows(cell: Cell, table: Sequence[Cell]) -> Cell | None:
    """Find the fit of all rows to compare with: of the same solver where the authors have one, or the table's first."""
    full = [other for other in table if other.is_full]
    same = (other for other in full if other.solver == cell.solver and other.stored_mean is not None)
    return next(same, full[0] if full else None)


def title(cell: Cell) -> str:
    """Say what a table shows and on which data."""
    return f"{cell.experiment}, {cell.task}, {cell.variant}; data: {cell.data}"


def _line(cell: Cell, full: Cell | None) -> tuple[str, ...]:
    stds = cell.difference_in_stds
    compared = not cell.is_full and full is not None
    return (
        cell.method,
        f"{cell.size:,}",
        str(cell.repeats),
        spread(cell.mean, cell.std),
        "-" if cell.printed is None else f"{cell.printed:.2f}",
        "-" if cell.stored_mean is None else spread(cell.stored_mean, cell.stored_std or 0.0),
        _relative(cell.mean, cell.stored_mean),
        "-" if stds is None else f"{stds:+z.1f}",
        _relative(cell.mean, full.mean if compared and full else None),
        _relative(cell.stored_mean, full.stored_mean if compared and full else None),
        f"{cell.units:.1e}",
        f"{cell.formula_units:.1e}" if cell.formula_units else "-",
        f"{cell.bytes:.1e}",
    )


def _relative(value: float | None, base: float | None) -> str:
    if value is None or base is None:
        return "-"
    change = value / base - 1.0
    return f"{change:+z.1%}" if change < 10 else f"x {value / base:.0e}"


def spread(mean: float, std: float) -> str:
    """Write mean ± std with as many digits as the paper."""
    return f"{mean:.2f} ± {std:.2f}" if mean < 1e6 else f"{mean:.3e} ± {std:.1e}"
