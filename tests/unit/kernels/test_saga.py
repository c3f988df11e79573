import numpy as np
import pytest

from colonnade.kernels.arrays import Floats
from colonnade.kernels.saga import (
    block_bounds,
    full_step_change,
    proximal_step,
    saga_step,
    shuffled,
    step_size,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("n_rows", "n_blocks"), [(1, 1), (10, 3), (600, 75), (7, 7)])
def test_blocks_part_the_rows_evenly(n_rows: int, n_blocks: int) -> None:
    blocks = [np.arange(n_rows)[block_bounds(n_rows, n_blocks, k)] for k in range(n_blocks)]
    assert np.concatenate(blocks).tolist() == list(range(n_rows))
    assert {len(block) for block in blocks} <= {n_rows // n_blocks, -(-n_rows // n_blocks)}
    assert min(len(block) for block in blocks) >= 1


def test_the_shuffle_depends_on_the_seed_alone() -> None:
    assert sorted(shuffled(50, 3)) == list(range(50))
    np.testing.assert_array_equal(shuffled(50, 3), shuffled(50, 3))


def test_the_step_is_a_third_of_the_largest_blocks_curvature() -> None:
    assert step_size(np.array([1.0, 2.0, 5.0, 1.0]), 2) == pytest.approx(1 / 18)
    assert step_size(np.array([1.0, 2.0, 5.0, 1.0]), 4) == pytest.approx(1 / 15), "one row a step: 1 / (3 max L_i)"
    assert step_size(np.zeros(4), 2) == 1.0


def test_the_bound_covers_every_blocks_largest_eigenvalue() -> None:
    X, u = RNG.normal(size=(60, 5)), RNG.uniform(size=60)
    step = step_size(u * np.square(X).sum(axis=1), 6)
    for k in range(6):
        part = block_bounds(60, 6, k)
        assert np.linalg.eigvalsh((u[part, None] * X[part]).T @ X[part])[-1] <= 1 / (3 * step)


def test_the_proximal_step_is_the_minimiser() -> None:
    point, l2, l1 = np.array([2.0, -0.3, 0.1, -4.0]), np.array([0.5, 0.0, 2.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0])
    z = proximal_step(point, 0.5, l2, l1)

    def cost(z: Floats) -> Floats:
        found: Floats = np.square(z - point) / 2 + 0.5 * (l2 * z**2 + l1 * np.abs(z)) / 2
        return found

    for other in np.linspace(-5, 5, 2001):
        assert (cost(z) <= cost(np.full(4, other)) + 1e-12).all()
    assert z[2] == 0.0, "the soft threshold makes zeros"
    assert z[3] == -4.0, "an intercept without penalties stays"


def reference(X: Floats, y: Floats, u: Floats, theta: Floats, table: Floats, block: Floats) -> Floats:
    """SAGA as Defazio writes it, with the gradients of all blocks spelt out; blocks of two rows."""
    n_blocks = len(X) // 2
    gradients = np.array([(table * u)[2 * k : 2 * k + 2] @ X[2 * k : 2 * k + 2] for k in range(n_blocks)])
    k = int(block)
    fresh = (u * (X @ theta - y))[2 * k : 2 * k + 2] @ X[2 * k : 2 * k + 2]
    estimate: Floats = fresh - gradients[k] + gradients.mean(axis=0)
    return estimate


def test_a_step_is_sagas() -> None:
    X, y, u = RNG.normal(size=(8, 3)), RNG.normal(size=8), RNG.uniform(size=8)
    theta, table = RNG.normal(size=3), RNG.normal(size=8)
    none = np.zeros(3)
    average = (table * u) @ X / 4
    fresh = u[4:6] * (X @ theta - y)[4:6]
    changes = fresh - (table * u)[4:6]
    stepped, averaged = saga_step(theta, average, X[4:6], changes, 4, 0.1, none, none)
    np.testing.assert_allclose(stepped, theta - 0.1 * reference(X, y, u, theta, table, np.array(2)))
    scalars = table * u
    scalars[4:6] = fresh
    np.testing.assert_allclose(averaged, scalars @ X / 4)


def test_a_step_leaves_its_arguments_alone() -> None:
    coef, average = np.ones(2), np.ones(2)
    saga_step(coef, average, np.ones((3, 2)), np.ones(3), 5, 0.1, np.ones(2), np.ones(2))
    assert coef.tolist() == average.tolist() == [1.0, 1.0]


def test_the_measure_of_progress_is_zero_at_the_minimum_and_blind_to_scales() -> None:
    X, y = RNG.normal(size=(50, 3)), RNG.normal(size=50)
    theta = np.asarray(np.linalg.lstsq(X, y)[0], dtype=np.float64)
    none, ones = np.zeros(3), np.ones(3)
    assert full_step_change(theta, X.T @ (X @ theta - y) / 50, ones, none, none) == pytest.approx(0.0, abs=1e-12)
    units = np.array([1e-3, 1.0, 1e4])
    gradient = X.T @ -y / 50
    plain = full_step_change(none, gradient, ones, 0.1 * ones, 0.2 * ones)
    assert plain > 0.01
    turned = full_step_change(none, gradient * units, units, 0.1 * units**2, 0.2 * units)
    assert turned == pytest.approx(plain)
