import numpy as np
import pytest

from colonnade.kernels.arrays import Floats
from colonnade.kernels.rounding_noise import RoundedColumns, corrected_covariance, share_worth


def correct_rows(rows: Floats, weights: Floats, noise: Floats, share: float) -> Floats:
    return RoundedColumns(rows, weights, noise, np.eye(len(noise))).corrected(share)


def worthwhile_share(rows: Floats, weights: Floats, noise: Floats, features: Floats, label: Floats) -> float:
    return RoundedColumns(rows, weights, noise, features).worthwhile_share(label)


def rounded_by_two_steps(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Give rows before and after rounding, weights, and each row's variance: heavy rows are rounded finely."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(size, 4)) @ np.diag([1.0, 0.8, 0.6, 0.9])
    fine = np.arange(size) % 3 == 0
    weights, variance = np.where(fine, 2.0, 1.0), np.where(fine, 0.01, 0.1)
    return rows, rows + rng.uniform(-1, 1, size=rows.shape) * np.sqrt(3 * variance)[:, None], weights, variance


def test_rows_of_two_steps_have_their_covariance_again() -> None:
    """What rounding added is the weighted mean of its variances, 0.055, not their plain mean, 0.07.

    The errors' own sampling error is about 0.0005.
    """
    rows, rounded, weights, variance = rounded_by_two_steps(99_999)
    noise = np.full(4, weights @ variance / weights.sum())
    before, after, corrected = (
        np.cov(each.T, aweights=weights, bias=True)
        for each in (rows, rounded, correct_rows(rounded, weights, noise, 1.0))
    )
    np.testing.assert_allclose(np.diag(after - before), 0.055, atol=0.003)
    np.testing.assert_allclose(corrected, before, atol=0.003)
    left = RoundedColumns(rounded, weights, noise, np.eye(4)).left(0.0)
    np.testing.assert_allclose(left, 0.055 * np.eye(4), atol=1e-12)


def test_what_two_steps_hide_is_found_by_their_mean() -> None:
    """A direction that has rounding alone, and one that has twice as much and more."""
    _, rounded, weights, variance = rounded_by_two_steps(49_998)
    doubled = np.column_stack([rounded, rounded[:, 0]])  # the same rounding, too: nothing is left between the two
    hidden = RoundedColumns(doubled, weights, np.full(5, weights @ variance / weights.sum()), np.eye(5)).hidden()
    np.testing.assert_allclose(np.abs(hidden[:, 0]), [np.sqrt(0.5), 0, 0, 0, np.sqrt(0.5)], atol=1e-6)
    assert hidden.shape == (5, 1)


@pytest.mark.parametrize(("size", "repeats", "least", "most"), [(10, 100, 0.0, 0.4), (100_000, 1, 0.9, 1.0)])
def test_the_share_that_pays_is_found_with_two_steps(size: int, repeats: int, least: float, most: float) -> None:
    """Of many rows nearly all is taken off, of few a quarter on average (standard error 0.03)."""
    rng, shares = np.random.default_rng(1), []
    for _ in range(repeats):
        Z = rng.normal(size=(size, 4))
        y = Z @ [1.0, -1.0, 0.5, 0.5] + rng.normal(size=size)
        variance = np.where(np.arange(size) % 2 == 0, 0.02, 0.14)
        joined = np.column_stack([Z, y]) + rng.uniform(-1, 1, size=(size, 5)) * np.sqrt(3 * variance)[:, None]
        shares.append(
            worthwhile_share(joined, np.ones(size), np.full(5, np.mean(variance)), np.eye(5)[:, :4], np.eye(5)[4])
        )
    assert least <= np.mean(shares) <= most


def test_corrected_rows_have_the_covariance_before_rounding() -> None:
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(50, 4)), rng.random(50)
    w = weights / weights.sum()
    before = np.cov(rows.T, aweights=w, bias=True)
    corrected = correct_rows(rows, weights, np.full(4, 0.05), 1.0)
    np.testing.assert_allclose(np.cov(corrected.T, aweights=w, bias=True), before - 0.05 * np.eye(4), atol=1e-12)
    np.testing.assert_allclose(w @ corrected, w @ rows, atol=1e-12)
    np.testing.assert_allclose(correct_rows(rows, weights, np.full(4, 0.05), 0.0), rows, atol=1e-12)


def test_a_direction_of_rounding_alone_is_left_as_it_is() -> None:
    rng, variance = np.random.default_rng(0), 0.02
    rows = rng.normal(size=(500, 2))
    rows = np.column_stack([rows, rows[:, 0]]) + rng.uniform(-1, 1, size=(500, 3)) * np.sqrt(3 * variance)
    corrected = correct_rows(rows, np.ones(500), np.full(3, variance), 1.0)
    eigenvalues = np.linalg.eigvalsh(np.cov(rows.T, bias=True))
    again = np.linalg.eigvalsh(np.cov(corrected.T, bias=True))
    np.testing.assert_allclose(again, eigenvalues - [0.0, variance, variance], atol=1e-9)


@pytest.mark.parametrize(("size", "least", "most"), [(10, 0.0, 0.2), (100_000, 0.9, 1.0)])
def test_the_correction_is_made_where_it_pays(size: int, least: float, most: float) -> None:
    rng, variance = np.random.default_rng(0), 0.08
    Z = rng.normal(size=(size, 4))
    y = Z @ [1.0, -1.0, 0.5, 0.5] + rng.normal(size=size)
    joined = np.column_stack([Z, y]) + rng.uniform(-1, 1, size=(size, 5)) * np.sqrt(3 * variance)
    share = worthwhile_share(joined, np.ones(size), np.full(5, np.mean(variance)), np.eye(5)[:, :4], np.eye(5)[4])
    assert least <= share <= most


def test_no_rounding_needs_no_correction() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 3))
    assert worthwhile_share(rows, np.ones(30), np.zeros(3), np.eye(3)[:, :2], np.eye(3)[2]) == 0.0


NOISE = np.array([0.0, 0.1, 0.0, 0.1])


def some_rounded(size: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give rows before and after two of their four columns are rounded, and weights."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(size, 4)) @ rng.normal(size=(4, 4))
    rows /= rows.std(axis=0)
    return rows, rows + rng.uniform(-1, 1, size=rows.shape) * np.sqrt(3 * NOISE), rng.random(size)


def test_columns_that_are_exact_stay_so() -> None:
    """The others have their covariance before rounding, with each other and with these."""
    _, rounded, weights = some_rounded(500, 0)
    corrected = correct_rows(rounded, weights, NOISE, 1.0)
    np.testing.assert_allclose(corrected[:, [0, 2]], rounded[:, [0, 2]], atol=1e-9)
    before, after = (np.cov(each.T, aweights=weights, bias=True) for each in (rounded, corrected))
    np.testing.assert_allclose(after, before - np.diag(NOISE), atol=1e-9)
    np.testing.assert_allclose(corrected_covariance(before, np.diag(NOISE), 1.0), after, atol=1e-9)
    np.testing.assert_allclose(RoundedColumns(rounded, weights, NOISE, np.eye(4)).left(1.0), 0.0, atol=1e-9)


def test_rounding_alone_is_found_where_other_columns_are_exact() -> None:
    """A rounded column that is the same as an exact one has nothing but rounding beside it; exact twins nothing."""
    rows, rounded, weights = some_rounded(500, 1)
    joined = np.column_stack(
        [rows[:, 0], rounded[:, 1], rows[:, 0], rows[:, 2] + rounded[:, 3] - rows[:, 3], rows[:, 2]]
    )
    noise = np.array([0.0, 0.1, 0.0, 0.1, 0.0])
    hidden = RoundedColumns(joined, weights, noise, np.eye(5)).hidden()
    expected = np.array([[1, 0, -1, 0, 0], [0, 0, 0, 1, -1]]) / np.sqrt(2)
    np.testing.assert_allclose(hidden @ hidden.T, expected.T @ expected, atol=0.05)


@pytest.mark.parametrize(("size", "least", "most"), [(12, 0.0, 0.5), (100_000, 0.9, 1.0)])
def test_the_share_that_pays_is_found_where_columns_are_exact(size: int, least: float, most: float) -> None:
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(size, 4)) @ rng.normal(size=(4, 4))
    joined = np.column_stack([Z, Z @ [1.0, -1.0, 0.5, 0.5] + rng.normal(size=size)])
    noise = np.append(NOISE, 0.1)
    joined += rng.uniform(-1, 1, size=joined.shape) * np.sqrt(3 * noise)
    assert least <= worthwhile_share(joined, np.ones(size), noise, np.eye(5)[:, :4], np.eye(5)[4]) <= most


def test_without_rounding_anything_exact_needs_no_correction() -> None:
    rows, _, weights = some_rounded(50, 3)
    np.testing.assert_array_equal(correct_rows(rows, weights, np.zeros(4), 1.0), rows)
    assert RoundedColumns(rows, weights, np.zeros(4), np.eye(4)).hidden().shape == (4, 0)


def nearly_the_same(n_exact: int, seed: int = 0) -> tuple[RoundedColumns, Floats]:
    """Make two parties of four columns, of which the first two hardly differ; some are exact, the label is the last."""
    rng = np.random.default_rng(seed)
    one = rng.normal(size=(800, 4))
    other = np.column_stack([one[:, :2] + 0.05 * rng.normal(size=(800, 2)), rng.normal(size=(800, 2))])
    joined, noise = np.hstack([one, other]), np.where(np.arange(8) < n_exact, 0.0, 0.1)
    joined[:, 7] += joined[:, :7] @ [1.0, -1.0, 2.0, 0.5, 0.3, -2.0, 1.0]
    joined += rng.uniform(-1, 1, size=joined.shape) * np.sqrt(3 * noise)
    return RoundedColumns(joined, rng.random(800), noise, np.eye(8)[:, :7]), np.eye(8)[7]


@pytest.mark.parametrize("n_exact", [0, 3, 8])
@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_sums_say_of_corrected_rows_what_rows_say(n_exact: int, share: float) -> None:
    """Also where two directions are mostly noise, and are left as they are."""
    rounded, _ = nearly_the_same(n_exact)
    rows, triangle = rounded.corrected(share), rounded.triangle(share)
    assert triangle is not None
    np.testing.assert_allclose(
        triangle.T @ triangle, np.cov(rows.T, aweights=rounded.weights, bias=True), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(rounded.mean, np.average(rows, axis=0, weights=rounded.weights), atol=1e-12)


@pytest.mark.parametrize("n_exact", [0, 3])
@pytest.mark.parametrize("lacking", [0, 1, 2])
def test_the_share_is_that_of_directions_taken_apart(n_exact: int, lacking: int) -> None:
    """Features lack nothing, the label's own direction, or one more: the last is not seen from the inverse of all."""
    rounded, label = nearly_the_same(n_exact)
    features = np.linalg.qr(np.eye(8)[:, : 8 - lacking])[0]
    turned = np.linalg.qr(np.random.default_rng(5).normal(size=(8 - lacking, 8 - lacking)))[0]
    rounded = RoundedColumns(rounded.rows, rounded.weights, rounded.noise, features @ turned)
    w = rounded.weights / rounded.weights.sum()
    centred = rounded.rows - w @ rounded.rows
    covariance, noise = (centred * w[:, None]).T @ centred, np.diag(rounded.noise)
    expected = share_worth(covariance, centred, np.square(w), noise, rounded.features, label)
    assert rounded.worthwhile_share(label) == pytest.approx(expected, rel=1e-9)
    assert (expected > 0.5) == (lacking > 0), "where the label is among features there is nothing to gain"


def test_where_all_is_noise_there_is_no_share() -> None:
    """What arithmetic leaves of no direction must not look like one."""
    label = np.array([0.0, 0.0, 0.0, 0.0, 0.4, -0.3, 0.2, 1.0])
    for seed in range(20):
        rounded, _ = nearly_the_same(0, seed)
        rows = rounded.rows + np.random.default_rng(seed).normal(size=(800, 8)) * 30
        assert RoundedColumns(rows, rounded.weights, np.full(8, 900.0), rounded.features).worthwhile_share(label) == 0.0


def test_sums_do_not_tell_where_a_direction_is_nearly_lost() -> None:
    """Exact columns that are the same in two parties, or differ in their fifth digit; fewer rows than columns."""
    rng = np.random.default_rng(0)
    for apart in (0.0, 1e-12, 1e-5):
        one = rng.normal(size=(300, 3))
        joined = np.hstack([one, one[:, :1] + apart * rng.normal(size=(300, 1))])
        assert RoundedColumns(joined, np.ones(300), np.zeros(4), np.eye(4)).triangle(0.0) is None
    few = rng.normal(size=(3, 4))
    assert RoundedColumns(few, np.ones(3), np.full(4, 0.02), np.eye(4)).triangle(0.5) is None
