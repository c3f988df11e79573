"""A job's view: which rows count, how much, and in which units columns enter. Played only where a job asks for it.

A row weighs 1, or what one party's column of weights says, and 0 where it is held out. All parties must know these
weights: scores of columns whose rows weigh otherwise bound nothing. Scaling is each party's own affair; it tells its
means and deviations, so that the model can be told in the columns' own units.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, cast

import numpy as np
from msgspec.structs import replace as replace_struct

from colonnade.contracts import JobView, PartyCard, Roster, Scaling, Script, Table, View
from colonnade.errors import InputError, PolicyRefusedError
from colonnade.kernels.arrays import Flags, Floats
from colonnade.kernels.moments import centre_and_spread
from colonnade.kernels.per_row import PerRow
from colonnade.kernels.selections import Window, last_window, windows_of
from colonnade.ledger import SERVER
from colonnade.messages import MIN_MAGNITUDE, Message, Reveals, sendable_flags, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import GREETED, Handler, PartyData, PartyState
from colonnade.protocol.splits import AnySplit, Side, SplitBy, counted
from colonnade.protocol.sums import alike_by, check_view
from colonnade.protocol.viewed_table import ViewedTable
from colonnade.protocol.windows import Windows, arrived, joined
from colonnade.routes import END, Ask, Route, then
from colonnade.signing import SignedMarks, SignedWeights, marks_statement, weights_statement


class Split(Message, frozen=True):
    """Which rows of a window the party's column marks, signed."""

    phase: ClassVar[str] = "framing"

    held_out: Annotated[Flags, Reveals.ROW_IDS]
    signature: Annotated[bytes, Reveals.NOTHING]

    def rows_of(self, kinds: Container[Reveals]) -> int:  # noqa: ARG002  # none of any kind
        """Count none: they were not drawn by scores, and are the same each time."""
        return 0


class AskSplit(Message, frozen=True):
    """Tell which rows of a window to hold out."""

    phase: ClassVar[str] = "framing"
    reply: ClassVar[type[Message]] = Split

    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]

    @property
    def window(self) -> Window:
        """Which rows."""
        return Window(self.first, self.stop, 1)


class RowWeights(Message, frozen=True):
    """The weight of every row of a window, signed."""

    phase: ClassVar[str] = "framing"

    weights: Annotated[Floats, Reveals.ROW_WEIGHTS]
    signature: Annotated[bytes, Reveals.NOTHING]


class AskRowWeights(Message, frozen=True):
    """Tell the weights of a window's rows."""

    phase: ClassVar[str] = "framing"
    reply: ClassVar[type[Message]] = RowWeights

    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]

    @property
    def window(self) -> Window:
        """Which rows."""
        return Window(self.first, self.stop, 1)


class Moments(Message, frozen=True):
    """Means and standard deviations of the party's features, over the rows that count, where columns are rescaled."""

    phase: ClassVar[str] = "framing"

    shift: Annotated[Floats | None, Reveals.MOMENTS]
    scale: Annotated[Floats | None, Reveals.MOMENTS]


class BringColumns(Message, frozen=True):
    """A window, but the last, of what other parties told, signed by them: rows to hold out, and row weights.

    No moments come before the last.
    """

    phase: ClassVar[str] = "framing"
    reply: ClassVar[type[Message]] = Moments

    held_out: Annotated[SignedMarks | None, Reveals.ROW_IDS]
    weights: Annotated[SignedWeights | None, Reveals.ROW_WEIGHTS]
    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]

    @property
    def window(self) -> Window:
        """Which rows."""
        return Window(self.first, self.stop, 1)


class UseFrame(Message, frozen=True):
    """Look at your table so until the next job. What a party told itself is not sent back to it.

    `split` holds out a fraction, or, by its own column, what the party told; `held_out` what another party did. That
    and weights are signed by the party they come from, and are of the last window: the others were brought before.
    """

    phase: ClassVar[str] = "framing"
    reply: ClassVar[type[Message]] = Moments

    side: Annotated[Side, Reveals.NOTHING]
    scaling: Annotated[Scaling, Reveals.NOTHING]
    split: Annotated[AnySplit | None, Reveals.NOTHING]
    held_out: Annotated[SignedMarks | None, Reveals.ROW_IDS]
    weights: Annotated[SignedWeights | None, Reveals.ROW_WEIGHTS]

    def of(self, table: Table) -> ViewedTable:
        """Show a table so."""
        own = table.split_column if isinstance(self.split, SplitBy) else None
        marked = own if self.held_out is None else self.held_out.marks
        weights = table.weight_column if self.weights is None else self.weights.weights
        row_weights = counted(table.n_rows, self.side, self.split, marked, weights)
        return ViewedTable(table, row_weights, *_moments(table, self.scaling, row_weights))

    def equals(self, other: View) -> bool:
        """Compare, arrays by their values; a signature is of one job, and shows nothing of a table."""
        if not isinstance(other, UseFrame):
            return False
        ours, theirs = ((each.side, each.scaling, each.split) for each in (self, other))
        return ours == theirs and all(map(_are_equal, self.columns, other.columns))

    @property
    def columns(self) -> "Columns":
        """What other parties told."""
        return self.held_out, self.weights


Columns = tuple[SignedMarks | None, SignedWeights | None]


def _are_equal(ours: SignedMarks | SignedWeights | None, theirs: SignedMarks | SignedWeights | None) -> bool:
    """Compare columns; who signed them, and for which job, apart."""
    if ours is None or theirs is None:
        return ours is theirs
    return ours.party == theirs.party and np.array_equal(_numbers(ours), _numbers(theirs))


def _numbers(column: SignedMarks | SignedWeights) -> Floats | Flags:
    return column.marks if isinstance(column, SignedMarks) else column.weights


def agree_on_view(roster: Roster, split: AnySplit | None, side: Side, scaling: Scaling) -> Script[JobView]:
    """Let all parties look at their tables alike, and learn what the server must know of it.

    Of a split, either the rows held out count or the others. Nothing is sent where all rows count 1 in their own units.
    """
    if split is None and roster.weight_party is None and scaling == "own":
        return JobView()
    marked = (yield from _ask_split(roster, split.party)) if isinstance(split, SplitBy) else []
    weights, whole = (yield from _ask_weights(roster, roster.weight_party)) if roster.weight_party else ([], None)
    row_weights = counted(
        roster.n_rows,
        side,
        split,
        joined(tuple(each.marks for each in marked)) if marked else None,
        whole,
    )
    windows = list(windows_of(roster.n_rows, 1))
    for place, window in enumerate(windows[:-1]):
        brought = {card.name: _told_to(card.name, marked, weights, place) for card in roster.cards}
        outbox = {
            party: BringColumns(*columns, window.first, window.stop)
            for party, columns in brought.items()
            if any(columns)
        }
        if outbox:
            checks.replies((yield outbox), Moments)
    inbox = yield {
        card.name: UseFrame(side, scaling, split, *_told_to(card.name, marked, weights, -1)) for card in roster.cards
    }
    return _read_moments(checks.replies(inbox, Moments), roster, scaling, row_weights)


def view_route(split: AnySplit | None, side: Side, scaling: Scaling, roster: Roster, party: str) -> Route:
    """Say what a party is asked by `agree_on_view`."""
    if split is None and roster.weight_party is None and scaling == "own":
        return END
    n_rows = roster.n_rows
    own = [Windows(n_rows, (Ask(AskSplit),), 1)] if isinstance(split, SplitBy) and split.party == party else []
    weighs = [Windows(n_rows, (Ask(AskRowWeights),), 1)] if roster.weight_party == party else []
    marks_of = split.party if isinstance(split, SplitBy) and split.party != party else None
    weights_of = roster.weight_party if roster.weight_party != party else None
    columns = {"held_out": _SignedBy(marks_of), "weights": _SignedBy(weights_of)}
    before = last_window(roster.n_rows, 1).first if marks_of or weights_of else 0
    brought = Windows(before, (Ask(BringColumns, **columns),), 1) if before else END
    return then(*own, *weighs, brought, Ask(UseFrame, side=side, scaling=scaling, split=split, **columns))


@dataclass(frozen=True)
class _SignedBy:
    """A column of this party's, or none where the job has none, or none of another's."""

    party: str | None

    def __call__(self, column: object) -> bool:
        if column is None:
            return self.party is None
        return isinstance(column, SignedMarks | SignedWeights) and column.party == self.party

    def __str__(self) -> str:
        return "nothing" if self.party is None else f"a column of {self.party}"


def check_split(split: AnySplit | None, roster: Roster) -> None:
    """Require that a split is by a column that there is."""
    able = [card.name for card in roster.cards if card.has_split]
    if isinstance(split, SplitBy) and split.party not in able:
        raise InputError(
            f"Party {split.party!r} has no column to split by; parties that have one: {', '.join(able) or 'none'}. "
            "Name it at the party: Party(name, data, split='column')."
        )


def _told_to(party: str, marked: list[SignedMarks], weights: list[SignedWeights], place: int) -> Columns:
    """Give a party what others told of a window; what it told itself is not sent back to it."""
    columns = (column[place] if column and column[place].party != party else None for column in (marked, weights))
    return cast(Columns, tuple(columns))


def _ask_split(roster: Roster, party: str) -> Script[list[SignedMarks]]:
    told = []
    for window in windows_of(roster.n_rows, 1):
        inbox = yield {party: AskSplit(window.first, window.stop)}
        reply = checks.replies(inbox, Split)[party]
        checks.shape(party, reply, reply.held_out, (window.stop - window.first,))
        told.append(SignedMarks(party, reply.held_out, reply.signature))
    return told


def _ask_weights(roster: Roster, party: str) -> Script[tuple[list[SignedWeights], Floats]]:
    """Ask for the column window by window; it is held once, and windows of it are what other parties are told."""
    told, whole, largest = [], np.empty(roster.n_rows), 0.0
    for window in windows_of(roster.n_rows, 1):
        inbox = yield {party: AskRowWeights(window.first, window.stop)}
        reply = checks.replies(inbox, RowWeights)[party]
        checks.shape(party, reply, reply.weights, (window.stop - window.first,))
        checks.non_negative(party, reply, reply.weights)
        largest = max(largest, float(reply.weights.max()))
        whole[window.places] = reply.weights
        told.append(SignedWeights(party, whole[window.places], reply.signature))
    _check_largest(party, reply, largest)
    return told, whole


def _check_largest(sender: str, message: Message, largest: float) -> None:
    if largest < MIN_MAGNITUDE:
        raise checks.wrong(sender, message, "weights that are all zero, or nearly")


def _read_moments(
    replies: Mapping[str, Moments], roster: Roster, scaling: Scaling, row_weights: PerRow | None
) -> JobView:
    if scaling == "own":
        return JobView(row_weights)
    shift, scale = np.empty(len(roster.feature_names)), np.empty(len(roster.feature_names))
    for card in roster.cards:
        part = roster.parts[card.name]
        shift[part], scale[part] = _due_moments(card, replies[card.name], scaling)
    return JobView(row_weights, shift, scale)


def _due_moments(card: PartyCard, reply: Moments, scaling: Scaling) -> tuple[Floats, Floats]:
    if reply.shift is None or reply.scale is None:
        raise checks.wrong(card.name, reply, "no moments where they were due")
    for values in (reply.shift, reply.scale):
        checks.shape(card.name, reply, values, (card.n_features,))
        checks.in_range(card.name, reply, values)
    for value in reply.scale.tolist():
        checks.positive(card.name, reply, value)
    if scaling == "scaled" and reply.shift.any():
        raise checks.wrong(card.name, reply, "means where columns are not shifted")
    return reply.shift, reply.scale


def _moments(table: Table, scaling: Scaling, row_weights: PerRow | None) -> tuple[Floats | None, Floats | None]:
    if scaling == "own":
        return None, None
    counted_rows = ViewedTable(table, row_weights, None, None)
    mean, deviation = centre_and_spread(counted_rows, len(table.feature_names), centred=True)
    return (mean if scaling == "standard" else np.zeros_like(mean)), deviation


def _answer_split(state: PartyState, request: AskSplit, data: PartyData) -> tuple[PartyState, Message]:
    if data.table.split_column is None:
        raise InputError("it has no column to split by. Make the party with split='column'.")
    _check_rows(request, request.window, data)
    identity, marks = data.known(), sendable_flags(data.table.split_column[request.window.places])
    statement = marks_statement(identity.name, state.sheet, marks, request.first)
    return state, Split(marks, identity.sign(statement))


def _answer_weights(state: PartyState, request: AskRowWeights, data: PartyData) -> tuple[PartyState, Message]:
    if data.table.weight_column is None:
        raise InputError("it has no column of row weights. Make the party with weight='column'.")
    _check_rows(request, request.window, data)
    if objection := data.policy.objection_to_rows(RowWeights, data.table.n_rows):
        raise PolicyRefusedError(f"{objection}.", party=data.name)
    identity, weights = data.known(), sendable_floats(data.table.weight_column[request.window.places])
    statement = weights_statement(identity.name, state.sheet, weights, request.first)
    return state, RowWeights(weights, identity.sign(statement))


def _check_rows(request: Message, window: Window, data: PartyData) -> None:
    if not window.is_of(data.table.n_rows):
        seen = f"a window of rows {window.first} to {window.stop}, of {data.table.n_rows:,}"
        raise checks.wrong(SERVER, request, seen)


def _answer_columns(state: PartyState, request: BringColumns, data: PartyData) -> tuple[PartyState, Message]:
    _check_rows(request, request.window, data)
    columns = request.held_out, request.weights
    _check_signed(request, columns, request.window, state.sheet, data)
    if request.stop == data.table.n_rows:
        raise checks.wrong(SERVER, request, "the last window, which comes with what it is for")
    here = arrived(state.learning, _what(columns), request, request.window, columns)
    return state.but(learning=here), Moments(None, None)


def _what(columns: Columns) -> object:
    return (BringColumns, *(None if column is None else column.party for column in columns))


def _in_whole(state: PartyState, request: UseFrame, data: PartyData) -> UseFrame:
    """Put what was brought before it to the last window."""
    window = last_window(data.table.n_rows, 1)
    _check_signed(request, request.columns, window, state.sheet, data)
    if not window.first or not any(request.columns):
        return request
    windows = arrived(state.learning, _what(request.columns), request, window, request.columns).parts
    marks, weights = request.columns
    if marks is not None:
        marks = replace_struct(marks, marks=joined(tuple(each[0].marks for each in windows if each[0] is not None)))
    if weights is not None:
        found = joined(tuple(each[1].weights for each in windows if each[1] is not None))
        weights = replace_struct(weights, weights=found)
    return replace_struct(request, held_out=marks, weights=weights)


def _answer_view(state: PartyState, request: UseFrame, data: PartyData) -> tuple[PartyState, Message]:
    request, state = _in_whole(state, request, data), state.but(learning=None)
    if request.weights is not None:
        _check_largest(SERVER, request, float(request.weights.weights.max()))
    if isinstance(request.split, SplitBy) and request.held_out is None and data.table.split_column is None:
        raise checks.wrong(SERVER, request, "a split by a column that neither it nor this party has")
    viewed = cast(ViewedTable, data.seen(request).table)
    if viewed.row_weights is not None:
        _check_counted(request, viewed.row_weights, data)
    if viewed.shift is None or viewed.scale is None:
        return state.but(view=request), Moments(None, None)
    state = check_view(state, data.seen(request), "moments", len(viewed.shift), 2 * len(viewed.shift))
    return state.but(view=request), Moments(sendable_floats(viewed.shift), sendable_floats(viewed.scale))


def _check_signed(request: Message, columns: Columns, window: Window, sheet: bytes, data: PartyData) -> None:
    """Require that columns of other parties were signed by them, for this job and these rows."""
    (marked, weighed), shape = columns, (window.stop - window.first,)
    if marked is not None:
        checks.shape(SERVER, request, marked.marks, shape)
        statement = marks_statement(marked.party, sheet, marked.marks, window.first)
        split = request.split if isinstance(request, UseFrame) else SplitBy(marked.party)
        due = isinstance(split, SplitBy) and marked.party == split.party
        if not due or not data.known().is_signed(marked.party, statement, marked.signature):
            raise checks.wrong(SERVER, request, f"rows to hold out that {marked.party!r} did not sign for this job")
    if weighed is not None:
        checks.shape(SERVER, request, weighed.weights, shape)
        checks.non_negative(SERVER, request, weighed.weights)
        statement = weights_statement(weighed.party, sheet, weighed.weights, window.first)
        if not data.known().is_signed(weighed.party, statement, weighed.signature):
            raise checks.wrong(SERVER, request, f"row weights that {weighed.party!r} did not sign for this job")


def _check_counted(request: UseFrame, row_weights: PerRow, data: PartyData) -> None:
    """Require that enough rows count, whatever is told of them later: a total of scores is a rank of the rows."""
    if (least := data.policy.least_rows) == 1:
        return
    left, out = row_weights.n_positive, len(row_weights) - row_weights.n_positive
    if request.split is not None and not (least <= left and least <= out):
        raise PolicyRefusedError(
            f"its owner's policy asks that a split holds out, and leaves, {least} rows at least; this one has {left} "
            f"on one side and {out} on the other.",
            party=data.name,
        )
    if (alike := alike_by(row_weights.sum(), row_weights.max())) < least:
        raise PolicyRefusedError(
            f"its owner's policy asks for {least} rows at least, none of which has more than its share of the weight; "
            f"by these weights there are {alike}.",
            party=data.name,
        )


HANDLERS = (
    Handler(AskSplit, _answer_split, after=None, then=GREETED),
    Handler(AskRowWeights, _answer_weights, after=None, then=GREETED),
    Handler(BringColumns, _answer_columns, after=None, then=GREETED),
    Handler(UseFrame, _answer_view, after=None, then=GREETED),
)
