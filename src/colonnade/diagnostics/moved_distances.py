"""Distances of the selected rows to centres near those of a model.

The server sends a party its part of the model, and each party moves the centres alike, by a seed on the job sheet.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import JobView, ModelPart, Roster, Script
from colonnade.diagnostics.findings import moved_centers
from colonnade.diagnostics.model_in_view import Units, centers_in_view, units_of
from colonnade.errors import InputError
from colonnade.evaluation.clustering import check_centers
from colonnade.kernels.arrays import Floats
from colonnade.kernels.lloyd import squared_distances
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState


class MovedDistances(Message, frozen=True):
    """|x_i^(j) - c_l^(j)|^2 for each selected row and each moved centre."""

    phase: ClassVar[str] = "diagnosing"

    values: Annotated[Floats, Reveals.FEATURES]

    def passes_on(self) -> tuple[Reveals, ...]:
        """Name predictions, which these are too: an owner who keeps only them keeps these."""
        return (Reveals.PREDICTIONS,)


class AskMovedDistances(Message, frozen=True):
    """The party's part of the model, and the seed by which its centres are moved.

    Distances are in the units of the run's view; `scale` is a part of the model.
    """

    phase: ClassVar[str] = "diagnosing"
    reply: ClassVar[type[Message]] = MovedDistances

    centers: Annotated[Floats, Reveals.MODEL]
    scale: Annotated[Floats | None, Reveals.MODEL]
    seed: Annotated[int, Reveals.NOTHING]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return None, self.centers, self.scale


def moved_distances(
    roster: Roster, size: int, parts: Mapping[str, ModelPart], view: JobView, seed: int
) -> Script[Floats]:
    """Sum the parties' parts of the selected rows' squared distances to every moved centre; shape (size, 3 k)."""
    requests = {party: AskMovedDistances(*_centers(part), seed) for party, part in parts.items()}
    inbox = yield requests
    replies = checks.replies(inbox, MovedDistances)
    for party, reply in replies.items():
        here = roster.parts[party]
        shift, scale = (None if each is None else each[here] for each in (view.shift, view.scale))
        centers = _moved(requests[party], JobView(None, shift, scale))
        checks.shape(party, reply, reply.values, (size, len(centers)))
        checks.non_negative(party, reply, reply.values)
        checks.distances(party, reply, reply.values, centers)
    distances: Floats = np.sum([reply.values for reply in replies.values()], axis=0)
    return distances


def _centers(part: ModelPart) -> tuple[Floats, Floats | None]:
    _, centers, scale = part
    if centers is None:
        raise InputError("A diagnosis moves centres, and this model has none. Pass a KMeansModel.")
    return centers, scale


def _moved(request: AskMovedDistances, units: Units) -> Floats:
    """Move the centres, shape (3 k, d): each a part of the way to another, the same at all parties."""
    moved = moved_centers(centers_in_view(request.centers, units), np.random.default_rng(request.seed))
    return moved.reshape(-1, moved.shape[2])


def _answer(state: PartyState, request: AskMovedDistances, data: PartyData) -> tuple[PartyState, Message]:
    rows, d = state.selected(), len(data.table.feature_names)
    check_centers(request, request.centers, request.scale, d)
    checks.seed(request, request.seed)
    if not len(request.centers):
        raise checks.wrong(SERVER, request, "no centres")
    centers = _moved(request, units_of(data.table))
    checks.in_range(SERVER, request, centers)
    if len(rows) * len(centers) > MAX_NUMBERS:
        raise InputError(f"distances of {len(rows):,} rows do not fit one message. Ask for fewer rows.")
    return state, MovedDistances(sendable_floats(squared_distances(data.table.take(rows)[:, :d], centers, None)))


HANDLERS = (Handler(AskMovedDistances, _answer, after=frozenset({SELECTED}), then=SELECTED),)
