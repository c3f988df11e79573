"""Least squares varies less on coresets drawn by sharpened scores. Seeds are fixed; false alarms are stated."""

import numpy as np

import colonnade as cn
from colonnade.kernels.arrays import Floats

SIZE, SEEDS = 800, range(60)


def excesses(X: Floats, y: Floats, *, sharpened: bool) -> Floats:
    """Fit on coresets, and compare costs on all rows with the least."""
    columns = np.column_stack([X, np.ones(len(X))])
    least = float(np.linalg.lstsq(columns, y, rcond=None)[1][0])
    federation = cn.Federation(cn.split_columns(X, y, [10, 10, 10]))
    sampler = cn.ImportanceSampling(SIZE, draws="distinct", sharpened=sharpened)
    models = (federation.fit(cn.Regression(), sampler=sampler, seed=seed).model for seed in SEEDS)
    costs = [float(np.sum((y - X @ model.coef_ - model.intercept_) ** 2)) for model in models]
    return np.array(costs) / least - 1


def test_the_excess_falls_by_a_third() -> None:
    """Where some labels are far noisier than others: to 0.68 of what it was, with an error of 0.035 over 60 seeds.

    It is 0.82 at most: four errors more, false alarm 1e-4.
    """
    rng = np.random.default_rng(8)
    X = rng.standard_t(4, size=(20_000, 30))
    y = X @ rng.normal(size=30) * 0.3 + rng.lognormal(sigma=1.0, size=20_000) * rng.normal(size=20_000)
    plain, sharp = excesses(X, y, sharpened=False), excesses(X, y, sharpened=True)
    ratio = sharp.mean() / plain.mean()
    error = ratio * np.hypot(*(each.std() / each.mean() / np.sqrt(len(each)) for each in (plain, sharp)))
    assert error < 0.04
    assert ratio < 0.82
