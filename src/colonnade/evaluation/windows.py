"""A model applied window by window: how a party computes what is made of a window's rows.

Where numbers are rounded, each window tells its range.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS, Block, counted_values
from colonnade.kernels.selections import CountedRows, Window
from colonnade.messages import Message
from colonnade.protocol.session import PartyData, PartyState
from colonnade.protocol.windows import judge_window

Number = TypeVar("Number", bound=np.generic)
# What is made of rows, shape (b, c): a number each, or more. It may be done on other machines.
OfRows = Callable[[Floats], npt.NDArray[Number]]


@dataclass(frozen=True, eq=False)
class Filling:
    """Work that puts what it makes of rows, numbers of this shape each, where it is told to, or into memory of its own.

    What is made of many blocks need not be copied together.
    """

    make: Callable[[Floats, Floats | None], Floats]
    shape: tuple[int, ...]

    def __call__(self, values: Floats) -> Floats:
        """Make it of rows, shape (b, c)."""
        return self.make(values, None)


def of_window(state: PartyState, request: Message, window: Window, data: PartyData, work: OfRows[np.float64]) -> Floats:
    """Give what `work` makes of the selected rows of a window, if its owner lets those of all windows be told."""
    judge_window(state, request, window, data)
    return made_of_window(state, window, data, work)


def made_of_window(state: PartyState, window: Window, data: PartyData, work: OfRows[np.float64]) -> Floats:
    """Give what `work` makes of the selected rows of a window, which was checked."""
    rows = state.selection()
    if not isinstance(rows, CountedRows):
        return work(data.table.take(rows[window.places]))
    if isinstance(work, Filling) and data.table.row_weights is None and len(window.blocks) > 1:
        return _filled(data, work, window)
    return _of_blocks(data, work, window)


def _of_blocks(data: PartyData, work: OfRows[Number], window: Window) -> npt.NDArray[Number]:
    """Put what is made of blocks into one array as it comes, while it is in the cache; of one block, as it is."""
    found: npt.NDArray[Number] | None = None
    filled = 0
    parts = data.table.map(partial(_of_counted, work), window.blocks)
    if len(window.blocks) == 1:
        (part,) = parts  # to its end: who reads on goes on from there
        return part
    for part in parts:
        if found is None:  # which lies in memory as its parts do
            order: Literal["C", "F"] = "C" if part.flags.c_contiguous else "F"
            found = np.empty((window.stop - window.first, *part.shape[1:]), part.dtype, order)
        found[filled : filled + len(part)] = part
        filled += len(part)
    if found is None:  # there are no rows
        found = work(np.empty((0, len(data.table.feature_names) + (data.table.label_name is not None))))
    return found[:filled]


def _of_counted(work: OfRows[Number], block: Block) -> npt.NDArray[Number]:
    """Take no row that counts nothing."""
    return work(counted_values(block))


def _filled(data: PartyData, work: Filling, window: Window) -> Floats:
    """Have blocks put into one array, where they are worked on here."""
    found, filled = np.empty((window.stop - window.first, *work.shape)), 0
    for part in data.table.map(partial(_fill, work.make, _Room(found, window.first)), window.blocks):
        if part.base is not found:
            found[filled : filled + len(part)] = part
        filled += len(part)
    return found


class _Room:
    """Memory for what is made of rows, from the first one on; it does not go along to other machines."""

    def __init__(self, numbers: Floats | None = None, first: int = 0) -> None:
        self._numbers, self._first = numbers, first

    def of(self, block: Block) -> Floats | None:
        """Give the place of a block's rows, if there is any."""
        if self._numbers is None:
            return None
        start = block.number * BLOCK_ROWS - self._first
        return self._numbers[start : start + len(block.values)]

    def __reduce__(self) -> tuple[type["_Room"], tuple[()]]:
        return _Room, ()


def _fill(make: Callable[[Floats, Floats | None], Floats], room: _Room, block: Block) -> Floats:
    return make(block.values, room.of(block))
