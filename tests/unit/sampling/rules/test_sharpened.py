"""Sharpened scores as a rule: what all sides derive it from, what bounds it, and which options and tasks it serves."""

import math
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import party_session
from colonnade.contracts import PartyCard, Roster
from colonnade.data.tables import read_table
from colonnade.errors import InputError, UnsupportedError
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.sampling.plain.messages import AskTotal
from colonnade.sampling.rules.clustering import ClusteringScores
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.rules.rounded import RoundedScores
from colonnade.sampling.rules.sharpened import SharpenedScores, sharpened_rule

ROSTER = Roster((PartyCard("bank", 90, ("a", "b", "c"), None), PartyCard("shop", 90, tuple("abcdefgh"), "y")))
RULE = LeverageScores(fit_intercept=True)


def made(n_rows: int = 400, **options: Any) -> cn.Federation:
    rng = np.random.default_rng(5)
    X = rng.standard_t(3, size=(n_rows, 6))
    return cn.Federation(cn.split_columns(X, X.sum(axis=1) + rng.normal(size=n_rows), [2, 2, 2]), **options)


def test_the_rule_follows_from_the_roster() -> None:
    rule = sharpened_rule(RULE, ROSTER)
    expected = 2 / 3 * (4**0.75 + 9**0.75) / (0.8 * math.sqrt(9))
    assert rule == SharpenedScores(fit_intercept=True, residuals=round(expected, 2))
    assert rule.unsharpened() == RULE
    assert rule.residuals * 100 == pytest.approx(round(rule.residuals * 100)), "no last bit that could differ"


def test_residuals_make_about_two_fifths_of_all_draws() -> None:
    """Of normal features and labels, where the constants of the rule are right."""
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(20_000, 12)), rng.normal(size=20_000)
    parties = cn.split_columns(X, y, [4, 4, 4])
    rule = sharpened_rule(RULE, cn.Federation(parties).roster)
    totals = [rule.scores(party.table).sum() for party in parties]
    without = SharpenedScores(fit_intercept=True, residuals=0.0).scores(parties[2].table).sum()
    assert (totals[2] - without) / sum(totals) == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize(
    ("label", "n_counted", "most"),
    [(None, 90, 3**0.75), ("y", 90, 3**0.75 + 2 * 3**0.5), (None, 1, 2**0.75), ("y", 1, 2**0.75 + 2 * 2**0.5)],
)
def test_bounds_of_totals(label: str | None, n_counted: int, most: float) -> None:
    rule = SharpenedScores(fit_intercept=True, residuals=2.0)
    bounds = rule.bounds(PartyCard("bank", 90, ("a", "b"), label), n_counted)
    assert bounds.total == pytest.approx(most)
    assert not bounds.whole
    assert bounds.score <= bounds.total


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_row_that_has_all_leverage_residual_and_weight_stays_within_the_bounds(fit_intercept: bool) -> None:
    X, y = np.zeros((30, 2)), np.zeros(30)
    X[0], y[1] = [1e9, 1e-9], 1e9
    for holder in (X, np.eye(30, 2)):
        table = read_table("shop", holder, label=y)
        rule = SharpenedScores(fit_intercept, 2.0)
        bounds, scores = rule.bounds(PartyCard("shop", 30, ("a", "b"), "y"), 30), rule.scores(table)
        assert scores.max() <= bounds.score
        assert scores.sum() <= bounds.total


@pytest.mark.parametrize("residuals", [-1.0, np.nan, np.inf, 1e9])
def test_a_server_that_asks_for_absurd_residuals_is_refused(residuals: float) -> None:
    party = party_session(read_table("bank", np.arange(8.0).reshape(4, 2)), Policy(level="open"))
    party.answer(Hello(WIRE_VERSION))
    reply = party.answer(AskTotal(SharpenedScores(True, residuals)))
    assert isinstance(reply, Refused)
    assert "Residuals cannot count" in reply.reason


def test_other_tasks_are_told_to_leave_it_out() -> None:
    with pytest.raises(UnsupportedError, match=r"for regressions.*ClusteringScores.*Leave it out"):
        sharpened_rule(ClusteringScores(3), ROSTER)
    with pytest.raises(UnsupportedError, match="for regressions"):
        made().coreset(cn.KMeans(2), cn.ImportanceSampling(50, sharpened=True))
    with pytest.raises(InputError, match="sharpened must be"):
        cn.ImportanceSampling(50, sharpened="yes")  # type: ignore[arg-type]


def test_other_options_wrap_it() -> None:
    rule = sharpened_rule(RULE, ROSTER)
    sampler = cn.ImportanceSampling(50, round_scores=0.2, sharpened=True)
    assert sampler.scored_by(RULE, ROSTER) == RoundedScores(rule, 0.2)
    assert cn.ImportanceSampling(50, totals="set", sharpened=True).scored_by(RULE, ROSTER) == FilledScores(rule)
    assert cn.ImportanceSampling(50, sharpened=True).scored_by(RULE, ROSTER) == rule


def test_weights_are_one_over_the_sum_of_scores() -> None:
    federation = made()
    run = federation.coreset(cn.Regression(), cn.ImportanceSampling(100, sharpened=True))
    rng = np.random.default_rng(5)
    X = rng.standard_t(3, size=(400, 6))
    parties = cn.split_columns(X, X.sum(axis=1) + rng.normal(size=400), [2, 2, 2])
    scores = np.sum([run.rule.scores(party.table) for party in parties], axis=0)
    np.testing.assert_allclose(run.coreset.weights, scores.sum() / (100 * scores[run.coreset.rows]), rtol=1e-9)


def test_its_coreset_serves_regressions_and_warns_elsewhere(recwarn: pytest.WarningsRecorder) -> None:
    federation = made()
    coreset = federation.coreset(cn.Regression(), cn.ImportanceSampling(100, sharpened=True)).coreset
    assert coreset.rule == "SharpenedScores"
    federation.fit(cn.Regression(l2=0.1), coreset=coreset)
    assert not recwarn.list
    with pytest.warns(cn.AssumptionWarning, match="drawn by SharpenedScores; KMeans needs ClusteringScores"):
        federation.fit(cn.KMeans(2), coreset=coreset)


def test_a_run_that_was_saved_says_how_rows_were_scored(tmp_path: Any) -> None:
    run = made().fit(cn.Regression(), sampler=cn.ImportanceSampling(100, sharpened=True))
    again = cn.Run.load(run.save(tmp_path / "run"))
    assert again.rule == run.rule
    assert again.coreset.rule == "SharpenedScores"
