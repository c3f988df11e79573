"""The pilot. (The exact diagnosis is tested with its other form, in tests/unit/diagnostics.)"""

from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.kernels.linear import reduce_rows, solve_ridge


def regression(n_rows: int = 20_000) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.standard_t(5, size=(n_rows, 9))
    return X, X @ np.arange(1.0, 10.0) + 5 * rng.normal(size=n_rows)


def test_the_size_it_names_has_about_the_excess_it_was_asked_for() -> None:
    """100 fits at the size named for 3 %: the mean excess is within a factor 1.6 of it (seed fixed)."""
    X, y = regression()
    federation = cn.Federation(cn.split_columns(X, y, [3, 3, 3]))
    found = cn.pilot(federation, cn.Regression(), target=0.03)
    problem = reduce_rows(X, y, np.ones(len(y)), fit_intercept=True)
    theta = solve_ridge(problem, 0.0)
    least = np.square(X @ theta + problem.intercept(theta) - y).sum()
    excesses = []
    for seed in range(1000, 1100):
        model = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=found.size), seed=seed).model
        excesses.append(np.square(X @ model.coef_ + model.intercept_ - y).sum() / least - 1)
    assert 0.03 / 1.6 < np.mean(excesses) < 0.03 * 1.6
    assert found.size_low < found.size < found.size_high
    assert [point.size for point in found.points] == [100, 200, 400]
    assert found.points[0].mean_excess > found.points[2].mean_excess
    assert "draw about" in str(found)


def test_it_costs_what_its_fits_and_evaluations_cost() -> None:
    X, y = regression(2_000)
    federation = cn.Federation(cn.split_columns(X, y, [3, 3, 3]))
    position = len(federation.ledger)
    found = cn.pilot(federation, cn.Regression(), target=0.1, sizes=[50, 100], repeats=2, rows=300)
    ledger = federation.ledger.since(position)
    assert (found.units, found.bytes) == (ledger.units, ledger.bytes)
    fits = sum(m + 6 * m + 6 + 10 * m for m in (50, 50, 100, 100))
    assert found.units == fits + 4 * (9 + 3 * 300 + 1)
    assert "features" in found.reveals


def test_k_means_too_and_with_another_solver() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3_000, 4)) + 6 * rng.integers(4, size=(3_000, 1))
    federation = cn.Federation(cn.split_columns(X, None, [2, 2]))
    found = cn.pilot(federation, cn.KMeans(n_clusters=4, n_starts=2), target=0.05, solver=cn.DistDim(), repeats=3)
    assert [point.size for point in found.points] == [120, 240, 480]
    assert found.size >= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 0.0}, "target must be above 0"),
        ({"repeats": 1}, "repeats must be a whole number of 2"),
        ({"sizes": [100]}, "A pilot compares sizes"),
        ({"sizes": [100, 0]}, "size must be a whole number"),
        ({"uniform_share": 2.0}, "uniform_share must be"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    X, y = regression(500)
    federation = cn.Federation(cn.split_columns(X, y, [3, 3, 3]))
    with pytest.raises(cn.InputError, match=message):
        cn.pilot(federation, cn.Regression(), **{"target": 0.1, "repeats": 2, "rows": 100, **options})


def test_diagnosing_parties_checks_its_input() -> None:
    X, y = regression(500)
    parties = cn.split_columns(X, y, [3, 3, 3])
    other = cn.Coreset(np.array([0, 1]), np.ones(2), n_rows=7, total_weight=7.0)
    with pytest.raises(cn.AlignmentError, match="The coreset was made of 7 rows"):
        cn.diagnose(parties, cn.Regression(), coreset=other)
    with pytest.raises(cn.InputError, match="epsilon must be above 0"):
        cn.diagnose(parties, cn.Regression(), epsilon=0.0)
    with pytest.raises(cn.InputError, match="at least one party"):
        cn.diagnose([], cn.Regression())
