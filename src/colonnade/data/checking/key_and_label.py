"""What is seen of the columns with a role: whether keys name rows, how labels are distributed. No key is shown."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from colonnade.contracts import Keys
from colonnade.data.checking.columns import decoded, kind_of, present_of
from colonnade.data.checking.tallies import tallies
from colonnade.data.filed_keys import any_keys
from colonnade.data.keys import key_texts
from colonnade.errors import InputError
from colonnade.kernels.key_texts import Words, hashes_of, joined, prefixed
from colonnade.preparation.levels import MOST_KEPT_LEVELS
from colonnade.preparation.measuring import Piece, moments, quantile
from colonnade.preparation.reading import floats, pieces_of

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
    """Read the key columns of a `pyarrow.Table`, or of files, as a party does."""
    columns = tuple(names)
    try:
        keys = any_keys(party, names, table, "first")
    except InputError as error:
        return KeySeen(columns, problem=str(error))
    repeated = len(keys.left_out)
    as_written = _repeats_as_written(table, columns) if repeated else 0
    changed = _changed(party, table, names[0], keys) if len(names) == 1 else 0
    return KeySeen(columns, repeated, repeated - as_written, changed)


def label_seen(table: Any, name: str) -> LabelSeen | None:
    """Look at a column of labels, or None where it holds neither numbers nor text."""
    kind = kind_of(table.schema.field(name).type)
    if kind == "text":
        return _text_seen(table, name)
    if kind not in ("number", "yes/no"):
        return None

    def read() -> Iterator[Piece]:
        for piece in pieces_of(table, name):
            values = floats(decoded(piece))
            yield Piece(values[np.isfinite(values)], None)

    missing = sum(len(piece) - len(present_of(decoded(piece))) for piece in pieces_of(table, name))
    n_values = sum(len(some.values) for some in read())
    if not n_values:
        return None
    n_distinct = _few_values(table, name)
    return LabelSeen(
        name,
        missing,
        moments(read).mean,
        {f"{share:g}": quantile(read, n_values, share) for share in QUANTILES},
        sum(int(np.count_nonzero(some.values == 0)) for some in read()) / n_values,
        n_distinct == 2,
        n_distinct == 1,
    )


def _few_values(table: Any, name: str) -> int:
    """Count different values that are there, up to three."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found: Any = None
    for piece in pieces_of(table, name):
        there = pc.unique(present_of(decoded(piece)))
        found = there if found is None else pc.unique(pa.concat_arrays([found, there]))
        if len(found) > 2:
            break
    return len(found)


def _text_seen(table: Any, name: str) -> LabelSeen:
    words: Counter[str] = Counter()
    missing = 0
    for piece in pieces_of(table, name):
        some = Counter(value.strip() for value in piece.to_pylist() if value is not None)
        missing += len(piece) - some.total() + some.pop("", 0)
        # What has so many is no label: not all of them are kept.
        words.update(some if len(words) < MOST_KEPT_LEVELS else {word: some[word] for word in some if word in words})
    return LabelSeen(name, missing, 0.0, {}, 0.0, len(words) == 2, len(words) == 1, dict(words.most_common()))


def _repeats_as_written(table: Any, names: tuple[str, ...]) -> int:
    """Count rows whose key is written as that of an earlier row."""

    def read() -> Iterator[Words]:
        for parts in zip(*(pieces_of(table, name) for name in names), strict=True):
            yield hashes_of(joined(*(prefixed(_written(part)) for part in parts)))

    return int(table.num_rows - sum(len(counts) for counts in tallies(read, table.num_rows)))


def _written(piece: Any) -> Any:
    import pyarrow as pa

    is_binary = pa.types.is_binary(piece.type) or pa.types.is_large_binary(piece.type)
    as_text = piece if is_binary else piece.cast(pa.large_string())
    return as_text.cast(pa.large_binary())


def _changed(party: str, table: Any, name: str, keys: Keys) -> int:
    """Count keys, of text, of rows that take part, that are not written as they are compared."""
    import pyarrow.compute as pc

    if kind_of(table.schema.field(name).type) != "text":
        return 0
    changed, first = 0, 0
    for piece in pieces_of(table, name):
        compared = next(key_texts(party, [name], [{name: piece}]))
        is_other = np.asarray(pc.not_equal(_written(piece), compared))
        here = keys.left_out[(keys.left_out >= first) & (keys.left_out < first + len(piece))] - first
        is_other[here] = False
        changed, first = changed + int(is_other.sum()), first + len(piece)
    return changed
