"""Distinct draws, whole: quotas, rows, weights, and what is told of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.contracts import PartyCard, Roster
from colonnade.kernels.draws import chances, draw_distinct, draw_evenly_distinct, log_of
from colonnade.kernels.per_row import numbers_in
from colonnade.sampling.distinct.server import Distinct, LogsInTheClear
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.seeds import Seeds, even_rng
from colonnade.sampling.weights import Design
from harness import sessions_of

N, WIDTHS = 500, (2, 2, 2)
RULE = LeverageScores(fit_intercept=True)


def make_federation(n_rows: int = N, **options: Any) -> cn.Federation:
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, size=(n_rows, sum(WIDTHS)))
    return cn.Federation(cn.split_columns(X, rng.normal(size=n_rows), WIDTHS), **options)


def quotas(totals: list[float], size: int, share: float = 0.0, n_rows: int = N) -> tuple[int, tuple[int, ...]]:
    roster = Roster(tuple(PartyCard(f"party{j}", n_rows, ("x",), None) for j in range(len(totals))))
    way, rng = Distinct(LogsInTheClear(RULE, None)), np.random.default_rng(0)
    dealt = way.quotas(Design(roster, None, size, share), np.array(totals), Seeds(0, (0,) * len(totals)), rng)
    return dealt.n_even, dealt.counts


def test_quotas_are_dealt_by_totals_and_add_up() -> None:
    assert quotas([3.0, 1.0], 8) == (0, (6, 2))
    assert quotas([1.0, 1.0, 1.0], 8) == (0, (3, 3, 2)), "ties by order"
    assert quotas([3.0, 3.0, 1.0], 10, 0.3) == (3, (3, 3, 1))
    assert quotas([3.0, 1.0], 8, 1.0) == (8, (0, 0))
    assert quotas([5.0, 1e-9], 3) == (0, (3, 0))
    assert quotas([3.0, 1.0], 4000) == (0, (500, 500)), "no more than there are rows"
    for size in range(1, 60):
        n_even, counts = quotas([3.7, 1.2, 5.05, 0.4], size, 0.25)
        assert n_even + sum(counts) == size


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_and_weights_made_again_in_one_place(weighted: bool) -> None:
    """From the seeds that stand on the job sheet: each party's draw, the even one, 1 over the chance of the union."""
    rng = np.random.default_rng(0)
    X, y, size, share, seed = rng.standard_t(2, size=(N, 6)), rng.normal(size=N), 120, 0.25, 4
    weight = rng.uniform(0.1, 5, size=N) if weighted else None
    parties = cn.split_columns(X, y, WIDTHS, weight=weight)
    sampler = cn.ImportanceSampling(size, share, "distinct")
    federation = cn.Federation(parties)
    run = federation.coreset(cn.Regression(), sampler, seed=seed)
    scores = [RULE.scores(party.table) for party in parties] if weight is None else weighted_scores(parties)
    totals = [float(each.sum()) for each in scores]
    seeds = Seeds.of(np.random.default_rng([seed, 0]), 3)
    _, counts = quotas(totals, size, share)
    missed, drawn = np.ones(N), []
    for each, count, own in zip(scores, counts, seeds.own, strict=True):
        factor, own_rows = draw_distinct(each, count, np.random.default_rng(own))
        drawn.append(own_rows)
        missed *= 1 - chances(factor, np.asarray(each))
    counts_of = None if weight is None else numbers_in(weight)
    even_factor, even_rows = draw_evenly_distinct(N, 30, even_rng(seeds.shared), counts_of)
    even = chances(even_factor, np.ones(N) if weight is None else weight)
    rows = np.unique(np.concatenate([*drawn, even_rows]))
    np.testing.assert_array_equal(run.coreset.rows, rows)
    counted = np.ones(N) if weight is None else weight
    np.testing.assert_allclose(run.coreset.weights, (counted / (1 - missed * (1 - even)))[rows], rtol=1e-9)
    assert 0.5 * size < len(rows) < size, "some were drawn twice"
    units = {kind: sum(e.units for e in run.ledger if e.kind == kind) for kind in ("DrawnRows", "DistinctScores")}
    assert units == {"DrawnRows": size - 30, "DistinctScores": 3 * len(rows) + 3}


def weighted_scores(parties: Any) -> list[Any]:
    federation = cn.Federation(parties)
    federation.coreset(cn.Regression(), cn.ImportanceSampling(5))
    return [session._data._views[0][1].scores(RULE) for session in sessions_of(federation).values()]


def test_a_size_of_all_rows_takes_each_once_with_weight_1() -> None:
    federation = make_federation(60)
    for sampler in (cn.ImportanceSampling(400, draws="distinct"), cn.UniformSampling(100), cn.UniformSampling(60)):
        coreset = federation.coreset(cn.Regression(), sampler).coreset
        assert coreset.rows.tolist() == list(range(60))
        np.testing.assert_array_equal(coreset.weights, 1.0)


def test_even_draws_alone_need_no_scores_to_be_right() -> None:
    run = make_federation().coreset(cn.Regression(), cn.ImportanceSampling(50, 1.0, "distinct"))
    assert len(run.coreset) == 50
    np.testing.assert_allclose(run.coreset.weights, 10.0, rtol=1e-12)


@pytest.mark.parametrize("round_scores", [True, 1.0])
def test_chances_are_those_of_rounded_scores(round_scores: Any) -> None:
    sampler = cn.ImportanceSampling(200, draws="distinct", round_scores=round_scores)
    run = make_federation().coreset(cn.Regression(), sampler, seed=1)
    assert run.coreset.rule == "LeverageScores"
    assert {e.kind for e in run.ledger} >= {"AskDistinctCodes", "DistinctCodes"}
    assert (run.coreset.weights == 1.0).sum() > 3, "certain rows are certain to the last bit"


def test_logarithms_of_chances() -> None:
    logs = log_of(np.array([0.0, 1e-12, 0.5, 1 - 2.0**-53, 1.0]))
    np.testing.assert_allclose(logs, [0, 1e-12, np.log(2), 53 * np.log(2), np.inf], rtol=1e-11)


def test_a_run_remembers_that_its_rows_are_distinct(tmp_path: Path) -> None:
    federation = make_federation()
    run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(100, draws="distinct"))
    loaded = cn.Run.load(run.save(tmp_path / "run"))
    assert loaded.coreset.distinct
    assert run.diagnostics["distinct_rows"] == run.diagnostics["size"] == len(loaded.coreset)
    again = federation.fit(cn.Regression(), coreset=loaded.coreset)
    np.testing.assert_allclose(again.model.coef_, run.model.coef_)


@pytest.mark.parametrize("solver", [cn.Saga(batch=20, tolerance=0.5), cn.CompactCentral(), cn.SecureGram()], ids=str)
def test_solvers_learn_on_distinct_rows(solver: Any) -> None:
    """Also those that ask for as many batches as there are rows: fewer than the size."""
    federation = make_federation()
    run = federation.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(200, draws="distinct"), solver=solver)
    assert len(run.coreset) < 190


def test_what_goes_with_distinct_draws() -> None:
    with pytest.raises(cn.InputError, match='draws must be "distinct" or "independent", got \'stratified\''):
        cn.UniformSampling(5, draws="stratified")  # type: ignore[arg-type]
    with pytest.raises(cn.InputError, match="lists a row twice"):
        cn.Coreset(np.array([1, 1]), np.ones(2), 3, 3.0, distinct=True)
