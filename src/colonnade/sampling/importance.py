"""Algorithm 1: importance sampling in three rounds. Its messages, the server's script, the party's handlers."""

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import Drawn, Inbox, Outbox, Roster, ScoreRule, Script, SumMechanism
from colonnade.coreset import Coreset
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.draws import draw_by_scores, draw_evenly
from colonnade.kernels.score_codes import LARGEST_LOG_STEP, LOG_STEP
from colonnade.messages import Message, Reveals, sendable_rows
from colonnade.options import flag, share
from colonnade.privacy.primitives import check_available
from colonnade.protocol import checks
from colonnade.protocol.session import FRAMED, Handler, PartyData, PartyState
from colonnade.sampling.rounded import SumRounded, rounded_rule
from colonnade.sampling.rules import AnyRule
from colonnade.sampling.secure_summing import SecureSum
from colonnade.sampling.shared import MAX_SIZE, sample_size, weight_of_all
from colonnade.sampling.summing import DRAWN, sum_in_the_clear

SCORED = "scored"
NO_SHARE = 0.0
# Totals are sums of n rounded numbers.
ROUNDING = 1e-6


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
    """a_j, how many rows this party draws (line 4), from which seed, and whether one in each stratum of its scores."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = DrawnRows

    count: Annotated[int, Reveals.TOTALS]
    seed: Annotated[int, Reveals.NOTHING]
    stratified: Annotated[bool, Reveals.NOTHING]


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
    uniform_share : float
        s, the share of draws that fall evenly on all rows instead: the probability is (1 - s) g_i / G + s / n and the
        weight 1 over m times that. No weight exceeds n / (m s) then, whatever the scores overlook. From 0 to 1; at 1
        `UniformSampling` does the same without scores.
    draws : {"stratified", "independent"}
        How a party draws its rows. Independently is Algorithm 1 to the letter. Stratified, it draws one row in each of
        as many parts of equal score: every row is expected as often and weighs the same, and coresets vary less.
    round_scores : bool or float
        Whether parties round all their scores, each by less than a thousandth, before they draw by them: a score then
        takes about 11 bits instead of 64. A number s, 0.0019 to 1, rounds them to powers of exp(s): 0.2, by up to a
        tenth, takes about 5 bits. Weights are those of the rounded scores, so that costs stay right on average.
    scores : "plain" or "secure", optional
        How scores of drawn rows are added. "plain": each party tells the server its own. "secure": the server learns
        only their sums; the same rows are drawn, and weights agree to one part in a million. In one process it is
        "plain" if left out. "secure" needs the extra ``colonnade[secure]``, and three parties or more.
    allow_two_parties : bool
        Whether "secure" is good enough with two parties: whoever learns the weights then subtracts its own scores and
        has the other's. Only a server that is neither party is kept out.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> rng = np.random.default_rng(0)
    >>> federation = cn.Federation(cn.split_columns(rng.normal(size=(500, 6)), rng.normal(size=500), [3, 3]))
    >>> run = federation.coreset(cn.Regression(), cn.ImportanceSampling(size=100), seed=1)
    >>> len(run.coreset)
    100
    >>> mixed = federation.coreset(cn.Regression(), cn.ImportanceSampling(size=100, uniform_share=0.5), seed=1)
    >>> bool(mixed.coreset.weights.max() <= 500 / (100 * 0.5))
    True
    >>> three = cn.Federation(cn.split_columns(rng.normal(size=(500, 6)), rng.normal(size=500), [2, 2, 2]))
    >>> secure = three.coreset(cn.Regression(), cn.ImportanceSampling(size=100, scores="secure"), seed=1)
    >>> secure.ledger.disclosures()["party1", "server"]
    ('totals', 'row ids', 'sums of scores')
    """

    size: int
    uniform_share: float = NO_SHARE
    draws: Literal["stratified", "independent"] = "stratified"
    round_scores: bool | float = False
    scores: Literal["plain", "secure"] | None = None
    allow_two_parties: bool = False

    def __post_init__(self) -> None:
        force_setattr(self, "size", sample_size(self.size))
        checked = share("uniform_share", self.uniform_share, example="Pass for instance uniform_share=0.1.")
        # Where it is zero, the default itself: what is printed then leaves it out.
        force_setattr(self, "uniform_share", checked or NO_SHARE)
        if self.draws not in ("stratified", "independent"):
            raise InputError(f'draws must be "stratified" or "independent", got {self.draws!r}. Pass one of the two.')
        force_setattr(self, "round_scores", _checked_rounding(self.round_scores))
        if self.scores not in (None, "plain", "secure"):
            raise InputError(f'scores must be "plain" or "secure", got {self.scores!r}. Pass one of the two.')
        force_setattr(self, "allow_two_parties", flag("allow_two_parties", self.allow_two_parties))
        if self.round_scores and self.scores == "secure":
            raise InputError(
                f'round_scores={self.round_scores} and scores="secure" do not go together: under a mask a rounded '
                "score takes as many bytes as any other. Leave out one of the two."
            )

    def check(self, roster: Roster) -> None:
        """Require enough parties for the scores of one to be hidden among those of others."""
        if self.scores != "secure":
            return
        check_available()
        n_parties = len(roster.cards)
        if n_parties == 1:
            raise InputError(f'With one party, {roster.names[0]}, a sum of scores is its scores. Pass scores="plain".')
        if n_parties == 2 and not self.allow_two_parties:
            raise InputError(
                f"With two parties, {' and '.join(roster.names)}, whoever learns the sums or the weights subtracts its "
                "own scores and has the other's: a secure sum hides them only from a server that is neither party. "
                "Pass allow_two_parties=True if that is enough."
            )

    def sample(
        self, roster: Roster, rule: ScoreRule, rng: np.random.Generator, row_weights: Floats | None = None
    ) -> Script[Coreset]:
        """Play Algorithm 1 with the scores summed as asked."""
        self.check(roster)
        if self.round_scores:
            return self._rounded(roster, rule, rng, row_weights)
        secure = self.scores == "secure"
        sum_scores: SumMechanism = SecureSum(rule, row_weights) if secure else sum_in_the_clear
        return importance_sampling(roster, rule, self, rng, sum_scores, row_weights)

    def _rounded(
        self, roster: Roster, rule: ScoreRule, rng: np.random.Generator, row_weights: Floats | None
    ) -> Script[Coreset]:
        rounded = rounded_rule(rule, self.round_scores)
        coreset = yield from importance_sampling(roster, rounded, self, rng, SumRounded(rounded), row_weights)
        # It serves whatever the rule itself serves.
        return dataclasses.replace(coreset, rule=type(rule).__name__)


def _checked_rounding(round_scores: bool | float) -> bool | float:
    if isinstance(round_scores, float) and LOG_STEP <= round_scores <= LARGEST_LOG_STEP:
        return round_scores
    if not isinstance(round_scores, bool | np.bool_):
        raise InputError(
            f"round_scores must be True, False or a number from {LOG_STEP:g} to {LARGEST_LOG_STEP:g}, got "
            f"{round_scores!r}. Pass for instance round_scores=0.2."
        )
    return bool(round_scores)


def importance_sampling(
    roster: Roster,
    rule: ScoreRule,
    sampler: ImportanceSampling,
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
    sampler : ImportanceSampling
        m, s, and how rows are drawn.
    rng : numpy.random.Generator
        Draws the quotas, each party's seed, and the rows that are drawn evenly.
    sum_scores : SumMechanism
        Round 3.
    row_weights : ndarray of float64, shape (n_rows,), optional
        w, what each row counts, also in its scores; 1 if left out.

    Returns
    -------
    Coreset
        Rows drawn with probability q_i = (1 - s) g_i / G + s w_i / W and weighted by w_i / (m q_i); where all rows
        count 1, w_i / W is 1 / n.
    """
    n, size, even_share = roster.n_rows, sampler.size, sampler.uniform_share
    asked: Outbox = {party: AskTotal(rule) for party in roster.names}  # type: ignore[arg-type]  # rules are closed
    told = yield asked
    totals = _read_totals(checks.replies(told, Total), roster, rule, row_weights)
    total = float(totals.sum())

    # The server draws the even rows itself: they need no party, and go out with the others in round 3.
    n_even = int(rng.binomial(size, even_share))
    quotas = rng.multinomial(size - n_even, totals / total)
    seeds = rng.integers(2**63, size=len(quotas))
    orders: Outbox = {
        party: DrawRows(int(quota), int(seed), sampler.draws == "stratified")
        for party, quota, seed in zip(roster.names, quotas, seeds, strict=True)
    }
    answers = yield orders
    by_party = _read_rows(checks.replies(answers, DrawnRows), quotas, n)
    rows = sendable_rows(np.sort(np.concatenate([*by_party.values(), draw_evenly(n, n_even, rng, row_weights)])))

    scores = yield from sum_scores(roster, Drawn(rows, by_party, _exchanged(asked, told, orders, answers)))
    counts = 1.0 if row_weights is None else row_weights[rows]
    all_weight = weight_of_all(roster, row_weights)
    weights = total * counts / (size * ((1 - even_share) * scores + even_share * total * counts / all_weight))
    return Coreset(rows, weights, n, all_weight, str(sampler), type(rule).__name__, total)


def _exchanged(*boxes: Outbox | Inbox) -> dict[str, list[Message]]:
    return {party: [box[party] for box in boxes] for party in boxes[0]}


def _read_totals(
    replies: Mapping[str, Total], roster: Roster, rule: ScoreRule, row_weights: Floats | None
) -> np.ndarray:
    """Read totals; one that no data can have would bend the draw, and is an error instead."""
    n_counted = roster.n_rows if row_weights is None else int(np.count_nonzero(row_weights))
    for card in roster.cards:
        reply, most = replies[card.name], rule.bounds(card, n_counted).total
        checks.positive(card.name, reply, reply.total)
        if reply.total > most * (1 + ROUNDING):
            raise checks.wrong(
                card.name, reply, f"the total {reply.total:g}, where scores of its columns add up to {most:g} at most"
            )
    return np.array([reply.total for reply in replies.values()])


def _read_rows(replies: Mapping[str, DrawnRows], quotas: np.ndarray, n_rows: int) -> dict[str, Rows]:
    for (party, reply), quota in zip(replies.items(), quotas, strict=True):
        checks.shape(party, reply, reply.rows, (int(quota),))
        checks.row_ids(party, reply, reply.rows, n_rows)
    return {party: reply.rows for party, reply in replies.items()}


def _answer_total(state: PartyState, request: AskTotal, data: PartyData) -> tuple[PartyState, Message]:
    reply = Total(float(data.scores(request.rule).sum()))
    return replace(state, rule=request.rule, rows=None, exchanged=(request, reply)), reply


def _answer_draw(state: PartyState, request: DrawRows, data: PartyData) -> tuple[PartyState, Message]:
    checks.count(request, request.count, MAX_SIZE)
    checks.seed(request, request.seed)
    rng = np.random.default_rng(request.seed)
    drawn = draw_by_scores(data.scores(state.rule), request.count, rng, stratified=request.stratified)
    reply = DrawnRows(sendable_rows(drawn))
    return replace(state, rows=reply.rows, exchanged=(*state.exchanged, request, reply)), reply


HANDLERS = (
    Handler(AskTotal, _answer_total, after=None, then=SCORED, keeps_view=frozenset({FRAMED})),
    Handler(DrawRows, _answer_draw, after=frozenset({SCORED}), then=DRAWN),
)
