"""A model applied window by window: what a party expects of a server that asks so, and how it computes a window.

Every window is asked for once, in order, and is as long as the job sheet and the model say: so the numbers that a
server is told are those that one question for all rows would tell. Where they are rounded, each window tells its range.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from colonnade.errors import PolicyRefusedError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import Block
from colonnade.kernels.selections import CountedRows, Window
from colonnade.ledger import SERVER
from colonnade.messages import Message
from colonnade.protocol import checks
from colonnade.protocol.session import PartyData, PartyState
from colonnade.routes import END, Ask, Route

# What is made of rows, shape (b, c): a number each, or more. It may be done on other machines.
OfRows = Callable[[Floats], Floats]


@dataclass(frozen=True)
class NextWindow:
    """The window that begins there, of so many places; of any number of numbers a row, or of just this."""

    first: int
    n_places: int
    n_numbers: int | None = None

    def __call__(self, window: Window) -> bool:
        """Tell whether this is it."""
        due = Window.at(self.first, self.n_places, window.n_numbers)
        return window == due and self.n_numbers in (None, window.n_numbers)

    def __str__(self) -> str:
        return f"the window from {self.first:,} on of {self.n_places:,} rows"


@dataclass(frozen=True)
class Windows(Route):
    """One request a window, each once and in their order; all of the kind that the first is of."""

    n_places: int
    ways: tuple[Ask, ...]
    n_numbers: int | None = None
    first: int = 0

    def after(self, request: Message) -> Route | None:
        """Expect the next window, if this is the one that was due."""
        for way, ask in zip(self.ways, self.next_asks(), strict=True):
            if ask.after(request) is not None:
                stop: int = request.window.stop  # type: ignore[attr-defined]  # all these kinds have one
                return END if stop >= self.n_places else Windows(self.n_places, (way,), self.n_numbers, stop)
        return None

    def next_asks(self) -> Iterator[Ask]:
        """List what may come next."""
        due = NextWindow(self.first, self.n_places, self.n_numbers)
        return (Ask(way.kind, window=due, **way.fields) for way in self.ways)

    asks = next_asks

    @property
    def can_end(self) -> bool:
        """No: windows are due."""
        return False


def windows_due(state: PartyState, request: Message) -> float:
    """Say how many times as much as the first window of a question all of its windows are; 1 of anything else."""
    window = getattr(request, "window", None)
    if not isinstance(window, Window) or window.first or not window.stop:
        return 1.0
    rows = state.selection()
    return max((rows.n_rows if isinstance(rows, CountedRows) else len(rows)) / window.stop, 1.0)


def check_window(state: PartyState, request: Message, window: Window) -> None:
    """Require one of the windows that the selected rows are cut into."""
    rows = state.selection()
    n_places = rows.n_rows if isinstance(rows, CountedRows) else len(rows)
    if not window.is_of(n_places):
        raise checks.wrong(SERVER, request, f"a window of rows {window.first} to {window.stop}, of {n_places:,}")


def of_window(state: PartyState, request: Message, window: Window, data: PartyData, work: OfRows) -> Floats:
    """Give what `work` makes of the selected rows of a window, if its owner lets those of all windows be told."""
    check_window(state, request, window)
    rows = state.selection()
    if objection := data.policy.objection_to_rows(request.reply or type(request), len(rows)):
        raise PolicyRefusedError(f"{objection}.", party=data.name)
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
    for part in data.table.map(partial(_of_counted, work), window.blocks):
        if len(window.blocks) == 1:
            return part
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
