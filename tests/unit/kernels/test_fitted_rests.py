import numpy as np
import pytest

from colonnade.kernels import fitted_rests as module
from colonnade.kernels.arrays import Floats
from colonnade.kernels.calibration import scaled_moments
from colonnade.kernels.fitted_rests import fitted_rests


@pytest.mark.parametrize("m", [60, 500])
def test_what_is_unrelated_to_moments_keeps_its_variance(m: int) -> None:
    """Of 40 columns: the mean square is off by 5 % (m = 60), beyond 20 % once in 10^4. With 90 moments either way."""
    rng = np.random.default_rng(2)
    parties = [rng.normal(size=(m, 8)), rng.normal(size=(m, 8))]
    weights, free = rng.uniform(1.0, 3.0, size=m), np.ones(m)
    free[0] = 0.0
    values = rng.normal(size=(m, 40))
    rests = fitted_rests(values, weights, parties, weights.sum(), 0.1, free)
    assert 0.8 < np.mean(np.square(rests)) < 1.2
    np.testing.assert_array_equal(rests[0], values[0], "a row that is right as it is")
    moment = 3 * parties[0][:, :1] * parties[0][:, 1:2]
    left = fitted_rests(moment, weights, parties, weights.sum(), 0.01, np.ones(m))
    assert np.mean(np.square(left)) < 0.35 * np.mean(np.square(moment))


def heavy(m: int, widths: tuple[int, ...]) -> tuple[list[Floats], Floats, Floats]:
    """Whitened columns with long tails, drawn by their lengths; weights, and which part of them is chance."""
    rng = np.random.default_rng(4)
    parties = [rng.standard_t(6, size=(m, r)) / np.sqrt(1.5) for r in widths]
    weights = 20.0 / (1 + sum(np.square(u).sum(axis=1) for u in parties) / sum(widths))
    return parties, weights, np.clip(1 - 1 / weights, 0.0, 1.0)


def written_out(values: Floats, w: Floats, parties: list[Floats], strength: float, free: Floats) -> Floats:
    """The same with all matrices."""
    A, chance = scaled_moments(w / w.sum(), parties, free)
    roots = np.sqrt(chance)[:, np.newaxis]
    R = strength * np.linalg.inv((roots * A.T) @ (roots * A.T).T + strength * np.eye(len(w)))
    return np.asarray(R @ (roots * values) / roots / np.sqrt(np.diag(R @ R))[:, np.newaxis])


@pytest.mark.parametrize("m", [150, 400, 1200])
def test_products_of_rows_give_what_moments_give(m: int) -> None:
    """Variances of 30 values, a third of them explained by the moments: they agree by 5 % on average, and 10 % each."""
    parties, weights, free = heavy(m, (12, 15, 10))
    rng = np.random.default_rng(6)
    slopes = rng.normal(size=(m, 1)) + parties[0][:, :1] * parties[1][:, :1]
    values = slopes * np.hstack(parties)[:, :30]
    expected = np.square(weights) @ np.square(written_out(values, weights, parties, 0.1, free))
    rests, left = module._by_rows(
        np.sqrt(weights / weights.sum() * free)[:, np.newaxis] * values, weights / weights.sum(), parties, 0.1, free
    )
    rests /= np.sqrt(weights / weights.sum() * free * left)[:, np.newaxis]
    ratios = np.square(weights) @ np.square(rests) / expected
    assert abs(ratios.mean() - 1) < 0.05
    assert np.abs(ratios - 1).max() < 0.1


def test_few_moments_are_written_out() -> None:
    parties, weights, free = heavy(600, (6, 7))
    values = np.random.default_rng(0).normal(size=(600, 5))
    np.testing.assert_allclose(
        fitted_rests(values, weights, parties, weights.sum(), 0.1, free),
        written_out(values, weights, parties, 0.1, free),
        rtol=1e-9,
        atol=1e-12,
    )


@pytest.mark.parametrize("strength", [1.0, 0.1, 0.01])
def test_many_moments_a_row_do_not_make_rests_seem_small(strength: float) -> None:
    """There are 3.5 moments a row: a fit leaves little of any value, and what it leaves is made as large as it was.

    Of 40 columns of 200 rows the mean square is off by 2 %, and what is left of it by 5 %.
    """
    rng = np.random.default_rng(3)
    parties, values = [rng.normal(size=(200, 20)) for _ in range(3)], rng.normal(size=(200, 40))
    rests = fitted_rests(values, np.ones(200), parties, 200.0, strength, np.full(200, 0.9))
    assert not np.array_equal(rests, values)
    assert 0.8 < np.mean(np.square(rests)) < 1.2


@pytest.mark.parametrize(("m", "width"), [(50, 40), (3000, 80)])
def test_too_many_rows_or_moments_are_left_alone(m: int, width: int) -> None:
    rng = np.random.default_rng(1)
    u, values = rng.normal(size=(m, width)), rng.normal(size=(m, 2))
    np.testing.assert_array_equal(fitted_rests(values, np.ones(m), [u], float(m), 0.1, np.ones(m)), values)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_the_scale_of_values_does_not_matter(scale: float) -> None:
    """Single numbers end at 1e38."""
    rng = np.random.default_rng(5)
    u, values = rng.normal(size=(80, 12)), rng.normal(size=(80, 3))
    once, again = (
        fitted_rests(each, np.ones(80), [u], 80.0, 0.1, np.full(80, 0.9)) for each in (values, scale * values)
    )
    np.testing.assert_allclose(again, scale * once, rtol=1e-4, atol=1e-4 * scale)


@pytest.mark.parametrize("strength", [1.0, 0.1])
def test_moments_that_are_all_the_same_do_no_harm(strength: float) -> None:
    """Columns of levels, each row of a few kinds: K has little but a few directions, 300 times as large as others."""
    rng = np.random.default_rng(7)
    kinds = rng.normal(size=(3, 30))
    u = kinds[rng.integers(3, size=400)] + 1e-9 * rng.normal(size=(400, 30))
    u[:2] += 1e4  # and two rows that are far off
    values = rng.normal(size=(400, 10))
    rests = fitted_rests(values, np.ones(400), [u], 400.0, strength, np.full(400, 0.9))
    assert np.isfinite(rests).all()
    assert 0.8 < np.mean(np.square(rests[2:])) < 1.3


def test_parties_of_no_column_or_one_and_rows_that_are_right() -> None:
    rng = np.random.default_rng(2)
    parties = [rng.normal(size=(60, r)) for r in (0, 1, 7)]
    free, values = (np.arange(60) >= 5).astype(float), rng.normal(size=(60, 3))
    rests = fitted_rests(values, np.ones(60), parties, 60.0, 0.1, free)
    assert np.isfinite(rests).all()
    np.testing.assert_array_equal(rests[:5], values[:5])
    assert not np.array_equal(rests[5:], values[5:])
