"""Which rows a model is applied to, and the windows in which numbers of them travel.

All rows that count are never listed: a window of them is so many consecutive rows of the table, of which those that
count are told. Rows that were drawn or chosen are listed, and a window is so many places of the list.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import BLOCK_ROWS, n_blocks_of, rows_of_block
from colonnade.kernels.per_row import PerRow

# Of one window at most, unless a block has more: 2 MB, small at both ends, and a round costs little beside it.
WINDOW_NUMBERS = 1 << 18


class Window(NamedTuple):
    """Consecutive rows of a table, or places of a list, of which a party tells so many numbers each."""

    first: int
    stop: int
    n_numbers: int

    @classmethod
    def at(cls, first: int, n_places: int, n_numbers: int) -> "Window":
        """Give the window that begins there, of all places: whole blocks, but for the last."""
        return cls(first, min(first + _places_in_whole(n_numbers), n_places), n_numbers)

    def is_of(self, n_places: int) -> bool:
        """Tell whether it is one of those that so many places are cut into."""
        whole = _places_in_whole(self.n_numbers)
        begins = self.first % whole == 0 and (0 <= self.first < n_places or self.first == 0)
        return begins and self.stop == min(self.first + whole, n_places)

    @property
    def places(self) -> slice:
        """Where they are."""
        return slice(self.first, self.stop)

    @property
    def blocks(self) -> range:
        """The numbers of the blocks that they are in."""
        return range(self.first // BLOCK_ROWS, n_blocks_of(self.stop))


def _places_in_whole(n_numbers: int) -> int:
    """Say of how many places a window is that is not the last: of whole blocks."""
    return max(WINDOW_NUMBERS // (BLOCK_ROWS * max(n_numbers, 1)), 1) * BLOCK_ROWS


def windows_of(n_places: int, n_numbers: int) -> Iterator[Window]:
    """Cut so many places into windows, from the first on; none are one window, too."""
    first, stop = 0, -1
    while first < n_places or stop < 0:
        window = Window.at(first, n_places, n_numbers)
        yield window
        first = stop = window.stop


def last_window(n_places: int, n_numbers: int) -> Window:
    """Give the last of the windows that so many places are cut into."""
    whole = _places_in_whole(n_numbers)
    return Window.at(max(n_places - 1, 0) // whole * whole, n_places, n_numbers)


@dataclass(frozen=True, eq=False)
class Piece:
    """A window, and which of the selected rows are in it; what these count, or None where all count 1."""

    window: Window
    n_before: int
    n_rows: int
    weights: Floats | None

    def __len__(self) -> int:
        return self.n_rows

    @property
    def chosen(self) -> slice:
        """Where they are among the selected rows."""
        return slice(self.n_before, self.n_before + self.n_rows)


@dataclass(frozen=True, eq=False)
class CountedRows:
    """All rows of a table that count, in their order; all rows where there are no weights."""

    n_rows: int
    row_weights: PerRow | None = None

    def __len__(self) -> int:
        return self.n_rows if self.row_weights is None else self.row_weights.n_positive

    @property
    def n_distinct(self) -> int:
        """How many different ones there are: all."""
        return len(self)

    @property
    def n_places(self) -> int:
        """How many places windows are cut from: the rows of the table."""
        return self.n_rows

    @property
    def first(self) -> int:
        """The first of them."""
        return 0 if self.row_weights is None else self.row_weights.first_positive

    @property
    def weight(self) -> float:
        """What they count together."""
        return float(self.n_rows) if self.row_weights is None else self.row_weights.sum()

    @property
    def squared_weight(self) -> float:
        """The sum of the squares of what each counts."""
        return float(self.n_rows) if self.row_weights is None else self.row_weights.sum_of_squares()

    @property
    def least_weight(self) -> float:
        """What the one counts that counts least."""
        return 1.0 if self.row_weights is None else self.row_weights.least_positive()

    @property
    def largest_weight(self) -> float:
        """What the one counts that counts most."""
        return 1.0 if self.row_weights is None else self.row_weights.max()

    @property
    def weights(self) -> Floats:
        """The list of what each counts, for work that needs one."""
        return np.ones(self.n_rows) if self.row_weights is None else self.row_weights.positive()

    @cached_property
    def ids(self) -> Rows:
        """The list of them, for work that needs one."""
        return np.arange(self.n_rows) if self.row_weights is None else self.row_weights.positive_rows()

    def by_block(self) -> Iterator[Rows]:
        """List them block by block."""
        for number in range(n_blocks_of(self.n_rows)):
            rows = rows_of_block(number)
            here = np.arange(rows.start, min(rows.stop, self.n_rows))
            yield here if self.row_weights is None else here[self.row_weights.block(number) > 0]

    def n_in(self, window: Window) -> int:
        """Count those of a window."""
        weights = self.weights_in(window)
        return window.stop - window.first if weights is None else len(weights)

    def pieces(self, n_numbers: int) -> Iterator[Piece]:
        """Cut them into windows, of which so many numbers a row are told."""
        before = 0
        for window in windows_of(self.n_rows, n_numbers):
            weights = self.weights_in(window)
            n_rows = window.stop - window.first if weights is None else len(weights)
            yield Piece(window, before, n_rows, weights)
            before += n_rows

    def weights_in(self, window: Window) -> Floats | None:
        """Give what those of a window count, or None where all count 1."""
        if self.row_weights is None:
            return None
        weights = np.concatenate([np.empty(0), *(self.row_weights.block(number) for number in window.blocks)])
        return weights[weights > 0]


@dataclass(frozen=True, eq=False)
class ListedRows:
    """Rows that are listed, ascending, also repeatedly; with weights, or None where all count 1; both of shape (m,)."""

    rows: Rows
    weights: Floats | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_places(self) -> int:
        """How many places windows are cut from: those of the list."""
        return len(self.rows)

    @property
    def weight(self) -> float:
        """What they count together."""
        return float(len(self.rows)) if self.weights is None else float(self.weights.sum())

    @property
    def squared_weight(self) -> float:
        """The sum of the squares of what each counts."""
        return float(len(self.rows)) if self.weights is None else float(np.square(self.weights).sum())

    @property
    def least_weight(self) -> float:
        """What the one counts that counts least, of those that count at all."""
        return 1.0 if self.weights is None else float(self.weights[self.weights > 0].min())

    @property
    def largest_weight(self) -> float:
        """What the one counts that counts most."""
        return 1.0 if self.weights is None else float(self.weights.max())

    def pieces(self, n_numbers: int) -> Iterator[Piece]:
        """Cut them into windows, of which so many numbers a row are told."""
        for window in windows_of(len(self.rows), n_numbers):
            weights = None if self.weights is None else self.weights[window.places]
            yield Piece(window, window.first, window.stop - window.first, weights)


Selection = CountedRows | ListedRows
