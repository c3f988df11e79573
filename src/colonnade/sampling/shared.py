"""Rows that need no drawing by scores: drawn evenly from a shared seed, all of them, or a list already agreed.

These are the baselines and the reuse of a coreset, in the same pipeline as Algorithm 1.
"""

from dataclasses import replace
from typing import Annotated, ClassVar, Self

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import Roster, ScoreRule, Script, Task
from colonnade.coreset import Coreset
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.draws import draw_evenly
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_rows
from colonnade.options import whole_number
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState

# More rows than any coreset needs; a party draws no more, whoever asks.
MAX_SIZE = 1 << 24


class Ready(Message, frozen=True):
    """The party knows the rows."""

    phase: ClassVar[str] = "sampling"


class UseSharedDraw(Message, frozen=True):
    """Draw this many rows evenly from this seed: every party and the server draw the same."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Ready

    count: Annotated[int, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]


class UseAllRows(Message, frozen=True):
    """Take every row once."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Ready


class UseRows(Message, frozen=True):
    """Take these rows, from a coreset made before."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Ready

    rows: Annotated[Rows, Reveals.ROW_IDS]


def sample_size(size: int) -> int:
    """Require a number of rows that can be drawn and sent."""
    example = "A few thousand rows are usual: size=2000. AllRows() takes each row once."
    return whole_number("size", size, least=1, most=MAX_SIZE, example=example)


class UniformSampling(msgspec.Struct, frozen=True, tag_field="kind", tag="uniform", forbid_unknown_fields=True):
    """Draw rows evenly with replacement, weight n / m: the baseline. Only a seed travels.

    Parameters
    ----------
    size : int
        m, how many rows to draw.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> federation = cn.Federation(cn.split_columns(np.eye(8), None, [4, 4]))
    >>> run = federation.coreset(cn.KMeans(n_clusters=2), cn.UniformSampling(size=4))
    >>> run.coreset.weights.tolist(), run.ledger.units
    ([2.0, 2.0, 2.0, 2.0], 0)
    """

    size: int

    def __post_init__(self) -> None:
        force_setattr(self, "size", sample_size(self.size))

    def check(self, task: Task[object], roster: Roster, run_by: str | None) -> None:
        """Draw from any parties, for any task."""

    def between_machines(self, n_parties: int) -> Self:  # noqa: ARG002  # nothing was left open
        """Stay as it is."""
        return self

    def scored_by(self, rule: ScoreRule, roster: Roster) -> ScoreRule:  # noqa: ARG002  # rows are not scored
        """Leave the task's rule as it is."""
        return rule

    def sample(
        self,
        roster: Roster,
        rule: ScoreRule,  # noqa: ARG002
        rng: np.random.Generator,
        row_weights: Floats | None = None,
    ) -> Script[Coreset]:
        """Share a seed, and draw from it here as the parties do there."""
        return use_even_draw(roster, self.size, rng, row_weights)


class AllRows(msgspec.Struct, frozen=True, tag_field="kind", tag="all", forbid_unknown_fields=True):
    """Take every row once with weight 1: what a coreset is compared with.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> federation = cn.Federation(cn.split_columns(np.eye(8), None, [4, 4]))
    >>> len(federation.coreset(cn.KMeans(n_clusters=2), cn.AllRows()).coreset)
    8
    """

    def check(self, task: Task[object], roster: Roster, run_by: str | None) -> None:
        """Draw from any parties, for any task."""

    def between_machines(self, n_parties: int) -> Self:  # noqa: ARG002  # nothing was left open
        """Stay as it is."""
        return self

    def scored_by(self, rule: ScoreRule, roster: Roster) -> ScoreRule:  # noqa: ARG002  # rows are not scored
        """Leave the task's rule as it is."""
        return rule

    def sample(
        self,
        roster: Roster,
        rule: ScoreRule,  # noqa: ARG002
        rng: np.random.Generator,  # noqa: ARG002
        row_weights: Floats | None = None,
    ) -> Script[Coreset]:
        """Tell the parties to take all rows."""
        return use_all_rows(roster, row_weights)


def use_even_draw(
    roster: Roster, size: int, rng: np.random.Generator, row_weights: Floats | None = None
) -> Script[Coreset]:
    """Let all parties, and the server, draw the same rows evenly from one seed.

    Parameters
    ----------
    roster : Roster
        The parties.
    size : int
        m.
    rng : numpy.random.Generator
        Draws the seed.
    row_weights : ndarray of float64, shape (n_rows,), optional
        What each row counts, 1 if left out; rows are drawn by it.

    Returns
    -------
    Coreset
        With weights n / m, where n is the weight of all rows.
    """
    seed = int(rng.integers(2**63))
    yield {party: UseSharedDraw(size, seed) for party in roster.names}
    n = roster.n_rows
    rows = draw_evenly(n, size, np.random.default_rng(seed), row_weights)
    total_weight = weight_of_all(roster, row_weights)
    return Coreset(rows, np.full(size, total_weight / size), n, total_weight, f"UniformSampling(size={size})")


def use_all_rows(roster: Roster, row_weights: Floats | None = None) -> Script[Coreset]:
    """Let all parties take every row that counts, once.

    Parameters
    ----------
    roster : Roster
        The parties.
    row_weights : ndarray of float64, shape (n_rows,), optional
        What each row counts; 1 if left out.

    Returns
    -------
    Coreset
        With these weights.
    """
    n = roster.n_rows
    if n > MAX_NUMBERS:
        raise InputError(
            f"The parties hold {n:,} rows; all of them at once are at most {MAX_NUMBERS:,}. Use a coreset."
        )
    yield {party: UseAllRows() for party in roster.names}
    rows = _counted_rows(n, row_weights)
    weights = np.ones(n) if row_weights is None else row_weights[rows]
    return Coreset(rows, weights, n, weight_of_all(roster, row_weights), "AllRows()")


def weight_of_all(roster: Roster, row_weights: Floats | None) -> float:
    """Add up what all rows count: the n that multiplies a penalty."""
    return float(roster.n_rows if row_weights is None else row_weights.sum())


def weights_of(
    scores: Floats, total: float, counts: Floats | float, all_weight: float, size: int, even_share: float
) -> Floats:
    """Weigh rows that were drawn with probability q_i = (1 - s) g_i / G + s w_i / W: by w_i / (m q_i).

    Parameters
    ----------
    scores : ndarray of float64, shape (m,)
        g_i, summed over parties.
    total : float
        G.
    counts : ndarray of float64, shape (m,), or float
        w_i, what each row counts.
    all_weight : float
        W.
    size : int
        m.
    even_share : float
        s.

    Returns
    -------
    ndarray of float64, shape (m,)
        Where all rows count 1 and none is drawn evenly, G / (m g_i).
    """
    weights: Floats = total * counts / (size * ((1 - even_share) * scores + even_share * total * counts / all_weight))
    return weights


def use_rows(roster: Roster, rows: Rows) -> Script[Rows]:
    """Tell the parties which rows to take.

    Parameters
    ----------
    roster : Roster
        The parties.
    rows : ndarray of int64, shape (m,)
        Row ids, ascending.

    Returns
    -------
    ndarray of int64, shape (m,)
        The same.
    """
    yield {party: UseRows(sendable_rows(rows)) for party in roster.names}
    return rows


def _answer_shared_draw(state: PartyState, request: UseSharedDraw, data: PartyData) -> tuple[PartyState, Message]:
    checks.count(request, request.count, MAX_SIZE)
    checks.seed(request, request.seed)
    table = data.table
    rows = draw_evenly(table.n_rows, request.count, np.random.default_rng(request.seed), table.row_weights)
    return replace(state, rows=rows), Ready()


def _answer_all_rows(state: PartyState, _: UseAllRows, data: PartyData) -> tuple[PartyState, Message]:
    return replace(state, rows=_counted_rows(data.table.n_rows, data.table.row_weights)), Ready()


def _answer_rows(state: PartyState, request: UseRows, data: PartyData) -> tuple[PartyState, Message]:
    checks.row_ids(SERVER, request, request.rows, data.table.n_rows)
    return replace(state, rows=request.rows), Ready()


def _counted_rows(n_rows: int, row_weights: Floats | None) -> Rows:
    return np.arange(n_rows) if row_weights is None else np.flatnonzero(row_weights)


HANDLERS = (
    Handler(UseSharedDraw, _answer_shared_draw, after=None, then=SELECTED),
    Handler(UseAllRows, _answer_all_rows, after=None, then=SELECTED),
    Handler(UseRows, _answer_rows, after=None, then=SELECTED),
)
