"""ImportanceSampling: the options of Algorithm 1, and which script plays it."""

import dataclasses
from typing import Literal, Self

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import Agreed, Roster, ScoreRule, Script, SumMechanism, Task
from colonnade.coreset import Coreset
from colonnade.errors import InputError, UnsupportedError
from colonnade.kernels.per_row import PerRow
from colonnade.kernels.score_codes import LARGEST_LOG_STEP, LOG_STEP
from colonnade.options import flag, share
from colonnade.privacy.primitives import check_available
from colonnade.routes import Ask, AtMost, Route, then
from colonnade.sampling.committed.server import committed_route, sample_committed
from colonnade.sampling.distinct.messages import AskDistinctCodes, AskDistinctScores
from colonnade.sampling.distinct.server import Distinct, LogsInTheClear
from colonnade.sampling.plain.messages import AskScoreCodes, AskScores, Draws
from colonnade.sampling.plain.server import (
    Algorithm1,
    Scored,
    SumInTheClear,
    SumRounded,
    Way,
    WithReplacement,
    draw_route,
    vouching_route,
)
from colonnade.sampling.rules import travelling
from colonnade.sampling.rules.classes import ClassScores, class_rule
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.integers import IntegerScores, integer_rule
from colonnade.sampling.rules.plain import plain_rule
from colonnade.sampling.rules.rounded import RoundedScores, rounded_rule
from colonnade.sampling.rules.sharpened import SharpenedScores, sharpened_rule
from colonnade.sampling.secure.messages import AskMaskedLogs, AskMaskedScores
from colonnade.sampling.secure.server import SecureLogs, SecureSum, secure_sum_route
from colonnade.sampling.size import sample_size
from colonnade.sampling.weights import Design

NO_SHARE = 0.0
DRAWN = {"stratified": Draws.STRATIFIED, "independent": Draws.INDEPENDENT, "distinct": Draws.DISTINCT}
DRAWS = (*DRAWN, "committed")


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
        m, how many rows to draw; with replacement, unless draws are distinct: it may exceed the number of rows.
    uniform_share : float
        s, the share of draws that fall evenly on all rows instead: the probability is (1 - s) g_i / G + s / n and the
        weight 1 over m times that. No weight exceeds n / (m s) then, whatever the scores overlook. From 0 to 1; at 1
        `UniformSampling` does the same without scores.
    draws : {"stratified", "independent", "distinct", "committed"}
        How a party draws its rows. Independently is Algorithm 1 to the letter. Stratified, it draws one row in each of
        as many parts of equal score: every row is expected as often and weighs the same, and coresets vary less.
        Distinct, it draws each row at most once, those of the highest scores certainly; the coreset has every row once,
        with 1 over its chance of being there as its weight, and so `size` rows or fewer. That is best where few rows
        matter much, or `size` is a good part of all rows: what is sent of a row is sent once.
        Committed, it does so from a joint seed, after it has committed to its scores: a spot check can then tell
        whether it drew by them (`Federation.spot_check`, `Run.spot_check`). Takes a round more.
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
    sharpened : bool, optional
        For regressions and classifications: whether the label's party scores rows also by what its own features leave
        of the label. The fit on the coreset then varies less, on most tables by a tenth to a third, of classes by up to
        two thirds; the paper's theorem, and its robust form, are not about such scores. They tell more of labels, and
        so does that party's total.
    class_blind : bool, optional
        For classifications only: whether rows are drawn whatever their class. Else a part of the draws goes to all
        classes alike, which a rare one needs; and so the draw, scores and weights tell the classes of drawn rows.

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
    >>> distinct = federation.coreset(cn.Regression(), cn.ImportanceSampling(size=100, draws="distinct"), seed=1)
    >>> len(distinct.coreset) == len(set(distinct.coreset.rows.tolist())) <= 100
    True
    >>> three = cn.Federation(cn.split_columns(rng.normal(size=(500, 6)), rng.normal(size=500), [2, 2, 2]))
    >>> secure = three.coreset(cn.Regression(), cn.ImportanceSampling(size=100, scores="secure"), seed=1)
    >>> secure.ledger.disclosures()["party1", "server"]
    ('schema', 'totals', 'row ids', 'sums of scores')
    """

    size: int
    uniform_share: float = NO_SHARE
    draws: Literal["stratified", "independent", "distinct", "committed"] = "stratified"
    round_scores: bool | float = False
    scores: Literal["plain", "secure"] | None = None
    allow_two_parties: bool = False
    totals: Literal["checked", "set"] = "checked"
    # Unset where they are not asked for: what is written down of other draws stays as it was before there were these.
    sharpened: bool | msgspec.UnsetType = msgspec.UNSET
    class_blind: bool | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        force_setattr(self, "size", sample_size(self.size))
        checked = share("uniform_share", self.uniform_share, example="Pass for instance uniform_share=0.1.")
        # Where it is zero, the default itself: what is printed then leaves it out.
        force_setattr(self, "uniform_share", checked or NO_SHARE)
        if self.draws not in DRAWS:
            raise InputError(f"draws must be one of {', '.join(DRAWS)}, got {self.draws!r}. Pass one of the four.")
        if self.totals not in ("checked", "set"):
            raise InputError(f'totals must be "checked" or "set", got {self.totals!r}. Pass one of the two.')
        force_setattr(self, "round_scores", _checked_rounding(self.round_scores))
        if self.scores not in (None, "plain", "secure"):
            raise InputError(f'scores must be "plain" or "secure", got {self.scores!r}. Pass one of the two.')
        force_setattr(self, "allow_two_parties", flag("allow_two_parties", self.allow_two_parties))
        for name in ("sharpened", "class_blind"):
            if (asked := getattr(self, name)) is not msgspec.UNSET:
                force_setattr(self, name, flag(name, asked) or msgspec.UNSET)
        if self.sharpened and self.class_blind:
            raise InputError("sharpened=True looks at labels, and class_blind=True does not. Leave out one of the two.")
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
        """Require enough parties for the scores of one to be hidden among those of others, and scores to sharpen."""
        self._check_parties(roster)
        if self.sharpened and not isinstance(task.score_rule(), ClassScores):
            sharpened_rule(task.score_rule(), roster)
        if self.class_blind and not isinstance(task.score_rule(), ClassScores):
            raise UnsupportedError(
                f"class_blind=True is for classifications, not for {type(task).__name__}. Leave it out."
            )

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
        self,
        roster: Roster,
        rule: ScoreRule,
        rng: np.random.Generator,
        row_weights: PerRow | None = None,
        scored: Scored | None = None,
    ) -> Script[Coreset]:
        """Play Algorithm 1 with rows drawn, and scores summed, as asked; totals may be known of rows scored before."""
        self._check_parties(roster)
        design = Design(roster, row_weights, self.size, self.uniform_share)
        coreset = yield from self._script(design, self.scored_by(rule, roster), rng, scored)
        # It serves whatever the rule itself serves, however scores were rounded or filled up.
        serves = SharpenedScores if self.sharpened and not isinstance(rule, ClassScores) else type(rule)
        return dataclasses.replace(coreset, sampler=str(self), rule=serves.__name__)

    def _script(
        self, design: Design, rule: ScoreRule, rng: np.random.Generator, scored: Scored | None
    ) -> Script[Coreset]:
        if isinstance(rule, IntegerScores):
            return sample_committed(design, rule, rng, in_secret=self.scores == "secure")
        algorithm = Algorithm1(design, rng, self._way(rule, design.row_weights))
        if scored is not None:
            return algorithm.with_known_totals(scored.totals, None if scored.here else travelling(rule))
        return algorithm.with_set_totals(rule) if isinstance(rule, FilledScores) else algorithm.with_told_totals(rule)

    def route(self, rule: ScoreRule, agreed: Agreed) -> Route:
        """Expect Algorithm 1 as these options play it, with the seeds on the sheet."""
        scored, seeds = self.scored_by(rule, agreed.roster), agreed.seeds
        if seeds is None:
            raise InputError("The job sheet has no seeds for a draw by scores. Run the same version on all sides.")
        asked: dict[str, object] = {"size": self.size, "even_share": self.uniform_share}
        if isinstance(scored, IntegerScores):
            return then(committed_route(scored, self.size), self._sum_route(scored, asked))
        if self.draws == "distinct":
            asked |= {"size": AtMost(self.size), "n_draws": self.size}
        own, draws = seeds.own[agreed.place], DRAWN[self.draws]
        drawn = draw_route(scored, self.size, agreed.party, own, draws, scored=agreed.scored)
        return then(drawn, vouching_route(agreed), self._sum_route(scored, asked | {"even_seed": seeds.shared}))

    def _sum_route(self, rule: ScoreRule, asked: dict[str, object]) -> Route:
        if self.scores == "secure":
            return secure_sum_route(AskMaskedLogs if self.draws == "distinct" else AskMaskedScores, asked)
        if self.draws == "distinct":
            return Ask(AskDistinctCodes if isinstance(rule, RoundedScores) else AskDistinctScores, **asked)
        return Ask(AskScoreCodes if isinstance(rule, RoundedScores) else AskScores, **asked)

    def scored_by(self, rule: ScoreRule, roster: Roster) -> ScoreRule:
        """Say what parties score their rows by, where the task's rule is this."""
        if isinstance(rule, ClassScores):
            rule = rule if self.class_blind else class_rule(rule, roster, sharpened=bool(self.sharpened))
        elif self.sharpened:
            rule = sharpened_rule(rule, roster)
        if self.totals == "set":
            rule = FilledScores(plain_rule(rule))
        if self.draws == "committed":
            return integer_rule(rule, roster)
        return rounded_rule(rule, self.round_scores) if self.round_scores else rule

    def _way(self, rule: ScoreRule, row_weights: PerRow | None) -> Way:
        if self.draws == "distinct":
            in_secret = self.scores == "secure"
            return Distinct(SecureLogs(row_weights) if in_secret else LogsInTheClear(rule, row_weights))
        return WithReplacement(DRAWN[self.draws], self._sum_mechanism(rule, row_weights))

    def _sum_mechanism(self, rule: ScoreRule, row_weights: PerRow | None) -> SumMechanism:
        if self.scores == "secure":
            return SecureSum(rule, row_weights)
        if isinstance(rule, RoundedScores):
            return SumRounded(rule, row_weights)
        return SumInTheClear(rule, row_weights)


def _checked_rounding(round_scores: bool | float) -> bool | float:
    if isinstance(round_scores, float) and LOG_STEP <= round_scores <= LARGEST_LOG_STEP:
        return round_scores
    if not isinstance(round_scores, bool | np.bool_):
        raise InputError(
            f"round_scores must be True, False or a number from {LOG_STEP:g} to {LARGEST_LOG_STEP:g}, got "
            f"{round_scores!r}. Pass for instance round_scores=0.2."
        )
    return bool(round_scores)
