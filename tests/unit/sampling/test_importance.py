"""The server's script of Algorithm 1, fed by hand: no parties, no transport."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import colonnade as cn
from colonnade.catalogue import party_session
from colonnade.contracts import Draw, Inbox, Outbox, PartyCard, Roster
from colonnade.coreset import Coreset
from colonnade.data.tables import read_table
from colonnade.errors import InputError, RemoteProtocolError
from colonnade.kernels.score_codes import round_scores
from colonnade.messages import sendable_floats, sendable_rows
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.sampling import ImportanceSampling, UniformSampling
from colonnade.sampling.plain.messages import AskScores, AskTotal, DrawnRows, DrawRows, Scores, Total
from colonnade.sampling.plain.server import others, shares_of
from colonnade.sampling.rules.clustering import ClusteringScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.rules.rounded import CoarseScores, RoundedScores

N = 50
ROSTER = Roster(tuple(PartyCard(name, N, ("x", "y"), None) for name in ("airline", "weather")))
RULE = LeverageScores(fit_intercept=False)


class Play:
    """Drives the script, with one reply changed."""

    def __init__(self, totals: Any = (3.0, 1.0), rows: Any = None, scores: Any = None) -> None:
        self.totals, self.rows, self.scores = totals, rows, scores

    def reply(self, outbox: Outbox) -> Inbox:
        return {party: self._one(i, party, request) for i, (party, request) in enumerate(outbox.items())}

    def _one(self, i: int, party: str, request: object) -> Any:
        if isinstance(request, DrawRows):
            honest = sendable_rows(np.arange(request.count) % N if request.count < N else np.zeros(request.count))
            return DrawnRows(honest if self.rows is None or party == "airline" else sendable_rows(self.rows))
        if isinstance(request, AskScores):
            honest_scores = sendable_floats(np.full(request.units(), 0.25))
            cheats = self.scores is not None and party == "weather"
            return Scores(sendable_floats(self.scores) if cheats else honest_scores)
        return Total(self.totals[i])

    def run(self, size: int = 8) -> Coreset:
        script = ImportanceSampling(size).sample(ROSTER, RULE, np.random.default_rng(0))
        outbox = next(script)
        try:
            while True:
                outbox = script.send(self.reply(outbox))
        except StopIteration as end:
            coreset: Coreset = end.value
            return coreset


def test_weights_are_the_papers() -> None:
    coreset = Play().run()
    assert len(coreset) == 8
    np.testing.assert_array_equal(coreset.weights, 4.0 / (8 * 0.5))
    assert coreset.total == 4.0


def test_quotas_add_up_and_follow_the_totals() -> None:
    script = ImportanceSampling(4000).sample(ROSTER, RULE, np.random.default_rng(0))
    next(script)
    outbox = script.send({"airline": Total(3.0), "weather": Total(1.0)})
    quotas = [request.count for request in outbox.values() if isinstance(request, DrawRows)]
    assert sum(quotas) == 4000
    assert quotas[0] == pytest.approx(3000, abs=5 * np.sqrt(4000 * 0.75 * 0.25))  # five sigma
    seeds = {request.seed for request in outbox.values() if isinstance(request, DrawRows)}
    assert len(seeds) == 2, "each party draws from a seed of its own"


@pytest.mark.parametrize("total", [0.0, -1.0, np.nan, np.inf, 1e308, 5e-324])
def test_a_total_must_be_finite_and_positive(total: float) -> None:
    with pytest.raises(RemoteProtocolError, match="'weather' sent a Total with the value") as caught:
        Play(totals=(3.0, total)).run()
    assert (caught.value.party, caught.value.kind) == ("weather", "Total")


@pytest.mark.parametrize(("total", "most"), [(3.001, "3"), (1e6, "3")])
def test_an_inflated_total_is_an_error_and_no_bigger_share(total: float, most: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"'weather' sent a Total with .* add up to {most} at most") as caught:
        Play(totals=(3.0, total)).run()
    assert (caught.value.party, caught.value.kind) == ("weather", "Total")


@pytest.mark.parametrize(
    ("rule", "label", "n_counted", "most"),
    [
        (LeverageScores(fit_intercept=True), None, 40, 3.0),
        (LeverageScores(fit_intercept=False), "y", 40, 4.0),
        (LeverageScores(fit_intercept=True), "y", 40, 5.0),
        (LeverageScores(fit_intercept=True), "y", 2, 3.0),
        (ClusteringScores(5), None, 40, 12.0),
        (ClusteringScores(5), "y", 3, 8.0),
    ],
)
def test_bounds_of_totals(rule: Any, label: str | None, n_counted: int, most: float) -> None:
    assert rule.bounds(PartyCard("airline", N, ("a", "b"), label), n_counted).total == most


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", [cn.Regression(standardize=True), cn.Regression(fit_intercept=False), cn.KMeans(4)])
def test_no_data_exceeds_the_bounds(task: Any, weighted: bool) -> None:
    """Full rank, heavy tails, few rows that count: honest parties reach the bounds and never pass them."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_cauchy(size=(60, 6)), rng.normal(size=60)
    weight = rng.integers(0, 3, size=60) * np.where(np.arange(60) < 50, 0, 1) if weighted else None
    federation = cn.Federation(cn.split_columns(X, y, [4, 2], weight=weight))
    run = federation.coreset(task, ImportanceSampling(200))
    assert run.coreset.total is not None


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "shape"),
        ([1] * 100, "shape"),
        ([-1, 2], "ascend within"),
        ([0, N], "ascend within"),
        ([5, 4], "ascend within"),
    ],
)
def test_rows_must_be_as_many_as_asked_and_exist(rows: list[int], message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"'weather' sent a DrawnRows with .*{message}"):
        Play(rows=rows).run(size=8)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.ones(7), "shape"),
        (np.ones((8, 1)), "shape"),
        (np.full(8, -0.1), "negative value"),
        (np.full(8, np.nan), "NaN, infinity"),
        (np.full(8, np.inf), "NaN, infinity"),
        (np.full(8, 1e308), "magnitude above 1e.100"),
    ],
)
def test_scores_must_be_finite_non_negative_and_as_many_as_asked(scores: Any, message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"'weather' sent a Scores with .*{message}"):
        Play(scores=scores).run(size=8)


def test_a_row_that_was_drawn_cannot_score_zero_everywhere() -> None:
    from colonnade.sampling.plain.server import sum_in_the_clear

    own = {"airline": sendable_rows([1]), "weather": sendable_rows([2])}
    script = sum_in_the_clear(ROSTER, Draw(sendable_rows([1, 2]), own, {}))
    next(script)
    with pytest.raises(RemoteProtocolError, match="a score of zero, as every other party, for a row that was drawn"):
        script.send({name: Scores(sendable_floats([0.5, 0.0])) for name in ROSTER.names})


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=4))
def test_a_party_is_told_the_rows_that_others_drew(draws: list[list[int]]) -> None:
    every = np.sort(np.array([row for drawn in draws for row in drawn], dtype=np.int64))
    for own in draws:
        told = others(every, np.sort(np.array(own, dtype=np.int64)))
        assert sorted([*told.tolist(), *own]) == every.tolist()
        assert AskScores(told, len(own)).units() == len(every), "the paper's count"


@pytest.mark.parametrize("size", [0, -3, True, 2.5, 2**40])
@pytest.mark.parametrize("sampler", [ImportanceSampling, UniformSampling])
def test_size_must_make_sense(sampler: Any, size: Any) -> None:
    with pytest.raises(InputError, match="size must be"):
        sampler(size)


@pytest.mark.parametrize("share", [-0.1, 1.1, np.nan, "much", True])
def test_a_uniform_share_is_between_0_and_1(share: Any) -> None:
    with pytest.raises(InputError, match="uniform_share must be a number from 0 to"):
        ImportanceSampling(10, uniform_share=share)


def test_without_even_draws_every_bit_is_as_before_the_option_existed() -> None:
    """Rows, weights and units as recorded before it came."""
    rng = np.random.default_rng(0)
    parties = cn.split_columns(rng.standard_t(3, size=(500, 6)), rng.normal(size=500), [2, 2, 2])
    sampler = ImportanceSampling(100, uniform_share=0.0, draws="independent")
    run = cn.Federation(parties).coreset(cn.Regression(), sampler, seed=4)
    assert run.coreset.rows[:12].tolist() == [1, 2, 9, 16, 19, 26, 30, 31, 46, 49, 57, 62]
    assert run.coreset.weights[:2] == pytest.approx([7.403456178780866, 5.051769018872855], rel=1e-12)
    assert run.ledger.units == 706
    assert run.coreset.sampler == str(run.sampler) == "ImportanceSampling(size=100, draws='independent')"


def test_even_rows_are_the_servers_and_go_out_with_the_others() -> None:
    rng = np.random.default_rng(0)
    parties = cn.split_columns(rng.normal(size=(500, 6)), rng.normal(size=500), [2, 2, 2])
    run = cn.Federation(parties).coreset(cn.Regression(), ImportanceSampling(100, uniform_share=0.3), seed=4)
    units = {kind: sum(e.units for e in run.ledger if e.kind == kind) for kind in ("DrawnRows", "AskScores", "Scores")}
    assert 50 < units["DrawnRows"] < 90, "100 less the even ones; five sigma are 23"
    assert units["AskScores"] == units["Scores"] == 300
    assert run.coreset.weights.max() <= 500 / (100 * 0.3)
    assert run.coreset.sampler == "ImportanceSampling(size=100, uniform_share=0.3)"


def test_a_coreset_of_rounded_scores_serves_its_task() -> None:
    rng = np.random.default_rng(0)
    federation = cn.Federation(cn.split_columns(rng.normal(size=(300, 4)), rng.normal(size=300), [2, 2]))
    run = federation.coreset(cn.Regression(), ImportanceSampling(50, round_scores=True))
    assert run.coreset.rule == "LeverageScores"
    federation.fit(cn.Regression(), coreset=run.coreset)  # a warning would be an error


@pytest.mark.parametrize("rule", [LeverageScores(fit_intercept=True), ClusteringScores(3)])
def test_rounded_scores_have_bounds_and_a_larger_total_is_caught(
    rule: LeverageScores | ClusteringScores,
) -> None:
    card, rounded = ROSTER.cards[0], RoundedScores(rule)
    exact, bounds = rule.bounds(card, N), rounded.bounds(card, N)
    assert round_scores(np.array([exact.score]))[0] <= bounds.score
    assert exact.total * 1.0009 < bounds.total < exact.total * 1.001
    script = ImportanceSampling(10, round_scores=True).sample(ROSTER, rule, np.random.default_rng(0))
    next(script)
    with pytest.raises(RemoteProtocolError, match=r"airline.*add up to"):
        script.send({name: Total(bounds.total * 1.001) for name in ROSTER.names})


@pytest.mark.parametrize("round_scores", [0.001, 1.5, -0.2, float("nan"), float("inf"), 1, "0.2", None])
def test_roundings_out_of_range(round_scores: Any) -> None:
    with pytest.raises(cn.InputError, match=r"round_scores must be True, False or a number from 0\.0019 to 1, got"):
        ImportanceSampling(10, round_scores=round_scores)


def test_coarse_scores_cost_fewer_bytes_and_the_same_units() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(3000, 4))
    federation = cn.Federation(cn.split_columns(X, rng.normal(size=3000), [2, 2]))
    fine, coarse = (
        federation.coreset(cn.Regression(), ImportanceSampling(800, round_scores=how), seed=1) for how in (True, 0.2)
    )
    assert coarse.ledger.units == fine.ledger.units
    bytes_of = [sum(e.bytes for e in run.ledger if e.kind == "ScoreCodes") for run in (fine, coarse)]
    assert bytes_of[1] < 0.6 * bytes_of[0]
    assert coarse.coreset.rule == "LeverageScores"


def test_costs_by_coarse_scores_are_right_on_average() -> None:
    """300 draws, rounded by up to two thirds. Two z-tests at 4.5 sigma: a false alarm in 1 of 70,000 runs."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_t(3, size=(400, 4)), rng.standard_t(3, size=400)
    federation = cn.Federation(cn.split_columns(X, y, [2, 2]))
    sampler = ImportanceSampling(40, round_scores=1.0)
    coresets = [federation.coreset(cn.Regression(), sampler, seed=seed).coreset for seed in range(300)]
    for losses in (np.ones(400), np.square(X @ [1.0, -1.0, 2.0, 0.5] - y)):
        found = np.array([coreset.weights @ losses[coreset.rows] for coreset in coresets])
        assert abs(found.mean() - losses.sum()) < 4.5 * found.std() / np.sqrt(len(found))


@pytest.mark.parametrize("log_step", [0.0, -1.0, np.nan, np.inf, 1e-9, 7.0])
def test_a_server_that_asks_for_an_absurd_rounding_is_refused(log_step: float) -> None:
    table = read_table("airline", np.arange(8.0).reshape(4, 2))
    party = party_session(table, Policy())
    party.answer(Hello(WIRE_VERSION))
    reply = party.answer(AskTotal(CoarseScores(LeverageScores(fit_intercept=True), log_step)))
    assert isinstance(reply, Refused)
    assert "cannot be rounded" in reply.reason


@pytest.mark.parametrize("totals", [[21.0, 21.0, 21.0], [1.0, 1.0], [3.0, 1.0, 2.0, 6.0], [1e-300, 1.0, 1e300]])
def test_the_last_bit_of_a_total_decides_nothing(totals: list[float]) -> None:
    """Sums differ in their last bits from machine to machine: three equal parties are drawn from by a half."""
    exact = np.array(totals)
    shares = [shares_of(at) for at in (exact, np.nextafter(exact, 0), np.nextafter(exact, np.inf))]
    quotas = [np.random.default_rng(0).multinomial(1000, share).tolist() for share in shares]
    assert quotas[0] == quotas[1] == quotas[2]
