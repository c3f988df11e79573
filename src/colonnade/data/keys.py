"""The columns that identify rows, in one form for all parties: trimmed, in lower case, Unicode NFC."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from colonnade.contracts import Keys
from colonnade.data.filling import PIECE_ROWS
from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags, Rows
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
    if duplicates not in DUPLICATES:
        raise InputError(
            f"Party {party!r}: duplicates={duplicates!r} is none of {', '.join(DUPLICATES)}. Leave it out."
        )
    import pyarrow as pa

    texts = [_readable(party, name, table[name]) for name in names]
    whole = texts[0] if len(texts) == 1 else [joined(*map(prefixed, parts)) for parts in zip(*texts, strict=True)]
    values = KeyTexts(pa.chunked_array(whole, pa.large_binary()))
    repeats = values.repeats(_integers(table.select(list(names))))
    kept = _kept(party, names, values, repeats, duplicates) if repeats.any() else np.arange(len(values))
    if not len(kept) and len(values):
        raise InputError(
            f"Party {party!r}: no row is left, as each repeats a key. Pass duplicates='first', or join first."
        )
    used = values if len(kept) == len(values) else values.take(kept)
    return Keys(tuple(names), used, kept, len(values), table.select(list(names)))


def _integers(keys: Any) -> npt.NDArray[np.integer[Any]] | None:
    """Give the numbers that keys are, if they are one column of integers."""
    import pyarrow as pa

    return keys[0].to_numpy() if keys.num_columns == 1 and pa.types.is_integer(keys[0].type) else None


def _readable(party: str, name: str, column: Any) -> list[Any]:
    """Put one column into its form, piece by piece."""
    import pyarrow as pa

    try:
        return _texts(party, name, column)
    except pa.ArrowException:  # its words may quote a key
        raise InputError(
            f"Party {party!r}, key column {name!r}: its {column.type} values cannot be read as keys. Write text in "
            "UTF-8, and times between the years 1 and 9999."
        ) from None


def _texts(party: str, name: str, column: Any) -> list[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    where = f"Party {party!r}, key column {name!r}"
    starts = range(0, max(len(column), 1), PIECE_ROWS)
    texts = [_form(where, column.slice(start, PIECE_ROWS)) for start in starts]
    empty = np.concatenate([pc.fill_null(pc.equal(pc.binary_length(piece), 0), True) for piece in texts])
    if empty.any():
        raise InputError(
            f"{where}: {empty.sum():,} of {empty.size:,} keys are missing or empty, {_first_rows(empty)}. Every row "
            "needs a key of its own: fill them in, or leave these rows out."
        )
    if _is_binary(_values_of(column.type)):
        return [joined(pa.scalar(OF_BYTES, pa.large_binary()), piece) for piece in texts]
    return texts


def _values_of(kind: Any) -> Any:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _form(where: str, column: Any) -> Any:
    import pyarrow as pa

    values = column.cast(_values_of(column.type))
    return _as_text(where, values).cast(pa.large_binary()).combine_chunks()


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


def _kept(party: str, names: Sequence[str], values: KeyTexts, repeats: Flags, duplicates: Duplicates) -> Rows:
    """List the rows that take part: each key names one."""
    if duplicates == "error":
        raise InputError(
            f"Party {party!r}, key {', '.join(map(repr, names))}: {repeats.sum():,} of {len(values):,} rows repeat "
            f"the key of an earlier row, {_first_rows(repeats)}. A key names one row: many rows are not joined to one "
            "here. Join or add them up at the party first, name more columns as the key, or pass duplicates='first' or "
            "'drop'."
        )
    if duplicates == "first":
        return np.flatnonzero(~repeats)
    again = set(values.take(np.flatnonzero(repeats)))
    return np.array([row for row, value in enumerate(values) if value not in again], dtype=np.int64)


def _first_rows(marks: Flags) -> str:
    rows = np.flatnonzero(marks)[:SHOWN_ROWS].tolist()
    more = ", ..." if marks.sum() > SHOWN_ROWS else ""
    return f"in row{'s' if marks.sum() > 1 else ''} {', '.join(map(str, rows))}{more} (rows count from 0)"


def _is_text(kind: Any) -> bool:
    import pyarrow.types as t

    return any(is_kind(kind) for is_kind in (t.is_string, t.is_large_string, t.is_string_view))


def _is_binary(kind: Any) -> bool:
    import pyarrow.types as t

    return any(is_kind(kind) for is_kind in (t.is_binary, t.is_large_binary, t.is_fixed_size_binary))
