"""The column that identifies rows: hashed, never sent."""

import hashlib
from typing import Any

import numpy as np

from colonnade.errors import InputError


def digest_of_key(party: str, name: str, column: Any) -> bytes:
    """Hash a key column, so that two parties can tell whether they hold the same rows in the same order.

    SHA-256 over, for each row, the length in bytes (8 bytes, little endian) and the UTF-8 text of the key. An integer
    of any width counts as its decimal text: 7 as int32, as int64 and as "7" are the same key, "007" is another. Text is
    taken as it is: case and blanks count. The column is a `pyarrow.ChunkedArray`; errors never show its values, which
    may be personal data.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    where = f"Party {party!r}, key column {name!r}"
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_integer(column.type) or _is_text(column.type)):
        raise InputError(
            f"{where}: its type is {column.type}, and a key is integers or text. "
            "Convert it, in the same way at every party."
        )
    text = column.cast(pa.large_string()).combine_chunks()
    missing = np.asarray(pc.fill_null(pc.equal(text, ""), True))
    if missing.any():
        raise InputError(
            f"{where}: {missing.sum()} of {missing.size} keys are missing or empty, the first in row "
            f"{missing.argmax()} (rows count from 0). Every row needs a key of its own: fill them in."
        )
    # Codes count distinct keys as they first appear, so with no repetition row i has code i.
    codes = np.asarray(text.dictionary_encode().indices)
    repeated = codes != np.arange(codes.size)
    if repeated.any():
        row = repeated.argmax()
        raise InputError(
            f"{where}: row {row} repeats the key of row {codes[row]} (rows count from 0). "
            "A key names one row: drop the repetition, or join the columns that together are unique."
        )
    keys = text.cast(pa.large_binary()).to_pylist()
    return hashlib.sha256(b"".join(len(one).to_bytes(8, "little") + one for one in keys)).digest()


def _is_text(kind: Any) -> bool:
    import pyarrow.types as t

    return any(is_kind(kind) for is_kind in (t.is_string, t.is_large_string, t.is_string_view))
