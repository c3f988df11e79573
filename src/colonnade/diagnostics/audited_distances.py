"""Audited distances: how far the audit's rows are from each centre in a party's own columns, in 16 bits.

A row's cost is its distance to the nearest centre in all columns, and no party can tell which that is: so each tells
its part of the distances to all k centres, 2 k bytes a row and party. Distances only add up, so rounding each by less
than 0.031 % is rounding their sum by less than that, and the least of the sums too.
"""

from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import JobView, ModelPart, Roster, Script
from colonnade.diagnostics.model_in_view import centers_in_view, units_of
from colonnade.errors import InputError
from colonnade.evaluation.clustering import check_centers
from colonnade.kernels.arrays import Floats
from colonnade.kernels.sixteen_bits import LOG_STEP, restore_logarithms, round_logarithms
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState


class AuditedDistances(Message, frozen=True):
    """|x_i^(j) - c_l^(j)|^2 for each selected row and each centre: largest times exp(-0.00061 code)."""

    phase: ClassVar[str] = "certifying"

    size: Annotated[int, Reveals.NOTHING]
    n_centers: Annotated[int, Reveals.NOTHING]
    largest: Annotated[float, Reveals.FEATURES]
    codes: Annotated[bytes, Reveals.FEATURES]

    def units(self) -> int:
        """Count a number a row and centre."""
        return self.size * self.n_centers

    def passes_on(self) -> tuple[Reveals, ...]:
        """Name predictions, which these are too: an owner who keeps only them keeps these."""
        return (Reveals.PREDICTIONS,)


class AskAuditedDistances(Message, frozen=True):
    """The party's part of the model. Distances are in the units of the run's view; `scale` is a part of the model."""

    phase: ClassVar[str] = "certifying"
    reply: ClassVar[type[Message]] = AuditedDistances

    centers: Annotated[Floats, Reveals.MODEL]
    scale: Annotated[Floats | None, Reveals.MODEL]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return None, self.centers, self.scale


def audited_distances(
    roster: Roster, size: int, centers: Floats, scale: Floats | None, view: JobView
) -> Script[Floats]:
    """Ask how far the selected rows are from their nearest centres. Two bytes a row, party and centre.

    Centres, shape (k, n_features), and the units of distances are the model's. Distances, in the units of the view, are
    squared, shape (size,), and off by less than 0.031 % of themselves.
    """
    inbox = yield {
        party: AskAuditedDistances(
            sendable_floats(centers[:, part]), None if scale is None else sendable_floats(scale[part])
        )
        for party, part in roster.parts.items()
    }
    replies, seen = checks.replies(inbox, AuditedDistances), centers_in_view(centers, view)
    parts = [_read(party, reply, size, seen[:, roster.parts[party]]) for party, reply in replies.items()]
    distances = np.sum(parts, axis=0)
    return np.asarray(distances.min(axis=1))


def _read(party: str, reply: AuditedDistances, size: int, centers: Floats) -> Floats:
    n_centers = len(centers)
    if (reply.size, reply.n_centers) != (size, n_centers):
        raise checks.wrong(party, reply, f"distances of {reply.size} rows to {reply.n_centers} centres, not asked for")
    checks.positive(party, reply, reply.largest)
    try:
        distances = restore_logarithms(reply.largest, reply.codes, (size, n_centers))
    except ValueError as error:
        raise checks.wrong(party, reply, str(error)) from error
    checks.distances(party, reply, distances, centers, LOG_STEP * distances.max(axis=1, keepdims=True))
    return distances


def _answer(state: PartyState, request: AskAuditedDistances, data: PartyData) -> tuple[PartyState, Message]:
    table, rows = data.table, state.selected()
    d, k = len(table.feature_names), len(request.centers)
    check_centers(request, request.centers, request.scale, d)
    centers = centers_in_view(request.centers, units_of(table))
    checks.in_range(SERVER, request, centers)
    if not k or not len(rows) or len(rows) * k > MAX_NUMBERS:
        raise InputError(
            f"distances of {len(rows):,} rows to {k} centres are none, or too many for one message. "
            "Ask for fewer rows, and at least one."
        )
    features = table.take(rows)[:, :d]
    distances = np.stack([np.square(features - center).sum(axis=1) for center in centers], axis=1)
    return state, AuditedDistances(len(rows), k, *round_logarithms(distances))


HANDLERS = (Handler(AskAuditedDistances, _answer, after=frozenset({SELECTED}), then=SELECTED),)
