"""A party's table as a job looks at it: some rows count otherwise, columns are in other units."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from colonnade.contracts import Alignment, Keys, Preparing, Table
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.kernels.blocks import Block, Work
from colonnade.kernels.per_row import PerRow

R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class ViewedTable:
    """A table whose features enter as (value - shift) / scale, or as they are; its label stays as it is."""

    base: Table
    row_weights: PerRow | None = field(repr=False)
    shift: Floats | None = field(repr=False)
    scale: Floats | None = field(repr=False)

    @property
    def n_rows(self) -> int:
        """As in the base."""
        return self.base.n_rows

    @property
    def feature_names(self) -> tuple[str, ...]:
        """As in the base."""
        return self.base.feature_names

    @property
    def label_name(self) -> str | None:
        """As in the base."""
        return self.base.label_name

    @property
    def label_levels(self) -> tuple[str, ...] | None:
        """As in the base."""
        return self.base.label_levels

    @property
    def labels(self) -> "ViewedTable":
        """Give those of the base, which are in no other units; other columns may come with them, as they are."""
        return ViewedTable(self.base.labels, self.row_weights, None, None)

    @property
    def key_digest(self) -> bytes | None:
        """As in the base."""
        return self.base.key_digest

    @property
    def keys(self) -> Keys | None:
        """As in the base."""
        return self.base.keys

    def key_columns(self, rows: Rows) -> Any:
        """As in the base."""
        return self.base.key_columns(rows)

    @property
    def row_numbers(self) -> Rows | None:
        """As in the base."""
        return self.base.row_numbers

    @property
    def alignment(self) -> Alignment | None:
        """As in the base."""
        return self.base.alignment

    def aligned(self, alignment: Alignment) -> Table:
        """Align the base: a run looks at a table only after that."""
        return self.base.aligned(alignment)

    @property
    def preparing(self) -> Preparing | None:
        """As in the base."""
        return self.base.preparing

    def prepared(self, fitted: bytes) -> Table:
        """Prepare the base: a run looks at a table only after that."""
        return self.base.prepared(fitted)

    @property
    def notes(self) -> tuple[str, ...]:
        """As in the base."""
        return self.base.notes

    @property
    def weight_column(self) -> Floats | None:
        """As in the base."""
        return self.base.weight_column

    @property
    def split_column(self) -> Flags | None:
        """As in the base."""
        return self.base.split_column

    def map(self, work: Work[R], numbers: Sequence[int] | None = None) -> Iterator[R]:
        """Give what `work` makes of each block, in these units and with these weights."""
        return self.base.map(partial(_viewed, work, self.row_weights, self.shift, self.scale), numbers)

    def take(self, rows: Rows) -> Floats:
        """Copy the given rows (they may repeat), C-contiguous, columns as in blocks."""
        return np.ascontiguousarray(_rescaled(self.base.take(rows), self.shift, self.scale))


def _viewed(work: Work[R], weights: PerRow | None, shift: Floats | None, scale: Floats | None, block: Block) -> R:
    own = None if weights is None else weights.block(block.number)
    return work(Block(block.number, _rescaled(block.values, shift, scale), own))


def _rescaled(values: Floats, shift: Floats | None, scale: Floats | None) -> Floats:
    if shift is None or scale is None:
        return values
    n_features = len(scale)
    rescaled = np.empty_like(values)  # in the same order
    rescaled[:, :n_features] = (values[:, :n_features] - shift) / scale
    rescaled[:, n_features:] = values[:, n_features:]
    return rescaled
