"""Cells of tables: names can be of anyone's making, so each takes one line and not much of that, and is escaped."""

import html
from collections.abc import Container, Iterable, Sequence

# Characters of a cell of a table.
WIDEST = 200
# And of a sentence with names in it.
LONGEST = 2000
# Lines and columns of a table in a notebook.
MOST_LINES, MOST_COLUMNS = 50, 20


def in_a_line(cell: str, widest: int = WIDEST) -> str:
    """Show a name that can be of anyone's making in one line, and not much of that."""
    # A long one is cut first: what is left out needs no look.
    cut = cell[: widest + 1]
    cell = cut if cut.isprintable() else repr(cut)
    return cell if len(cell) <= widest else f"{cell[: widest - 3]}..."


def html_table(
    title: str, head: Sequence[str], lines: Sequence[Sequence[str]], numbers: Container[int], notes: Iterable[str] = ()
) -> str:
    """Lay out lines of cells as a small HTML table without script, for notebooks; of many lines the first."""
    shown = [f"<tr>{_cells('td', line, numbers)}</tr>" for line in lines[:MOST_LINES]]
    heads = f"<thead><tr>{_cells('th', head, numbers)}</tr></thead>" if head else ""
    rest = [f"The first {MOST_LINES} of {len(lines):,} lines."] if len(lines) > MOST_LINES else []
    below = "".join(f"<p>{html.escape(in_a_line(note, LONGEST))}</p>" for note in [*rest, *notes])
    return (
        f"<p>{html.escape(in_a_line(title, LONGEST))}</p><table>{heads}<tbody>{''.join(shown)}</tbody></table>{below}"
    )


def _cells(tag: str, line: Sequence[str], numbers: Container[int]) -> str:
    return "".join(
        f'<{tag} style="text-align:{"right" if place in numbers else "left"}">{html.escape(in_a_line(cell))}</{tag}>'
        for place, cell in enumerate(line)
    )
