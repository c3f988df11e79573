"""Columns as they came, with the rules by which they become numbers."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.data.preparation.choosing import chosen
from colonnade.data.preparation.fitting import fitted
from colonnade.data.preparation.preparation import Preparation
from colonnade.data.preparation.rules import Prepare


@dataclass(frozen=True, eq=False)
class Unprepared:
    """A party's columns as they came, a `pyarrow.Table`, and its owner's rules."""

    party: str
    columns: Any = field(repr=False)
    rules: Prepare

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""
        return tuple(self.columns.column_names)

    def take(self, rows: Rows) -> "Unprepared":
        """Take some rows, in this order."""
        return replace(self, columns=self.columns.take(rows))

    def fitted(self, counts: Flags | None) -> bytes:
        """Learn from the rows that count, all if None, what the rules leave open."""
        try:
            return fitted(self.rules, self.columns, counts).to_json()
        except InputError as error:
            raise self._said(error) from None

    def applied(self, content: bytes) -> tuple[tuple[str, ...], Floats, tuple[str, ...]]:
        """Make numbers of them: names, values of shape (n_rows, k), and what the owner should know."""
        try:
            preparation = Preparation.from_json(content)
            applied = preparation.apply(self.columns)
        except InputError as error:
            raise self._said(error) from None
        remarks = tuple(f"Party {self.party!r}, column {note}" for note in applied.notes)
        return preparation.names, applied.values, remarks

    def told_names(self, content: bytes) -> tuple[str, ...] | None:
        """Name the columns with their levels, where the owner lets these be told."""
        return Preparation.from_json(content).own_names if self.rules.tell_levels else None

    def _said(self, error: InputError) -> InputError:
        return InputError(f"Party {self.party!r}: {error}")


def unprepared_columns(
    party: str, table: Any, prepare: Prepare | Literal["auto"], roles: Mapping[str, str]
) -> Unprepared:
    """Take the columns that the rules are for; "auto" finds rules, and prints them."""
    if prepare == "auto":
        prepare, words = chosen(table, roles)
        sys.stderr.write("\n  ".join([f"Party {party!r}, prepare = 'auto':", *words]) + "\n")
    if not isinstance(prepare, Prepare):
        raise InputError(f"Party {party!r}: {prepare!r} is no preparation. Pass a Prepare, or \"auto\".")
    try:
        rules = prepare.by_column([*table.column_names, *roles], roles)
    except InputError as error:
        raise InputError(f"Party {party!r}: {error}") from None
    return Unprepared(party, table.select(list(rules)), prepare)
