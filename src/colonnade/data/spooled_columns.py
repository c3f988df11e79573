"""Columns of any type in a file of our own: keys, and what is prepared when it is read; beside a spool of numbers.

Each column of a block is one run of bytes, as Arrow has it between processes: types and values are those that came in.
"""

from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from colonnade.data.filed_columns import prepared_blocks
from colonnade.data.spool import PrivateFile, PrivateRows, SpooledRows
from colonnade.errors import LocalProtocolError
from colonnade.kernels.arrays import Rows
from colonnade.kernels.blocks import BLOCK_ROWS, Block, n_blocks_of
from colonnade.preparation.preparation import Preparation


@dataclass(frozen=True, eq=False)
class SpooledColumns(PrivateRows):
    """Columns as they came, which `ColumnSpool` writes; `numbers` are others of the same rows.

    Where there is a preparation, `columns` are those that it makes, and the label, and blocks are made by it.
    """

    where: str
    n_rows: int
    schema: Any = field(repr=False)
    file: PrivateFile = field(repr=False)
    starts: Rows = field(repr=False)  # of each column of each block, and at last the end
    numbers: SpooledRows = field(repr=False)
    columns: tuple[str, ...] = ()
    preparation: Preparation | None = field(default=None, repr=False)

    def blocks(self, numbers: Sequence[int] | None = None, *, n_threads: int = 1) -> Iterator[Block]:  # noqa: ARG002
        """Prepare each block, or those with these numbers; bytes are read by one thread."""
        if self.preparation is None:
            raise LocalProtocolError("These columns are no numbers yet.")
        wanted = range(n_blocks_of(self.n_rows)) if numbers is None else numbers
        return prepared_blocks(self, self.preparation, wanted)

    def arrow_batches(self, columns: Sequence[str], wanted: Collection[int]) -> Iterator[tuple[int, Any]]:
        """Read columns as they stand, of wanted blocks; the first row of each batch."""
        import pyarrow as pa

        for number in sorted(wanted):
            first = number * BLOCK_ROWS
            table = pa.table({name: self._column(name, number) for name in columns})
            for batch in table.to_batches():  # several, where text is too long for one
                yield first, batch
                first += batch.num_rows

    def plain_schema(self, columns: Sequence[str]) -> Any:
        """Give the names and types of columns as `arrow_batches` reads them."""
        import pyarrow as pa

        return pa.schema([self.schema.field(name) for name in columns])

    def _column(self, name: str, number: int) -> Any:
        import pyarrow as pa

        if name in self.numbers.columns:
            (block,) = self.numbers.blocks([number])
            return pa.chunked_array([block.values[:, self.numbers.columns.index(name)]])
        place = number * len(self.schema) + self.schema.get_field_index(name)
        room = pa.allocate_buffer(int(self.starts[place + 1] - self.starts[place]))
        self.file.read(int(self.starts[place]), np.frombuffer(room, np.uint8))
        return pa.ipc.open_stream(room).read_all().column(0)


class ColumnSpool:
    """Writes columns, each a `pyarrow.Field`, row by row as they come; `where` names them in errors."""

    def __init__(self, where: str, fields: Sequence[Any]) -> None:
        import pyarrow as pa

        self._where, self._schema = where, pa.schema([(each.name, each.type) for each in fields])
        self._file = PrivateFile(where)
        self._waiting = self._schema.empty_table()
        self._starts = array("q", [0])
        self._n_rows = 0

    def append(self, batch: Any) -> None:
        """Take more rows, any number: a `pyarrow.RecordBatch` that has these columns, and perhaps others."""
        import pyarrow as pa

        columns = batch.select(self._schema.names).columns
        self._waiting = pa.concat_tables([self._waiting, pa.Table.from_arrays(columns, schema=self._schema)])
        while self._waiting.num_rows >= BLOCK_ROWS:
            self._write()

    def _write(self) -> None:
        """Write a block, or what is left."""
        import pyarrow as pa

        block, self._waiting = self._waiting.slice(0, BLOCK_ROWS), self._waiting.slice(BLOCK_ROWS)
        for column in block.columns:
            content = pa.BufferOutputStream()
            table = pa.table({"": _compact(column)}).combine_chunks()
            with pa.ipc.new_stream(content, table.schema) as writer:
                writer.write_table(table)
            self._file.write(np.frombuffer(content.getvalue(), np.uint8))
            self._starts.append(self._file.size)
        self._n_rows += block.num_rows

    def close(self, numbers: SpooledRows) -> SpooledColumns:
        """Write what is left, and give all rows to be read, with numbers that were written beside."""
        if self._waiting.num_rows:
            self._write()
        return SpooledColumns(self._where, self._n_rows, self._schema, self._file, np.array(self._starts), numbers)


def _compact(column: Any) -> Any:
    """Leave values out of a dictionary that these rows do not have: it would be written with each block."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    return column.cast(column.type.value_type).dictionary_encode().cast(column.type)
