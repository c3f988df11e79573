"""A forecast's intervals: as wide as the law errs, and for k-means never narrower than fits of the same rows differ."""

import numpy as np
import pytest

from colonnade.kernels.clustering_law import ClusteringLaw, clustering_law
from colonnade.kernels.kmeans import MOST_ITERATIONS, TOLERANCE, nearest_centers
from colonnade.kernels.kmeans_search import searched
from colonnade.kernels.quick_lloyd import around_mean, lloyd
from colonnade.planning.forecast import Forecast, forecast


@pytest.fixture
def law() -> ClusteringLaw:
    """Of a pilot of 600 rows that stands for 60,000."""
    rows = np.random.default_rng(0).normal(size=(600, 4))
    return clustering_law(rows, np.full(600, 0.01), np.ones(600), 4, np.ones(4) / 12, np.random.default_rng(1))


def test_the_grain_is_a_row_s_part_of_the_cost(law: ClusteringLaw) -> None:
    assert law.grain(None) == pytest.approx(1 / 60_000 + TOLERANCE)


def test_rounding_may_favour_another_minimum_where_rows_change_clusters(law: ClusteringLaw) -> None:
    """A step of twice the size carries over rows of four times the part; clusters far apart lose none."""
    beside = [law.grain(step) - law.grain(None) for step in (0.5, 1.0)]
    assert 0 < beside[0] == pytest.approx(beside[1] / 4)
    rows = np.repeat(100 * np.eye(4), 150, axis=0) + np.random.default_rng(0).normal(size=(600, 4))
    apart = clustering_law(rows, np.full(600, 0.01), np.ones(600), 4, np.ones(4) / 12, np.random.default_rng(1))
    assert apart.grain(1.0) == apart.grain(None)


@pytest.mark.parametrize("step", [0.002, 0.05])
def test_of_all_rows_no_more_is_promised_than_the_grain(law: ClusteringLaw, step: float) -> None:
    found = forecast(law, np.ones(600), step, 0.0, np.random.default_rng(0))
    for excess in (found.mean, found.one_run):
        assert 0 < excess.low <= excess.mean
        assert excess.high > max(law.grain(step), 1.5 * excess.mean)
    none = Forecast.none(law)
    assert none.mean == none.one_run
    assert (none.mean.mean, none.mean.low, none.mean.high) == (0.0, 0.0, law.grain(None))


def test_where_a_draw_decides_the_grain_is_nothing(law: ClusteringLaw) -> None:
    found = forecast(law, np.full(600, 0.01), 0.5, 0.0, np.random.default_rng(0))
    assert law.grain(None) < 0.01 * (found.mean.high - found.mean.mean)


def test_another_mean_keeps_the_grain(law: ClusteringLaw) -> None:
    found = forecast(law, np.full(600, 0.01), 0.5, 0.0, np.random.default_rng(0))
    least = found.scaled(found.mean.mean / 1e6)
    assert least.mean.mean == pytest.approx(found.mean.mean / 1e6)
    assert least.mean.high == pytest.approx(law.grain(0.5), rel=0.01)
    assert least.scaled(found.mean.mean).mean.high == pytest.approx(found.mean.high)


def test_rounded_rows_lose_about_a_row_s_part_however_finely_they_are_rounded() -> None:
    """Ten fits of 3,000 rows, rounded by 0.002, over the minimum next to theirs: beyond the first order, by the grain.

    Seeds fixed. The mean is within the grain; the first order alone, 1e-9, would be far off.
    """
    X = np.random.default_rng(3).normal(size=(3000, 6))
    ones, losses = np.ones(3000), []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rounded = np.round(X / 0.002 + rng.random(X.shape) - 0.5) * 0.002
        centers = searched(rounded, ones, 12, 2, rng)
        points, origin, unit = around_mean(X, ones)
        own = lloyd(points, (centers - origin) / unit, MOST_ITERATIONS, TOLERANCE) * unit + origin
        losses.append(nearest_centers(X, centers)[1].sum() / nearest_centers(X, own)[1].sum() - 1)
    assert 1e-8 < np.mean(losses) < 1 / 3000 + TOLERANCE
