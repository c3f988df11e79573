"""A classification's penalty by cross-validation: errors as defined, whatever classes the folds have."""

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import colonnade as cn
from colonnade.coreset import WeightedRows
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.folds import FOLDS, deal_folds, fold_seed
from colonnade.kernels.logistic import log_loss, solve_logistic
from colonnade.tasks.class_path import choose_class_penalty
from colonnade.tasks.penalty_path import POINTS, RegularisationPath

Vary = Literal["l2", "l1"]


def weighted_rows(X: Floats, weights: Floats, ids: Rows | None = None) -> WeightedRows:
    ids = np.arange(len(X)) if ids is None else ids
    return WeightedRows(features=X, labels=None, weights=weights, total_weight=3.0 * weights.sum(), rows=ids)


def drawn(m: int, d: int, n_classes: int, seed: int, noise: float = 1.0) -> tuple[WeightedRows, Rows]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    codes = np.argmax(X @ rng.normal(size=(d, n_classes)) + noise * rng.gumbel(size=(m, n_classes)), axis=1)
    codes[:n_classes] = np.arange(n_classes)
    return weighted_rows(X, rng.uniform(0.5, 5, size=m)), codes


def chosen_by(rows: WeightedRows, codes: Rows, vary: Vary, fixed: float = 0.0, seed: int = 0) -> RegularisationPath:
    n_classes = int(codes.max()) + 1
    return choose_class_penalty(rows, codes, n_classes, vary, fixed, np.random.default_rng(seed), fit_intercept=True)


def logits_of(X: Floats, solution: tuple[Floats, Floats]) -> Floats:
    logits = X @ solution[0].T + solution[1]
    return np.asarray(logits[:, 0] if logits.shape[1] == 1 else logits)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("vary", "fixed"), [("l2", 0.0), ("l1", 0.0), ("l1", 1e-3), ("l2", 1e-3)])
def test_errors_are_those_of_rows_left_out(n_classes: int, vary: Vary, fixed: float) -> None:
    rows, codes = drawn(200, 3, n_classes, 0)
    path = chosen_by(rows, codes, vary, fixed)
    folds = deal_folds(rows.rows, rows.weights, fold_seed(np.random.default_rng(0)))
    for point in (path.points[0], path.points[POINTS // 2], path.points[-1]):
        total, by_fold = 0.0, []
        for fold in range(FOLDS):
            kept = folds != fold
            w = rows.weights[kept]
            n = rows.total_weight * w.sum() / rows.weights.sum()
            X = rows.features[kept]
            found = solve_logistic(X, codes[kept], w, n_classes, n * point.l2, n * point.l1, fit_intercept=True)
            losses = log_loss(logits_of(rows.features[~kept], found), codes[~kept])
            total += rows.weights[~kept] @ losses
            by_fold.append(np.average(losses, weights=rows.weights[~kept]))
        assert point.error == pytest.approx(total / rows.weights.sum(), rel=1e-5)
        assert point.std_error == pytest.approx(np.std(by_fold, ddof=1) / np.sqrt(FOLDS), rel=1e-3)
        assert fixed in (point.l2, point.l1)
    assert path.chosen.error == min(point.error for point in path.points)
    assert path.measure == "log-loss"
    assert "log-loss left out" in str(path)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("vary", ["l2", "l1"])
def test_the_path_is_from_nothing_to_all(n_classes: int, vary: Vary) -> None:
    """On the largest penalty there is little or nothing of the model, on the smallest as much as without a penalty."""
    rows, codes = drawn(400, 4, n_classes, 1)
    scales = np.array([1e3, 1.0, 1e-3, 1.0])
    for X in (rows.features, rows.features * scales + [0.0, 50.0, 0.0, 0.0]):
        path = chosen_by(weighted_rows(X, rows.weights), codes, vary)
        free, *ends = (
            solve_logistic(X, codes, rows.weights, n_classes, l2, l1, fit_intercept=True)
            for l2, l1 in [(0.0, 0.0)]
            + [(rows.total_weight * at.l2, rows.total_weight * at.l1) for at in (path.points[0], path.points[-1])]
        )
        spread = X.std(axis=0)
        extents = [np.linalg.norm(one[0] * spread) for one in (free, *ends)]
        assert extents[1] <= (1e-9 if vary == "l1" else 0.05) * extents[0]
        losses = [rows.weights @ log_loss(logits_of(X, one), codes) for one in (free, ends[1])]
        assert losses[0] <= losses[1] <= 1.01 * losses[0]


def test_where_columns_say_nothing_the_penalty_is_large_and_where_they_say_all_it_is_small() -> None:
    rows, codes = drawn(300, 10, 2, 2, noise=0.1)
    told = chosen_by(rows, codes, "l2")
    told_nothing = chosen_by(rows, np.random.default_rng(0).permutation(codes), "l2")
    assert told.chosen.l2 < 1e-3 < 0.1 < told_nothing.chosen.l2


@pytest.mark.parametrize("vary", ["l2", "l1"])
def test_separable_classes(vary: Vary) -> None:
    rows, _ = drawn(120, 3, 2, 3)
    path = chosen_by(rows, (rows.features[:, 0] > 0).astype(np.int64), vary)
    assert all(np.isfinite(point.error) for point in path.points)
    assert path.chosen.error < 0.2


@settings(deadline=None, max_examples=8)
@given(st.integers(6, 20), st.sampled_from([2, 3]), st.integers(0, 9999), st.sampled_from(["l2", "l1"]))
def test_a_fold_that_lacks_a_class_does_no_harm(m: int, n_classes: int, seed: int, vary: Vary) -> None:
    """Few distinct rows, some drawn often, and classes of one row: no fold's model lacks a class."""
    rng = np.random.default_rng(seed)
    rows, codes = drawn(m, 2, n_classes, seed)
    codes[codes == n_classes - 1] = 0
    codes[-1] = n_classes - 1
    drawn_rows = np.concatenate([np.arange(m), rng.integers(m, size=m)])
    weights = np.concatenate([rows.weights, rng.uniform(size=m) * (rng.random(m) < 0.8)])
    path = chosen_by(weighted_rows(rows.features[drawn_rows], weights, drawn_rows), codes[drawn_rows], vary)
    assert all(np.isfinite(point.error) and np.isfinite(point.std_error) for point in path.points)


def test_a_class_of_one_row_is_learned_from_but_never_left_out() -> None:
    rows, codes = drawn(60, 2, 2, 4)
    codes = np.where(np.arange(60) == 7, 2, codes)
    path = chosen_by(rows, codes, "l2")
    far = rows.features.copy()
    far[7] *= 1e3  # a row left out would be badly told, at every penalty that leaves a model
    assert chosen_by(weighted_rows(far, rows.weights), codes, "l2").chosen.error < 2 * path.chosen.error


def test_nothing_to_leave_out_is_an_error() -> None:
    X = np.random.default_rng(0).normal(size=(5, 2))
    with pytest.raises(InputError, match="two rows or more of some class in different folds"):
        chosen_by(weighted_rows(X, np.ones(5)), np.arange(5), "l2")
    with pytest.raises(InputError, match="at least 5 distinct rows"):
        chosen_by(weighted_rows(X[:4], np.ones(4)), np.array([0, 1, 0, 1]), "l2")


@pytest.mark.parametrize(
    ("task", "solver"),
    [
        (cn.Classification(l2="cv"), cn.Central()),
        (cn.Classification(l1="cv"), cn.Central()),
        (cn.Classification(l2="cv", standardize=True), cn.CompactCentral()),
    ],
)
def test_a_fit_chooses_and_keeps_the_path(task: cn.Classification, solver: Any) -> None:
    rows, codes = drawn(400, 4, 2, 6)
    federation = cn.Federation(cn.split_columns(rows.features, np.array(["no", "yes"])[codes], [2, 2]))
    model = federation.fit(task, sampler=cn.ImportanceSampling(size=150), solver=solver).model
    assert model.path is not None
    assert model.path.measure == "log-loss"
    assert "log-loss left out" in str(model.path)
    assert (model.path.chosen.l2 > 0) == (task.l2 == "cv")


def test_the_same_seed_chooses_the_same() -> None:
    rows, codes = drawn(100, 3, 2, 5)
    assert chosen_by(rows, codes, "l2", seed=1) == chosen_by(rows, codes, "l2", seed=1)
    assert chosen_by(rows, codes, "l2", seed=1) != chosen_by(rows, codes, "l2", seed=2)
