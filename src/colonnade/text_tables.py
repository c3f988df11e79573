"""Tables and paragraphs as text that fits a terminal of 80 columns, whatever the names in them."""

import re
import unicodedata
from collections.abc import Container, Iterable, Sequence

from colonnade.cells import in_a_line as in_a_line

# Columns of a terminal. What is printed does not depend on the one that it is printed to.
WIDTH = 80
# Columns of text that are narrower than this are hard to read: then gaps become smaller, or numbers go below.
NARROW = 10
# Lines of a cell. What is longer loses its middle: names differ at their ends.
MOST_LINES = 3
GAP, SMALL_GAP = 2, 1
# A line is broken between words, a cell after these, too, or before the next word of AskAuditedPredictions.
WORDS = re.compile(r"(?<=\s)(?=[^\s%])")
BREAKS = re.compile(r"(?<=[\s\-_./,;|])|(?<=[a-z])(?=[A-Z])")


def aligned(table: Sequence[Sequence[str]], numbers: Container[int], width: int = WIDTH) -> str:
    """Lay out lines of cells, all of one length, in columns; those in `numbers` stand to the right.

    The first line is the header. Where the table is too wide, cells of text are broken over lines; where the numbers
    alone are, some of their columns follow below. A name can be of anyone's making: it takes a few lines at most.
    """
    cells = [[in_a_line(cell) for cell in row] for row in table]
    columns = range(len(cells[0]))
    widths = {column: max(n_columns(row[column]) for row in cells) for column in columns}
    if sum(widths.values()) + GAP * (len(widths) - 1) <= width:
        return _laid_out(cells, widths, numbers, GAP)
    natural = dict(widths)
    for column in columns:
        if column in numbers:  # its header is broken, its numbers are not
            words = [n_columns(word) for word in cells[0][column].split()]
            widths[column] = max(*words, 0, *(n_columns(row[column]) for row in cells[1:]), 0)
    if sum(widths.values()) + SMALL_GAP * (len(widths) - 1) <= width < sum(widths.values()) + GAP * (len(widths) - 1):
        return _laid_out(cells, widths, numbers, SMALL_GAP)
    for gap in (GAP, SMALL_GAP):
        narrowed = _narrowed(widths, numbers, width - gap * (len(widths) - 1))
        if all(narrowed[column] >= min(widths[column], NARROW) for column in columns):
            return _laid_out(cells, narrowed, numbers, gap)
    in_parts = _in_parts(natural, numbers, width)
    if len(in_parts) > 1:
        parts = [[[row[column] for column in part] for row in cells] for part in in_parts]
        sides = [{place for place, column in enumerate(part) if column in numbers} for part in in_parts]
        return "\n\n".join(aligned(part, side, width) for part, side in zip(parts, sides, strict=True))
    return _laid_out(cells, narrowed, numbers, SMALL_GAP)


def paragraphs(text: str, width: int = WIDTH) -> str:
    """Break lines that are too long between words, as far in as they begin; other lines stay as they are."""
    return "\n".join(line if n_columns(line) <= width else _folded(line, width) for line in text.split("\n"))


def n_columns(text: str) -> int:
    """Count the columns of a terminal that a text takes: of Chinese characters, two each."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in ("W", "F")) for each in text
    )


def _folded(line: str, width: int) -> str:
    indent = line[: min(len(line) - len(line.lstrip()), width // 2)]
    words = _packed(WORDS.split(line.strip()), width - len(indent))
    return "\n".join(f"{indent}{each}" for each in words)


def _narrowed(widths: dict[int, int], numbers: Container[int], room: int) -> dict[int, int]:
    """Give columns of text what numbers leave, the widest the least of what they would take."""
    text = {column: each for column, each in widths.items() if column not in numbers}
    left = room - sum(each for column, each in widths.items() if column in numbers)
    found = dict(widths)
    for place, column in enumerate(sorted(text, key=lambda column: text[column])):
        found[column] = max(1, min(text[column], left // (len(text) - place)))
        left -= found[column]
    return found


def _in_parts(widths: dict[int, int], numbers: Container[int], width: int) -> list[list[int]]:
    """Deal columns of numbers to tables that fit; each has all columns of text before the first number."""
    first = next((column for column in widths if column in numbers), len(widths))
    text = list(range(first))
    room = width - sum(min(widths[column], 2 * NARROW) + GAP for column in text)
    parts: list[list[int]] = [[]]
    for column in range(first, len(widths)):
        taken = sum(widths[each] + GAP for each in parts[-1])
        if parts[-1] and taken + widths[column] > room:
            parts.append([])
        parts[-1].append(column)
    return [text + part for part in parts]


def _laid_out(cells: list[list[str]], widths: dict[int, int], numbers: Container[int], gap: int) -> str:
    lines = []
    for row in cells:
        broken = [_broken(cell, widths[column]) for column, cell in enumerate(row)]
        for number in range(max(map(len, broken))):
            line = (
                _padded(each[number] if number < len(each) else "", widths[column], column in numbers)
                for column, each in enumerate(broken)
            )
            lines.append((" " * gap).join(line).rstrip())
    return "\n".join(lines)


def _padded(cell: str, width: int, is_number: bool) -> str:
    space = " " * (width - n_columns(cell))
    return f"{space}{cell}" if is_number else f"{cell}{space}"


def _broken(cell: str, width: int) -> list[str]:
    """Break a cell into lines: between words or parts of a name if it can be, at most so many."""
    if n_columns(cell) <= width:
        return [cell]
    lines = _packed(BREAKS.split(cell), width)
    if len(lines) <= MOST_LINES:
        return lines
    kept = (MOST_LINES * width - 3) // 2
    return _cut(f"{cell[:kept]}...{cell[-kept:]}" if kept else "...", width)[:MOST_LINES]


def _packed(pieces: Iterable[str], width: int) -> list[str]:
    """Put pieces into lines; one that is longer than a line is cut."""
    lines = [""]
    for piece in pieces:
        if n_columns(lines[-1] + piece.rstrip()) <= width:
            lines[-1] += piece
        else:
            lines += _cut(piece, width) if n_columns(piece.rstrip()) > width else [piece]
    return [line.strip() for line in lines if line.strip()]


def _cut(text: str, width: int) -> list[str]:
    """Cut a text into lines wherever they are full."""
    lines = [""]
    for each in text:
        if lines[-1] and n_columns(lines[-1] + each) > width:
            lines.append("")
        lines[-1] += each
    return lines
