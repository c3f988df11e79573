"""Algorithm 1 draws as the paper says. Seeds are fixed; each test states how often it would fail by chance.

Draws are independent ones here, Algorithm 1 to the letter; stratified draws are more even than these laws, and have
tests of their own. Laws of many runs have two forms: of hundreds of seeds always, of thousands among the slow tests.
Ten times the seeds find an error a third as large.
"""

import numpy as np
import pytest
from scipy import stats

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.kernels.per_row import numbers_in
from colonnade.protocol.viewed_table import ViewedTable
from whole_tables import held

FALSE_ALARM = 1e-4  # a test: what a correct program would fail at with a fresh seed


def seeds(few: int, many: int) -> pytest.MarkDecorator:
    """Run a law in its quick form and in its slow one."""
    return pytest.mark.parametrize("n_seeds", [few, pytest.param(many, marks=pytest.mark.slow(sampled=False))])


def heavy_tailed(n_rows: int, widths: tuple[int, ...], seed: int) -> tuple[list[cn.Party], Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, size=(n_rows, sum(widths)))
    y = X @ rng.normal(size=X.shape[1]) + rng.normal(size=n_rows)
    return cn.split_columns(X, y, widths), X, y


def summed_scores(parties: list[cn.Party], task: cn.Regression | cn.KMeans) -> Floats:
    """Compute g_i offline: the sum over parties of their scores of every row."""
    scores: Floats = np.sum([task.score_rule().scores(party.table) for party in parties], axis=0)
    return scores


def chi_square_p(rows: np.ndarray, probabilities: Floats) -> float:
    observed = np.bincount(rows, minlength=len(probabilities))
    expected = probabilities * len(rows)
    assert expected.min() >= 5, "the chi-square law needs five expected in every cell"
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


@pytest.mark.parametrize(
    "task", [cn.Regression(), cn.Regression(fit_intercept=False), cn.KMeans(n_clusters=4)], ids=str
)
def test_the_rounds_draw_with_the_law_of_offline_sampling(task: cn.Regression | cn.KMeans) -> None:
    """Chi-square over all rows at 200,000 draws; false alarm 1e-4 a case."""
    parties, _, _ = heavy_tailed(300, (3, 2, 2), seed=1)
    g = summed_scores(parties, task)
    run = cn.Federation(parties).coreset(task, cn.ImportanceSampling(size=200_000, draws="independent"), seed=11)
    assert chi_square_p(run.coreset.rows, g / g.sum()) > FALSE_ALARM


@pytest.mark.parametrize("uniform_share", [0.3, 1.0])
def test_even_draws_mix_in_with_their_share(uniform_share: float) -> None:
    """q = (1 - s) g / G + s / n, weight 1 / (m q). Chi-square at 200,000 draws; false alarm 1e-4 a case."""
    parties, _, _ = heavy_tailed(300, (3, 2, 2), seed=1)
    g = summed_scores(parties, cn.Regression())
    law = (1 - uniform_share) * g / g.sum() + uniform_share / 300
    sampler = cn.ImportanceSampling(200_000, uniform_share=uniform_share, draws="independent")
    coreset = cn.Federation(parties).coreset(cn.Regression(), sampler, seed=21).coreset
    assert chi_square_p(coreset.rows, law) > FALSE_ALARM
    np.testing.assert_allclose(coreset.weights, 1 / (200_000 * law[coreset.rows]), rtol=1e-12)


@seeds(400, 4_000)
def test_the_number_of_even_draws_is_binomial_from_run_to_run(n_seeds: int) -> None:
    """Runs of 25 rows with s = 0.4: the pooled law, chi-square; false alarm 1e-4.

    Rows' probabilities that are off by 10 % (root mean square) are found nine times in ten; by 3 % in the slow form.
    """
    parties, _, _ = heavy_tailed(100, (2, 2), seed=2)
    g = summed_scores(parties, cn.Regression())
    federation, sampler = cn.Federation(parties), cn.ImportanceSampling(25, uniform_share=0.4, draws="independent")
    rows = [federation.coreset(cn.Regression(), sampler, seed=seed).coreset.rows for seed in range(n_seeds)]
    assert chi_square_p(np.concatenate(rows), 0.6 * g / g.sum() + 0.4 / 100) > FALSE_ALARM


def test_the_rounds_and_offline_sampling_are_one_law() -> None:
    """Two samples of one law: chi-square of homogeneity against offline draws; false alarm 1e-4."""
    parties, _, _ = heavy_tailed(300, (3, 2, 2), seed=1)
    g = summed_scores(parties, cn.Regression())
    ours = (
        cn.Federation(parties)
        .coreset(cn.Regression(), cn.ImportanceSampling(size=100_000, draws="independent"), seed=5)
        .coreset.rows
    )
    offline = np.random.default_rng(6).choice(300, size=100_000, p=g / g.sum())
    table = np.stack([np.bincount(ours, minlength=300), np.bincount(offline, minlength=300)])
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


@seeds(400, 4_000)
def test_many_small_runs_draw_with_the_same_law(n_seeds: int) -> None:
    """Quotas are random too: runs of 25 rows, chi-square; false alarm 1e-4. It finds errors as small as those above."""
    parties, _, _ = heavy_tailed(100, (2, 2), seed=2)
    g = summed_scores(parties, cn.Regression())
    federation = cn.Federation(parties)
    rows = [
        federation.coreset(cn.Regression(), cn.ImportanceSampling(size=25, draws="independent"), seed=seed).coreset.rows
        for seed in range(n_seeds)
    ]
    assert chi_square_p(np.concatenate(rows), g / g.sum()) > FALSE_ALARM


def test_uniform_draws_are_even() -> None:
    """Chi-square at 100,000 draws; false alarm 1e-4."""
    parties, _, _ = heavy_tailed(300, (2, 2), seed=3)
    run = cn.Federation(parties).coreset(cn.Regression(), cn.UniformSampling(100_000, draws="independent"), seed=4)
    assert chi_square_p(run.coreset.rows, np.full(300, 1 / 300)) > FALSE_ALARM


def test_with_one_party_it_is_classical_importance_sampling() -> None:
    """T = 1: the scores are leverage of [X, y, 1] plus 1/n, the law g/G (false alarm 1e-4), the weight G/(m g)."""
    parties, X, y = heavy_tailed(200, (4,), seed=7)
    Q, _ = np.linalg.qr(np.column_stack([X, y, np.ones(200)]))
    g = np.square(Q).sum(axis=1) + 1 / 200
    coreset = (
        cn.Federation(parties)
        .coreset(cn.Regression(), cn.ImportanceSampling(size=100_000, draws="independent"), seed=8)
        .coreset
    )
    assert chi_square_p(coreset.rows, g / g.sum()) > FALSE_ALARM
    np.testing.assert_allclose(coreset.weights, g.sum() / (100_000 * g[coreset.rows]), rtol=1e-8)


MIXED = cn.ImportanceSampling(size=40, uniform_share=0.3)


@seeds(300, 3_000)
@pytest.mark.parametrize(
    "sampler",
    [cn.ImportanceSampling(40), cn.ImportanceSampling(40, draws="independent"), MIXED, cn.UniformSampling(40)],
    ids=str,
)
def test_the_weighted_cost_of_a_fixed_model_is_unbiased(
    sampler: cn.ImportanceSampling | cn.UniformSampling, n_seeds: int
) -> None:
    """Mean over the coresets within 3.9 standard errors of the cost on all rows; false alarm 1e-4 (of 300: 2e-4).

    A standard error is 1 to 2 % of the cost over 300 coresets, and 0.4 to 0.6 % over 3,000.
    """
    parties, X, y = heavy_tailed(500, (3, 3), seed=9)
    theta = np.random.default_rng(10).normal(size=6)
    losses = np.square(X @ theta + 0.5 - y)
    cost = losses.sum()
    federation = cn.Federation(parties)
    estimates = []
    for seed in range(n_seeds):
        coreset = federation.coreset(cn.Regression(), sampler, seed=seed).coreset
        estimates.append(coreset.weights @ losses[coreset.rows])
    error = np.mean(estimates) - cost
    assert abs(error) < 3.9 * np.std(estimates) / np.sqrt(len(estimates))


@seeds(300, 3_000)
def test_the_weighted_clustering_cost_of_fixed_centres_is_unbiased(n_seeds: int) -> None:
    """Mean over the coresets within 3.9 standard errors; false alarm 1e-4 (of 300: 2e-4)."""
    parties, X, _ = heavy_tailed(500, (3, 3), seed=12)
    centers = X[:5]
    losses = np.square(X[:, None] - centers[None]).sum(axis=2).min(axis=1)
    federation = cn.Federation(parties)
    estimates = []
    for seed in range(n_seeds):
        coreset = federation.coreset(
            cn.KMeans(n_clusters=5), cn.ImportanceSampling(size=40, draws="independent"), seed=seed
        ).coreset
        estimates.append(coreset.weights @ losses[coreset.rows])
    assert abs(np.mean(estimates) - losses.sum()) < 3.9 * np.std(estimates) / np.sqrt(len(estimates))


@pytest.mark.parametrize("seed", range(5))
def test_weights_sum_to_n_on_kc_house(kc_house: tuple[Floats, Floats], seed: int) -> None:
    """Within 5 % at m = 5000. The sum's relative std is below 1 %, so a false alarm is beyond five sigma."""
    X, y = kc_house
    federation = cn.Federation(cn.split_columns(X, y, [9, 9]))
    coreset = federation.coreset(
        cn.Regression(), cn.ImportanceSampling(size=5000, draws="independent"), seed=seed
    ).coreset
    assert coreset.weights.sum() == pytest.approx(len(X), rel=0.05)
    assert np.std(coreset.weights) / np.sqrt(5000) * 5000 / len(X) < 0.01


# Rows with weights of their own, and rows held out: the same laws with weighted scores.


def weighted_scores(parties: list[cn.Party], task: cn.Regression | cn.KMeans, weights: Floats) -> Floats:
    """Compute g_i offline, each party's rows counting by their weights."""
    rule = task.score_rule()
    scores: Floats = np.sum(
        [rule.scores(ViewedTable(p.table, numbers_in(weights), None, None)) for p in parties], axis=0
    )
    return scores


def weighing(n_rows: int, widths: tuple[int, ...], seed: int) -> tuple[list[cn.Party], Floats, Floats, Floats]:
    """Make parties of which the last holds weights: some 0, most near 1, a few large."""
    parties, X, y = heavy_tailed(n_rows, widths, seed)
    rng = np.random.default_rng(seed + 1000)
    weights = rng.lognormal(size=n_rows) * (rng.random(n_rows) < 0.8)
    named = [
        cn.Party(p.name, held(p.table)[:, : len(p.table.feature_names)], weight=weights if p is parties[0] else None)
        for p in parties[:-1]
    ]
    last = cn.Party("label", X[:, -widths[-1] :], label=y)
    return [*named, last], X, y, weights


@pytest.mark.parametrize("task", [cn.Regression(), cn.KMeans(n_clusters=4)], ids=str)
def test_rows_with_weights_are_drawn_by_weighted_scores(task: cn.Regression | cn.KMeans) -> None:
    """Chi-square over all rows that count at 400,000 draws; false alarm 1e-4 a case."""
    parties, _, _, _ = weighing(200, (3, 2, 2), seed=1)
    split = cn.HoldOut(0.3, seed=4)
    train = cn.Federation(parties).coreset(task, cn.AllRows(), split=split).coreset
    counted = np.zeros(200)
    counted[train.rows] = train.weights
    g = weighted_scores(parties, task, counted)
    coreset = (
        cn.Federation(parties)
        .coreset(task, cn.ImportanceSampling(size=400_000, draws="independent"), split=split, seed=11)
        .coreset
    )
    kept = np.flatnonzero(g / g.sum() > 6 / 400_000)
    assert g[kept].sum() > (1 - 1e-3) * g.sum(), "rows left out of the test are next to never drawn"
    drawn = np.searchsorted(kept, coreset.rows[np.isin(coreset.rows, kept)])
    assert chi_square_p(drawn, g[kept] / g[kept].sum()) > FALSE_ALARM
    np.testing.assert_allclose(
        coreset.weights, counted[coreset.rows] * g.sum() / (400_000 * g[coreset.rows]), rtol=1e-8
    )


def test_uniform_draws_are_by_weight() -> None:
    """Chi-square at 100,000 draws of rows of weight 0 to 3; false alarm 1e-4."""
    parties, _, _ = heavy_tailed(300, (2, 2), seed=3)
    copies = np.arange(300) % 4
    parties[0] = cn.Party("first", held(parties[0].table), weight=copies)
    rows = (
        cn.Federation(parties)
        .coreset(cn.Regression(), cn.UniformSampling(100_000, draws="independent"), seed=4)
        .coreset.rows
    )
    kept = np.flatnonzero(copies)
    assert np.isin(rows, kept).all()
    assert chi_square_p(np.searchsorted(kept, rows), copies[kept] / copies.sum()) > FALSE_ALARM


@seeds(300, 2_000)
@pytest.mark.parametrize(
    "sampler",
    [cn.ImportanceSampling(60), cn.ImportanceSampling(60, draws="independent"), cn.UniformSampling(60)],
    ids=str,
)
@pytest.mark.parametrize("task", [cn.Regression(), cn.KMeans(n_clusters=5)], ids=str)
def test_the_cost_of_rows_with_weights_is_unbiased(
    task: cn.Regression | cn.KMeans, sampler: cn.UniformSampling, n_seeds: int
) -> None:
    """Mean over the coresets within 3.9 standard errors of the weighted cost; false alarm 1e-4 a case.

    Of 300 coresets it is 2e-4, and 1e-3 for clusters of even draws: their costs are skewed.
    """
    parties, X, y, weights = weighing(400, (3, 3), seed=9)
    if isinstance(task, cn.Regression):
        losses = np.square(X @ np.random.default_rng(10).normal(size=6) + 0.5 - y)
    else:
        losses = np.square(X[:, None] - X[None, :5]).sum(axis=2).min(axis=1)
    federation = cn.Federation(parties)
    coresets = [federation.coreset(task, sampler, seed=seed).coreset for seed in range(n_seeds)]
    estimates = [coreset.weights @ losses[coreset.rows] for coreset in coresets]
    assert abs(np.mean(estimates) - weights @ losses) < 3.9 * np.std(estimates) / np.sqrt(len(estimates))


@seeds(300, 2_000)
def test_a_sampled_evaluation_of_rows_with_weights_is_unbiased_and_its_interval_covers(n_seeds: int) -> None:
    """Mean cost over the seeds within 3.9 standard errors; false alarm 1e-4 (of 300: 2e-4).

    The 95 % interval covers at least 85 %: skewed losses cost a little. A binomial of 0.92 falls below 0.85 in
    2,000 with probability below 1e-20, in 300 with 3e-5.
    """
    parties, X, y, weights = weighing(400, (3, 3), seed=13)
    federation, split = cn.Federation(parties), cn.HoldOut(0.5, seed=1)
    model = federation.fit(
        cn.Regression(), sampler=cn.ImportanceSampling(size=60, draws="independent"), split=split
    ).model
    held_out = np.setdiff1d(
        np.flatnonzero(weights), federation.coreset(cn.Regression(), cn.AllRows(), split=split).coreset.rows
    )
    losses = weights * np.square(X @ model.coef_ + model.intercept_ - y)
    cost = losses[held_out].sum()
    assert federation.evaluate(model, split=split).cost == pytest.approx(cost)
    reports = [federation.evaluate(model, rows=100, split=split, seed=seed) for seed in range(n_seeds)]
    costs = [report.cost for report in reports]
    assert abs(np.mean(costs) - cost) < 3.9 * np.std(costs) / np.sqrt(len(costs))
    intervals = [report.cost_interval or (np.nan, np.nan) for report in reports]
    assert np.mean([low <= cost <= high for low, high in intervals]) >= 0.85


@seeds(400, 4_000)
@pytest.mark.parametrize(
    "sampler",
    [
        cn.ImportanceSampling(60, draws="distinct"),
        cn.ImportanceSampling(60, 0.4, "distinct", round_scores=1.0),
        cn.UniformSampling(60),
    ],
    ids=str,
)
def test_distinct_rows_are_there_as_often_as_the_union_of_all_draws_has_them(
    sampler: cn.ImportanceSampling | cn.UniformSampling, n_seeds: int
) -> None:
    """1 - prod_j (1 - pi_ij), made again offline, is how often each row is there, and 1 over its weight.

    One z a row of 120, the largest against a normal law at 1e-4 / 120; the sum of their squares is not chi-square, as
    draws of a fixed number depend on each other, but no larger than it on average: so only its upper end, at 1e-4. An
    error of 0.1 in one row's chance is found nine times in ten; of 0.03 in the slow form.
    """
    parties, _, _ = heavy_tailed(120, (3, 2, 2), seed=1)
    chance = offline_chances(parties, sampler)
    federation, there = cn.Federation(parties), np.zeros(120)
    for seed in range(n_seeds):
        coreset = federation.coreset(cn.Regression(), sampler, seed=seed).coreset
        there[coreset.rows] += 1
        np.testing.assert_allclose(coreset.weights, 1 / chance[coreset.rows], rtol=1e-9)
    certain = chance == 1
    assert (there[certain] == n_seeds).all()
    p = chance[~certain]
    z = (there[~certain] - n_seeds * p) / np.sqrt(n_seeds * p * (1 - p))
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 120 / 2)
    assert np.square(z).sum() < stats.chi2.isf(FALSE_ALARM, len(z))


def offline_chances(parties: list[cn.Party], sampler: cn.ImportanceSampling | cn.UniformSampling) -> Floats:
    """Compute every row's chance from all scores in one place, by bisection instead of the kernel's passes."""
    if isinstance(sampler, cn.UniformSampling):
        return np.full(120, sampler.size / 120)
    n_even = round(sampler.uniform_share * sampler.size)
    rule = sampler.scored_by(cn.Regression().score_rule(), cn.Federation(parties).roster)
    scores = [np.asarray(rule.scores(party.table)) for party in parties]
    due = np.array([each.sum() for each in scores])
    due *= (sampler.size - n_even) / due.sum()
    counts = np.floor(due)
    counts[np.argsort(counts - due, kind="stable")[: int(sampler.size - n_even - counts.sum())]] += 1
    missed = np.full(120, 1 - n_even / 120)
    for each, count in zip(scores, counts, strict=True):
        low, high = 0.0, 1e9
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if np.minimum(1, middle * each).sum() < count else (low, middle)
        missed *= 1 - np.minimum(1, high * each)
    return np.asarray(1 - missed)
