"""Gamma, sensitivities and the lemma's bound, against what plain linear algebra says of small matrices."""

import numpy as np
import pytest

from colonnade.kernels.arrays import Floats
from colonnade.kernels.bases import gram, inverse_condition, label_last, sensitivities, spectrum, triangle, unit_columns
from colonnade.kernels.leverage import basis
from colonnade.kernels.row_blocks import ArrayBlocks

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(200, 3)), RNG.normal(size=(200, 2))


def joined(*parts: Floats) -> Floats:
    return np.hstack([np.linalg.qr(part)[0] for part in parts])


def test_gamma_is_the_smallest_singular_value_of_the_joined_bases() -> None:
    U = joined(A, B + A[:, :2])
    found = spectrum(gram(U))
    assert found.gamma == pytest.approx(np.linalg.svd(U, compute_uv=False)[-1], rel=1e-10)
    assert found.gamma == found.effective_gamma < 1


def test_orthogonal_parties_have_gamma_1() -> None:
    Q = np.linalg.qr(RNG.normal(size=(50, 6)))[0]
    assert spectrum(gram(Q)).gamma == pytest.approx(1.0)


def test_a_shared_column_makes_gamma_0_and_the_effective_one_stays() -> None:
    shared = spectrum(gram(joined(A, np.column_stack([A[:, 0], B]))))
    assert shared.gamma == 0.0
    assert shared.null.shape[1] == 1
    assert shared.effective_gamma > 0.5


def test_sensitivities_are_the_leverages_of_all_columns_together_even_where_some_are_shared() -> None:
    everything = np.column_stack([A, B])
    Q = np.linalg.qr(everything)[0]
    U = joined(A, np.column_stack([A[:, 0], B]))
    found = sensitivities(U, spectrum(gram(U)))
    np.testing.assert_allclose(found, np.square(Q).sum(axis=1), rtol=1e-9)
    assert found.sum() == pytest.approx(5)


def test_the_supremum_is_attained() -> None:
    """No model gives a row a larger share of the cost than its sensitivity, and one gives it just that."""
    U = joined(A, B + A[:, :2])
    S = gram(U)
    row = U[7]
    best = np.linalg.solve(S, row)
    found = sensitivities(U, spectrum(S))[7]
    assert (row @ best) ** 2 / (best @ S @ best) == pytest.approx(found)
    models = RNG.normal(size=(500, 5))
    assert ((models @ row) ** 2 / np.einsum("ki,ij,kj->k", models, S, models)).max() < found


def test_effective_gamma_bounds_sensitivities_as_the_lemma_says() -> None:
    U = joined(A, np.column_stack([A[:, 0], B]))
    found = spectrum(gram(U))
    assert np.all(sensitivities(U, found) <= np.square(U).sum(axis=1) / found.effective_gamma**2 * (1 + 1e-9))


def test_the_label_enters_the_last_coordinate_alone() -> None:
    values = np.column_stack([A, A @ [1.0, 2.0, 3.0] + B[:, 0]])
    W = basis(ArrayBlocks(values), constant=True)
    turned = label_last(W, 3)
    assert np.all(turned[3, :-1] == 0)
    assert turned[3, -1] != 0
    rows = np.column_stack([values, np.ones(200)])
    np.testing.assert_allclose(gram(rows @ turned), np.eye(5), atol=1e-10)
    np.testing.assert_allclose(rows @ W @ W.T @ rows.T, rows @ turned @ turned.T @ rows.T, atol=1e-9)


def test_a_label_that_is_last_already_stays() -> None:
    W = np.eye(3)
    np.testing.assert_array_equal(label_last(W, 2), W)


@pytest.mark.parametrize("block", [7, 200])
def test_the_triangle_has_the_columns_gram_matrix(block: int) -> None:
    pieces = [[A[i : i + block], B[i : i + block]] for i in range(0, 200, block)]
    R = triangle(pieces)
    np.testing.assert_allclose(R.T @ R, gram(np.column_stack([A, B])), rtol=1e-10, atol=1e-10)


def test_no_blocks_is_an_error() -> None:
    with pytest.raises(ValueError, match="no blocks"):
        triangle([])


def test_gamma_is_at_least_the_lemmas_bound_and_scaling_columns_helps_it() -> None:
    first, second = A * [1e4, 1.0, 1e-3], B + A[:, :2]
    gamma = spectrum(gram(joined(first, second))).gamma
    R = triangle([[first, second]])
    assert 0 < inverse_condition(R) < inverse_condition(unit_columns(R)) <= gamma


def test_dependent_or_too_few_rows_give_a_bound_of_zero() -> None:
    assert inverse_condition(triangle([[A, A[:, :1]]])) == 0.0
    assert inverse_condition(triangle([[A[:2], B[:2]]])) == 0.0
    assert np.all(unit_columns(np.zeros((2, 2))) == 0)
