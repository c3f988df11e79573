"""Rows that need no scores: drawn evenly from a seed that all know, all of them, or a list already agreed.

Messages, scripts and handlers of the baselines, and of a coreset that is used again.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.coreset import Coreset, coreset_of_all
from colonnade.kernels.arrays import Rows
from colonnade.kernels.draws import chances, draw_evenly, draw_evenly_distinct
from colonnade.kernels.per_row import PerRow
from colonnade.kernels.selections import CountedRows
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals, sendable_rows
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.protocol.weighing import with_coreset
from colonnade.routes import Ask, Route
from colonnade.sampling.seeds import Seeds
from colonnade.sampling.size import MAX_SIZE
from colonnade.sampling.weights import weight_of_all
from colonnade.signing import DrawSeeds, rows_digest


class Ready(Message, frozen=True):
    """The party knows the rows."""

    phase: ClassVar[str] = "sampling"


class UseSharedDraw(Message, frozen=True):
    """Draw this many rows evenly from this seed, distinct ones or not: every party and the server draw the same."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Ready

    count: Annotated[int, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]
    distinct: Annotated[bool, Reveals.NOTHING]


class UseAllRows(Message, frozen=True):
    """Take every row once."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Ready


class UseRows(Message, frozen=True):
    """Take these rows, from a coreset made before."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Ready

    rows: Annotated[Rows, Reveals.ROW_IDS]


@dataclass(frozen=True)
class Chosen:
    """So many rows, whose digest is known: an owner's policy judges a job by their number."""

    digest: bytes
    count: int

    def __call__(self, rows: Rows) -> bool:
        """Tell whether these are they."""
        return len(rows) == self.count and rows_digest(rows) == self.digest

    def __str__(self) -> str:
        return f"{self.count:,} rows with the digest {self.digest.hex()[:16]}"


def use_even_draw(
    roster: Roster, size: int, rng: np.random.Generator, row_weights: PerRow | None = None
) -> Script[Coreset]:
    """Let all parties, and the server, draw the same m rows evenly from one seed; each weighs W / m.

    Rows are drawn by what they count (`row_weights`, shape (n_rows,)); W is the weight of all rows.
    """
    seed = Seeds.of(rng, len(roster.names)).shared
    yield {party: UseSharedDraw(size, seed, distinct=False) for party in roster.names}
    n = roster.n_rows
    rows = draw_evenly(n, size, np.random.default_rng(seed), row_weights)
    total_weight = weight_of_all(roster, row_weights)
    sampler = f"UniformSampling(size={size}, draws='independent')"
    return Coreset(rows, np.full(size, total_weight / size), n, total_weight, sampler)


def use_distinct_draw(
    roster: Roster, size: int, rng: np.random.Generator, row_weights: PerRow | None = None
) -> Script[Coreset]:
    """Let all draw the same distinct rows: m of them, or all that count. Each weighs W / m, or what it counts if more.

    A row that counts so much is there in every draw.
    """
    seed = Seeds.of(rng, len(roster.names)).shared
    yield {party: UseSharedDraw(size, seed, distinct=True) for party in roster.names}
    factor, rows = draw_evenly_distinct(roster.n_rows, size, np.random.default_rng(seed), row_weights)
    counts = np.ones(len(rows)) if row_weights is None else row_weights[rows]
    weights = counts / chances(factor, counts)
    sampler, total_weight = f"UniformSampling(size={size})", weight_of_all(roster, row_weights)
    return Coreset(rows, weights, roster.n_rows, total_weight, sampler, distinct=True)


def even_draw_route(size: int, seeds: DrawSeeds | None, *, distinct: bool = False) -> Route:
    """Expect an even draw of so many rows, from the seed on the sheet."""
    return Ask(UseSharedDraw, count=size, seed=0 if seeds is None else seeds.shared, distinct=distinct)


def use_all_rows(roster: Roster, row_weights: PerRow | None = None) -> Script[Coreset]:
    """Let all parties take every row that counts, once; it weighs what it counts (`row_weights`, shape (n_rows,))."""
    return coreset_of_all((yield from use_counted_rows(roster, row_weights)), roster.alignment)


def use_counted_rows(roster: Roster, row_weights: PerRow | None = None) -> Script[CountedRows]:
    """Let all parties take every row that counts; nobody lists them."""
    yield dict.fromkeys(roster.names, UseAllRows())
    return CountedRows(roster.n_rows, row_weights)


def use_rows(roster: Roster, rows: Rows) -> Script[Rows]:
    """Tell the parties which rows to take: ascending ids, shape (m,)."""
    yield {party: UseRows(sendable_rows(rows)) for party in roster.names}
    return rows


def rows_route(chosen: tuple[bytes, int]) -> Route:
    """Expect rows that have this digest, and are so many."""
    return Ask(UseRows, rows=Chosen(*chosen))


def _answer_shared_draw(state: PartyState, request: UseSharedDraw, data: PartyData) -> tuple[PartyState, Message]:
    checks.count(request, request.count, MAX_SIZE)
    checks.seed(request, request.seed)
    table, rng = data.table, np.random.default_rng(request.seed)
    factor = None
    if request.distinct:
        factor, rows = draw_evenly_distinct(table.n_rows, request.count, rng, table.row_weights)
    else:
        rows = draw_evenly(table.n_rows, request.count, rng, table.row_weights)
    return with_coreset(state.but(rows=rows, weighing="evenly", even_factor=factor), data), Ready()


def _answer_all_rows(state: PartyState, _: UseAllRows, data: PartyData) -> tuple[PartyState, Message]:
    rows = CountedRows(data.table.n_rows, data.table.row_weights)
    return with_coreset(state.but(rows=rows, weighing="all"), data), Ready()


def _answer_rows(state: PartyState, request: UseRows, data: PartyData) -> tuple[PartyState, Message]:
    checks.row_ids(SERVER, request, request.rows, data.table.n_rows)
    return state.but(rows=request.rows, weighing="given"), Ready()


HANDLERS = (
    Handler(UseSharedDraw, _answer_shared_draw, after=None, then=SELECTED),
    Handler(UseAllRows, _answer_all_rows, after=None, then=SELECTED),
    Handler(UseRows, _answer_rows, after=None, then=SELECTED),
)
