"""Algorithm 1: importance sampling in three rounds. Its messages, the server's script, the party's handlers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import Roster, ScoreRule, Script, SumMechanism
from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.draws import draw_by_scores
from colonnade.messages import Message, Reveals, sendable_rows
from colonnade.options import flag
from colonnade.protocol import checks
from colonnade.protocol.session import FRAMED, Handler, PartyData, PartyState
from colonnade.sampling.rounded import RoundedScores, sum_rounded
from colonnade.sampling.rules import AnyRule
from colonnade.sampling.shared import MAX_SIZE, sample_size, weight_of_all
from colonnade.sampling.summing import DRAWN, sum_in_the_clear

SCORED = "scored"


class Total(Message, frozen=True):
    """G^(j), the sum of the party's scores (line 2)."""

    phase: ClassVar[str] = "sampling"

    total: Annotated[float, Reveals.TOTALS]


class AskTotal(Message, frozen=True):
    """Opens the phase: score your rows by this rule."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Total

    rule: Annotated[AnyRule, Reveals.NOTHING]


class DrawnRows(Message, frozen=True):
    """S^(j), the rows the party drew (line 5)."""

    phase: ClassVar[str] = "sampling"

    rows: Annotated[Rows, Reveals.ROW_IDS]


class DrawRows(Message, frozen=True):
    """a_j, how many rows this party draws (line 4), and from which seed."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = DrawnRows

    count: Annotated[int, Reveals.TOTALS]
    seed: Annotated[int, Reveals.NOTHING]


class ImportanceSampling(
    msgspec.Struct,
    frozen=True,
    tag_field="kind",
    tag="importance",
    forbid_unknown_fields=True,
    repr_omit_defaults=True,
):
    """Draw rows by how much they matter: each with probability g_i / G, weight G / (m g_i).

    Parameters
    ----------
    size : int
        m, how many rows to draw, with replacement: it may exceed the number of rows.
    round_scores : bool
        Whether parties round all their scores, each by less than a thousandth, before they draw by them: a score then
        takes about 11 bits instead of 64, and weights are still right on average.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> rng = np.random.default_rng(0)
    >>> federation = cn.Federation(cn.split_columns(rng.normal(size=(500, 6)), rng.normal(size=500), [3, 3]))
    >>> run = federation.coreset(cn.Regression(), cn.ImportanceSampling(size=100), seed=1)
    >>> len(run.coreset)
    100
    """

    size: int
    round_scores: bool = False

    def __post_init__(self) -> None:
        force_setattr(self, "size", sample_size(self.size))
        force_setattr(self, "round_scores", flag("round_scores", self.round_scores))

    def sample(
        self, roster: Roster, rule: ScoreRule, rng: np.random.Generator, row_weights: Floats | None = None
    ) -> Script[Coreset]:
        """Play Algorithm 1 with the scores summed in the clear."""
        if not self.round_scores:
            return importance_sampling(roster, rule, self.size, rng, sum_in_the_clear, row_weights)
        rounded = RoundedScores(rule)  # type: ignore[arg-type]  # rules are closed
        return importance_sampling(roster, rounded, self.size, rng, sum_rounded, row_weights)


def importance_sampling(
    roster: Roster,
    rule: ScoreRule,
    size: int,
    rng: np.random.Generator,
    sum_scores: SumMechanism,
    row_weights: Floats | None = None,
) -> Script[Coreset]:
    """Draw a coreset by the parties' scores.

    Parameters
    ----------
    roster : Roster
        The parties.
    rule : ScoreRule
        How each scores its rows.
    size : int
        m.
    rng : numpy.random.Generator
        Draws the quotas and each party's seed.
    sum_scores : SumMechanism
        Round 3.
    row_weights : ndarray of float64, shape (n_rows,), optional
        w, what each row counts, also in its scores; 1 if left out.

    Returns
    -------
    Coreset
        Rows drawn with probability g_i / G and weighted by w_i G / (m g_i).
    """
    inbox = yield {party: AskTotal(rule) for party in roster.names}  # type: ignore[arg-type]  # rules are closed
    totals = _read_totals(checks.replies(inbox, Total))
    total = float(totals.sum())

    quotas = rng.multinomial(size, totals / total)
    seeds = rng.integers(2**63, size=len(quotas))
    inbox = yield {
        party: DrawRows(int(quota), int(seed)) for party, quota, seed in zip(roster.names, quotas, seeds, strict=True)
    }
    drawn = _read_rows(checks.replies(inbox, DrawnRows), quotas, roster.n_rows)
    rows = sendable_rows(np.sort(np.concatenate(list(drawn.values()))))

    scores = yield from sum_scores(roster, rows, drawn)
    weights = total / (size * scores) * (1.0 if row_weights is None else row_weights[rows])
    n, total_weight = roster.n_rows, weight_of_all(roster, row_weights)
    return Coreset(rows, weights, n, total_weight, f"ImportanceSampling(size={size})", type(rule).__name__, total)


def _read_totals(replies: Mapping[str, Total]) -> np.ndarray:
    for party, reply in replies.items():
        checks.positive(party, reply, reply.total)
    return np.array([reply.total for reply in replies.values()])


def _read_rows(replies: Mapping[str, DrawnRows], quotas: np.ndarray, n_rows: int) -> dict[str, Rows]:
    for (party, reply), quota in zip(replies.items(), quotas, strict=True):
        checks.shape(party, reply, reply.rows, (int(quota),))
        checks.row_ids(party, reply, reply.rows, n_rows)
    return {party: reply.rows for party, reply in replies.items()}


def _answer_total(state: PartyState, request: AskTotal, data: PartyData) -> tuple[PartyState, Message]:
    return replace(state, rule=request.rule, rows=None), Total(float(data.scores(request.rule).sum()))


def _answer_draw(state: PartyState, request: DrawRows, data: PartyData) -> tuple[PartyState, Message]:
    checks.count(request, request.count, MAX_SIZE)
    checks.seed(request, request.seed)
    drawn = draw_by_scores(data.scores(state.rule), request.count, np.random.default_rng(request.seed))
    rows = sendable_rows(drawn)
    return replace(state, rows=rows), DrawnRows(rows)


HANDLERS = (
    Handler(AskTotal, _answer_total, after=None, then=SCORED, keeps_view=frozenset({FRAMED})),
    Handler(DrawRows, _answer_draw, after=frozenset({SCORED}), then=DRAWN),
)
