"""Columns as they came, with the rules by which they become numbers."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.preparation.choosing import chosen
from colonnade.preparation.columns import AnyColumn, CategoryColumn
from colonnade.preparation.fitting import check_values, fitted
from colonnade.preparation.levels import count_levels
from colonnade.preparation.preparation import Preparation
from colonnade.preparation.reading import BY_NUMBER, Place, RowError, RowWeights
from colonnade.preparation.rules import Category, Date, HowToPrepare, Prepare, Rule


@dataclass(frozen=True, eq=False)
class Unprepared:
    """A party's columns as they came, in memory or in files, and its owner's rules by which some become numbers.

    What was learned of other rows may ask for more columns than the rules. Where "auto" found no rule for these rows,
    `unfit` says why nothing can be learned of them. `place` says where a row stood in what was read. Where records were
    matched, `rows` are those that all parties have, in the common order; weights are theirs.
    """

    party: str
    columns: Any = field(repr=False)
    rules: Mapping[str, Rule]
    tell_levels: bool = False
    unfit: str = ""
    place: Place = BY_NUMBER
    rows: Rows | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""
        return tuple(self.rules)

    @property
    def depends_on_rows(self) -> bool:
        """Whether anything is learned of the rows that count: levels, gaps and what fills them, scales."""
        return any(isinstance(rule, Category) or rule.missing != "error" or rule.scale for rule in self.rules.values())

    def take(self, rows: Rows) -> "Unprepared":
        """Learn from some rows only, in whatever order others know them: they are read as they stand."""
        return replace(self, rows=rows)

    def check(self) -> None:
        """Require that each value can be read by its rule; what can be learned of all is another question."""
        with _of(self.party, self.place):
            check_values(self.rules, self.columns)

    def fitted(self, weights: RowWeights | None) -> bytes:
        """Learn from rows what the rules leave open, a row of weight k counting as k, all as one if None."""
        with _of(self.party, self.place):
            if self.unfit:
                raise InputError(self.unfit)
            return fitted(self.rules, self.columns, self._as_they_stand(weights)).to_json()

    def _as_they_stand(self, weights: RowWeights | None) -> RowWeights | None:
        """Give the weights of all rows of the table, 0 of those that others do not have."""
        if self.rows is None:
            return weights
        whole = np.zeros(self.columns.num_rows)
        whole[self.rows] = 1.0 if weights is None else np.asarray(weights)
        return whole

    def applied(self, content: bytes, room: int = 0) -> tuple[tuple[str, ...], Floats, tuple[str, ...]]:
        """Make numbers of them: names, values of shape (n_rows, k + room), and what the owner should know."""
        with _of(self.party, self.place):
            preparation = Preparation.from_json(content)
            applied = preparation.apply(self.columns, room)
        notes = tuple(f"Party {self.party!r}, {note}" for note in (*preparation.notes, *applied.notes))
        return preparation.names, applied.values, notes

    def looked_through(self, content: bytes) -> tuple[Preparation, Floats, tuple[str, ...]]:
        """Make numbers of columns that stay in files, and keep none: the largest of each in size, and the notes."""
        with _of(self.party, self.place):
            preparation = Preparation.from_json(content)
            largest, notes = preparation.looked_through(self.columns)
        return preparation, largest, tuple(f"Party {self.party!r}, {note}" for note in (*preparation.notes, *notes))

    def told_names(self, content: bytes, weights: RowWeights | None) -> tuple[str, ...] | None:
        """Name the columns with their levels, where the owner lets these be told.

        None is, where one is frequent by weight alone: whoever weighs could have levels of single rows named.
        """
        preparation = Preparation.from_json(content)
        if not self.tell_levels or any(self._has_few_rows(column, weights) for column in preparation.columns):
            return None
        return preparation.own_names

    def _has_few_rows(self, column: AnyColumn, weights: RowWeights | None) -> bool:
        """Whether a level that has a column of its own would be rare if all rows weighed 1."""
        rule = self.rules[column.column]
        if weights is None or not isinstance(column, CategoryColumn) or not isinstance(rule, Category):
            return False
        found = self._as_they_stand(weights)
        rows = count_levels(self.columns, column.column, None if found is None else _Marks(found)).with_missing
        return any(rows[level] < rule.rare for level in column.levels)


@dataclass(frozen=True, eq=False)
class _Marks:
    """Counts rows that weigh something as 1."""

    weights: RowWeights

    def __getitem__(self, rows: Rows) -> Floats:
        return np.sign(self.weights[rows])


def columns_to_prepare(party: str, names: Sequence[str], prepare: HowToPrepare, roles: Mapping[str, str]) -> list[str]:
    """List the columns that there are rules for, and those that have a role: no others are read."""
    if prepare == "auto":
        return list(names)
    with _of(party):
        if not isinstance(prepare, Prepare):
            raise InputError(f"{prepare!r} is no preparation. Pass a Prepare, or 'auto'.")
        rules = prepare.by_column(names, roles)
    return [name for name in names if name in rules or name in roles]


def columns_of_text(names: Sequence[str], prepare: HowToPrepare | None, roles: Mapping[str, str]) -> list[str]:
    """List the columns whose values count as they are written: 007 is no level 7, and 01022020 a date."""
    if not isinstance(prepare, Prepare):
        return []
    return [
        name
        for name, rule in prepare.by_column(names, roles).items()
        if isinstance(rule, Category) or (isinstance(rule, Date) and rule.format is not None)
    ]


def unprepared_columns(party: str, table: Any, prepare: HowToPrepare, place: Place) -> Unprepared:
    """Take the columns that there are rules for; "auto" takes all, finds rules, and prints them."""
    if prepare == "auto":
        return _chosen(party, table, place)
    with _of(party):
        rules = prepare.by_column(table.column_names)
    return Unprepared(party, table.select(list(rules)), rules, prepare.tell_levels, place=place)


def _chosen(party: str, table: Any, place: Place) -> Unprepared:
    # All columns are kept: of a few new rows it would choose others than of those that a model was learned from.
    try:
        prepare, words = chosen(table)
    except InputError as error:
        sys.stderr.write(f"Party {party!r}: {error}\n")
        return Unprepared(party, table, {}, unfit=str(error), place=place)
    sys.stderr.write("\n  ".join([f"Party {party!r}, prepare = 'auto':", *words]) + "\n")
    return Unprepared(party, table, prepare.by_column(table.column_names), place=place)


@contextmanager
def _of(party: str, place: Place = BY_NUMBER) -> Iterator[None]:
    """Say whose columns an error is about, and where in them it is."""
    try:
        yield
    except RowError as error:
        raise InputError(f"Party {party!r}: {error.before}{place(error.row)}{error.after}") from None
    except InputError as error:
        raise InputError(f"Party {party!r}: {error}") from None
