"""Tables of a page: cells as people read them, with what they are sorted by; cut where they would be too long."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple, TypeAlias

from colonnade.cells import in_a_line

# A name of a party, column or class takes no more characters.
WIDEST_NAME = 60
LONGEST_SENTENCE = 1000
# So that a page of many tables stays below its size, whatever names are.
MOST_LINES, MOST_BYTES = 200, 50_000
# Around a cell's text: its element, what it is sorted by, and where a line ends.
BYTES_A_CELL = 60


class Cell(NamedTuple):
    """What is shown, and the number it is sorted by, if it is one."""

    text: str
    number: float | None = None


Line: TypeAlias = Sequence[Cell]


class Table(NamedTuple):
    """A table with a caption; `cut` says what is not shown, and where all is."""

    caption: str
    head: tuple[str, ...]
    lines: tuple[Line, ...]
    cut: str | None = None

    @property
    def numbers(self) -> frozenset[int]:
        """Which columns are numbers, and stand to the right."""
        return frozenset(
            place for place in range(len(self.head)) if any(line[place].number is not None for line in self.lines)
        )


def printable(words: str) -> str:
    """Show a sentence that has names in it: what does not print is marked, and what is too long is cut."""
    shown = "".join(character if character.isprintable() else "\ufffd" for character in words[: LONGEST_SENTENCE + 1])
    return shown if len(shown) <= LONGEST_SENTENCE else f"{shown[: LONGEST_SENTENCE - 3]}..."


def name(text: object) -> str:
    """Show a name that can be of anyone's making."""
    return in_a_line(str(text), WIDEST_NAME)


def names(texts: Iterable[object], most: int = 5) -> str:
    """List names, the first of them if there are many."""
    found = [name(text) for text in dict.fromkeys(texts)]
    rest = len(found) - most
    if rest > 0:
        return f"{', '.join(found[:most])} and {rest:,} more"
    return " and ".join(filter(None, [", ".join(found[:-1]), found[-1]])) if found else ""


def text(words: object) -> Cell:
    """Make a cell of words."""
    return Cell(name(words))


def number(value: float | None, shown: str) -> Cell:
    """Make a cell of a number and how it is shown."""
    return Cell(shown, value)


def table(caption: str, head: Sequence[str], lines: Iterable[Line], *, all_of_it: str) -> Table:
    """Make a table of the first lines; `all_of_it` says where the rest is found."""
    everything = list(lines)
    kept: list[Line] = []
    size = 0
    for line in everything[:MOST_LINES]:
        size += sum(len(escape(cell.text).encode()) + BYTES_A_CELL for cell in line)
        if size > MOST_BYTES:
            break
        kept.append(line)
    cut = None
    if len(kept) < len(everything):
        cut = f"The first {len(kept):,} of {len(everything):,} lines are shown. {all_of_it}"
    return Table(caption, tuple(map(name, head)), tuple(kept), cut)
