"""What is seen of a table's columns, as they came: kinds, gaps, extremes, levels, and which are the same."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
import numpy as np

from colonnade.data.checking.tallies import tallies
from colonnade.kernels.key_texts import Words, hashes_of
from colonnade.preparation.reading import NUMBER_OR_COMMA, pieces_of
from colonnade.preparation.rules import RARE

T = TypeVar("T")
# Whoever waits is told what is under way.
Tell: TypeAlias = Callable[[str], None]
Kind = Literal["number", "yes/no", "text", "date", "empty", "other"]
MOSTLY = 0.9
MILLION = 1e6
COMPARED_ROWS = 256


class ColumnSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One column: of numbers and dates the extremes, of text its levels, how many of few rows, of how many rows.

    `distinct` counts values other than missing ones; it is None of a key, and of floats and dates that differ.
    `numeric` counts values of text that read as numbers.
    """

    name: str
    kind: Kind
    type: str
    n_rows: int
    missing: int
    distinct: int | None
    least: str | float | None = None
    greatest: str | float | None = None
    rare_levels: int = 0
    rare_rows: int = 0
    numeric: int = 0
    same_as: str | None = None

    @property
    def constant(self) -> bool:
        """Whether all values that are there are the same."""
        return self.distinct is not None and self.distinct <= 1

    @property
    def reads_as_numbers(self) -> bool:
        """Whether it is text of which most reads as numbers."""
        return self.kind == "text" and self.numeric >= MOSTLY * self.present > 0

    @property
    def present(self) -> int:
        """How many values are not missing."""
        return self.n_rows - self.missing

    def in_counts(self, *, levels: bool = True) -> str:
        """Say briefly what was seen, and show no value: this may stand in a file that others read.

        Without `levels`, as text that is none is: nothing of how many values there are.
        """
        values = self._counts() if levels or self.kind != "text" else ""
        same = "" if self.same_as is None else f"the same as {self.same_as!r}"
        numbers = "text that reads as numbers" if self.reads_as_numbers else ""
        gaps = f"{self.missing:,} missing" if self.missing else "none missing"
        return ", ".join(part for part in (values, gaps, same, numbers) if part)

    def in_values(self, *, levels: bool = True) -> str:
        """Say briefly which values are there, for the owner's eyes."""
        if self.least is not None and not self.constant:
            return f"{_short(self.least)} to {_short(self.greatest)}"
        return self._counts() if levels or self.constant else f"{self.distinct:,} values"

    def _counts(self) -> str:
        if not self.present:
            return "no value"
        if self.constant:
            return "one value"
        if self.distinct is None:
            return ""
        if 1 < self.n_rows == self.distinct:
            return f"{self.n_rows:,} values, all different"
        rare = f", {self.rare_levels:,} of them rare" if self.rare_levels else ""
        return f"{self.distinct:,} {'levels' if self.kind == 'text' else 'values'}{rare}"


def in_silence(_words: str) -> None:
    """Tell nobody what is under way."""


def counted(tell: Tell, doing: str, items: Collection[T]) -> Iterator[T]:
    """Give each, and tell which one of how many it is."""
    for number, item in enumerate(items, 1):
        tell(f"{doing} {number:,} of {len(items):,}")
        yield item


def columns_seen(
    table: Any, rare: Mapping[str, int], keys: Sequence[str] = (), *, tell: Tell = in_silence
) -> list[ColumnSeen]:
    """Look at each column of a `pyarrow.Table`, or of files; of keys only gaps and different values are counted.

    `rare` says, by column, of how many rows a level is not rare, if it is not the usual. Columns are read in pieces.
    """
    tell("comparing columns")
    same = _repeated(table)
    return [
        _seen(table, name, rare.get(name, RARE), name in keys, same.get(name))
        for name in counted(tell, "looking at column", table.column_names)
    ]


def decoded(column: Any) -> Any:
    """Write out a dictionary, and a half float as a float: pyarrow has no arithmetic of either."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return decoded(column.cast(column.type.value_type))
    return column.cast(pa.float64()) if pa.types.is_float16(column.type) else column


def present_of(column: Any) -> Any:
    """Give the values that are there, text as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    gaps = missing_of(column)
    column = column.cast(pa.large_string()) if kind_of(column.type) == "text" else column
    return column.filter(pc.invert(gaps)) if pc.any(gaps).as_py() else column


def missing_of(column: Any) -> Any:
    """Mark the values that are missing: null, NaN, or empty text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind_of(column.type) == "text":
        return pc.fill_null(pc.equal(column.cast(pa.large_string()), ""), True)
    return pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))


def kind_of(kind: Any) -> Kind:
    """Tell what an Arrow type holds."""
    import pyarrow.types as t

    if t.is_dictionary(kind):
        return kind_of(kind.value_type)
    kinds: dict[Kind, tuple[Any, ...]] = {
        "yes/no": (t.is_boolean,),
        "number": (t.is_integer, t.is_floating, t.is_decimal),
        "text": (t.is_string, t.is_large_string, t.is_string_view),
        "date": (t.is_date, t.is_timestamp),
        "empty": (t.is_null,),
    }
    return next((name for name, tests in kinds.items() if any(test(kind) for test in tests)), "other")


def first_missing(table: Any, name: str, most: int) -> list[int]:
    """List the first rows in which a value is missing."""
    rows: list[int] = []
    start = 0
    for piece in pieces_of(table, name):
        gaps = np.flatnonzero(np.asarray(missing_of(decoded(piece))))
        rows += (gaps[: most - len(rows)] + start).tolist()
        start += len(piece)
        if len(rows) == most:
            break
    return rows


def _seen(table: Any, name: str, rare: int, is_key: bool, same_as: str | None) -> ColumnSeen:
    kind_as_it_is = table.schema.field(name).type
    kind = kind_of(kind_as_it_is)
    found = _Found()
    for piece in pieces_of(table, name):
        found.add(kind, piece)
    facts: dict[str, Any] = {}
    distinct = None if is_key else _distinct(table, name, kind, found, rare)
    # What is different in each row may be somebody's key, of which no value is shown.
    if kind in ("number", "date") and found.n_there and not is_key and not 1 < table.num_rows == distinct:
        facts = {"least": _plain(found.least), "greatest": _plain(found.greatest)}
    if kind == "text" and not is_key:
        facts = {"rare_levels": found.rare_levels, "rare_rows": found.rare_rows, "numeric": found.numeric}
    return ColumnSeen(
        name=name,
        kind=kind,
        type=str(kind_as_it_is),
        n_rows=table.num_rows,
        missing=table.num_rows - found.n_there,
        distinct=distinct,
        same_as=same_as,
        **facts,
    )


@dataclass
class _Found:
    """What is found in a column, piece by piece: values that are there, extremes, numbers among text, rare levels."""

    n_there: int = 0
    least: Any = None
    greatest: Any = None
    numeric: int = 0
    rare_levels: int = 0
    rare_rows: int = 0

    def add(self, kind: Kind, piece: Any) -> None:
        import pyarrow.compute as pc

        there = present_of(decoded(piece))
        self.n_there += len(there)
        if kind in ("number", "date") and len(there):
            extremes = pc.min_max(there)
            least, greatest = extremes["min"], extremes["max"]
            is_less = self.least is None or pc.less(least, self.least).as_py()
            self.least = least if is_less else self.least
            is_more = self.greatest is None or pc.greater(greatest, self.greatest).as_py()
            self.greatest = greatest if is_more else self.greatest
        if kind == "text":
            self.numeric += pc.sum(pc.match_substring_regex(there, NUMBER_OR_COMMA)).as_py() or 0


def _distinct(table: Any, name: str, kind: Kind, found: _Found, rare: int) -> int | None:
    """Count different values, and those of few rows; of floats, only whether there are several."""
    import pyarrow as pa

    if kind in ("other", "empty") or not found.n_there:
        return 0
    if kind == "date" or (kind == "number" and not pa.types.is_integer(_values_type(table, name))):
        return 1 if found.least == found.greatest else None
    distinct = 0
    for counts in tallies(lambda: map(_hashed, pieces_of(table, name)), table.num_rows):
        few = counts[counts < rare]
        distinct += len(counts)
        found.rare_levels += len(few)
        found.rare_rows += int(few.sum())
    return distinct


def _values_type(table: Any, name: str) -> Any:
    import pyarrow as pa

    kind = table.schema.field(name).type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _hashed(piece: Any) -> Words:
    """Give values that are there as numbers of 64 bits: other ones for other values, but for few texts by chance."""
    import pyarrow as pa

    there = present_of(decoded(piece))
    if kind_of(there.type) == "text":
        return hashes_of(there.cast(pa.large_binary())) if len(there) else np.empty(0, np.uint64)
    return np.asarray(there.to_numpy(zero_copy_only=False)).astype(np.uint64)


def _repeated(table: Any) -> dict[str, str]:
    """Name, for each column that repeats an earlier one value for value, that one."""
    firsts: dict[object, list[str]] = {}
    same: dict[str, str] = {}
    beginnings = table.take(np.arange(min(COMPARED_ROWS, table.num_rows)))
    for name in table.column_names:
        column = decoded(beginnings[name]).combine_chunks()
        # Only columns that begin alike are compared at length. As Arrow writes them: Python has no date of the year 0.
        beginning = column.to_string(window=COMPARED_ROWS)
        earlier = firsts.setdefault((str(column.type), beginning), [])
        match = next((other for other in earlier if _are_equal(table, name, other)), None)
        if match is None:
            earlier.append(name)
        else:
            same[name] = match
    return same


def _are_equal(table: Any, name: str, other: str) -> bool:
    pairs = zip(pieces_of(table, name), pieces_of(table, other), strict=True)
    return all(decoded(one).equals(decoded(two)) for one, two in pairs)


def _plain(value: Any) -> str | float:
    import pyarrow as pa

    try:
        plain = value.as_py()
    except (OverflowError, ValueError):  # a date that Python has not
        return str(value.cast(pa.string()).as_py())
    return float(plain) if not hasattr(plain, "isoformat") else str(plain)


def _short(value: str | float | None) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if MILLION <= abs(value) < MILLION**2 else f"{value:,.6g}"
