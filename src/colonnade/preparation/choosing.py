"""Chooses how each column of a table enters, where its owner leaves that open: prepare="auto"."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.preparation.levels import MOST_LEVELS, count_levels
from colonnade.preparation.reading import (
    FIRST_INEXACT_INTEGER,
    Cells,
    cells,
    floats,
    is_moment,
    is_number,
    is_text,
    moments,
    parsed,
    part_of,
    texts,
)
from colonnade.preparation.rules import RARE, Category, Date, Number, Prepare, Rule

# With more levels than this for each value, a level has fewer than two rows on average: it names rows, not groups.
MOST_LEVELS_A_VALUE = 0.5
FIRST_ROWS = 100
# How people write dates; None is ISO 8601.
FORMS = (None, "%d.%m.%Y", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")


@dataclass(frozen=True)
class Choice:
    """What becomes of a column, None if it does not enter, and why, in words."""

    rule: Rule | None
    why: str


def chosen(table: Any, no_features: Collection[str] = ()) -> tuple[Prepare, list[str]]:
    """Choose a rule for each column of a `pyarrow.Table` that has no other role; say of each what was chosen.

    Numbers stay numbers, also integers with few values. Text, and what is dictionary-encoded, is a category; dates are
    days since 1970. Left out are columns that tell nothing (no value, or one only) or seem to name rows: text of which
    a level has fewer than two rows on average, or none has as many as ten, and integers of 2^53 or more.
    """
    choices = {name: _choice(table, name) for name in table.column_names if name not in no_features}
    rules = {name: choice.rule for name, choice in choices.items() if choice.rule is not None}
    lines = [f"{name}: {choice.why}" for name, choice in choices.items()]
    if not rules:
        raise InputError(
            f"prepare='auto' found no column that could enter ({'; '.join(lines[:20])}). Name columns in "
            "prepare yourself."
        )
    return Prepare(rules), lines


def _choice(table: Any, name: str) -> Choice:
    import pyarrow as pa

    kind = table.schema.field(name).type
    encoded = pa.types.is_dictionary(kind)
    kind = kind.value_type if encoded else kind
    if encoded and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return _levels(table, name)
    if is_number(kind):
        return _number(table, name)
    if is_moment(kind):
        return _date(table, name)
    if not is_text(kind):
        return Choice(None, f"left out, its values are of the type {kind}")
    forms = _forms(table, name)
    if len(forms) > 1:
        either = " or ".join(f"{form!r}" for form in forms)
        return Choice(None, f"left out, dates that are written as {either}: say which in format")
    return _date(table, name, forms[0]) if forms else _levels(table, name)


def _number(table: Any, name: str) -> Choice:
    import pyarrow as pa

    missing, low, high = _extent(table, name, lambda block: floats(block.values))
    if pa.types.is_integer(table.schema.field(name).type) and max(-low, high) >= FIRST_INEXACT_INTEGER:
        return Choice(None, "left out, integers of 2^53 or more look like ids")
    return _empty(table, missing, low == high) or Choice(
        Number(missing="median" if missing else "error"), f"number{_filled(missing)}"
    )


def _date(table: Any, name: str, form: str | None = None) -> Choice:
    missing, low, high = _extent(table, name, lambda block: part_of(block, moments(block, form), "days"))
    written = "" if form is None else f", written as {form!r}"
    return _empty(table, missing, low == high) or Choice(
        Date(format=form, missing="median" if missing else "error"),
        f"date{written}, as days since 1970{_filled(missing)}",
    )


def _levels(table: Any, name: str) -> Choice:
    found = count_levels(table, name)
    missing, n_values, n_levels = found.n_missing, table.num_rows - found.n_missing, len(found.sizes)
    if empty := _empty(table, missing, n_levels == 1):
        return empty
    if found.too_many or n_levels > MOST_LEVELS_A_VALUE * n_values:
        more = " or more" if found.too_many else ""
        return Choice(
            None, f"left out, {n_levels:,}{more} different values in {n_values:,} rows look like ids or free text"
        )
    if found.reserved is not None:
        return Choice(None, f"left out, a level is called {found.reserved}, as one that is made may be; rename it")
    sizes = found.with_missing
    rare = sum(size < RARE for size in sizes.values())
    if rare == len(sizes):
        return Choice(None, f"left out, none of its {rare:,} levels has {RARE} rows")
    if len(sizes) - rare > MOST_LEVELS:
        return Choice(None, f"left out, {len(sizes) - rare:,} levels of {RARE} rows or more look like ids")
    together = f", {rare:,} of them rare together" if rare > 1 else ", 1 of them rare" if rare else ""
    gaps = f", missing is one ({missing:,} rows)" if missing else ""
    return Choice(Category(missing="level" if missing else "error"), f"category, {len(sizes):,} levels{together}{gaps}")


def _extent(table: Any, name: str, read: Callable[[Cells], Floats]) -> tuple[int, float, float]:
    """Count missing values, and find the least and the largest of the others."""
    missing, low, high = 0, np.inf, -np.inf
    for block in cells(table, name):
        values = read(block)
        missing += int(np.isnan(values).sum())
        low, high = np.fmin(low, np.fmin.reduce(values)), np.fmax(high, np.fmax.reduce(values))
    return missing, float(low), float(high)


def _forms(table: Any, name: str) -> list[str | None]:
    """List the ways to write dates that all text, if there is some, is in."""
    forms, some = list(FORMS), False
    for block in cells(table, name):
        written = texts(block)
        some = some or written.null_count < len(written)
        # A few rows tell most columns that are no dates.
        for part in (written.slice(0, FIRST_ROWS), written):
            forms = [form for form in forms if parsed(part, form) is not None]
    return forms if some else []


def _empty(table: Any, missing: int, constant: bool) -> Choice | None:
    """Leave out a column that tells nothing of its rows; one value and gaps tell something."""
    if missing == table.num_rows:
        return Choice(None, "left out, all its values are missing")
    return Choice(None, "left out, all its values are the same") if constant and not missing else None


def _filled(missing: int) -> str:
    return f", its {missing:,} missing values filled by the median and marked" if missing else ""
