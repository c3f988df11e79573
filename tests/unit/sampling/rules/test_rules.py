"""What scores cannot exceed, and roundings that no honest server asks for."""

from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import party_session
from colonnade.contracts import PartyCard, Roster
from colonnade.data.tables import read_table
from colonnade.errors import RemoteProtocolError
from colonnade.kernels.score_codes import round_scores
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.sampling import ImportanceSampling
from colonnade.sampling.plain.messages import AskTotal, Total
from colonnade.sampling.rules.clustering import ClusteringScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.rules.rounded import RoundedScores, rounded_rule

N = 50
ROSTER = Roster(tuple(PartyCard(name, N, ("x", "y"), None) for name in ("airline", "weather")))


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


@pytest.mark.parametrize("rule", [LeverageScores(fit_intercept=True), ClusteringScores(3)])
def test_rounded_scores_have_bounds_and_a_larger_total_is_caught(
    rule: LeverageScores | ClusteringScores,
) -> None:
    card, rounded = ROSTER.cards[0], rounded_rule(rule, round_scores=True)
    exact, bounds = rule.bounds(card, N), rounded.bounds(card, N)
    assert round_scores(np.array([exact.score]))[0] <= bounds.score
    assert exact.total * 1.0009 < bounds.total < exact.total * 1.001
    script = ImportanceSampling(10, round_scores=True).sample(ROSTER, rule, np.random.default_rng(0))
    next(script)
    with pytest.raises(RemoteProtocolError, match=r"airline.*add up to"):
        script.send({name: Total(bounds.total * 1.001) for name in ROSTER.names})


@pytest.mark.parametrize("log_step", [0.0, -1.0, np.nan, np.inf, 1e-9, 7.0])
def test_a_server_that_asks_for_an_absurd_rounding_is_refused(log_step: float) -> None:
    table = read_table("airline", np.arange(8.0).reshape(4, 2))
    party = party_session(table, Policy(level="open"))
    party.answer(Hello(WIRE_VERSION))
    reply = party.answer(AskTotal(RoundedScores(LeverageScores(fit_intercept=True), log_step)))
    assert isinstance(reply, Refused)
    assert "cannot be rounded" in reply.reason
