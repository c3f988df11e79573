"""Learns how columns become numbers, from the rows that count alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
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
from colonnade.preparation.reading import Cells, RowError, cells, moments, numbers, part_of, texts
from colonnade.preparation.rules import Category, Date, Fill, Number, Rule


@dataclass(frozen=True, eq=False)
class Counted:
    """The rows of a table that count, and how much: as so many copies, each once if None."""

    table: Any
    rows: Rows
    weights: Floats | None  # of all rows of the table

    def blocks(self, name: str) -> Iterator[Cells]:
        """Read a column."""
        return cells(self.table, name, None if self.weights is None else self.weights > 0)

    @cached_property
    def copies(self) -> Floats | None:
        """Say how much each of the rows that count does, in units near their mean; None where all count the same."""
        if self.weights is None:
            return None
        weights = self.weights[self.rows]
        if (weights == weights[0]).all():
            return None
        # A power of two changes no bit of a mean. By tiny weights scikit-learn would find nothing constant.
        return weights / float(np.exp2(np.round(np.log2(weights.mean()))))


def fitted(rules: Mapping[str, Rule], table: Any, weights: Floats | None = None) -> Preparation:
    """Learn from the rows of a `pyarrow.Table` that weigh something; columns come in the order of `rules`.

    A row of weight k teaches as k copies of it do; all weigh 1 if None. It reads a column at a time, block by block.
    Of a number the values of one column are held, and what is learned of them, by scikit-learn, is of all at once: how
    the table is cut changes no bit of it.
    """
    rows = np.arange(table.num_rows) if weights is None else np.flatnonzero(weights)
    if not len(rows):
        raise InputError("there is no row to learn from. Hold out fewer, or pass a table with rows.")
    counted = Counted(table, rows, weights)
    return Preparation(tuple(_learned(name, rule, counted) for name, rule in rules.items()))


def check_values(rules: Mapping[str, Rule], table: Any) -> None:
    """Require that each value can be read by its rule, and none is missing where it may not be.

    It reads block by block, keeps nothing, and asks for nothing that is learned of many rows: a single one may be new.
    """
    for name, rule in rules.items():
        count, first = 0, None
        for block in cells(table, name):
            gaps = _gaps(block, rule)
            if first is None and gaps.any():
                first = int(block.rows[gaps.argmax()])
            count += int(gaps.sum())
        if rule.missing == "error" and first is not None:
            raise _missing(name, first, count, table.num_rows, "'level'" if isinstance(rule, Category) else FILLS)


def _gaps(block: Cells, rule: Rule) -> Flags:
    """Read values, and say which are missing."""
    if isinstance(rule, Category):
        return np.asarray(texts(block).is_null())
    if isinstance(rule, Date):
        times = moments(block, rule.format)
        for part in rule.parts:
            part_of(block, times, part)
        return np.asarray(times.is_null())
    values = numbers(block)
    NumberColumn(block.name, Scaled(None), False, rule.at_least, rule.at_most, rule.log).shaped(block, values)
    return np.isnan(values)


def _learned(name: str, rule: Rule, counted: Counted) -> AnyColumn:
    if isinstance(rule, Category):
        return _category(name, rule, counted)
    return _date(name, rule, counted) if isinstance(rule, Date) else _number(name, rule, counted)


def _number(name: str, rule: Number, counted: Counted) -> NumberColumn:
    values = np.concatenate([numbers(block) for block in counted.blocks(name)])
    fill = _fill(name, rule.missing, values, counted)
    indicator = bool(np.isnan(values).any())
    column = NumberColumn(name, Scaled(fill), indicator, rule.at_least, rule.at_most, rule.log)
    block = Cells(name, None, counted.rows)
    entering = column.shaped(block, column.scaling.filled(block, values))
    scaling = _scaling(fill, entering, rule.scale, counted)
    return NumberColumn(name, scaling, indicator, rule.at_least, rule.at_most, rule.log)


def _date(name: str, rule: Date, counted: Counted) -> DateColumn:
    blocks = []
    for block in counted.blocks(name):
        times = moments(block, rule.format)
        blocks.append(np.column_stack([part_of(block, times, part) for part in rule.parts]))
    values = np.concatenate(blocks)
    block, parts = Cells(name, None, counted.rows), []
    for part, column in zip(rule.parts, values.T, strict=True):
        fill = _fill(name, rule.missing, column, counted)
        parts.append((part, _scaling(fill, Scaled(fill).filled(block, column), rule.scale, counted)))
    return DateColumn(name, tuple(parts), bool(np.isnan(values).any()), rule.format)


def _fill(name: str, missing: Fill, values: Floats, counted: Counted) -> float | None:
    gaps = np.isnan(values)
    if missing == "error":
        if gaps.any():
            raise _missing(name, int(counted.rows[gaps.argmax()]), int(gaps.sum()), len(gaps), FILLS)
        return None
    if isinstance(missing, float):
        return missing
    if gaps.all():
        raise InputError(
            f"column {name!r}: no row that counts has a value, so there is no {missing}. Leave the column out, or pass "
            "a number as missing."
        )
    if counted.copies is None:
        from sklearn.impute import SimpleImputer

        return float(SimpleImputer(strategy=missing).fit(values[:, np.newaxis]).statistics_[0])
    there, copies = values[~gaps], counted.copies[~gaps]
    return float(np.average(there, weights=copies)) if missing == "mean" else weighted_median(there, copies)


def weighted_median(values: Floats, weights: Floats) -> float:
    """Find the value in the middle of so many copies; between two, their mean."""
    order = np.argsort(values)
    up_to = np.cumsum(weights[order])
    middle = [np.searchsorted(up_to, up_to[-1] / 2, side) for side in ("left", "right")]
    return float(np.mean(values[order[middle]]))


def _scaling(fill: float | None, values: Floats, scale: bool, counted: Counted) -> Scaled:
    if not scale:
        return Scaled(fill)
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(values[:, np.newaxis], sample_weight=counted.copies)
    return Scaled(fill, float(scaler.mean_[0]), float(scaler.scale_[0]))


def _category(name: str, rule: Category, counted: Counted) -> CategoryColumn:
    found = count_levels(counted.table, name, counted.weights)
    _check_levels(name, rule, found, len(counted.rows))
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


def _check_levels(name: str, rule: Category, found: Levels, n_rows: int) -> None:
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
        raise _missing(name, found.first_missing, found.n_missing, n_rows, "'level'")


def _missing(name: str, first: int, count: int, size: int, choices: str) -> InputError:
    before = f"column {name!r}: {count:,} of {size:,} values are missing, the first in "
    return RowError(before, first, f". {CURE} missing={choices}.")
