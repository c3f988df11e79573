"""The columns that identify rows, in one form for all parties: trimmed, in lower case, Unicode NFC."""

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from colonnade.contracts import Keys
from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags, Rows

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
    texts = [_readable(party, name, table[name]) for name in names]
    values = (texts[0] if len(texts) == 1 else _joined(*map(_prefixed, texts))).to_pylist()
    # A set is the quickest way to see that no key is repeated, as usual.
    different = len(set(values)) == len(values)
    kept = np.arange(len(values)) if different else _kept(party, names, values, duplicates)
    if not len(kept) and values:
        raise InputError(
            f"Party {party!r}: no row is left, as each repeats a key. Pass duplicates='first', or join first."
        )
    used = values if len(kept) == len(values) else [values[row] for row in kept.tolist()]
    return Keys(tuple(names), used, kept, len(values), table.select(list(names)))


def digest_of_keys(keys: Keys) -> bytes:
    """Hash keys in row order, so that two parties can tell whether they hold the same rows in the same order.

    SHA-256 over, for each row, the length in bytes (8 bytes, little endian) and the key.
    """
    import pyarrow as pa

    prefixed = _prefixed(pa.array(keys.values, pa.large_binary()))
    return hashlib.sha256(prefixed.buffers()[2] or b"").digest()


def _prefixed(texts: Any) -> Any:
    """Put the length of each text before it: parts of a key are not taken for those of another."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = np.asarray(pc.binary_length(texts)).astype("<i8")
    eight = pa.Array.from_buffers(pa.binary(8), len(lengths), [None, pa.py_buffer(lengths)])
    return _joined(eight.cast(pa.large_binary()), texts)


def _joined(*parts: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))


def _readable(party: str, name: str, column: Any) -> Any:
    import pyarrow as pa

    try:
        return _texts(party, name, column)
    except pa.ArrowException:  # its words may quote a key
        raise InputError(
            f"Party {party!r}, key column {name!r}: its {column.type} values cannot be read as keys. Write text in "
            "UTF-8, and times between the years 1 and 9999."
        ) from None


def _texts(party: str, name: str, column: Any) -> Any:
    """Put one column into its form."""
    import pyarrow as pa
    import pyarrow.compute as pc

    where = f"Party {party!r}, key column {name!r}"
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    texts = _as_text(where, column)
    empty = np.asarray(pc.fill_null(pc.equal(pc.binary_length(texts), 0), True))
    if empty.any():
        raise InputError(
            f"{where}: {empty.sum():,} of {empty.size:,} keys are missing or empty, {_first_rows(empty)}. Every row "
            "needs a key of its own: fill them in, or leave these rows out."
        )
    texts = texts.cast(pa.large_binary()).combine_chunks()
    return _joined(pa.scalar(OF_BYTES, pa.large_binary()), texts) if _is_binary(column.type) else texts


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
    text = pc.utf8_normalize(pc.utf8_trim_whitespace(column.cast(pa.large_string())), form="NFC")
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


def _kept(party: str, names: Sequence[str], values: list[bytes], duplicates: Duplicates) -> Rows:
    """List the rows that take part: each key names one."""
    first: dict[bytes, int] = {}
    repeats = np.zeros(len(values), dtype=np.bool_)
    for row, value in enumerate(values):
        repeats[row] = first.setdefault(value, row) != row
    if duplicates == "error":
        raise InputError(
            f"Party {party!r}, key {', '.join(map(repr, names))}: {repeats.sum():,} of {len(values):,} rows repeat "
            f"the key of an earlier row, {_first_rows(repeats)}. A key names one row: many rows are not joined to one "
            "here. Join or add them up at the party first, name more columns as the key, or pass duplicates='first' or "
            "'drop'."
        )
    if duplicates == "first":
        return np.flatnonzero(~repeats)
    again = {values[row] for row in np.flatnonzero(repeats).tolist()}
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
