"""What a party holds: its rows, checked once at the door, read block by block ever after."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from colonnade.contracts import Alignment, Keys
from colonnade.data import large_files
from colonnade.data.engines import Engine, in_threads, n_cores
from colonnade.data.filling import largest_in_size
from colonnade.data.held_columns import HeldColumns
from colonnade.data.keys import Duplicates
from colonnade.data.sources import Roles, from_array, from_frame, has_names
from colonnade.data.spool import SpooledRows
from colonnade.data.streamed_tables import StreamedTable
from colonnade.data.text_labels import levels_left
from colonnade.data.unprepared import Unprepared
from colonnade.data.value_checks import check_columns, check_row_weights
from colonnade.errors import InputError, LocalProtocolError
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.kernels.blocks import Block, Work, n_blocks_of, rows_of_block
from colonnade.kernels.per_row import PerRow
from colonnade.preparation.rules import HowToPrepare
from colonnade.protocol.policy import Policy

R = TypeVar("R")

# Blocks that a thread is given at once.
AT_ONCE = 4


@dataclass(frozen=True, eq=False)
class ArrayTable:
    """A party's table in memory; `read_table` makes it.

    Attributes
    ----------
    values : HeldColumns
        Read-only: the features in order, if any, then the label, if this party holds it. Of features that are still to
        be prepared there are only names.
    key_digest : bytes or None
        SHA-256 of the key column in row order: equal digests mean the same rows in the same order.
    weight_column : (n_rows,) array or None
        The rows' own weights, finite, non-negative, not all zero.
    split_column : (n_rows,) array of bool or None
        True where a row is to be held out.
    """

    values: HeldColumns = field(repr=False)  # rows are the owner's secret: they do not belong in a log
    feature_names: tuple[str, ...]
    label_name: str | None = None
    key_digest: bytes | None = None
    label_levels: tuple[str, ...] | None = field(default=None, kw_only=True)
    weight_column: Floats | None = field(default=None, repr=False)
    split_column: Flags | None = field(default=None, repr=False)
    keys: Keys | None = field(default=None, repr=False)
    alignment: Alignment | None = None
    unaligned: "ArrayTable | None" = field(default=None, repr=False)
    places: Rows | None = field(default=None, repr=False)  # of its rows in the table as it was read
    row_numbers: Rows | None = field(default=None, repr=False)
    preparing: Unprepared | None = field(default=None, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)  # what its owner should know
    row_weights: PerRow | None = field(default=None, init=False, repr=False)  # all rows count 1 in a table as it is

    @property
    def n_rows(self) -> int:
        """How many rows the table has."""
        return len(self.values)

    def map(self, work: Work[R], numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block, on all cores."""
        asked = range(n_blocks_of(self.n_rows)) if numbers is None else numbers
        # Some at once: to hand a block to a thread costs as much as light work on it.
        some = min(AT_ONCE, -(-len(asked) // n_cores()) or 1)
        groups = [asked[start : start + some] for start in range(0, len(asked), some)]
        return chain.from_iterable(in_threads(partial(_of_blocks, self.values, work), groups))

    def take(self, rows: Rows) -> Floats:
        """Copy rows by ids, 0 to n_rows - 1, in any order, also repeatedly: shape (k, n_columns), C-contiguous."""
        # Not np.take: it would first copy the whole column-major table.
        return np.ascontiguousarray(self.values[rows])

    @property
    def labels(self) -> "ArrayTable":
        """Give all: columns that nobody looks at cost nothing."""
        return self

    def look_through(self) -> None:
        """Do nothing: its values were looked at when they were read."""

    def key_columns(self, rows: Rows) -> Any:
        """Give the key columns of rows as they came, a `pyarrow.Table`, or None where it has no key."""
        if self.keys is None:
            return None
        return self.keys.columns.take(rows if self.places is None else self.places[rows])

    def aligned(self, alignment: Alignment) -> "ArrayTable":
        """Put the rows that all parties have into the common order, and leave out the others."""
        whole = self.unaligned or self
        if whole.keys is None:
            raise InputError("A table without a key cannot be aligned. Name its key= column.")
        order = alignment.order()
        rows = whole.keys.rows[order]
        values = whole.values.in_order(rows)
        levels = whole.label_levels and levels_left(values.column(-1), whole.label_levels)
        values.fix()
        return replace(
            whole,
            values=values,
            key_digest=alignment.fingerprint,
            alignment=alignment,
            label_levels=levels,
            weight_column=None if whole.weight_column is None else whole.weight_column[rows],
            split_column=None if whole.split_column is None else whole.split_column[rows],
            preparing=None if whole.preparing is None else whole.preparing.take(rows),
            unaligned=whole,
            places=rows,
            row_numbers=rows if alignment.numbers is None else alignment.numbers[order],
        )

    def prepared(self, fitted: bytes) -> "ArrayTable":
        """Make numbers of the columns by what was fitted, to these rows or to others."""
        # Of the whole table, so that no choice of common rows decides whether it goes.
        columns = self.preparing if self.unaligned is None else self.unaligned.preparing
        if columns is None:
            raise LocalProtocolError("These columns are numbers already.")
        names, values, notes = columns.applied(fitted, room=self.values.n_columns)
        check_columns(
            columns.party, names, largest_in_size(list(values.T[: len(names)])), lambda place: [values[:, place]]
        )
        if self.places is not None:
            values = np.take(values.T, self.places, axis=1).T  # column-major: bits of sums go by how numbers lie
        values[:, len(names) :] = self.values[:]
        prepared = HeldColumns((values,))
        prepared.fix()
        return replace(self, values=prepared, feature_names=names, preparing=None, notes=notes)


def _of_blocks(values: HeldColumns, work: Work[R], numbers: Sequence[int]) -> list[R]:
    return [work(Block(number, values[rows_of_block(number)])) for number in numbers]


def read_table(
    party: str,
    data: object,
    *,
    label: str | npt.ArrayLike | None = None,
    key: str | Sequence[str] | None = None,
    duplicates: Duplicates = "error",
    weight: str | npt.ArrayLike | None = None,
    split: str | npt.ArrayLike | None = None,
    policy: Policy | None = None,
    prepare: HowToPrepare | None = None,
    engine: Engine | None = None,
) -> ArrayTable | StreamedTable:
    """Read and check what a party holds, given as to `Party`.

    The table is a copy, in memory or in a file of its own, and later changes to `data` do not reach it, unless it stays
    in its files. Columns of an array are named "{party}_0", "{party}_1", ... Numbers are integers, floats, booleans and
    decimals; none may be missing or infinite: of a table that stays in its files that is found in the first pass over
    it, or by `look_through`. A pandas index is no column: `reset_index()` makes it one. Columns that the policy does
    not let in are not looked at.
    """
    roles, policy = Roles(label, key, weight, split, duplicates), policy or Policy(level="open")
    found = large_files.from_parquet(party, data, roles, policy, prepare, engine)
    if isinstance(found, StreamedTable):
        return found
    if found is not None:
        source = found
    elif has_names(data):
        source = from_frame(party, data, roles, policy, prepare, large_files.STREAMED_BYTES)
    else:
        source = from_array(party, data, roles, policy, prepare)
    check_columns(party, source.names, source.largest, source.column, source.integers)
    if source.weights is not None:
        check_row_weights(party, source.weights)
    if source.unprepared is not None:
        source.unprepared.check()  # what is wrong with a value is said now, not in a job
        feature_names = source.unprepared.names
    else:
        feature_names = source.names if source.label_name is None else source.names[:-1]
    values = source.values
    if isinstance(values, SpooledRows):
        return StreamedTable(
            values,
            feature_names,
            source.label_name,
            source.weights,
            source.held_out,
            source.notes,
            key_digest=source.key_digest,
            keys=source.keys,
            preparing=source.unprepared,
            label_levels=source.label_levels,
        )
    values.fix()
    return ArrayTable(
        values,
        feature_names,
        source.label_name,
        source.key_digest,
        source.weights,
        source.held_out,
        source.keys,
        label_levels=source.label_levels,
        notes=source.notes,
        preparing=source.unprepared,
    )
