"""The columns that identify rows, in one form for all parties: trimmed, in lower case, Unicode NFC."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from colonnade.contracts import Keys, KeyValues
from colonnade.data.filling import PIECE_ROWS
from colonnade.errors import InputError
from colonnade.kernels.arrays import Rows
from colonnade.kernels.key_texts import KeyTexts, joined, prefixed

Duplicates = Literal["error", "first", "drop"]
DUPLICATES: tuple[Duplicates, ...] = ("error", "first", "drop")
RULE = (
    "Keys are trimmed, in lower case and Unicode NFC; integers agree with their decimal text, leading zeros stay; "
    "dates and times are as in ISO 8601, in UTC where they have a zone."
)
# No text in UTF-8 begins so: bytes are never taken for a text.
OF_BYTES = b"\xff"
SHOWN_ROWS = 5


def read_keys(party: str, names: Sequence[str], table: Any, duplicates: Duplicates) -> Keys:
    """Read the key columns of a `pyarrow.Table`, and require one key of its own for each row.

    Of rows that repeat a key, "first" keeps the first, "drop" none. Errors never show keys, which may be personal data.
    """
    import pyarrow as pa

    check_duplicates(party, duplicates)
    columns = table.select(list(names))
    pieces = (columns.slice(start, PIECE_ROWS) for start in range(0, max(table.num_rows, 1), PIECE_ROWS))
    values = KeyTexts(pa.chunked_array(key_texts(party, names, pieces), pa.large_binary()))
    repeats = np.flatnonzero(values.repeats(_integers(columns)))
    left_out = rows_left_out(party, names, len(values), repeats, duplicates, values)
    used = values.take(np.delete(np.arange(len(values)), left_out)) if len(left_out) else values
    return Keys(tuple(names), used, len(values), left_out, columns)


def check_duplicates(party: str, duplicates: Duplicates) -> None:
    """Require one of the ways to treat rows that repeat a key."""
    if duplicates not in DUPLICATES:
        raise InputError(
            f"Party {party!r}: duplicates={duplicates!r} is none of {', '.join(DUPLICATES)}. Leave it out."
        )


def _integers(keys: Any) -> npt.NDArray[np.integer[Any]] | None:
    """Give the numbers that keys are, if they are one column of integers."""
    import pyarrow as pa

    return keys[0].to_numpy() if keys.num_columns == 1 and pa.types.is_integer(keys[0].type) else None


def key_texts(party: str, names: Sequence[str], pieces: Iterable[Any]) -> Iterator[Any]:
    """Put keys into their form, piece by piece, and at the end require that none was missing or empty.

    Pieces are of a `pyarrow.Table`, or record batches; of each there is a `pyarrow.Array` of large_binary.
    """
    empty = {name: _Empty() for name in names}
    for piece in pieces:
        texts = [_readable(party, name, piece[name], empty[name]) for name in names]
        if not any(found.count for found in empty.values()):
            yield texts[0] if len(texts) == 1 else joined(*map(prefixed, texts))
    for name, found in empty.items():
        if found.count:
            raise InputError(
                f"Party {party!r}, key column {name!r}: {found.count:,} of {found.n_rows:,} keys are missing or empty, "
                f"{_first_rows(found.rows, found.count)}. Every row needs a key of its own: fill them in, or leave "
                "these rows out."
            )


@dataclass
class _Empty:
    """Keys that are missing or empty: how many, and the first of their rows."""

    n_rows: int = 0
    count: int = 0
    rows: list[int] = field(default_factory=list)

    def look_at(self, texts: Any) -> None:
        import pyarrow.compute as pc

        empty = np.flatnonzero(np.asarray(pc.fill_null(pc.equal(pc.binary_length(texts), 0), True)))
        self.rows += (empty[: SHOWN_ROWS - len(self.rows)] + self.n_rows).tolist()
        self.count, self.n_rows = self.count + len(empty), self.n_rows + len(texts)


def _readable(party: str, name: str, column: Any, empty: _Empty) -> Any:
    """Put a piece of one column into its form."""
    import pyarrow as pa

    try:
        texts = _form(f"Party {party!r}, key column {name!r}", column)
    except pa.ArrowException:  # its words may quote a key
        raise InputError(
            f"Party {party!r}, key column {name!r}: its {column.type} values cannot be read as keys. Write text in "
            "UTF-8, and times between the years 1 and 9999."
        ) from None
    empty.look_at(texts)
    return joined(pa.scalar(OF_BYTES, pa.large_binary()), texts) if _is_binary(_values_of(column.type)) else texts


def _values_of(kind: Any) -> Any:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _form(where: str, column: Any) -> Any:
    import pyarrow as pa

    values = column.cast(_values_of(column.type))
    texts = _as_text(where, values).cast(pa.large_binary())
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def _as_text(where: str, column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if _is_binary(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_integer(kind):
        return column.cast(pa.large_string())
    if pa.types.is_date(kind):
        return pc.strftime(column, format="%Y-%m-%d").cast(pa.large_string())
    if pa.types.is_timestamp(kind):
        return _times(column)
    if not _is_text(kind):
        why = ": floats are rounded, and equal keys might differ" if pa.types.is_floating(kind) else ""
        raise InputError(
            f"{where}: its type is {kind}, and a key is integers, text, dates, times or bytes{why}. Convert it, in the "
            "same way at every party."
        )
    trimmed = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    if pc.all(pc.string_is_ascii(trimmed)).as_py():
        return pc.ascii_lower(trimmed)  # the same, in a fifth of the time
    text = pc.utf8_normalize(trimmed, form="NFC")
    return pc.utf8_normalize(pc.utf8_lower(text), form="NFC")


def _times(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    unit, zone = "ns" if column.type.unit == "ns" else "us", column.type.tz
    seconds = pc.strftime(column.cast(pa.timestamp(unit, zone and "UTC")), format="%Y-%m-%dt%H:%M:%S")
    # A fraction of a second is written without zeros at its end, and not at all where it is zero.
    seconds = pc.utf8_rtrim(pc.utf8_rtrim(seconds, characters="0"), characters=".")
    end, nothing = (pa.scalar(text, pa.large_string()) for text in ("z" if zone else "", ""))
    return pc.binary_join_element_wise(seconds.cast(pa.large_string()), end, nothing)


def rows_left_out(
    party: str, names: Sequence[str], n_rows: int, repeats: Rows, duplicates: Duplicates, keys: KeyValues
) -> Rows:
    """List the rows that take no part, given those that repeat the key of an earlier row: each key names one row."""
    if not len(repeats):
        return repeats
    if duplicates == "error":
        raise InputError(
            f"Party {party!r}, key {', '.join(map(repr, names))}: {len(repeats):,} of {n_rows:,} rows repeat the key "
            f"of an earlier row, {_first_rows(repeats[:SHOWN_ROWS].tolist(), len(repeats))}. A key names one row: many "
            "rows are not joined to one here. Join or add them up at the party first, name more columns as the key, or "
            "pass duplicates='first' or 'drop'."
        )
    if duplicates == "drop":
        again = set(keys.take(repeats))
        repeats = np.array([row for row, key in enumerate(keys) if key in again], dtype=np.int64)
    if len(repeats) == n_rows:
        raise InputError(
            f"Party {party!r}: no row is left, as each repeats a key. Pass duplicates='first', or join first."
        )
    return repeats


def _first_rows(rows: Sequence[int], count: int) -> str:
    more = ", ..." if count > SHOWN_ROWS else ""
    return f"in row{'s' if count > 1 else ''} {', '.join(map(str, rows))}{more} (rows count from 0)"


def _is_text(kind: Any) -> bool:
    import pyarrow.types as t

    return any(is_kind(kind) for is_kind in (t.is_string, t.is_large_string, t.is_string_view))


def _is_binary(kind: Any) -> bool:
    import pyarrow.types as t

    return any(is_kind(kind) for is_kind in (t.is_binary, t.is_large_binary, t.is_fixed_size_binary))
