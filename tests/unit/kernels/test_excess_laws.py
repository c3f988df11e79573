"""Laws of the excess against simulation, where the truth is known."""

import numpy as np
import pytest

from colonnade.kernels.calibration_gain import explained_part, ridge_risk
from colonnade.kernels.clustering_law import clustering_law
from colonnade.kernels.kmeans import best_of_starts, nearest_centers
from colonnade.kernels.regression_law import Draw, RegressionLaw, regression_law


def normal_law(m0: int = 400, p: int = 8, sigma: float = 0.5, step: float = 0.01, seed: int = 0) -> RegressionLaw:
    """Two parties of independent normal columns; the label is the second's last column, and is what is predicted."""
    rng = np.random.default_rng(seed)
    Z, beta = rng.normal(size=(m0, p)), np.full(p, np.sqrt((1 - sigma**2) / p))
    y = Z @ beta + sigma * rng.normal(size=m0)
    half = p // 2
    # The second party's columns whitened: its features, and what is left of the label, at variance 1.
    left = (y - Z[:, half:] @ beta[half:]) / np.sqrt(1 - beta[half:] @ beta[half:])
    parties = [Z[:, :half], np.column_stack([Z[:, half:], left])]
    features = np.eye(p + 1)[:, :p]
    label = np.concatenate([np.zeros(half), beta[half:], [np.sqrt(1 - beta[half:] @ beta[half:])]])
    return regression_law(parties, np.ones(m0), step, features, label, np.zeros((p, p)))


def test_independent_residuals_lose_d_over_m() -> None:
    """K is d + 1 then. The pilot's own error is 6 % or so: 20 % are three of them."""
    law, even = normal_law(), Draw(np.ones(400))
    assert law.n_coefficients == pytest.approx(9, rel=1e-6)
    assert law.cost == pytest.approx(0.25, rel=0.2)
    for size in (50, 500, 50_000):
        assert law.excess(even, size, None) == pytest.approx(9 / (size - 9), rel=0.2)
    assert law.excess(even, 9, None) == np.inf
    assert 0.15 < law.relative_error(even, None) < 0.2


def test_rounding_only_makes_it_worse_and_rows_only_better() -> None:
    law, even = normal_law(), Draw(np.ones(400))
    by_step = [law.excess(even, 5000, step) for step in (0.1, 0.5, 1.0, 2.0)]
    assert by_step == sorted(by_step)
    by_size = [law.excess(even, size, 0.5) for size in (100, 1000, 10_000, 100_000)]
    assert by_size == sorted(by_size, reverse=True)
    assert 0 < law.excess_of_all(100_000, 0.3) < law.excess(even, 100_000, 0.3)


def test_a_penalty_leaves_fewer_coefficients() -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 4))
    parties, label = [np.column_stack([Z, rng.normal(size=400)])], np.eye(5)[4]
    plain, ridge = (
        regression_law(parties, np.ones(400), 0.01, np.eye(5)[:, :4], label, l2 * np.eye(4)) for l2 in (0, 9)
    )
    assert ridge.n_coefficients == pytest.approx(1.4, abs=0.05)
    assert ridge.excess(Draw(np.ones(400)), 100, None) < plain.excess(Draw(np.ones(400)), 100, None)


def test_stratified_draws_of_nearly_all_rows_vary_less() -> None:
    law = normal_law()
    independent, stratified = Draw(np.ones(400)), Draw(np.ones(400), np.full((2, 400), 0.5 / 20_000))
    few, many = (law.excess(stratified, m, None) / law.excess(independent, m, None) for m in (200, 20_000))
    assert few == pytest.approx(1.0, abs=0.01)
    assert many == pytest.approx(1 - 0.5 + 0.25 / 3, abs=0.01)


def test_directions_that_parties_share_are_no_coefficients() -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(300, 2))
    step = 0.25
    rounded = [
        block + rng.uniform(-step / 2, step / 2, block.shape)
        for block in (np.column_stack([Z, Z[:, 0] + rng.normal(size=300)]), Z)
    ]
    law = regression_law(rounded, np.ones(300), step, np.eye(5)[:, [0, 1, 3, 4]], np.eye(5)[2], np.zeros((4, 4)))
    assert law.n_coefficients == pytest.approx(3, abs=0.2)


def test_ridge_risk_is_that_of_ridge_regression() -> None:
    """Simulated: 400 rows, 300 predictors that explain half. The mean of 20 draws is good to 2 % or so."""
    rng, m, p, strength = np.random.default_rng(0), 400, 300, 0.3
    risks = []
    for _ in range(20):
        beta = rng.normal(size=p) * np.sqrt(0.5 / p)
        A = rng.normal(size=(m, p))
        z = A @ beta + np.sqrt(0.5) * rng.normal(size=m)
        found = np.linalg.solve(A.T @ A / m + strength * np.eye(p), A.T @ z / m)
        risks.append(0.5 + np.sum(np.square(found - beta)))
    assert ridge_risk(0.5, p / m, strength) == pytest.approx(np.mean(risks), rel=0.06)
    assert ridge_risk(0.5, 1e-9, 1e-9) == pytest.approx(0.5)


def test_what_moments_explain_is_found() -> None:
    """Gradients that are products of one party's columns, and such as are noise."""
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(600, 3)), rng.normal(size=(600, 3))
    w = np.full(600, 1 / 600)
    of_one, of_both = u[:, :1] * u[:, 1:], u[:, :1] * v
    assert explained_part([u, v], w, of_one) > 0.8
    assert explained_part([u, v], w, of_both) < 0.2
    assert explained_part([u, v], w, np.zeros((600, 2))) == 0.0


def test_means_of_separate_clusters() -> None:
    """Far apart, clusters lose k / m: that of a mean, with nothing beyond it but the factor for other minima."""
    rng = np.random.default_rng(0)
    centers = 100.0 * np.eye(4)
    rows = np.repeat(centers, 150, axis=0) + rng.normal(size=(600, 4))
    law = clustering_law(rows, np.ones(600), 4, 0.5, rng)
    even = Draw(np.ones(600))
    assert law.excess(even, 1000, None) == pytest.approx(1.5 * 4 / 1000, rel=0.35)
    assert law.excess(even, 1000, 2.0) > law.excess(even, 1000, None)
    assert 0 < law.excess_of_all(10_000, 0.5) < law.excess(even, 10_000, 0.5)


def test_clusters_that_overlap_lose_more_than_means() -> None:
    """Against the truth: 12 clusterings of 500 rows each, tried on 50,000. A factor of 2 is allowed."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(6, 3)) * 2

    def draw(n: int) -> np.ndarray:
        return centers[rng.integers(6, size=n)] + rng.normal(size=(n, 3))

    law = clustering_law(draw(600), np.ones(600), 6, 0.0, rng)
    everything = draw(50_000)

    def cost(rows: np.ndarray) -> float:
        found = best_of_starts(rows, np.ones(len(rows)), 6, 5, rng)
        return float(nearest_centers(everything, found)[1].mean())

    best = cost(everything)
    excess = np.mean([cost(draw(500)) for _ in range(12)]) / best - 1
    assert law.excess(Draw(np.ones(600)), 500, None) == pytest.approx(excess, rel=1.0)
    assert excess < 2 * law.excess(Draw(np.ones(600)), 500, None)
    assert law.beyond_means > 1.2
