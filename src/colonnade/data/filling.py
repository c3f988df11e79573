"""Numbers of a stream of record batches, put into columns as they come; of the rest nothing is copied.

A batch is let go once it is read, so a table is never held twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from colonnade.data.held_columns import DOUBLE, AnyColumn, HeldColumns, Kind, kind_of
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.preparation.reading import is_number

# A column's piece stays in cache while it is converted, copied and looked at.
PIECE_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class Filled:
    """A table that was read.

    Attributes
    ----------
    values : HeldColumns
        NaN where a value is missing; columns that are no numbers are not written.
    largest : (n_columns,) array
        The largest value in size of each column, NaN where one is missing.
    rest : pyarrow.Table
        All columns that are not in `values`, or are no numbers, as they came.
    """

    values: HeldColumns
    largest: Floats
    rest: Any


class Sized(NamedTuple):
    """A `pyarrow.RecordBatchReader` of which it is known how many rows it has, or that they are too many to be held."""

    batches: Any
    n_rows: int | None
    is_large: bool


def sized(batches: Any, n_rows: int | None, row_bytes: int, most: float) -> Sized:
    """Hold batches until it is known whether all rows, of so many bytes each, take more than `most`."""
    if n_rows is not None:
        return Sized(batches, n_rows, n_rows * row_bytes > most)
    import pyarrow as pa

    held, found, n_bytes, coming = [], 0, 0, iter(batches)
    for batch in coming:
        held.append(batch)
        found += batch.num_rows
        n_bytes += max(batch.num_rows * row_bytes, batch.nbytes)
        if n_bytes > most:
            whole = chain(let_go(held), coming)
            return Sized(pa.RecordBatchReader.from_batches(batches.schema, whole), None, True)
    return Sized(pa.RecordBatchReader.from_batches(batches.schema, let_go(held)), found, False)


def filled(party: str, batches: Any, n_rows: int | None, columns: Sequence[str]) -> Filled:
    """Read a `pyarrow.RecordBatchReader`, these columns as numbers; it says how many rows there are, or None."""
    import pyarrow as pa

    schema = batches.schema
    if n_rows is None:
        whole = list(batches)
        n_rows, batches = sum(batch.num_rows for batch in whole), let_go(whole)
    places = [(place, name) for place, name in enumerate(columns) if is_filled(schema.field(name).type)]
    written = {name for _, name in places}
    others = [name for name in schema.names if name not in written]
    values = _empty(party, n_rows, [held_as(schema.field(name).type) for name in columns])
    held, most = values.columns(), np.zeros(len(columns))
    rest, start = [], 0
    for batch in batches:
        check_rows(party, start + batch.num_rows, n_rows, is_last=False)
        for piece in pieces(batch):
            rows = slice(start, start := start + piece.num_rows)
            for place, name in places:
                numbers = numbers_of(piece[name], held[place].dtype)
                held[place][rows] = numbers
                most[place] = np.maximum(most[place], largest(numbers))
        rest.append(batch.select(others))
    check_rows(party, start, n_rows, is_last=True)
    kept = pa.schema([schema.field(name) for name in others])
    return Filled(values, most, pa.Table.from_batches(rest, kept))


def held_as(kind: Any) -> Kind:
    """Say as what numbers of an Arrow type are held."""
    import pyarrow as pa

    plain = any(is_kind(kind) for is_kind in (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean))
    return kind_of(kind.to_pandas_dtype()) if plain else DOUBLE


def numbers_of(column: Any, kind: Kind) -> AnyColumn:
    """Read an Arrow array of numbers; a null becomes NaN."""
    import pyarrow as pa

    numbers: AnyColumn = column.cast(pa.from_numpy_dtype(kind), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def largest_in_size(columns: Sequence[AnyColumn]) -> Floats:
    """Find the largest value in size of each column, NaN where one is."""
    most = np.zeros(len(columns))
    for place, column in enumerate(columns):
        for start in range(0, len(column), PIECE_ROWS):
            most[place] = np.maximum(most[place], largest(column[start : start + PIECE_ROWS]))
    return most


def let_go(held: list[Any]) -> Iterator[Any]:
    """Give record batches one after the other, and keep none."""
    held.reverse()
    while held:
        yield held.pop()


def largest(values: AnyColumn) -> Any:
    """Find the largest value in size of a column, or of each, NaN where one is."""
    # NaN and infinity cannot hide from the extremes, so a good column costs no mask.
    return np.maximum(-values.min(axis=0), values.max(axis=0))


def is_filled(kind: Any) -> bool:
    """Tell whether values of this type are numbers, or missing, each by itself."""
    import pyarrow as pa

    return is_number(kind) and not pa.types.is_null(kind)


def pieces(batch: Any) -> Iterator[Any]:
    """Cut a record batch into pieces that stay in cache."""
    for start in range(0, batch.num_rows, PIECE_ROWS):
        yield batch.slice(start, PIECE_ROWS)


def _empty(party: str, n_rows: int, kinds: Sequence[Kind]) -> HeldColumns:
    try:
        return HeldColumns.empty(n_rows, kinds)
    except (MemoryError, ValueError):
        raise InputError(
            f"Party {party!r}: {n_rows:,} rows of {len(kinds)} columns do not fit into memory. Hand in fewer columns "
            "or rows."
        ) from None


def check_rows(party: str, found: int, n_rows: int, *, is_last: bool) -> None:
    """Require as many rows as the file says that it has: it may be damaged, or another by now."""
    if found > n_rows or (is_last and found < n_rows):
        raise InputError(
            f"Party {party!r}: the table has {found:,} rows{'' if is_last else ' and more'}, and says that it has "
            f"{n_rows:,}. Check that it is whole and not written to, or write it again."
        )
