"""What is seen of the columns with a role: whether keys name rows, how labels are distributed. No key is shown."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from colonnade.data.checking.columns import decoded, kind_of, present_of
from colonnade.data.keys import read_keys
from colonnade.errors import InputError

QUANTILES = (0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0)


class KeySeen(msgspec.Struct, frozen=True):
    """The key: how many rows repeat one, how many keys are written otherwise than they are compared.

    `merged` counts rows that repeat a key only as keys are compared: trimmed, in lower case. `problem` says why keys
    cannot be read.
    """

    columns: tuple[str, ...]
    repeated: int = 0
    merged: int = 0
    changed: int = 0
    problem: str | None = None


class LabelSeen(msgspec.Struct, frozen=True):
    """The label: quantiles by share, the share of zeros, and whether there are two values.

    Where it is text, there are its classes instead, with the number of rows of each, the most frequent first.
    """

    column: str
    missing: int
    mean: float
    quantiles: dict[str, float]
    zeros: float
    two_values: bool
    constant: bool
    classes: dict[str, int] = {}


def key_seen(party: str, names: Sequence[str], table: Any) -> KeySeen:
    """Read the key columns of a `pyarrow.Table` as a party does."""
    columns = tuple(names)
    try:
        keys = read_keys(party, names, table, "first")
    except InputError as error:
        return KeySeen(columns, problem=str(error))
    repeated = len(keys.left_out)
    as_written = _repeats_as_written(table.select(list(names))) if repeated else 0
    changed = _changed(table[names[0]], keys) if len(names) == 1 else 0
    return KeySeen(columns, repeated, repeated - as_written, changed)


def label_seen(name: str, column: Any) -> LabelSeen | None:
    """Look at a column of labels, or None where it holds neither numbers nor text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind_of(column.type) == "text":
        return _text_seen(name, column)
    if kind_of(column.type) not in ("number", "yes/no"):
        return None
    there = present_of(decoded(column))
    values = there.cast(pa.float64(), safe=False).to_numpy()
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    distinct = pc.count_distinct(there).as_py()
    return LabelSeen(
        name,
        len(column) - len(there),
        float(values.mean()),
        {f"{share:g}": float(value) for share, value in zip(QUANTILES, np.quantile(values, QUANTILES), strict=True)},
        float((values == 0).mean()),
        distinct == 2,
        distinct == 1,
    )


def _text_seen(name: str, column: Any) -> LabelSeen:
    words = Counter(value.strip() for value in decoded(column).to_pylist() if value is not None)
    missing = len(column) - words.total() + words.pop("", 0)
    return LabelSeen(name, missing, 0.0, {}, 0.0, len(words) == 2, len(words) == 1, dict(words.most_common()))


def _repeats_as_written(keys: Any) -> int:
    return int(keys.num_rows - keys.group_by(keys.column_names).aggregate([]).num_rows)


def _changed(column: Any, keys: Any) -> int:
    """Count keys, of text, that are not written as they are compared."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind_of(column.type) != "text":
        return 0
    written = column.cast(pa.large_string()).cast(pa.large_binary()).combine_chunks().take(keys.rows)
    return int(pc.sum(pc.not_equal(written, keys.values.chunks)).as_py() or 0)
