"""Learns how columns become numbers, from the rows that count alone."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.preparation.columns import (
    CURE,
    FILLS,
    AnyColumn,
    CategoryColumn,
    DateColumn,
    NumberColumn,
    Scaled,
)
from colonnade.preparation.levels import MOST_KEPT_LEVELS, MOST_LEVELS, Levels, count_levels
from colonnade.preparation.preparation import Preparation
from colonnade.preparation.reading import Cells, cells, moments, numbers, part_of
from colonnade.preparation.rules import Category, Date, Fill, Number, Rule


def fitted(rules: Mapping[str, Rule], table: Any, counts: Flags | None = None) -> Preparation:
    """Learn from the rows of a `pyarrow.Table` that count, all if None; columns come in the order of `rules`.

    It reads a column at a time, block by block. Of a number the values of one column are held, and what is learned of
    them, by scikit-learn, is of all at once: how the table is cut changes no bit of it.
    """
    rows = np.arange(table.num_rows) if counts is None else np.flatnonzero(counts)
    if not len(rows):
        raise InputError("there is no row to learn from. Hold out fewer, or pass a table with rows.")
    return Preparation(tuple(_learned(name, rule, table, counts, rows) for name, rule in rules.items()))


def _learned(name: str, rule: Rule, table: Any, counts: Flags | None, rows: Rows) -> AnyColumn:
    if isinstance(rule, Category):
        return _category(name, rule, table, counts)
    if isinstance(rule, Date):
        return _date(name, rule, table, counts, rows)
    return _number(name, rule, table, counts, rows)


def _number(name: str, rule: Number, table: Any, counts: Flags | None, rows: Rows) -> NumberColumn:
    values = np.concatenate([numbers(block) for block in cells(table, name, counts)])
    fill = _fill(name, rule.missing, values, rows)
    indicator = bool(np.isnan(values).any())
    column = NumberColumn(name, Scaled(fill), indicator, rule.at_least, rule.at_most, rule.log)
    block = Cells(name, None, rows)
    entering = column.shaped(block, column.scaling.filled(block, values))
    scaling = _scaling(fill, entering, rule.scale)
    return NumberColumn(name, scaling, indicator, rule.at_least, rule.at_most, rule.log)


def _date(name: str, rule: Date, table: Any, counts: Flags | None, rows: Rows) -> DateColumn:
    blocks = []
    for block in cells(table, name, counts):
        times = moments(block, rule.format)
        blocks.append(np.column_stack([part_of(block, times, part) for part in rule.parts]))
    values = np.concatenate(blocks)
    block, parts = Cells(name, None, rows), []
    for part, column in zip(rule.parts, values.T, strict=True):
        fill = _fill(name, rule.missing, column, rows)
        parts.append((part, _scaling(fill, Scaled(fill).filled(block, column), rule.scale)))
    return DateColumn(name, tuple(parts), bool(np.isnan(values).any()), rule.format)


def _fill(name: str, missing: Fill, values: Floats, rows: Rows) -> float | None:
    gaps = np.isnan(values)
    if missing == "error":
        if gaps.any():
            raise _missing(name, int(rows[gaps.argmax()]), int(gaps.sum()), len(gaps), FILLS)
        return None
    if isinstance(missing, float):
        return missing
    if gaps.all():
        raise InputError(
            f"column {name!r}: no row that counts has a value, so there is no {missing}. Leave the column out, or pass "
            "a number as missing."
        )
    from sklearn.impute import SimpleImputer

    return float(SimpleImputer(strategy=missing).fit(values[:, np.newaxis]).statistics_[0])


def _scaling(fill: float | None, values: Floats, scale: bool) -> Scaled:
    if not scale:
        return Scaled(fill)
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(values[:, np.newaxis])
    return Scaled(fill, float(scaler.mean_[0]), float(scaler.scale_[0]))


def _category(name: str, rule: Category, table: Any, counts: Flags | None) -> CategoryColumn:
    found = count_levels(table, name, counts)
    _check_levels(name, rule, found)
    sizes = found.with_missing
    frequent = sorted(level for level, size in sizes.items() if size >= rule.rare)
    if len(frequent) > MOST_LEVELS:
        raise InputError(
            f"column {name!r} has {len(frequent):,} levels of {rule.rare:,} rows or more; {MOST_LEVELS:,} is the most: "
            "it looks like an id. Name it as key= or leave it out, or raise rare."
        )
    # The first in order of those that are equally frequent.
    reference = max(frequent, key=sizes.__getitem__, default=None)
    return CategoryColumn(
        name,
        reference,
        tuple(level for level in frequent if level != reference),
        tuple(sorted(level for level, size in sizes.items() if size < rule.rare)),
        rule.unknown,
        rule.missing,
    )


def _check_levels(name: str, rule: Category, found: Levels) -> None:
    if found.too_many:
        raise InputError(
            f"column {name!r} has {MOST_KEPT_LEVELS:,} different levels or more: it looks like an id or free text. "
            "Name it as key= or leave it out."
        )
    if found.reserved is not None:
        raise InputError(
            f"column {name!r} has a level that is called {found.reserved}, as one that is made may be. Rename it, or "
            "write a missing value."
        )
    if found.first_missing is not None and rule.missing == "error":
        n_rows = found.sizes.total() + found.n_missing
        raise _missing(name, found.first_missing, found.n_missing, n_rows, "'level'")


def _missing(name: str, first: int, count: int, size: int, choices: str) -> InputError:
    return InputError(
        f"column {name!r}: {count:,} of {size:,} values are missing, the first in row {first} (rows count from 0). "
        f"{CURE} missing={choices}."
    )
