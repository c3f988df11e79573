"""Distances of pairs of rows: what one party sees apart, against all together (Assumption 5.1).

Each party draws the same pairs from a seed and tells one number a pair: how far apart the two rows are in its columns,
squared. With a single column that is the difference of two values; it counts as scores, as the length of a row does.
"""

from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Roster, Script, Table
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.separation import draw_pairs, squared_distances
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState

# With many more pairs than rows, their distances would fix the rows up to a rotation: a party tells no more than this.
PAIRS_A_ROW = 1


class PairDistances(Message, frozen=True):
    """|x_i^(j) - x_i'^(j)|^2 for each pair."""

    phase: ClassVar[str] = "diagnosing"
    steered: ClassVar[tuple[Reveals, ...]] = (Reveals.FEATURES,)

    values: Annotated[Floats, Reveals.SCORES]


class AskPairDistances(Message, frozen=True):
    """Draw so many pairs of rows from this seed; every party draws the same."""

    phase: ClassVar[str] = "diagnosing"
    reply: ClassVar[type[Message]] = PairDistances

    count: Annotated[int, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]


def pair_distances(roster: Roster, count: int, seed: int) -> Script[Floats]:
    """Ask every party with features how far apart the rows of this seed's pairs are. Costs count units a party.

    Squared, in the roster's order, shape (n_parties with features, count).
    """
    inbox = yield {card.name: AskPairDistances(count, seed) for card in roster.cards if card.n_features}
    replies = checks.replies(inbox, PairDistances)
    for party, reply in replies.items():
        checks.shape(party, reply, reply.values, (count,))
        checks.non_negative(party, reply, reply.values)
    return np.stack([reply.values for reply in replies.values()])


def distances_of_pairs(table: Table, count: int, seed: int) -> Floats:
    """Draw pairs and measure them in one table's features, shape (count,)."""
    pairs = draw_pairs(table.n_rows, count, np.random.default_rng(seed))
    d = len(table.feature_names)
    return squared_distances(table.take(pairs[:, 0])[:, :d], table.take(pairs[:, 1])[:, :d])


def _answer(state: PartyState, request: AskPairDistances, data: PartyData) -> tuple[PartyState, Message]:
    n_rows = data.table.n_rows
    checks.seed(request, request.seed)
    if n_rows < 2:
        raise InputError("pairs need two rows, and there is one. Do not ask for pairs.")
    checks.count(request, request.count, PAIRS_A_ROW * n_rows)
    return state, PairDistances(sendable_floats(distances_of_pairs(data.table, request.count, request.seed)))


HANDLERS = (Handler(AskPairDistances, _answer, after=frozenset({SELECTED}), then=SELECTED),)
