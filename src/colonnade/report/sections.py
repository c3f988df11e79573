"""What a page is made of: sections of words, figures and tables."""

from typing import NamedTuple

from colonnade.report.figures.figure import Figure
from colonnade.report.tables import Table


class Shown(NamedTuple):
    """A figure, or why there is none, and the same numbers as a table."""

    figure: Figure | None
    table: Table | None = None


class Section(NamedTuple):
    """One part of a page, under a heading."""

    id: str
    title: str
    words: tuple[str, ...] = ()
    figures: tuple[Shown, ...] = ()
    tables: tuple[Table, ...] = ()
    remarks: tuple[str, ...] = ()
    code: str | None = None


class Tile(NamedTuple):
    """A key number: what it is of, the number, and what to know of it."""

    label: str
    number: str
    note: str = ""
