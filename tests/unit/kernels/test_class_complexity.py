"""mu of classes, and what it bounds."""

import numpy as np
import pytest

from colonnade.kernels.class_complexity import mu_complexity, sensitivity_bounds
from colonnade.kernels.logits import log_loss

RNG = np.random.default_rng(2)
N = 400
X = np.column_stack([RNG.standard_t(3, size=(N, 3)), np.ones(N)])
Y = (X @ [1.0, -1.0, 0.5, -1.0] + RNG.logistic(size=N) > 0).astype(np.float64)
SIGNED = X * (2 * Y - 1)[:, np.newaxis]


def ratio(theta: np.ndarray) -> float:
    z = SIGNED @ theta
    return float(np.maximum(z, 0).sum() / np.maximum(-z, 0).sum())


def test_it_is_the_largest_ratio_of_any_model() -> None:
    """None of 20,000 models has a larger one, and small steps from the best of these lead to it."""
    mu = mu_complexity(X, Y, np.ones(N))
    models = RNG.standard_normal((20_000, 4))
    best = max(models, key=ratio)
    for size in np.geomspace(1.0, 1e-4, 4000):
        moved = best + size * np.linalg.norm(best) * RNG.standard_normal(4)
        best = max((best, moved), key=ratio)
    assert ratio(best) <= mu * (1 + 1e-9)
    assert ratio(best) == pytest.approx(mu, rel=0.02)


def test_a_constant_alone_has_the_ratio_of_the_classes() -> None:
    ones = np.ones((100, 1))
    assert mu_complexity(ones, np.arange(100) < 20, np.ones(100)) == pytest.approx(4.0)
    assert mu_complexity(ones, (np.arange(100) < 50).astype(float), np.ones(100)) == 1.0
    assert mu_complexity(X, Y, np.ones(N)) >= max(Y.mean(), 1 - Y.mean()) / min(Y.mean(), 1 - Y.mean())


def test_units_do_not_matter_and_weights_are_copies() -> None:
    twice = np.arange(N) < 50
    copies = np.concatenate([np.arange(N), np.flatnonzero(twice)])
    mu = mu_complexity(X, Y, np.where(twice, 2.0, 1.0))
    assert mu_complexity(X[copies] * [1.0, 1e3, 1e-3, 5.0], Y[copies], np.ones(len(copies))) == pytest.approx(mu)
    assert mu_complexity(X, Y, np.where(twice, 14.0, 7.0)) == pytest.approx(mu)


def test_classes_that_a_model_tells_apart_have_no_bound() -> None:
    assert mu_complexity(X, (X[:, 0] > 0).astype(float), np.ones(N)) == np.inf
    # One column is of the one class alone, and tells nothing of the others.
    only = np.column_stack([X, (np.arange(N) % 40 == 0) * Y])
    assert mu_complexity(only, Y, np.ones(N)) == np.inf


def test_no_row_has_more_of_a_loss_than_the_bound_says() -> None:
    """At 3,000 models of all sizes, and at models that a row is worst for."""
    mu = mu_complexity(X, Y, np.ones(N))
    Q, _ = np.linalg.qr(X)
    bounds = sensitivity_bounds(np.square(Q).sum(axis=1), mu, N)
    models = RNG.standard_normal((3000, 4)) * np.exp(RNG.uniform(-3, 3, size=(3000, 1)))
    worst = -np.vstack([SIGNED @ np.linalg.inv(X.T @ X) * size for size in (1.0, 10.0, 1000.0)])
    for theta in np.vstack([models, worst]):
        losses = log_loss(X @ theta, Y.astype(np.int64))
        assert (losses / losses.sum() <= bounds).all()
        assert losses.sum() >= N / (7 * mu)
        assert np.abs(X @ theta).sum() <= (1 + mu) * losses.sum()
