"""Numbers in Parquet files: which tables stay there, large ones and data sets of pyarrow's, and how others are read."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.data.arrow_files import naming
from colonnade.data.engines import Engine, Threads
from colonnade.data.filed_columns import FileColumns
from colonnade.data.filed_keys import read_filed_keys
from colonnade.data.files import chosen_columns, is_data_set, parquet_paths
from colonnade.data.filling import held_as, is_filled, numbers_of, pieces
from colonnade.data.held_columns import DOUBLE, HeldColumns, Kind
from colonnade.data.marks import read_marks
from colonnade.data.sources import Roles, Source, columns_read, taken_columns
from colonnade.data.streamed_tables import StreamedTable
from colonnade.data.streams import ParquetRows, open_rows
from colonnade.data.unprepared import unprepared_columns
from colonnade.data.value_checks import ValueCheck, check_row_weights
from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags, Floats
from colonnade.options import listed
from colonnade.preparation.reading import BY_NUMBER, is_number
from colonnade.preparation.rules import HowToPrepare
from colonnade.protocol.policy import Policy

# Smaller tables are read once, and held: 256 MB of float64.
STREAMED_BYTES = 1 << 28


def from_parquet(
    party: str, data: object, roles: Roles, policy: Policy, prepare: HowToPrepare | None, engine: Engine | None
) -> StreamedTable | Source | None:
    """Open a table that stays in its files, whose values are looked at in the first pass; read it where it is small.

    None of what is to be read otherwise: it is in no Parquet file, is small and has a key or rules, or has columns that
    are no numbers and have no rule.
    """
    asked = engine is not None or is_data_set(data)
    files = parquet_paths(party, data)
    if files is None:
        _check_no_engine(party, engine, "is in no Parquet file")
        return None
    from pyarrow import parquet
    from pyarrow.types import is_integer

    with naming(f"Party {party!r}: the {'file' if str(files[0]) == str(data) else 'folder'} {str(data)!r}", files[0]):
        schema = parquet.read_schema(files[0])
    taken = taken_columns(party, roles)
    where = f"Party {party!r}: its table"
    columns = chosen_columns(where, schema, partial(columns_read, party, taken, policy, prepare))
    features = [name for name in columns if name not in taken]
    label = next((name for name, role in taken.items() if role == "label"), None)
    ordered = [*(features if prepare is None else []), *([] if label is None else [label])]
    if other := [name for name in ordered if not _is_plain_number(schema.field(name).type)]:
        _check_no_engine(party, engine, f"has a column that is no number, {other[0]!r}")
        _check_numbers(party, files, schema, [name for name in other if name != label])
        return None
    rows = open_rows(where, files, ordered)
    if is_data_set(data) and not _is_whole(data, schema, rows.n_rows):
        _check_no_engine(party, engine, "is a data set with a filter, partitions or a schema of its own")
        return None
    n_columns = len(features) + (label is not None)
    is_small = not asked and rows.n_rows * n_columns * 8 <= STREAMED_BYTES
    if not rows.n_rows or not n_columns or (is_small and (roles.key is not None or prepare is not None)):
        return None
    integers = tuple(is_integer(schema.field(name).type) for name in ordered)
    weights, marks = _beside(party, rows, taken)
    if is_small:
        values, largest = _read(rows, [held_as(schema.field(name).type) for name in ordered])
        return Source(tuple(ordered), values, integers, largest, label, weights=weights, held_out=marks)
    check = ValueCheck(party, integers) if ordered else None
    table = StreamedTable(rows, tuple(features), label, weights, marks, engine=engine or Threads(), check=check)
    if roles.key is not None or prepare is not None:  # which are read now, too
        table.look_through()
    if keys := [name for name, role in taken.items() if role == "key"]:
        read, found = read_filed_keys(party, keys, FileColumns(rows, tuple(keys)), roles.duplicates)
        table = replace(table, keys=read, key_digest=found)
    if prepare is None:
        return table
    preparing = unprepared_columns(party, FileColumns(rows, tuple(features)), prepare, BY_NUMBER)
    preparing.check()
    return replace(table, feature_names=preparing.names, preparing=preparing)


def _read(rows: ParquetRows, kinds: Sequence[Kind]) -> tuple[HeldColumns, Floats]:
    """Read all rows on all cores, and find the largest value in size of each column."""
    import pyarrow as pa

    values = HeldColumns.empty(rows.n_rows, kinds)
    largest = rows.read_into(values.columns())
    pa.default_memory_pool().release_unused()  # what batches took, which Arrow keeps for others
    return values, largest


def _check_numbers(party: str, files: Sequence[Path], schema: Any, others: Sequence[str]) -> None:
    """Say that columns are no numbers before a table is read that may not fit into memory."""
    named = [f"{name!r} ({schema.field(name).type})" for name in others if not is_number(schema.field(name).type)]
    if named and sum(path.stat().st_size for path in files) > STREAMED_BYTES:
        raise InputError(
            f"Party {party!r}: {len(named)} column(s) are not numbers: {listed(named)}. Leave them out by the owner's "
            "columns or never_columns (policy=), write numbers in their place, or pass prepare=."
        )


def _is_whole(data: Any, schema: Any, n_rows: int) -> bool:
    """Tell whether a data set is its files, and not some of their rows, or other columns."""
    return bool(data.schema.equals(schema) and data.count_rows() == n_rows)


def _check_no_engine(party: str, engine: Engine | None, why: str) -> None:
    if engine is not None:
        raise InputError(
            f"Party {party!r}: an engine works on tables that stay in Parquet files, and this one {why}. Write its "
            "numbers to Parquet files, or leave out engine=."
        )


def _is_plain_number(kind: Any) -> bool:
    import pyarrow.types as t

    return any(is_kind(kind) for is_kind in (t.is_integer, t.is_floating, t.is_boolean))


def _beside(party: str, rows: ParquetRows, taken: dict[str, str]) -> tuple[Floats | None, Flags | None]:
    """Read the columns of row weights and of rows to hold out, if there are any."""
    named = {role: name for name, role in taken.items() if role in ("weight", "split")}
    if not named:
        return None, None
    columns, n_rows = FileColumns(rows, tuple(named.values())), rows.n_rows
    weight, split = named.get("weight"), named.get("split")
    if weight is not None and not is_filled(columns.schema.field(weight).type):
        raise InputError(f"Party {party!r}: the weight column {weight!r} is not numbers. Name another one.")
    weights, marks, at = np.empty(n_rows if weight else 0), np.empty(n_rows if split else 0, np.bool_), 0
    for batch in columns.batches():
        for piece in pieces(batch):
            here = slice(at, at := at + piece.num_rows)
            if weight:
                weights[here] = numbers_of(piece[weight], DOUBLE)
            if split:
                marks[here] = read_marks(party, piece[split].to_numpy(zero_copy_only=False), here.start)
    if weight:
        check_row_weights(party, weights)
    return weights if weight else None, marks if split else None
