"""Distances to centres: squared distances add over parties, so each tells its own part."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import ModelPart, Roster, Rounding, Script
from colonnade.errors import InputError
from colonnade.evaluation.rounding import RoundedParts, SummedParts, added, read_parts, round_parts, sum_parts
from colonnade.evaluation.windows import of_window
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.lloyd import nearest_of, squared_distances
from colonnade.kernels.selections import Piece, Selection, Window
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState


class PartialDistances(Message, frozen=True):
    """|x_i^(j) - c_l^(j)|^2 for each selected row of a window and each centre."""

    phase: ClassVar[str] = "predicting"

    values: Annotated[Floats, Reveals.FEATURES]

    def passes_on(self) -> tuple[Reveals, ...]:
        """Name predictions, which these are too: an owner who keeps only them keeps these."""
        return (Reveals.PREDICTIONS,)


class AskPartialDistances(Message, frozen=True):
    """The party's part of the centres, the units of distances, where they are not the columns' own, and a window."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = PartialDistances

    centers: Annotated[Floats, Reveals.MODEL]
    scale: Annotated[Floats | None, Reveals.MODEL]
    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return None, self.centers, self.scale

    @property
    def window(self) -> Window:
        """Which rows, and how many numbers of each."""
        return Window(self.first, self.stop, len(self.centers))


class AskRoundedDistances(Message, frozen=True):
    """As `AskPartialDistances`, rounded to so many bits with this dither."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = RoundedParts

    centers: Annotated[Floats, Reveals.MODEL]
    scale: Annotated[Floats | None, Reveals.MODEL]
    bits: Annotated[int, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]
    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return None, self.centers, self.scale

    @property
    def window(self) -> Window:
        """Which rows, and how many numbers of each."""
        return Window(self.first, self.stop, len(self.centers))


# What is done with a window: each row's nearest centre, and the squared distance to it.
Use = Callable[[Piece, Rows, SummedParts], object]


def nearest_center_distances(
    roster: Roster,
    selected: Selection,
    centers: Floats,
    scale: Floats | None,
    use: Use,
    rounding: Rounding | None = None,
) -> Script[float]:
    """Find each selected row's nearest centre, the lowest among equals, and the squared distance to it.

    They are used window by window, both of shape (m,). Centres, shape (k, n_features), and the units to measure
    distances in, shape (n_features,), are in the roster's column order. No distance is negative: what rounding took
    below zero is zero. Gives how far rounding put any distance off, at most.
    """
    bound = 0.0
    for piece in selected.pieces(len(centers)):
        parts = yield from _parts(roster, piece, centers, scale, rounding)
        labels, nearest = nearest_of(parts.values)
        bound = max(bound, parts.bound)
        use(piece, labels, replace(parts, values=np.maximum(nearest, 0.0, out=nearest)))
    return bound


def _parts(
    roster: Roster, piece: Piece, centers: Floats, scale: Floats | None, rounding: Rounding | None
) -> Script[SummedParts]:
    own = {
        party: (sendable_floats(centers[:, part]), None if scale is None else sendable_floats(scale[part]))
        for party, part in roster.parts.items()
    }
    ends, shape = (piece.window.first, piece.window.stop), (len(piece), len(centers))
    if rounding is not None:
        inbox = yield {
            party: AskRoundedDistances(*part, rounding.bits, rounding.seeds[party], *ends)
            for party, part in own.items()
        }
        rounded = read_parts(inbox, shape, rounding, piece.window.first)
        for party, part in rounded.items():
            checks.distances(party, inbox[party], part.values, _in_units(*own[party]), part.step)
        return sum_parts(rounded)
    inbox = yield {party: AskPartialDistances(*part, *ends) for party, part in own.items()}
    replies = checks.replies(inbox, PartialDistances)
    for party, reply in replies.items():
        checks.shape(party, reply, reply.values, shape)
        checks.non_negative(party, reply, reply.values)
        checks.distances(party, reply, reply.values, _in_units(*own[party]))
    return SummedParts(added([reply.values for reply in replies.values()]))


def _in_units(centers: Floats, scale: Floats | None) -> Floats:
    return centers if scale is None else centers / scale


def _answer(state: PartyState, request: AskPartialDistances, data: PartyData) -> tuple[PartyState, Message]:
    return state, PartialDistances(sendable_floats(_own_distances(state, request, data)))


def _answer_rounded(state: PartyState, request: AskRoundedDistances, data: PartyData) -> tuple[PartyState, Message]:
    own = _own_distances(state, request, data)
    return state, round_parts(request, request.bits, request.seed, request.first, own, None)


def _own_distances(state: PartyState, request: AskPartialDistances | AskRoundedDistances, data: PartyData) -> Floats:
    n_rows, n_centers = request.stop - request.first, len(request.centers)
    check_centers(request, request.centers, request.scale, len(data.table.feature_names))
    if n_rows * n_centers > MAX_NUMBERS:
        raise InputError(f"distances of {n_rows:,} rows to {n_centers} centres do not fit one message. Use fewer.")
    return of_window(state, request, request.window, data, partial(distances, request.centers, request.scale))


def distances(centers: Floats, scale: Floats | None, values: Floats) -> Floats:
    """Compute squared distances of rows to centres, in the first of their columns."""
    return squared_distances(values[:, : centers.shape[1]], centers, scale)


def check_centers(request: Message, centers: Floats, scale: Floats | None, n_features: int) -> None:
    """Require a party's part of centres, and of the units distances are measured in."""
    checks.shape(SERVER, request, centers, (len(centers), n_features))
    checks.in_range(SERVER, request, centers)
    if scale is not None:
        checks.shape(SERVER, request, scale, (n_features,))
        for value in scale.tolist():
            checks.positive(SERVER, request, value)


HANDLERS = (
    Handler(AskPartialDistances, _answer, after=frozenset({SELECTED}), then=SELECTED, leaves_nothing=True),
    Handler(AskRoundedDistances, _answer_rounded, after=frozenset({SELECTED}), then=SELECTED, leaves_nothing=True),
)
