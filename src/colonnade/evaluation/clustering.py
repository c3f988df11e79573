"""Distances to centres: squared distances add over parties, so each tells its own part."""

from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import ModelPart, Roster, Rounding, Script
from colonnade.errors import InputError
from colonnade.evaluation.rounding import RoundedParts, SummedParts, read_parts, round_parts, sum_parts
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.lloyd import squared_distances
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState


class PartialDistances(Message, frozen=True):
    """|x_i^(j) - c_l^(j)|^2 for each selected row and each centre."""

    phase: ClassVar[str] = "predicting"

    values: Annotated[Floats, Reveals.FEATURES]

    def passes_on(self) -> tuple[Reveals, ...]:
        """Name predictions, which these are too: an owner who keeps only them keeps these."""
        return (Reveals.PREDICTIONS,)


class AskPartialDistances(Message, frozen=True):
    """The party's part of the centres, and the units distances are measured in, where they are not the columns' own."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = PartialDistances

    centers: Annotated[Floats, Reveals.MODEL]
    scale: Annotated[Floats | None, Reveals.MODEL]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return None, self.centers, self.scale


class AskRoundedDistances(Message, frozen=True):
    """As `AskPartialDistances`, rounded to so many bits with this dither."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = RoundedParts

    centers: Annotated[Floats, Reveals.MODEL]
    scale: Annotated[Floats | None, Reveals.MODEL]
    bits: Annotated[int, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return None, self.centers, self.scale


def nearest_center_distances(
    roster: Roster, size: int, centers: Floats, scale: Floats | None, rounding: Rounding | None = None
) -> Script[tuple[Rows, SummedParts]]:
    """Find each selected row's nearest centre, the lowest among equals, and the squared distance to it; both (size,).

    Centres, shape (k, n_features), and the units to measure distances in, shape (n_features,), are in the roster's
    column order. No distance is negative: what rounding took below zero is zero.
    """
    parts = yield from _parts(roster, size, centers, scale, rounding)
    nearest = np.maximum(parts.values.min(axis=1), 0.0)
    return parts.values.argmin(axis=1), replace(parts, values=nearest)


def _parts(
    roster: Roster, size: int, centers: Floats, scale: Floats | None, rounding: Rounding | None
) -> Script[SummedParts]:
    own = {
        party: (sendable_floats(centers[:, part]), None if scale is None else sendable_floats(scale[part]))
        for party, part in roster.parts.items()
    }
    if rounding is not None:
        inbox = yield {
            party: AskRoundedDistances(*part, rounding.bits, rounding.seeds[party]) for party, part in own.items()
        }
        rounded = read_parts(inbox, (size, len(centers)), rounding)
        for party, part in rounded.items():
            checks.distances(party, inbox[party], part.values, _in_units(*own[party]), part.step)
        return sum_parts(rounded)
    inbox = yield {party: AskPartialDistances(*part) for party, part in own.items()}
    replies = checks.replies(inbox, PartialDistances)
    for party, reply in replies.items():
        checks.shape(party, reply, reply.values, (size, len(centers)))
        checks.non_negative(party, reply, reply.values)
        checks.distances(party, reply, reply.values, _in_units(*own[party]))
    return SummedParts(np.sum([reply.values for reply in replies.values()], axis=0))


def _in_units(centers: Floats, scale: Floats | None) -> Floats:
    return centers if scale is None else centers / scale


def _answer(state: PartyState, request: AskPartialDistances, data: PartyData) -> tuple[PartyState, Message]:
    return state, PartialDistances(sendable_floats(_own_distances(state, request, data)))


def _answer_rounded(state: PartyState, request: AskRoundedDistances, data: PartyData) -> tuple[PartyState, Message]:
    return state, round_parts(request, request.bits, request.seed, _own_distances(state, request, data), None)


def _own_distances(state: PartyState, request: AskPartialDistances | AskRoundedDistances, data: PartyData) -> Floats:
    n_features = len(data.table.feature_names)
    rows, n_centers = state.selected(), len(request.centers)
    check_centers(request, request.centers, request.scale, n_features)
    if len(rows) * n_centers > MAX_NUMBERS:
        raise InputError(
            f"distances of {len(rows):,} rows to {n_centers} centres do not fit one message. Ask for fewer rows."
        )
    features = data.table.take(rows)[:, :n_features]
    return squared_distances(features, request.centers, request.scale)


def check_centers(request: Message, centers: Floats, scale: Floats | None, n_features: int) -> None:
    """Require a party's part of centres, and of the units distances are measured in."""
    checks.shape(SERVER, request, centers, (len(centers), n_features))
    checks.in_range(SERVER, request, centers)
    if scale is not None:
        checks.shape(SERVER, request, scale, (n_features,))
        for value in scale.tolist():
            checks.positive(SERVER, request, value)


HANDLERS = (
    Handler(AskPartialDistances, _answer, after=frozenset({SELECTED}), then=SELECTED),
    Handler(AskRoundedDistances, _answer_rounded, after=frozenset({SELECTED}), then=SELECTED),
)
