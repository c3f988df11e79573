"""What was learned of a column, and how its values become numbers."""

from typing import Any, Literal

import msgspec
import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.options import LARGEST
from colonnade.preparation.levels import MISSING, MOST_KEPT_LEVELS, MOST_LEVELS, OTHER
from colonnade.preparation.reading import Cells, moments, numbers, part_of, texts
from colonnade.preparation.rules import DatePart, check_bounds, check_log

CURE = "Fill it in; or, before a model is learned, say what stands for missing values:"
FILLS = "'median', 'mean' or a number"


class Scaled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How numbers enter: `fill` stands for missing ones, if anything does; then (x - mean) / deviation."""

    fill: float | None
    mean: float = 0.0
    deviation: float = 1.0

    def __post_init__(self) -> None:
        require_finite(self.fill, self.mean, self.deviation)
        if self.deviation <= 0:
            raise InputError(f"a deviation of {self.deviation:g} cannot be.")

    def filled(self, cells: Cells, values: Floats) -> Floats:
        """Put what stands for missing values in their place."""
        gaps = np.isnan(values)
        if not gaps.any():
            return values
        if self.fill is None:
            raise cells.error(int(gaps.argmax()), f"the value is missing. {CURE} missing={FILLS}.")
        return np.where(gaps, self.fill, values)

    def scaled(self, values: Floats) -> Floats:
        """Centre and scale."""
        return (values - self.mean) / self.deviation


class NumberColumn(msgspec.Struct, frozen=True, tag_field="kind", tag="number", forbid_unknown_fields=True):
    """A number, and beside it, where some were missing, whether it is."""

    column: str
    scaling: Scaled
    indicator: bool
    at_least: float | None = None
    at_most: float | None = None
    log: bool = False

    def __post_init__(self) -> None:
        require_finite(self.at_least, self.at_most)
        check_bounds(self.at_least, self.at_most, self.log)
        if self.log and self.scaling.fill is not None:
            check_log(self.scaling.fill, self.at_least, self.at_most)

    @property
    def names(self) -> tuple[str, ...]:
        """What its columns are called to others."""
        return (self.column, f"{self.column}#1") if self.indicator else (self.column,)

    @property
    def own_names(self) -> tuple[str, ...]:
        """What its columns are called at the party."""
        return (self.column, f"{self.column} is missing") if self.indicator else (self.column,)

    def write(self, cells: Cells, out: Floats) -> int:
        """Fill in the columns of these rows; count those that are missing though none was before."""
        values = numbers(cells)
        out[:, 0] = self.scaling.scaled(self.shaped(cells, self.scaling.filled(cells, values)))
        return _mark_gaps(np.isnan(values), out, self.indicator)

    def shaped(self, cells: Cells, values: Floats) -> Floats:
        """Clip, and take the logarithm."""
        if self.at_least is not None or self.at_most is not None:
            values = np.clip(values, self.at_least, self.at_most)
        if not self.log:
            return values
        if (low := values <= -1).any():
            place = int(low.argmax())
            raise cells.error(
                place,
                f"{values[place]:g} has no log(1 + x), which needs values above -1. Correct it, pass at_least=0, or "
                "leave out log.",
            )
        return np.log1p(values)

    def note(self, count: int) -> str:
        """Say how many rows are missing though none was before."""
        return _filled_note(self.column, count)


class DateColumn(msgspec.Struct, frozen=True, tag_field="kind", tag="date", forbid_unknown_fields=True):
    """Parts of a date, and beside them, where some were missing, whether it is."""

    column: str
    parts: tuple[tuple[DatePart, Scaled], ...]
    indicator: bool
    format: str | None = None

    def __post_init__(self) -> None:
        names = [part for part, _ in self.parts]
        if not names or len(set(names)) < len(names):
            raise InputError(f"column {self.column!r} has the parts {names}.")

    @property
    def names(self) -> tuple[str, ...]:
        """What its columns are called to others."""
        return tuple(f"{self.column}#{i}" for i in range(1, len(self.own_names) + 1))

    @property
    def own_names(self) -> tuple[str, ...]:
        """What its columns are called at the party."""
        parts = tuple(f"{self.column}.{part}" for part, _ in self.parts)
        return (*parts, f"{self.column} is missing") if self.indicator else parts

    def write(self, cells: Cells, out: Floats) -> int:
        """Fill in the columns of these rows; count those that are missing though none was before."""
        times = moments(cells, self.format)
        for i, (part, scaling) in enumerate(self.parts):
            out[:, i] = scaling.scaled(scaling.filled(cells, part_of(cells, times, part)))
        return _mark_gaps(np.asarray(times.is_null()), out, self.indicator)

    def note(self, count: int) -> str:
        """Say how many rows are missing though none was before."""
        return _filled_note(self.column, count)


class CategoryColumn(msgspec.Struct, frozen=True, tag_field="kind", tag="category", forbid_unknown_fields=True):
    """A column of 1 and 0 for each frequent level but one, the reference; then one for all rare ones, if there are any.

    Where every level is rare there is no reference, and no column.
    """

    column: str
    reference: str | None
    levels: tuple[str, ...]
    rare: tuple[str, ...]
    unknown: Literal["other", "error"]
    missing: Literal["error", "level"]

    def __post_init__(self) -> None:
        known = self.known
        if len(set(known)) < len(known) or "" in known or OTHER in known:
            raise InputError(f"column {self.column!r} has a level twice, or one without a name.")
        if len(self.levels) >= MOST_LEVELS or len(known) > MOST_KEPT_LEVELS:
            raise InputError(f"column {self.column!r} has {len(known):,} levels.")
        if self.reference is None and (self.levels or not self.rare):
            raise InputError(f"column {self.column!r} has no level to compare with.")

    @property
    def known(self) -> list[str]:
        """All levels that were there."""
        return [*([] if self.reference is None else [self.reference]), *self.levels, *self.rare]

    @property
    def shown_levels(self) -> tuple[str, ...]:
        """The level of each column."""
        return (*self.levels, OTHER) if self.rare and self.reference is not None else self.levels

    @property
    def names(self) -> tuple[str, ...]:
        """What its columns are called to others."""
        return tuple(f"{self.column}#{i}" for i in range(1, len(self.shown_levels) + 1))

    @property
    def own_names(self) -> tuple[str, ...]:
        """What its columns are called at the party."""
        return tuple(f"{self.column}={level}" for level in self.shown_levels)

    def write(self, cells: Cells, out: Floats) -> int:
        """Fill in the columns of these rows, which are zero; count those whose level was not there before."""
        places = self.places(cells)
        # All beyond the levels share what comes next: the column of rare ones, or, where there is none, no column.
        shown = np.minimum(places, len(self.levels) + 1)
        rows = np.flatnonzero((shown > 0) & (shown <= len(self.names)))
        out[rows, shown[rows] - 1] = 1.0
        return int((places == len(self.known)).sum())

    def places(self, cells: Cells) -> Rows:
        """Find the place of each level among those known, and beyond them where it was not there."""
        import pyarrow as pa
        import pyarrow.compute as pc

        known = pa.array(self.known, pa.large_string())
        found = pc.index_in(self._levels(cells), value_set=known)
        if self.unknown == "error" and found.null_count:
            place = int(np.asarray(found.is_null()).argmax())
            raise cells.error(
                place,
                f"the level {cells.shown(place)} was not there when the column was learned. Correct it, or pass "
                "unknown='other' and learn again.",
            )
        return np.asarray(pc.fill_null(found, len(known)))

    def _levels(self, cells: Cells) -> Any:
        """Read levels as text, of which missing may be one."""
        import pyarrow.compute as pc

        levels = texts(cells)
        if self.missing == "error" and levels.null_count:
            place = int(np.asarray(levels.is_null()).argmax())
            raise cells.error(place, f"the level is missing. {CURE} missing='level'.")
        return pc.fill_null(levels, MISSING)

    def note(self, count: int) -> str:
        """Say how many rows have levels that were not there."""
        where = "other" if self.rare else "its most frequent level"
        return f"{self.column}: {_rows(count)} levels that were not there when it was learned; they count as {where}"


AnyColumn = NumberColumn | CategoryColumn | DateColumn


def require_finite(*values: float | None) -> None:
    """Require numbers that a table may hold."""
    for value in values:
        if value is not None and not abs(value) <= LARGEST:
            raise InputError(f"{value!r} is not a number up to {LARGEST:g} in size.")


def _mark_gaps(gaps: Flags, out: Floats, indicator: bool) -> int:
    if not indicator:
        return int(gaps.sum())
    out[:, -1] = gaps
    return 0


def _filled_note(column: str, count: int) -> str:
    return f"{column}: {_rows(count)} no value, and none was missing when it was learned; they are filled in"


def _rows(count: int) -> str:
    return f"{count:,} row{'s have' if count > 1 else ' has'}"
