import numpy as np
import pytest
import scipy.linalg

from colonnade.kernels.bases import gram, spectrum
from colonnade.kernels.measured_error import (
    costs_of_sets,
    models_near,
    random_models,
    random_sets,
    relative_errors,
    relative_gram,
)

RNG = np.random.default_rng(1)
X = RNG.normal(size=(400, 4)) * [1.0, 10.0, 0.1, 1.0]
Y = X @ [1.0, 0.2, 3.0, -1.0] + RNG.normal(size=400)
JOINED = np.column_stack([X, Y])
ROWS = RNG.integers(400, size=60)
WEIGHTS = np.full(60, 400 / 60) * RNG.uniform(0.5, 1.5, size=60)
FULL, CORE = gram(JOINED), gram(JOINED[ROWS], WEIGHTS)
RELATIVE = relative_gram(CORE, spectrum(FULL), 4)


def cost(model: np.ndarray, rows: np.ndarray = JOINED, weights: np.ndarray | None = None) -> float:
    losses = np.square(rows @ model)
    return float(losses.sum() if weights is None else weights @ losses)


def test_the_worst_error_is_that_of_the_generalised_eigenvalues() -> None:
    eigenvalues = scipy.linalg.eigh(CORE, FULL, eigvals_only=True)
    assert RELATIVE.worst()[0] == pytest.approx(np.abs(eigenvalues - 1).max(), rel=1e-9)


def test_the_worst_model_has_the_worst_error_and_no_other_a_larger_one() -> None:
    worst, z = RELATIVE.worst()
    model = spectrum(FULL).whitening @ z
    assert abs(cost(model, JOINED[ROWS], WEIGHTS) / cost(model) - 1) == pytest.approx(worst)
    tried = np.column_stack([RNG.normal(size=(2_000, 4)) * 5, -np.ones(2_000)])
    errors = [abs(cost(model, JOINED[ROWS], WEIGHTS) / cost(model) - 1) for model in tried]
    assert max(errors) < worst


def test_errors_of_models_are_errors_of_costs() -> None:
    Z = random_models(5, 20, RNG)
    models = Z @ spectrum(FULL).whitening.T
    expected = [abs(cost(model, JOINED[ROWS], WEIGHTS) / cost(model) - 1) for model in models]
    np.testing.assert_allclose(RELATIVE.errors(Z), expected, rtol=1e-8)


def test_the_optimum_is_least_squares_and_steps_raise_its_cost_as_told() -> None:
    theta = np.linalg.lstsq(X, Y, rcond=None)[0]
    least = cost(np.array([*theta, -1.0]))
    assert RELATIVE.optimum is not None
    model = spectrum(FULL).whitening @ RELATIVE.optimum
    np.testing.assert_allclose(model[:4] / -model[4], theta, rtol=1e-7)
    near = models_near(RELATIVE.optimum, np.array([0.0, 0.5, 2.0]), RNG) @ spectrum(FULL).whitening.T
    np.testing.assert_allclose([cost(m / -m[4]) / least for m in near], [1.0, 1.25, 5.0], rtol=1e-7)


def test_a_perfect_fit_has_no_optimum_to_start_from() -> None:
    exact = np.column_stack([X, X @ [1.0, 2.0, 3.0, 4.0]])
    assert relative_gram(gram(exact[:50]), spectrum(gram(exact)), 4).optimum is None
    assert relative_gram(gram(X[:50]), spectrum(gram(X)), None).optimum is None


def test_a_coreset_that_misses_a_direction_is_off_by_everything() -> None:
    assert relative_gram(gram(JOINED[:3]), spectrum(FULL), 4).worst()[0] >= 1.0


def test_all_rows_are_a_perfect_coreset() -> None:
    assert relative_gram(FULL, spectrum(FULL), 4).worst()[0] < 1e-9


def test_costs_of_sets_are_k_means_costs() -> None:
    centers = X[:6]
    distances = np.square(X[:, None] - centers[None]).sum(axis=2)
    sets = random_sets(6, 3, 10, RNG)
    assert all(len(set(chosen)) == 3 for chosen in sets.tolist())
    weights = RNG.uniform(size=400)
    expected = [float(weights @ distances[:, list(chosen)].min(axis=1)) for chosen in sets]
    np.testing.assert_allclose(costs_of_sets(distances, weights, sets), expected)


def test_relative_errors_at_zero() -> None:
    found = relative_errors(np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.0, 2.0]))
    assert found.tolist() == [0.0, np.inf, 0.5]
