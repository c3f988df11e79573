"""Distances of the selected rows to some rows: centres that nobody has to send.

They are drawn from the rows first looked at, by a seed on the job sheet: the server names none. Each party tells its
part of the distances to them. To more such rows than a party has columns, distances fix its rows up to a rotation; so
few are asked for, and they make many sets of centres.
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.possible import each_once, places_of
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState


class RowDistances(Message, frozen=True):
    """|x_i^(j) - x_l^(j)|^2 for each selected row i and each row l asked for."""

    phase: ClassVar[str] = "diagnosing"
    steered: ClassVar[tuple[Reveals, ...]] = (Reveals.FEATURES,)

    values: Annotated[Floats, Reveals.PREDICTIONS]


class AskRowDistances(Message, frozen=True):
    """Draw so many of the selected rows from this seed, to serve as centres: also of rows that are selected later."""

    phase: ClassVar[str] = "diagnosing"
    reply: ClassVar[type[Message]] = RowDistances

    count: Annotated[int, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows that serve as centres: ascending ids, shape (p,), and how they were drawn."""

    rows: Rows
    count: int
    seed: int

    @classmethod
    def of(cls, rows: Rows, count: int, seed: int) -> "Pool":
        """Draw so many of these rows, or all, if they are fewer; each once."""
        drawn = np.random.default_rng(seed).permutation(each_once(rows))[:count]
        return cls(np.sort(drawn), count, seed)


def row_distances(roster: Roster, rows: Rows, pool: Pool) -> Script[Floats]:
    """Ask how far the selected rows, ascending, are from the pool's p rows. Costs m times p units a party.

    Squared, in all columns, shape (m, p).
    """
    centers = pool.rows
    inbox = yield {party: AskRowDistances(pool.count, pool.seed) for party in roster.names}
    replies = checks.replies(inbox, RowDistances)
    for card in roster.cards:
        reply = replies[card.name]
        checks.shape(card.name, reply, reply.values, (len(rows), len(centers)))
        checks.non_negative(card.name, reply, reply.values)
        checks.copies(card.name, reply, rows, reply.values)
        if np.isin(centers, rows).all():  # what is told of the centres themselves says where they are
            places = places_of(reply.values[np.searchsorted(rows, centers)], card.n_features)
            checks.distances(card.name, reply, reply.values, places)
    distances: Floats = np.sum([reply.values for reply in replies.values()], axis=0)
    return distances


def distances_to(values: Floats, centers: Floats) -> Floats:
    """Compute squared distances, shape (b, p), of rows (b, d) to centres (p, d): differences first, then squares."""
    return np.stack([np.square(values - center).sum(axis=1) for center in centers], axis=1)


def _answer(state: PartyState, request: AskRowDistances, data: PartyData) -> tuple[PartyState, Message]:
    checks.count(request, request.count, MAX_NUMBERS)
    checks.seed(request, request.seed)
    rows, d, pool = state.selected(), len(data.table.feature_names), state.learning
    if not isinstance(pool, Pool) or (pool.count, pool.seed) != (request.count, request.seed):
        pool = Pool.of(rows, request.count, request.seed)
    if not len(pool.rows) or len(rows) * len(pool.rows) > MAX_NUMBERS:
        raise InputError(
            f"distances of {len(rows):,} rows to {len(pool.rows):,} are none, or too many for one message. "
            "Ask for fewer rows, and at least one."
        )
    values, centers = data.table.take(rows)[:, :d], data.table.take(pool.rows)[:, :d]
    return replace(state, learning=pool), RowDistances(sendable_floats(distances_to(values, centers)))


HANDLERS = (Handler(AskRowDistances, _answer, after=frozenset({SELECTED}), then=SELECTED),)
