"""A model applied window by window: how a party computes what is made of a window's rows.

Where numbers are rounded, each window tells its range.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np

from colonnade.errors import PolicyRefusedError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import Block
from colonnade.kernels.selections import CountedRows, Window
from colonnade.messages import Message
from colonnade.protocol.session import PartyData, PartyState
from colonnade.protocol.windows import check_window

# What is made of rows, shape (b, c): a number each, or more. It may be done on other machines.
OfRows = Callable[[Floats], Floats]


def of_window(state: PartyState, request: Message, window: Window, data: PartyData, work: OfRows) -> Floats:
    """Give what `work` makes of the selected rows of a window, if its owner lets those of all windows be told."""
    check_window(state, request, window)
    if objection := data.policy.objection_to_rows(request.reply or type(request), len(state.selection())):
        raise PolicyRefusedError(f"{objection}.", party=data.name)
    return made_of_window(state, window, data, work)


def made_of_window(state: PartyState, window: Window, data: PartyData, work: OfRows) -> Floats:
    """Give what `work` makes of the selected rows of a window, which was checked."""
    rows = state.selection()
    if not isinstance(rows, CountedRows):
        return work(data.table.take(rows[window.places]))
    return _of_blocks(data, work, window)


def of_selected(state: PartyState, data: PartyData, work: OfRows) -> Floats:
    """Give what `work` makes of all selected rows."""
    rows = state.selection()
    if not isinstance(rows, CountedRows):
        return work(data.table.take(rows))
    return _of_blocks(data, work, Window(0, rows.n_rows, 1))


def _of_blocks(data: PartyData, work: OfRows, window: Window) -> Floats:
    """Put what is made of blocks into one array as it comes, while it is in the cache; of one block, as it is."""
    found, filled = None, 0
    parts = data.table.map(partial(_of_counted, work), window.blocks)
    if len(window.blocks) == 1:
        (part,) = parts  # to its end: who reads on goes on from there
        return part
    for part in parts:
        if found is None:  # which lies in memory as its parts do
            order: Literal["C", "F"] = "C" if part.flags.c_contiguous else "F"
            found = np.empty((window.stop - window.first, *part.shape[1:]), order=order)
        found[filled : filled + len(part)] = part
        filled += len(part)
    if found is None:  # there are no rows
        found = work(np.empty((0, len(data.table.feature_names) + (data.table.label_name is not None))))
    return found[:filled]


def _of_counted(work: OfRows, block: Block) -> Floats:
    """Take no row that counts nothing."""
    return work(block.values if block.weights is None else block.values[block.weights > 0])
