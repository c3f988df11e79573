"""Algorithm 1: importance sampling in three rounds: who draws, who sums, and the weights."""

import dataclasses
from typing import Literal, Self

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import Roster, ScoreRule, Script, SumMechanism, Task
from colonnade.coreset import Coreset
from colonnade.errors import InputError, UnsupportedError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.score_codes import LARGEST_LOG_STEP, LOG_STEP
from colonnade.options import flag, share
from colonnade.privacy.primitives import check_available
from colonnade.sampling.committed import draw_committed, told_in_the_clear
from colonnade.sampling.drawing import check_copies, draw_by_totals
from colonnade.sampling.filled import FilledScores
from colonnade.sampling.integers import IntegerScores, integer_rule
from colonnade.sampling.plain_rules import plain_rule
from colonnade.sampling.rounded import CoarseScores, RoundedScores, SumRounded, rounded_rule
from colonnade.sampling.secure_summing import SecureSum
from colonnade.sampling.shared import sample_size, weight_of_all, weights_of
from colonnade.sampling.summing import sum_in_the_clear

NO_SHARE = 0.0
DRAWS = ("stratified", "independent", "committed")


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
    draws : {"stratified", "independent", "committed"}
        How a party draws its rows. Independently is Algorithm 1 to the letter. Stratified, it draws one row in each of
        as many parts of equal score: every row is expected as often and weighs the same, and coresets vary less.
        Committed, it does so from a joint seed, after it has committed to its scores: an audit of the run can then tell
        whether it drew by them (`Federation.audit`, `Run.audit`). Takes a round more.
    round_scores : bool or float
        Whether parties round all their scores, each by less than a thousandth, before they draw by them: a score then
        takes about 11 bits instead of 64. A number s, 0.0019 to 1, rounds them to powers of exp(s): 0.2, by up to a
        tenth, takes about 5 bits. Weights are those of the rounded scores, so that costs stay right on average.
    scores : "plain" or "secure", optional
        How scores of drawn rows are added. "plain": each party tells the server its own. "secure": the server learns
        only their sums; the same rows are drawn, and weights agree to one part in a million. If left out, it is
        "plain" in one process, and between machines "secure" where three parties or more take part and scores are not
        rounded. "secure" needs the extra ``colonnade[secure]``, and three parties or more.
    allow_two_parties : bool
        Whether "secure" is good enough with two parties: whoever learns the weights then subtracts its own scores and
        has the other's. Only a server that is neither party is kept out.
    totals : {"checked", "set"}
        Whether each party tells the sum of its scores, which is checked to be no more than its columns can have; or the
        server sets it to just that, and the party spreads what it lacks evenly over its rows. Then no party tells it,
        and a round is saved.

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
    draws: Literal["stratified", "independent", "committed"] = "stratified"
    round_scores: bool | float = False
    scores: Literal["plain", "secure"] | None = None
    allow_two_parties: bool = False
    totals: Literal["checked", "set"] = "checked"

    def __post_init__(self) -> None:
        force_setattr(self, "size", sample_size(self.size))
        checked = share("uniform_share", self.uniform_share, example="Pass for instance uniform_share=0.1.")
        # Where it is zero, the default itself: what is printed then leaves it out.
        force_setattr(self, "uniform_share", checked or NO_SHARE)
        if self.draws not in DRAWS:
            raise InputError(f"draws must be one of {', '.join(DRAWS)}, got {self.draws!r}. Pass one of the three.")
        if self.totals not in ("checked", "set"):
            raise InputError(f'totals must be "checked" or "set", got {self.totals!r}. Pass one of the two.')
        force_setattr(self, "round_scores", _checked_rounding(self.round_scores))
        if self.scores not in (None, "plain", "secure"):
            raise InputError(f'scores must be "plain" or "secure", got {self.scores!r}. Pass one of the two.')
        force_setattr(self, "allow_two_parties", flag("allow_two_parties", self.allow_two_parties))
        if self.round_scores and self.scores == "secure":
            raise InputError(
                f'round_scores={self.round_scores} and scores="secure" do not go together: under a mask a rounded '
                "score takes as many bytes as any other. Leave out one of the two."
            )
        if self.round_scores and (self.totals == "set" or self.draws == "committed"):
            option = 'totals="set"' if self.totals == "set" else 'draws="committed"'
            raise UnsupportedError(
                f"round_scores={self.round_scores} and {option} do not go together: rounding changes scores after they "
                "were set or committed to. Leave out one of the two."
            )

    def between_machines(self, n_parties: int) -> Self:
        """Decide how scores are added where that was left open: in secret, where it hides something."""
        if self.scores is not None:
            return self
        return msgspec.structs.replace(self, scores="secure" if n_parties > 2 and not self.round_scores else "plain")

    def check(self, task: Task[object], roster: Roster, run_by: str | None) -> None:  # noqa: ARG002  # of the contract
        """Require enough parties for the scores of one to be hidden among those of others."""
        self._check_parties(roster)

    def _check_parties(self, roster: Roster) -> None:
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
        """Play Algorithm 1 with rows drawn, and scores summed, as asked."""
        self._check_parties(roster)
        scored = self.scored_by(rule, roster)
        if isinstance(scored, IntegerScores):
            coreset = yield from self._committed(roster, scored, rng, row_weights)
        else:
            coreset = yield from self._plain(roster, scored, rng, row_weights)
        # It serves whatever the rule itself serves.
        return dataclasses.replace(coreset, rule=type(rule).__name__)

    def scored_by(self, rule: ScoreRule, roster: Roster) -> ScoreRule:
        """Say what parties score their rows by, where the task's rule is this."""
        if self.totals == "set":
            rule = FilledScores(plain_rule(rule))
        if self.draws == "committed":
            return integer_rule(rule, roster)
        return rounded_rule(rule, self.round_scores) if self.round_scores else rule

    def _sum_mechanism(self, rule: ScoreRule, row_weights: Floats | None) -> SumMechanism:
        if self.scores == "secure":
            return SecureSum(rule, row_weights)
        return SumRounded(rule) if isinstance(rule, RoundedScores | CoarseScores) else sum_in_the_clear

    def _plain(
        self, roster: Roster, rule: ScoreRule, rng: np.random.Generator, row_weights: Floats | None
    ) -> Script[Coreset]:
        return importance_sampling(roster, rule, self, rng, self._sum_mechanism(rule, row_weights), row_weights)

    def _committed(
        self, roster: Roster, rule: IntegerScores, rng: np.random.Generator, row_weights: Floats | None
    ) -> Script[Coreset]:
        drawn, total, evidence = yield from draw_committed(
            roster, rule, rng, row_weights, size=self.size, even_share=self.uniform_share
        )
        if self.scores == "secure":
            scores = yield from SecureSum(rule, row_weights)(roster, drawn)
        else:
            scores, evidence = yield from told_in_the_clear(roster, drawn, evidence)
        coreset = _weighed(self, roster, drawn.rows, scores, total, row_weights)
        return dataclasses.replace(coreset, evidence=evidence)


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
    drawn, totals = yield from draw_by_totals(
        roster,
        rule,
        rng,
        row_weights,
        size=sampler.size,
        even_share=sampler.uniform_share,
        stratified=sampler.draws == "stratified",
    )
    scores = yield from sum_scores(roster, drawn)
    check_copies(roster, drawn, totals, scores, stratified=sampler.draws == "stratified")
    return _weighed(sampler, roster, drawn.rows, scores, float(totals.sum()), row_weights, type(rule).__name__)


def _weighed(
    sampler: ImportanceSampling,
    roster: Roster,
    rows: Rows,
    scores: Floats,
    total: float,
    row_weights: Floats | None,
    rule: str | None = None,
) -> Coreset:
    counts = 1.0 if row_weights is None else row_weights[rows]
    all_weight = weight_of_all(roster, row_weights)
    weights = weights_of(scores, total, counts, all_weight, sampler.size, sampler.uniform_share)
    return Coreset(rows, weights, roster.n_rows, all_weight, str(sampler), rule, total)
