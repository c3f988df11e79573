"""Columns in memory, of 32 or 64 bits as they came; whoever reads rows of them has 64."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats, Rows

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)
AnyColumn = npt.NDArray[Any]
Kind = np.dtype[Any]


@dataclass(frozen=True, eq=False)
class HeldColumns:
    """Columns side by side: `parts` are column-major arrays of shape (n_rows, c), float64 or float32 each."""

    parts: tuple[AnyColumn, ...] = field(repr=False)  # rows are the owner's secret: they do not belong in a log

    @classmethod
    def empty(cls, n_rows: int, kinds: Sequence[Kind]) -> Self:
        """Make room for columns of these kinds."""
        widths = [(kind, len(list(run))) for kind, run in groupby(kinds)] or [(DOUBLE, 0)]
        return cls(tuple(np.empty((n_rows, width), kind, order="F") for kind, width in widths))

    def __len__(self) -> int:
        return len(self.parts[0])

    @property
    def n_columns(self) -> int:
        """How many columns."""
        return sum(part.shape[1] for part in self.parts)

    def __getitem__(self, rows: slice | Rows) -> Floats:
        """Give rows as float64, shape (k, n_columns): a view where all are that and rows follow each other."""
        if len(self.parts) == 1 and self.parts[0].dtype == DOUBLE:
            return self.parts[0][rows]
        n_rows = len(range(*rows.indices(len(self)))) if isinstance(rows, slice) else len(rows)
        values, first = np.empty((n_rows, self.n_columns), order="F"), 0
        for part in self.parts:
            values[:, first : first + part.shape[1]] = part[rows]
            first += part.shape[1]
        return values

    def column(self, place: int) -> AnyColumn:
        """Give one column as it is held, a view."""
        return self.columns()[place]

    def columns(self) -> list[AnyColumn]:
        """Give every column as it is held, views."""
        return [column for part in self.parts for column in part.T]

    def first(self, n_columns: int) -> "HeldColumns":
        """Give the first columns, views."""
        kept, left = [], n_columns
        for part in self.parts:
            kept.append(part[:, :left])
            left -= kept[-1].shape[1]
        return HeldColumns(tuple(part for part in kept if part.shape[1]) or (self.parts[0][:, :0].astype(DOUBLE),))

    def in_order(self, rows: Rows) -> "HeldColumns":
        """Copy rows, in any order."""
        return HeldColumns(tuple(np.asfortranarray(part[rows]) for part in self.parts))

    def fix(self) -> None:
        """Let nobody write to them any more."""
        for part in self.parts:
            part.setflags(write=False)


def kind_of(kind: npt.DTypeLike) -> Kind:
    """Say as what numbers of a type are held: in 32 bits only where that loses nothing."""
    return SINGLE if np.can_cast(kind, SINGLE) else DOUBLE
