"""Values of a column as they are, block by block, read as numbers, as text or as moments; a bad one is named."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Any, Protocol, TypeAlias

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.options import LARGEST, there_is_no
from colonnade.preparation.rules import DatePart

BLOCK_ROWS = 65_536
FIRST_INEXACT_INTEGER = 2.0**53
SHOWN = 40  # characters of a value in an error
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
# Also by a decimal comma: beside these, what is no number at all is the slip.
NUMBER_OR_COMMA = r"^\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*$"
ZONE = r"[T ]\d\d.*(Z|[+-]\d\d(:?\d\d)?)$"
# What is finer than a microsecond is cut: nanoseconds would end in 2262.
TOO_FINE = r"(\.\d{6})\d+"
TICKS_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
# The years 1 to 9999, in days since 1970: beyond, pyarrow's calendar overflows.
FIRST_DAY, LAST_DAY = -719_162, 2_932_897
PARTS_OF_TIMES = ("days", "hour", "minute", "second")


# Says where a row, counted from 0, stands in what was read.
Place: TypeAlias = Callable[[int], str]
BY_NUMBER: Place = "row {} (rows count from 0)".format


class RowError(InputError):
    """What is wrong in one row, which whoever read the table may know by its line in a file."""

    def __init__(self, before: str, row: int, after: str) -> None:
        super().__init__(f"{before}{BY_NUMBER(row)}{after}")
        self.before, self.row, self.after = before, row, after


@dataclass(frozen=True, eq=False)
class Cells:
    """Some values of a column, a `pyarrow.Array`, and the rows that they are in; `column` reads it from the start."""

    name: str
    values: Any
    rows: Rows
    column: Callable[[], Iterator["Cells"]] = lambda: iter(())

    def error(self, place: int, what: str) -> InputError:
        """Make an error about one value."""
        return RowError(f"column {self.name!r}, ", int(self.rows[place]), f": {what}")

    def shown(self, place: int) -> str:
        """Write one value, shortened."""
        text = repr(self.values[place].as_py())
        return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


class RowWeights(Protocol):
    """How much each row counts; those that count 0 are not looked at."""

    def __getitem__(self, rows: Rows, /) -> Floats:
        """Give the weights of rows."""


class FiledColumns(Protocol):
    """Columns that stay in files, in place of a `pyarrow.Table` that is read column by column."""

    @property
    def schema(self) -> Any:
        """A `pyarrow.Schema`."""

    @property
    def num_rows(self) -> int:
        """How many rows."""

    @property
    def column_names(self) -> list[str]:
        """What columns are called."""

    def pieces(self, name: str) -> Iterator[Any]:
        """Read a column from first row to last: each piece a `pyarrow.Array`, short enough to be held."""


def cells(table: Any, name: str, weights: RowWeights | None = None) -> Iterator[Cells]:
    """Read a column of a `pyarrow.Table`, or of `FiledColumns`, from first row to last; only rows that count.

    Pieces have up to BLOCK_ROWS rows.
    """
    import pyarrow as pa

    if table.schema.get_field_index(name) < 0:
        raise InputError(there_is_no(f"column {name!r}, which was prepared", name, table.column_names))
    start = 0
    for piece in pieces_of(table, name):
        block, rows = piece, np.arange(start, start := start + len(piece))
        if weights is not None:
            counts = weights[rows] > 0
            block, rows = block.filter(pa.array(counts)), rows[counts]
        if len(rows):
            yield Cells(name, block, rows, lambda: cells(table, name, weights))


def pieces_of(table: Any, name: str) -> Iterator[Any]:
    """Read a column of a `pyarrow.Table`, or of `FiledColumns`, from first row to last, without a dictionary."""
    import pyarrow as pa

    if hasattr(table, "pieces"):
        yield from map(_without_dictionary, table.pieces(name))
        return
    column = table[name]
    for start in range(0, len(column), BLOCK_ROWS):
        piece = column.slice(start, BLOCK_ROWS)
        yield pa.concat_arrays(_without_dictionary(piece).chunks)


def _without_dictionary(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def numbers(cells: Cells) -> Floats:
    """Read numbers, NaN where one is missing."""
    import pyarrow as pa

    kind = cells.values.type
    if not is_number(kind):
        raise _no_number(cells)
    values = floats(cells.values)
    if pa.types.is_integer(kind) and (inexact := np.abs(values) >= FIRST_INEXACT_INTEGER).any():
        # The value itself is not shown: it is likely somebody's id.
        raise cells.error(
            int(inexact.argmax()),
            "the integer is 2^53 or more in size, and float64 cannot tell it from its neighbours. If it is an id, name "
            "it as key= or leave it out; if not, rescale it.",
        )
    if (too_large := np.abs(values) > LARGEST).any():
        place = int(too_large.argmax())
        raise cells.error(
            place, f"{values[place]:g} is infinite or beyond {LARGEST:g}. Correct it, or write a missing value."
        )
    return values


def texts(cells: Cells) -> Any:
    """Read levels as text, null where one is missing or empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = cells.values.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _whole_numbers(cells).cast(pa.large_string())
    if not (is_text(kind) or is_number(kind)):
        raise cells.error(
            0,
            f"its type is {kind}, and levels are text, whole numbers or booleans. Convert it, or name it as another "
            "kind in prepare.",
        )
    values = cells.values.cast(pa.large_string())
    return pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.large_string()), values)


def moments(cells: Cells, form: str | None) -> Any:
    """Read dates and times as timestamps without a zone, in UTC where they had one; null where one is missing."""
    import pyarrow as pa

    values, kind = cells.values, cells.values.type
    if is_text(kind):
        values = _written(cells, form)
    elif pa.types.is_null(kind) or pa.types.is_date32(kind):
        values = values.cast(pa.timestamp("s"))
    elif pa.types.is_date64(kind):
        values = values.cast(pa.timestamp("ms"))
    elif pa.types.is_time(kind):
        whole = values.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
        values = whole.cast(pa.int64()).cast(pa.timestamp(kind.unit))
    elif pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp(kind.unit))
    else:
        raise cells.error(
            0,
            f"{cells.shown(0)} has the type {kind}, which is no date or time. Write dates as text or as dates, or name "
            "the column as another kind in prepare.",
        )
    days = _days(values)
    if (beyond := (days < FIRST_DAY) | (days >= LAST_DAY)).any():
        raise cells.error(int(beyond.argmax()), "the date is not of the years 1 to 9999. Correct it.")
    return values


def parsed(written: Any, form: str | None) -> Any:
    """Parse text as timestamps, by a format or as ISO 8601 has them; None where some of it is no date."""
    import pyarrow as pa

    try:
        return _by_iso(written) if form is None else _by_format(written, form)
    except (pa.ArrowInvalid, ValueError, OverflowError):
        return None


def part_of(cells: Cells, moments: Any, part: DatePart) -> Floats:
    """Take one part of each moment, NaN where it is missing."""
    import pyarrow.compute as pc
    import pyarrow.types as t

    if t.is_time(cells.values.type) and part not in PARTS_OF_TIMES:
        raise InputError(
            f"column {cells.name!r} has times of day, which have no {part}. Take of them: {', '.join(PARTS_OF_TIMES)}."
        )
    if part == "days":
        return _days(moments)
    names = {"week": "iso_week", "weekday": "day_of_week"}
    return floats(getattr(pc, names.get(part, part))(moments))


def floats(values: Any) -> Floats:
    """Make a NumPy array, NaN where a value is missing."""
    import pyarrow as pa

    # A copy, as what Arrow hands out is read-only.
    return np.array(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def is_number(kind: Any) -> bool:
    """Whether values of this type are numbers; a column without any value has the null type."""
    import pyarrow.types as t

    return any(is_kind(kind) for is_kind in (t.is_integer, t.is_floating, t.is_boolean, t.is_decimal, t.is_null))


def is_text(kind: Any) -> bool:
    """Whether values of this type are text."""
    import pyarrow.types as t

    return any(is_kind(kind) for is_kind in (t.is_string, t.is_large_string, t.is_string_view))


def without_view(kind: Any) -> Any:
    """Name the type that pyarrow's functions know in place of a view, in which polars hands out text and bytes."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind) and without_view(kind.value_type) != kind.value_type:
        return pa.dictionary(kind.index_type, without_view(kind.value_type))
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return views.get(kind, kind)


def is_moment(kind: Any) -> bool:
    """Whether values of this type are dates or times."""
    import pyarrow.types as t

    return any(is_kind(kind) for is_kind in (t.is_date, t.is_time, t.is_timestamp))


def _days(moments: Any) -> Floats:
    import pyarrow as pa

    return floats(moments.cast(pa.int64())) / TICKS_A_DAY[moments.type.unit]


def _no_number(cells: Cells) -> InputError:
    import pyarrow.compute as pc

    kind = cells.values.type
    if not is_text(kind):
        advice = "a Date()" if is_moment(kind) else "another kind"
        return InputError(
            f"column {cells.name!r} has the type {kind}, not numbers. Name it as {advice} in prepare, or leave it out."
        )
    for pattern, block in product((NUMBER_OR_COMMA, NUMBER), cells.column()):
        odd = np.asarray(pc.invert(pc.fill_null(pc.match_substring_regex(block.values, pattern), True)))
        if odd.any():
            place = int(odd.argmax())
            return block.error(
                place,
                f"{block.shown(place)} is text, not a number. Correct it, write missing values as empty ones, or name "
                "the column as a Category() in prepare.",
            )
    return cells.error(
        0,
        f"{cells.shown(0)} is text, though it looks like a number. Write the column as numbers, or name it as a "
        "Category() in prepare.",
    )


def _whole_numbers(cells: Cells) -> Any:
    """Read floats that are whole numbers, as integers with gaps are in pandas."""
    import pyarrow as pa

    values = floats(cells.values)
    missing = np.isnan(values)
    odd = ~missing & ~((values == np.floor(values)) & (np.abs(values) < FIRST_INEXACT_INTEGER))
    if odd.any():
        place = int(odd.argmax())
        raise cells.error(
            place,
            f"{cells.shown(place)} is no level: of floats only whole numbers below 2^53 are. Name the column as a "
            "Number() in prepare, or write its levels as text.",
        )
    return pa.array(np.where(missing, 0.0, values).astype(np.int64), mask=missing)


def _written(cells: Cells, form: str | None) -> Any:
    written = texts(cells)
    times = parsed(written, form)
    if times is not None:
        return times
    place = next(place for place in range(len(written)) if parsed(written.slice(place, 1), form) is None)
    how = "as in ISO 8601, such as 2024-12-31" if form is None else f"by {form!r}"
    advice = "Correct it, or say how dates are written: format='%d.%m.%Y'." if form is None else "Correct it."
    raise cells.error(place, f"{cells.shown(place)} cannot be read as a date {how}. {advice}")


def _by_iso(written: Any) -> Any:
    """Parse dates as ISO 8601 has them, each with a zone or without."""
    import pyarrow as pa
    import pyarrow.compute as pc

    written = pc.replace_substring_regex(written, TOO_FINE, r"\1")
    zoned, nothing = pc.match_substring_regex(written, ZONE), pa.scalar(None, pa.large_string())
    local = pc.if_else(zoned, nothing, written).cast(pa.timestamp("us"))
    in_zone = pc.if_else(zoned, written, nothing).cast(pa.timestamp("us", "UTC"))
    return pc.coalesce(local, in_zone.cast(pa.timestamp("us")))


def _by_format(written: Any, form: str) -> Any:
    """Parse each distinct text once, by Python: pyarrow's strptime takes 31.02. for the second of March."""
    import pyarrow as pa

    encoded = written.dictionary_encode()
    times = [datetime.strptime(text, form) for text in encoded.dictionary.to_pylist()]
    in_utc = [time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None) for time in times]
    return pa.array(in_utc, pa.timestamp("us")).take(encoded.indices)
