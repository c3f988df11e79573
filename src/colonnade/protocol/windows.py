"""Many rows in windows: what a party expects of a server that asks, or brings, window after window.

Every window comes once, in order, and is as long as the job sheet and the model say: so a server is told, and tells,
what one question for all rows would.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from colonnade.errors import InputError, PolicyRefusedError
from colonnade.kernels.selections import CountedRows, Window
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message
from colonnade.protocol import checks
from colonnade.protocol.session import PartyData, PartySession, PartyState
from colonnade.routes import END, Ask, Route

P = TypeVar("P")


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
    """One request a window, each once and in their order; all of the kind that the first is of.

    Where a party may lose what it keeps in between, an honest server stops after any, to begin anew.
    """

    n_places: int
    ways: tuple[Ask, ...]
    n_numbers: int | None = None
    first: int = 0
    may_stop: bool = False

    def after(self, request: Message) -> Route | None:
        """Expect the next window, if this is the one that was due."""
        for way in self.ways:
            if way.after(request) is not None:
                window: Window = request.window  # type: ignore[attr-defined]  # all these kinds have one
                if self._next(window):
                    if window.stop >= self.n_places:
                        return END
                    return replace(self, ways=(way,), first=window.stop)
        return None

    def next_asks(self) -> Iterator[Ask]:
        """List what may come next."""
        return map(self._due, self.ways)

    def _due(self, way: Ask) -> Ask:
        return Ask(way.kind, window=self._next, **way.fields)

    @property
    def _next(self) -> NextWindow:
        return NextWindow(self.first, self.n_places, self.n_numbers)

    asks = next_asks

    @property
    def can_end(self) -> bool:
        """No: windows are due, but where they may be lost."""
        return self.may_stop and self.first > 0


def windows_due(session: PartySession, request: Message) -> Fraction:
    """Say how many times as much as the first window that tells of a row all windows of a question are.

    It is 1 of anything else. The request was answered: its window is one that was due.
    """
    window, rows = getattr(request, "window", None), session.state.rows
    if not isinstance(window, Window):
        return Fraction(1)
    # A column of another party says which rows count, and may leave windows without any.
    first = rows.first if isinstance(rows, CountedRows) else 0
    if not window.first <= first < window.stop:
        return Fraction(1)
    n_rows = session.n_rows if rows is None else len(rows)
    return Fraction(n_rows, window.stop if rows is None else n_selected_in(session.state, window))


def check_window(state: PartyState, request: Message, window: Window) -> None:
    """Require one of the windows that the selected rows are cut into."""
    if not window.is_of(state.n_places):
        raise checks.wrong(SERVER, request, f"a window of rows {window.first} to {window.stop}, of {state.n_places:,}")


def judge_window(state: PartyState, request: Message, window: Window, data: PartyData) -> None:
    """Require such a window, and that its owner lets the selected rows of all windows together be told."""
    check_window(state, request, window)
    if objection := data.policy.objection_to_rows(request.reply or type(request), len(state.selection())):
        raise PolicyRefusedError(f"{objection}.", party=data.name)


def check_kept(state: PartyState, n_numbers: int) -> None:
    """Refuse to keep so many numbers of each selected row, where one message could not bring them: a number may."""
    n_rows = len(state.selection())
    if n_rows * n_numbers > max(MAX_NUMBERS, n_rows):
        raise InputError(
            f"{n_numbers:,} numbers of {n_rows:,} rows would be kept, and {MAX_NUMBERS:,} are the most. Use fewer rows."
        )


def most_that_fit(n_numbers: int) -> int:
    """Say of how many rows one message holds so many numbers each."""
    return MAX_NUMBERS // n_numbers


def check_fits(state: PartyState, n_numbers: int) -> None:
    """Refuse so many numbers of each selected row where one message does not hold them; nothing is listed before."""
    most, n_rows = most_that_fit(n_numbers), len(state.selection())
    if n_rows > most:
        raise InputError(
            f"{n_rows:,} rows do not fit one message, which has {most:,} of {n_numbers:,} numbers. "
            "Use a coreset or a smaller size; all rows go by Central(), in windows."
        )


def n_selected_in(state: PartyState, window: Window) -> int:
    """Count the selected rows of a window."""
    rows = state.selection()
    return rows.n_in(window) if isinstance(rows, CountedRows) else window.stop - window.first


@dataclass(frozen=True, eq=False)
class Arrived(Generic[P]):
    """What a server has brought of windows up to a place, a part each, until all are there; `what` says of what."""

    what: object
    stop: int = 0
    parts: tuple[P, ...] = ()

    def __repr__(self) -> str:
        return "Arrived(not shown)"


def arrived(before: object, what: object, request: Message, window: Window, part: P) -> Arrived[P]:
    """Put what came of a window beside what came before, if it is the next; a first one begins anew."""
    return Arrived(what, window.stop, (*arrived_before(before, what, request, window), part))


def arrived_before(before: object, what: object, request: Message, window: Window) -> tuple[Any, ...]:
    """Give what came before a window, if it is the next; before a first one, nothing."""
    is_same = isinstance(before, Arrived) and before.what == what
    earlier: Arrived[Any] = before if is_same and window.first else Arrived(what)  # type: ignore[assignment]
    if earlier.stop != window.first:
        raise checks.wrong(SERVER, request, f"rows from {window.first} on, where {earlier.stop} would be next")
    return earlier.parts


def joined(parts: tuple[npt.NDArray[Any], ...]) -> npt.NDArray[Any]:
    """Put windows' arrays one after another; there is one at least."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
