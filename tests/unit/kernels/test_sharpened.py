"""Sharpened scores against a formula of their own, of whole matrices."""

import numpy as np
import pytest

from colonnade.kernels.arrays import Floats
from colonnade.kernels.sharpened import sharpened_scores
from cut_blocks import in_blocks


def by_formula(X: Floats, y: Floats | None, c: float, w: Floats, *, constant: bool) -> Floats:
    """w h / W + c w |r| sqrt(h) / W, with h from a pseudo-inverse and r from least squares."""
    total = w.sum()
    centred = X - w @ X / total if constant else X
    moments = (w[:, None] * centred).T @ centred / total
    h = np.einsum("ij,jk,ik->i", centred, np.linalg.pinv(moments, rcond=1e-12, hermitian=True), centred) + 1
    scores = w * h / total
    if y is None:
        return np.asarray(scores)
    roots, design = np.sqrt(w), np.column_stack([X, np.ones(len(X))]) if constant else X
    r = y - design @ np.linalg.lstsq(roots[:, None] * design, roots * y, rcond=None)[0]
    return np.asarray(scores + c * w * np.abs(r) / np.sqrt(w @ r**2 / total) * np.sqrt(h) / total)


def found(X: Floats, y: Floats | None, c: float, w: Floats | None, *, constant: bool, size: int = 97) -> Floats:
    values = X if y is None else np.column_stack([X, y])
    rows = in_blocks(values, size, w)
    return np.asarray(sharpened_scores(rows, X.shape[1], None if y is None else c, constant=constant))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_formula(constant: bool, labelled: bool, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(700, 5)) + 4.0
    X = np.column_stack([X, X[:, 0] - X[:, 1], np.zeros(700)])
    y = X @ rng.normal(size=7) + rng.standard_t(3, size=700) - 20.0 if labelled else None
    w = rng.integers(0, 4, size=700).astype(np.float64) if weighted else None
    expected = by_formula(X, y, 2.5, np.ones(700) if w is None else w, constant=constant)
    np.testing.assert_allclose(found(X, y, 2.5, w, constant=constant), expected, rtol=1e-8, atol=1e-14)
    if w is not None:
        assert ((expected > 0) == (w > 0)).all()


def test_columns_of_any_unit_score_the_same() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    scale = np.array([1e-6, 1.0, 1e8])
    ours = found(X, y, 1.0, None, constant=True)
    np.testing.assert_allclose(found(X * scale + scale, 1e5 * y + 7, 1.0, None, constant=True), ours, rtol=1e-6)


@pytest.mark.parametrize("constant", [True, False])
def test_a_label_without_residual_adds_nothing(constant: bool) -> None:
    """Rounding is no residual."""
    X = np.random.default_rng(2).normal(size=(400, 3))
    y = X @ np.array([1.0, -2.0, 0.1])
    ours = found(X, y, 5.0, None, constant=constant)
    np.testing.assert_allclose(ours, found(X, None, 0.0, None, constant=constant), rtol=1e-9)
    np.testing.assert_array_equal(found(X, np.zeros(400), 5.0, None, constant=constant), ours)


def test_a_party_with_a_label_alone_scores_by_it() -> None:
    y = np.random.default_rng(3).normal(size=50)
    residual = np.abs(y - y.mean())
    ours = found(np.empty((50, 0)), y, 2.0, None, constant=True)
    np.testing.assert_allclose(ours, (1 + 2.0 * residual / y.std()) / 50, rtol=1e-9)


def test_blocks_of_any_size_give_the_same() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(500, 4)), rng.normal(size=500)
    whole = found(X, y, 1.0, None, constant=True, size=500)
    for size in (1, 63, 499):
        np.testing.assert_allclose(found(X, y, 1.0, None, constant=True, size=size), whole, rtol=1e-9)
