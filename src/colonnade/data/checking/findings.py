"""What is wrong with a table, or odd, or good to know: each with one line of advice, the worst first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from colonnade.data.checking.columns import ColumnSeen, first_missing
from colonnade.data.checking.key_and_label import KeySeen, LabelSeen
from colonnade.data.checking.numbers import SHOWN, Together
from colonnade.data.keys import Duplicates
from colonnade.errors import InputError
from colonnade.kernels.classes import MOST_CLASSES
from colonnade.options import listed
from colonnade.preparation.reading import Place
from colonnade.preparation.rules import Category, Number, Rule

# "stops": the party does not start; "look": a model may suffer; "note": good to know.
Severity = Literal["stops", "look", "note"]
ORDER: tuple[Severity, ...] = ("stops", "look", "note")
MANY_LEVELS = 100
FEW_ROWS_A_COLUMN = 10
# What columns leave of another is rounding below this.
EXACT = 1e-6


class Finding(msgspec.Struct, frozen=True):
    """What was found: how bad it is, in a word what it is, where (columns, and rows from 0), and what to do."""

    severity: Severity
    kind: str
    columns: tuple[str, ...]
    words: str
    advice: str
    rows: tuple[int, ...] = ()


def worst_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Put what stops a party first, and otherwise keep the order."""
    return tuple(sorted(findings, key=lambda each: ORDER.index(each.severity)))


def of_size(table: Any) -> Iterator[Finding]:
    """Say that a table has nothing to look at, where it could be read."""
    if table is not None:
        words = f"The table has {table.num_rows} rows and {table.num_columns} columns that may be read."
        yield Finding("stops", "empty", (), words, "Check that it is the right table, and what the policy lets in.")


def of_reading(notes: Sequence[str]) -> Iterator[Finding]:
    """Say what is unusual about how a table is read."""
    for note in notes:
        yield Finding("note", "reading", (), f"{note}.", "Nothing, if that is right; or write the file otherwise.")


def of_columns(seen: Sequence[ColumnSeen], rules: Mapping[str, Rule], table: Any, place: Place) -> Iterator[Finding]:
    """Say what is found in each feature by itself; `place` says where a row stands."""
    for column in seen:
        rule = rules.get(column.name)
        if column.reads_as_numbers and not isinstance(rule, Number):
            yield _of_written_numbers(column)
        if rule is not None:
            yield from _of_gaps(column, rule, table, place)
            yield from _of_values(column, rule)


def told_by(error: InputError, kind: str, *columns: str) -> Finding:
    """Make a finding of an error that would stop the party: it says first what is wrong, and then what to do."""
    words, _, advice = str(error).partition(". ")
    return Finding("stops", kind, columns, words[:1].upper() + words[1:] + ("." if advice else ""), advice)


def _of_written_numbers(column: ColumnSeen) -> Finding:
    rest = column.present - column.numeric
    others = f"all but {rest:,} of {column.present:,}" if rest else "all of them"
    return Finding(
        "look",
        "numbers-as-text",
        (column.name,),
        f"It is text, but its values read as numbers, {others}.",
        'If it is a quantity, write it with a decimal point and without units; its rule is then kind = "number".',
    )


def _of_gaps(column: ColumnSeen, rule: Rule, table: Any, place: Place) -> Iterator[Finding]:
    where = (column.name,)
    if isinstance(rule, Number) and column.kind in ("text", "date"):
        return  # it is the rule that is wrong
    if column.missing and rule.missing == "error":
        rows = first_missing(table, column.name, SHOWN)
        choice = '"level"' if isinstance(rule, Category) else '"median", "mean" or a number'
        yield Finding(
            "stops",
            "missing",
            where,
            f"{column.missing:,} of {column.n_rows:,} values are missing, the first in {place(rows[0])}.",
            f"Fill them in, or write missing = {choice} into its line in [prepare.columns].",
            tuple(rows),
        )
    elif 2 * column.missing > column.n_rows:
        yield Finding(
            "look",
            "mostly-missing",
            where,
            f"{column.missing:,} of {column.n_rows:,} values are missing.",
            "Leave it out, unless it tells something that they are missing.",
        )


def _of_values(column: ColumnSeen, rule: Rule) -> Iterator[Finding]:
    where = (column.name,)
    if column.constant and not column.missing:
        yield Finding(
            "look", "constant", where, "It has the same value in all rows.", "Leave it out: it tells nothing."
        )
    if column.same_as is not None:
        yield Finding(
            "look",
            "repeated",
            (column.name, column.same_as),
            f"It repeats {column.same_as!r}, value for value.",
            "Leave one of the two out.",
        )
    if isinstance(rule, Category) and column.kind == "text":
        yield from _of_levels(column, rule)


def _of_levels(column: ColumnSeen, rule: Category) -> Iterator[Finding]:
    where, distinct = (column.name,), column.distinct or 0
    kept = distinct - column.rare_levels
    if column.rare_levels and not kept:
        yield Finding(
            "look",
            "all-rare",
            where,
            f"None of its {distinct:,} levels has {rule.rare:,} rows, so that it gives no column.",
            "Leave it out, put levels into groups first, or lower rare.",
        )
    elif column.rare_levels:
        yield Finding(
            "note",
            "rare-levels",
            where,
            f"{column.rare_levels:,} of {distinct:,} levels have fewer than {rule.rare:,} rows, "
            f"{column.rare_rows:,} in all: they share one column.",
            "Nothing, if they are alike enough; or put levels into groups first, or lower rare.",
        )
    if kept > MANY_LEVELS:
        yield Finding(
            "look",
            "many-levels",
            where,
            f"{kept:,} levels become as many columns, but for one.",
            "Raise rare, or put levels into groups first.",
        )


def of_all_columns(together: Together, n_rows: int, n_columns: int) -> Iterator[Finding]:
    """Say what is found in prepared columns side by side."""
    for each in together.dependences:
        others = listed([repr(name) for name in each.others], SHOWN)
        verb = "determines" if len(each.others) == 1 else "together determine"
        exact = each.rest < EXACT
        yield Finding(
            "look",
            "dependent" if exact else "nearly-dependent",
            (each.column, *each.others),
            f"{others} {verb} {'it' if exact else f'all but {100 * each.rest:.2g} % of its deviation'}.",
            "Leave one of them out, or learn with l2: their effects cannot be told apart.",
        )
    if together.outliers:
        yield _of_outliers(together)
    if n_rows < FEW_ROWS_A_COLUMN * n_columns:
        yield Finding(
            "look",
            "few-rows",
            (),
            f"{n_rows:,} rows for {n_columns:,} prepared columns.",
            "Take more rows or fewer columns, or learn with l2.",
        )


def _of_outliers(together: Together) -> Finding:
    columns = tuple(dict.fromkeys(each.column for each in together.outliers))
    rows = ", ".join(each.in_words(with_column=len(columns) > 1) for each in together.outliers)
    one, more = together.n_outliers == 1, ", ..." if together.n_outliers > len(together.outliers) else ""
    return Finding(
        "look",
        "outliers",
        columns,
        f"{together.n_outliers:,} {'row stands' if one else 'rows stand'} far out, with {'' if one else 'up to '}"
        f"{together.outliers[0].times_the_mean:,.0f} times the mean leverage: {'row' if one else 'rows'} {rows}{more}.",
        "Correct what is a slip; if it is real, write at_most, at_least or log = true into the rule.",
        tuple(each.row for each in together.outliers),
    )


def of_no_rules() -> Finding:
    """Say that a party without rules takes columns as they are."""
    return Finding(
        "look",
        "no-rules",
        (),
        "There is no [prepare]: all columns are taken as they are, as numbers without gaps.",
        'Write prepare = "auto" above all tables of party.toml, or let `colonnade new party` write rules.',
    )


def of_key(key: KeySeen | None, duplicates: Duplicates, guess: str | None) -> Iterator[Finding]:
    """Say whether the key names rows; where there is none, which column might."""
    if key is None:
        may = (
            f"{guess!r} has a value of its own in each row."
            if guess
            else "No column has a value of its own in each row."
        )
        yield Finding(
            "note",
            "no-key",
            (),
            f"No key is named. {may}",
            "Name one, unless all parties have the same rows in the same order.",
        )
        return
    if key.problem is not None:
        yield Finding("stops", "key-unreadable", key.columns, key.problem, "Correct the key, or name another one.")
    if key.repeated:
        merged = f", {key.merged:,} of them only without case and blanks around" if key.merged else ""
        yield Finding(
            "stops" if duplicates == "error" else "note",
            "key-repeated",
            key.columns,
            f"{key.repeated:,} rows repeat the key of an earlier row{merged}.",
            'Add rows up first, name more columns as the key, or write duplicates = "first" or "drop".',
        )
    if key.changed:
        yield Finding(
            "note",
            "key-rewritten",
            key.columns,
            f"{key.changed:,} keys are compared otherwise than they are written.",
            "Nothing: keys are trimmed, in lower case and Unicode NFC, at every party.",
        )


def of_label(name: str, label: LabelSeen | None) -> Iterator[Finding]:
    """Say what the labels are like."""
    where = (name,)
    if label is None:
        yield Finding("stops", "label-unfit", where, "The label is neither numbers nor text.", "Name another column.")
        return
    if len(label.classes) > MOST_CLASSES:
        words = f"The label is text with {len(label.classes):,} different values; a label has at most {MOST_CLASSES}."
        yield Finding("stops", "label-many", where, words, "Name another column, or make numbers of it.")
    if label.missing:
        yield Finding(
            "stops",
            "label-missing",
            where,
            f"{label.missing:,} labels are missing.",
            "Leave these rows out: a label is never filled in.",
        )
    if label.constant:
        yield Finding(
            "look",
            "label-constant",
            where,
            "All labels are the same.",
            "Name another column: nothing is to be learned.",
        )
    if label.two_values:
        low, high = sorted(label.classes) or [f"{label.quantiles[share]:g}" for share in ("0", "1")]
        advice = f'Learn a classification, which gives the chance of {high}: kind = "classification".'
        yield Finding("note", "label-yes-no", where, f"A yes/no label: it is {low} or {high}.", advice)
    elif label.zeros > 0.5:
        yield Finding(
            "note",
            "label-zeros",
            where,
            f"{100 * label.zeros:.0f} % of the labels are 0.",
            "Ask whether zeros are values, or stand for something that is not known.",
        )
