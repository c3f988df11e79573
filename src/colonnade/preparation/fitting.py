"""Learns how columns become numbers, from the rows that count alone."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags, Floats
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
from colonnade.preparation.measuring import Piece, Read, median, moments
from colonnade.preparation.preparation import Preparation
from colonnade.preparation.reading import BLOCK_ROWS, Cells, RowError, RowWeights, cells, numbers, part_of, texts
from colonnade.preparation.reading import moments as moments_of
from colonnade.preparation.rules import Category, Date, DatePart, Fill, Number, Rule


@dataclass(frozen=True, eq=False)
class Counted:
    """The rows of a table that count, how many they are, and how much each does, in these units: once if None.

    Weights are of all rows of the table.
    """

    table: Any
    n_rows: int
    weights: RowWeights | None
    unit: float | None

    def blocks(self, name: str) -> Iterator[Cells]:
        """Read a column."""
        return cells(self.table, name, self.weights)

    def read(self, name: str, values: Callable[[Cells], Floats]) -> Iterator[Piece]:
        """Read numbers of a column, but for those that are missing."""
        for block in self.blocks(name):
            found = values(block)
            there = ~np.isnan(found)
            copies = None if self.weights is None or self.unit is None else self.weights[block.rows[there]] / self.unit
            yield Piece(found[there], copies)


def fitted(rules: Mapping[str, Rule], table: Any, weights: RowWeights | None = None) -> Preparation:
    """Learn from the rows of a `pyarrow.Table`, or of files, that weigh something; columns come in the order of rules.

    A row of weight k teaches as k copies of it do; all weigh 1 if None. It reads a column at a time, block by block,
    several times where it must, and holds none: how the table is cut changes no bit of what is learned.
    """
    counted = _counted(table, weights)
    if not counted.n_rows:
        raise InputError("there is no row to learn from. Hold out fewer, or pass a table with rows.")
    return Preparation(tuple(_learned(name, rule, counted) for name, rule in rules.items()))


def _counted(table: Any, weights: RowWeights | None) -> Counted:
    """Look at the weights, and find a unit near their mean; none where all that count do so alike."""
    if weights is None:
        return Counted(table, table.num_rows, None, None)
    n_rows, least, most = 0, np.inf, 0.0
    for some in _positive(table.num_rows, weights):
        n_rows, least, most = n_rows + len(some), some.min(initial=least), some.max(initial=most)
    if least >= most:
        return Counted(table, n_rows, weights, None)
    mean = moments(lambda: (Piece(some, None) for some in _positive(table.num_rows, weights))).mean
    # A power of two changes no bit of a mean. By tiny weights nothing would be found constant.
    return Counted(table, n_rows, weights, float(np.exp2(np.round(np.log2(mean)))))


def _positive(n_rows: int, weights: RowWeights) -> Iterator[Floats]:
    for start in range(0, n_rows, BLOCK_ROWS):
        some = weights[np.arange(start, min(start + BLOCK_ROWS, n_rows))]
        yield some[some > 0]


def check_values(rules: Mapping[str, Rule], table: Any) -> None:
    """Require that each value can be read by its rule, and none is missing where it may not be.

    It reads block by block, keeps nothing, and asks for nothing that is learned of many rows: a single one may be new.
    """
    for name, rule in rules.items():
        _n_missing(name, rule, cells(table, name), table.num_rows)


def _n_missing(name: str, rule: Rule, blocks: Iterator[Cells], n_rows: int) -> int:
    """Read all values, and count those that are missing, which some rules refuse."""
    count, first = 0, None
    for block in blocks:
        gaps = _gaps(block, rule)
        if first is None and gaps.any():
            first = int(block.rows[gaps.argmax()])
        count += int(gaps.sum())
    if rule.missing == "error" and first is not None:
        raise _missing(name, first, count, n_rows, "'level'" if isinstance(rule, Category) else FILLS)
    return count


def _gaps(block: Cells, rule: Rule) -> Flags:
    """Read values, and say which are missing."""
    if isinstance(rule, Category):
        return np.asarray(texts(block).is_null())
    if isinstance(rule, Date):
        times = moments_of(block, rule.format)
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
    n_gaps = _n_missing(name, rule, counted.blocks(name), counted.n_rows)
    fill = _fill(name, rule.missing, partial(counted.read, name, numbers), n_gaps == counted.n_rows)
    column = NumberColumn(name, Scaled(fill), n_gaps > 0, rule.at_least, rule.at_most, rule.log)

    def entering(block: Cells) -> Floats:
        return column.shaped(block, column.scaling.filled(block, numbers(block)))

    scaling = _scaling(fill, partial(counted.read, name, entering), rule.scale)
    return msgspec.structs.replace(column, scaling=scaling)


def _date(name: str, rule: Date, counted: Counted) -> DateColumn:
    n_gaps = _n_missing(name, rule, counted.blocks(name), counted.n_rows)
    parts = tuple((part, _part(name, rule, part, counted, n_gaps == counted.n_rows)) for part in rule.parts)
    return DateColumn(name, parts, n_gaps > 0, rule.format)


def _part(name: str, rule: Date, part: DatePart, counted: Counted, is_empty: bool) -> Scaled:
    def values(block: Cells) -> Floats:
        return part_of(block, moments_of(block, rule.format), part)

    def entering(block: Cells) -> Floats:
        return Scaled(fill).filled(block, values(block))

    fill = _fill(name, rule.missing, partial(counted.read, name, values), is_empty)
    return _scaling(fill, partial(counted.read, name, entering), rule.scale)


def _fill(name: str, missing: Fill, read: Read, is_empty: bool) -> float | None:
    if missing == "error":
        return None
    if isinstance(missing, float):
        return missing
    if is_empty:
        raise InputError(
            f"column {name!r}: no row that counts has a value, so there is no {missing}. Leave the column out, or pass "
            "a number as missing."
        )
    return moments(read).mean if missing == "mean" else median(read)


def _scaling(fill: float | None, read: Read, scale: bool) -> Scaled:
    if not scale:
        return Scaled(fill)
    found = moments(read)
    return Scaled(fill, found.mean, found.deviation)


def _category(name: str, rule: Category, counted: Counted) -> CategoryColumn:
    found = count_levels(counted.table, name, counted.weights)
    _check_levels(name, rule, found, counted.n_rows)
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
