"""Options of the sampler, and what they change."""

from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.errors import InputError
from colonnade.kernels.draws import draw_by_scores
from colonnade.sampling import ImportanceSampling, UniformSampling
from colonnade.sampling.plain.server import shares_of
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.seeds import Seeds


@pytest.mark.parametrize("size", [0, -3, True, 2.5, 2**40])
@pytest.mark.parametrize("sampler", [ImportanceSampling, UniformSampling])
def test_size_must_make_sense(sampler: Any, size: Any) -> None:
    with pytest.raises(InputError, match="size must be"):
        sampler(size)


@pytest.mark.parametrize("share", [-0.1, 1.1, np.nan, "much", True])
def test_a_uniform_share_is_between_0_and_1(share: Any) -> None:
    with pytest.raises(InputError, match="uniform_share must be a number from 0 to"):
        ImportanceSampling(10, uniform_share=share)


def test_without_even_draws_rows_and_weights_are_the_papers() -> None:
    """Made again in one place, from the seeds that stand on the job sheet: totals, quotas, draws, 1 / (m p)."""
    rng = np.random.default_rng(0)
    X, y, size, seed = rng.standard_t(3, size=(500, 6)), rng.normal(size=500), 100, 4
    parties = cn.split_columns(X, y, [2, 2, 2])
    sampler = ImportanceSampling(size, uniform_share=0.0, draws="independent")
    run = cn.Federation(parties).coreset(cn.Regression(), sampler, seed=seed)
    scores = [LeverageScores(fit_intercept=True).scores(party.table) for party in parties]
    totals = np.array([each.sum() for each in scores])
    sampling = np.random.default_rng([seed, 0])
    seeds = Seeds.of(sampling, len(parties))
    quotas = sampling.multinomial(size, shares_of(totals)).tolist()
    drawn = [
        draw_by_scores(each, quota, np.random.default_rng(own), stratified=False)
        for each, quota, own in zip(scores, quotas, seeds.own, strict=True)
    ]
    rows = np.sort(np.concatenate(drawn))
    np.testing.assert_array_equal(run.coreset.rows, rows)
    np.testing.assert_allclose(run.coreset.weights, totals.sum() / (size * np.sum(scores, axis=0)[rows]), rtol=1e-12)
    assert run.ledger.units == 2 * 3 + size + 2 * size * 3
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
