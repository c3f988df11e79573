"""Columns as they stand in files, read anew in each pass; and rows of them that are prepared when read."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import BLOCK_ROWS, Block, by_block, n_blocks_of, rows_of_block
from colonnade.preparation.preparation import Preparation
from colonnade.preparation.reading import floats


class ArrowRows(Protocol):
    """Rows that are read as they stand, from Parquet files or from a file of this process."""

    @property
    def n_rows(self) -> int:
        """How many rows."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of their numbers."""

    def arrow_batches(self, columns: Sequence[str], wanted: Collection[int]) -> Iterator[tuple[int, Any]]:
        """Read columns as they stand, of wanted blocks and perhaps of others; the first row of each batch."""

    def plain_schema(self, columns: Sequence[str]) -> Any:
        """Give the names and types of columns as `arrow_batches` reads them."""

    def check_unchanged(self) -> None:
        """Refuse files that are not as they were when they were opened."""


@dataclass(frozen=True, eq=False)
class FileColumns:
    """Some columns in files: what a `pyarrow.Table` is to preparation, but that none of it is held."""

    rows: ArrowRows
    names: tuple[str, ...]

    @cached_property
    def schema(self) -> Any:
        """Their names and types, as they are read."""
        return self.rows.plain_schema(self.names)

    @property
    def num_rows(self) -> int:
        """How many rows."""
        return self.rows.n_rows

    @property
    def num_columns(self) -> int:
        """How many columns."""
        return len(self.names)

    @property
    def column_names(self) -> list[str]:
        """What they are called."""
        return list(self.names)

    def select(self, names: Sequence[str]) -> "FileColumns":
        """Take some of them."""
        return replace(self, names=tuple(names))

    def pieces(self, name: str) -> Iterator[Any]:
        """Read a column from first row to last."""
        return (batch.column(0) for batch in self.batches([name]))

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Any]:
        """Read all of them, or these, from first row to last, as record batches."""
        self.rows.check_unchanged()
        for _, batch in self.rows.arrow_batches(names or self.names, range(n_blocks_of(self.num_rows))):
            yield batch
        self.rows.check_unchanged()

    def take(self, rows: Rows) -> Any:
        """Read rows, in any order, also repeatedly, as a `pyarrow.Table`."""
        import pyarrow as pa

        self.rows.check_unchanged()
        order = np.argsort(rows, kind="stable")
        wanted = by_block(rows[order] // BLOCK_ROWS, rows[order] % BLOCK_ROWS)
        blocks = arrow_blocks(self.rows, self.names, frozenset(wanted))
        found = [table.take(wanted[number]) for number, table in blocks]
        self.rows.check_unchanged()
        places = np.empty(len(rows), np.int64)
        places[order] = np.arange(len(rows))
        return pa.concat_tables([self.schema.empty_table(), *found]).take(places)


def arrow_blocks(rows: ArrowRows, columns: Sequence[str], wanted: Collection[int]) -> Iterator[tuple[int, Any]]:
    """Read blocks: the number of each, and its rows as a `pyarrow.Table`."""
    import pyarrow as pa

    parts: dict[int, list[Any]] = {}
    for first, batch in rows.arrow_batches(columns, wanted):
        end = first + batch.num_rows
        for number in range(first // BLOCK_ROWS, (end - 1) // BLOCK_ROWS + 1):
            if number not in wanted:
                continue
            here = rows_of_block(number, min(BLOCK_ROWS, rows.n_rows - number * BLOCK_ROWS))
            low, high = max(first, here.start), min(end, here.stop)
            parts.setdefault(number, []).append(batch.slice(low - first, high - low))
            if high == here.stop:
                yield number, pa.Table.from_batches(parts.pop(number))


@dataclass(frozen=True, eq=False)
class PreparedBlock:
    """A block whose rows become numbers when somebody works on them: in his thread, not in the one that reads."""

    number: int
    table: Any
    preparation: Preparation
    label: str | None
    weights: None = None

    @cached_property
    def values(self) -> Floats:
        """The rows, prepared, and the label."""
        values = self.preparation.apply(self.table, room=0 if self.label is None else 1).values
        if self.label is not None:
            values[:, -1] = floats(self.table[self.label])
        return values

    @property
    def rows(self) -> slice:
        """Which rows of the table these are."""
        return rows_of_block(self.number, self.table.num_rows)


def prepared_blocks(rows: ArrowRows, preparation: Preparation, wanted: Collection[int]) -> Iterator[Block]:
    """Read blocks of rows that are prepared; the label, if there is one, is the last of their columns."""
    label = next(iter(rows.columns[len(preparation.names) :]), None)
    columns = [each.column for each in preparation.columns] + ([] if label is None else [label])
    for number, table in arrow_blocks(rows, columns, wanted):
        yield PreparedBlock(number, table, preparation, label)  # type: ignore[misc]  # all that a block has
