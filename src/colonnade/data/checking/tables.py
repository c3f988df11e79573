"""A table to look at: in memory, or, where it is large, in its Parquet files or in a file of this process."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from colonnade.data import large_files
from colonnade.data.arrow_files import naming
from colonnade.data.checking.columns import Tell, in_silence
from colonnade.data.csv_reading import RereadError
from colonnade.data.filed_columns import FileColumns
from colonnade.data.files import Choose, chosen_columns, is_data_set, open_table, parquet_paths
from colonnade.data.filling import sized
from colonnade.data.spooling import spooled_columns
from colonnade.data.streamed_tables import StreamedTable
from colonnade.data.streams import open_rows
from colonnade.kernels.blocks import RowBlocks
from colonnade.kernels.row_blocks import ArrayBlocks
from colonnade.preparation.preparation import Preparation
from colonnade.preparation.reading import BY_NUMBER, Place


def table_to_look_at(
    party: str, data: object, choose: Choose, *, keys: Sequence[str], as_text: Choose, tell: Tell = in_silence
) -> tuple[Any, tuple[str, ...], Place]:
    """Open a table as `open_table` does: a `pyarrow.Table` or `FileColumns`; notes, and where a row stands."""
    columns = _in_files(party, data, choose)
    if columns is not None:
        return columns, (), BY_NUMBER
    # What can be read once only is held: a party is made of it at the end.
    most = math.inf if hasattr(data, "__arrow_c_stream__") else large_files.STREAMED_BYTES
    opened = open_table(party, data, choose, keys=keys, as_text=as_text, most=most)
    found = sized(_told(opened.batches, tell), opened.n_rows, 8 * len(opened.batches.schema), most)
    if not found.is_large:
        return found.batches.read_all(), opened.notes, opened.place
    try:
        columns = FileColumns(spooled_columns(party, found.batches), tuple(found.batches.schema.names))
        return columns, opened.notes, opened.place
    except RereadError as error:
        file = error.file  # which is written otherwise than it begins
    return table_to_look_at(party, file, choose, keys=keys, as_text=as_text, tell=tell)


def _told(reader: Any, tell: Tell) -> Any:
    """Tell how many rows have been read."""
    import pyarrow as pa

    def batches() -> Iterator[Any]:
        n_rows = 0
        for batch in reader:
            n_rows += batch.num_rows
            tell(f"reading the table: {n_rows:,} rows")
            yield batch

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _in_files(party: str, data: object, choose: Choose) -> FileColumns | None:
    from pyarrow import parquet

    if is_data_set(data) or not (files := parquet_paths(party, data)):
        return None
    where = f"Party {party!r}: the table {str(data)!r}"
    with naming(where, files[0]):
        schema = parquet.read_schema(files[0])
    rows = open_rows(where, files, ())
    if rows.n_rows * len(schema.names) * 8 <= large_files.STREAMED_BYTES:
        return None
    return FileColumns(rows, tuple(chosen_columns(where, schema, choose)))


def prepared_rows(table: Any, preparation: Preparation) -> RowBlocks:
    """Prepare the rows of a table: all now, or, where they are in files, whenever they are read."""
    if not isinstance(table, FileColumns):
        return ArrayBlocks(preparation.apply(table).values)
    rows: Any = table.rows
    return StreamedTable(replace(rows, columns=preparation.names, preparation=preparation), preparation.names)
