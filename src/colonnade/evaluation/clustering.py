"""Distances to centres: squared distances add over parties, so each tells its own part."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import ModelPart, Roster, Rounding, Script
from colonnade.errors import InputError
from colonnade.evaluation.rounding import RoundedParts, read_parts, round_parts
from colonnade.evaluation.windows import of_window
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.center_distances import CenterDistances
from colonnade.kernels.possible import PossibleDistances
from colonnade.kernels.selections import Piece, Selection, Window
from colonnade.kernels.summed_distances import nearest_of_sums
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_columns, sendable_floats
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
Use = Callable[[Piece, Rows, Floats], object]


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
    asked = {
        party: _Asked.of(centers[:, part], None if scale is None else scale[part])
        for party, part in roster.parts.items()
    }
    bound = 0.0
    for piece in selected.pieces(len(centers)):
        parts = yield from _parts(asked, piece, rounding)
        labels, nearest = nearest_of_sums([part.values for part in parts], partial(_check, parts))
        bound = max(bound, sum(part.step or 0.0 for part in parts) / 2)
        use(piece, labels, np.maximum(nearest, 0.0, out=nearest))
    return bound


@dataclass(frozen=True, eq=False)
class _Asked:
    """A party's part of the centres, as it travels, and which distances some point has to it."""

    centers: Floats
    scale: Floats | None
    possible: PossibleDistances

    @classmethod
    def of(cls, centers: Floats, scale: Floats | None) -> "_Asked":
        in_units = centers if scale is None else centers / scale
        own_scale = None if scale is None else sendable_floats(scale)
        return cls(sendable_floats(centers), own_scale, PossibleDistances.to(in_units))


@dataclass(frozen=True, eq=False)
class _Part:
    """A party's distances of a window, shape (m, k), each off by half a step at most, where they were rounded."""

    party: str
    asked: _Asked
    reply: Message
    values: Floats
    step: float | None = None


def _parts(asked: Mapping[str, _Asked], piece: Piece, rounding: Rounding | None) -> Script[list[_Part]]:
    ends, shape = (piece.window.first, piece.window.stop), (len(piece), len(next(iter(asked.values())).centers))
    if rounding is not None:
        inbox = yield {
            party: AskRoundedDistances(own.centers, own.scale, rounding.bits, rounding.seeds[party], *ends)
            for party, own in asked.items()
        }
        rounded = read_parts(inbox, shape, rounding, piece.window.first)
        return [_Part(party, asked[party], inbox[party], part.values, part.step) for party, part in rounded.items()]
    inbox = yield {party: AskPartialDistances(own.centers, own.scale, *ends) for party, own in asked.items()}
    replies = checks.replies(inbox, PartialDistances)
    for party, reply in replies.items():
        checks.shape(party, reply, reply.values, shape)
    return [_Part(party, asked[party], reply, reply.values) for party, reply in replies.items()]


def _check(parts: Sequence[_Part], number: int, rows: slice, distances: Floats) -> None:
    """Require distances of some rows, shape (k, c), that points have; zero or more, where they were not rounded."""
    part = parts[number]
    possible, error = part.asked.possible, part.step or 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        if possible.fit_surely(distances, error).all() and (part.step is not None or distances.min() >= 0):
            return
    if part.step is None:
        checks.non_negative(part.party, part.reply, distances)
    checks.possible_distances(part.party, part.reply, distances.T, possible, error, rows.start)


def _answer(state: PartyState, request: AskPartialDistances, data: PartyData) -> tuple[PartyState, Message]:
    return state, PartialDistances(sendable_columns(_own_distances(state, request, data)))


def _answer_rounded(state: PartyState, request: AskRoundedDistances, data: PartyData) -> tuple[PartyState, Message]:
    own = _own_distances(state, request, data)
    return state, round_parts(request, request.bits, request.seed, request.first, own, None)


def _own_distances(state: PartyState, request: AskPartialDistances | AskRoundedDistances, data: PartyData) -> Floats:
    n_rows, n_centers = request.stop - request.first, len(request.centers)
    check_centers(request, request.centers, request.scale, len(data.table.feature_names))
    if n_rows * n_centers > MAX_NUMBERS:
        raise InputError(f"distances of {n_rows:,} rows to {n_centers} centres do not fit one message. Use fewer.")
    to_centers = CenterDistances.to(request.centers, request.scale)
    return of_window(state, request, request.window, data, partial(distances, to_centers))


def distances(to_centers: CenterDistances, values: Floats) -> Floats:
    """Compute squared distances of rows to centres, in the first of their columns."""
    return to_centers.of(values[:, : to_centers.centers.shape[1]])


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
