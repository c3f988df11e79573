"""Sizes that the theorems ask for. Each is O(...) in the paper: the constant C in front is unknown, and a parameter.

Sizes are the formulas' values, not yet whole numbers of rows.
"""

import math


def sampling_size(epsilon: float, delta: float, zeta: float, total: float, dimension: float, constant: float) -> float:
    """Theorem 3.1: C ε⁻² ζG (dim log(ζG) + log 1/δ), with dim = d² for regression and d k for k-means."""
    product = zeta * total
    return constant * product / epsilon**2 * (dimension * math.log(product) + math.log(1 / delta))


def regression_size(epsilon: float, delta: float, n_features: int, gamma: float, constant: float) -> float:
    """Theorem 4.2: C ε⁻² γ⁻² d (d² log(γ⁻² d) + log 1/δ)."""
    return sampling_size(epsilon, delta, gamma**-2, n_features, n_features**2, constant)


def class_size(
    epsilon: float,
    delta: float,
    n_features: int,
    n_parties: int,
    n_rows: float,
    mu: float,
    gamma: float,
    constant: float,
) -> float:
    """Theorem 3.1 for classes: no row matters more than ((1 + μ) √(n/T) / γ + 5 μ / T) times its score.

    Its leverage in all columns is its score over γ² at most, and its score T/n at least (`class_complexity`); scores
    add up to 5 d / 3 + T. The dimension is that of half-spaces, d + 1.
    """
    zeta = (1 + mu) * math.sqrt(n_rows / n_parties) / gamma + 5 * mu / n_parties
    return sampling_size(epsilon, delta, zeta, 5 * n_features / 3 + n_parties, n_features + 1, constant)


def clustering_size(
    epsilon: float,
    delta: float,
    n_features: int,
    n_clusters: int,
    n_parties: int,
    tau: float,
    alpha: float,
    constant: float,
) -> float:
    """Theorem 5.2: C ε⁻² ατkT (d k log(ατkT) + log 1/δ)."""
    return sampling_size(epsilon, delta, alpha * tau, n_clusters * n_parties, n_features * n_clusters, constant)


def robust_regression_size(
    epsilon: float, delta: float, beta: float, n_features: int, n_parties: int, constant: float
) -> float:
    """Theorem G.3: C d⁴ / (ε²β²T²) (d² + log 1/δ)."""
    d = n_features
    return constant * (d**2 / (epsilon * beta * n_parties)) ** 2 * (d**2 + math.log(1 / delta))


def robust_clustering_size(
    epsilon: float, delta: float, beta: float, n_features: int, n_clusters: int, alpha: float, constant: float
) -> float:
    """Theorem G.4: C α²k⁴ / (ε²β²) (d k + log 1/δ)."""
    k = n_clusters
    return constant * (alpha * k**2 / (epsilon * beta)) ** 2 * (n_features * k + math.log(1 / delta))
