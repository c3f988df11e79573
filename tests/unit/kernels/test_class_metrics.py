"""Metrics of chances of classes: scikit-learn's, with DeLong's variance, and tables of enough rows."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.class_metrics import calibration_table, class_metrics, n_lines
from colonnade.kernels.logits import probabilities

CLOSE: dict[str, Any] = {"rel": 1e-9, "abs": 1e-12}


def made(n_classes: int, seed: int, n_rows: int = 400) -> tuple[Floats, Rows, Floats]:
    """Draw logits with ties, classes by their chances, and whole weights, some of them zero."""
    rng = np.random.default_rng(seed)
    logits = np.round(rng.normal(size=(n_rows,) if n_classes == 2 else (n_rows, n_classes)), 1)
    chances = probabilities(logits)
    if n_classes == 2:
        codes = (rng.random(n_rows) < chances).astype(np.int64)
    else:
        codes = (rng.random((n_rows, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    return logits, codes, rng.integers(0, 4, n_rows).astype(float)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_those_of_scikit_learn(n_classes: int, seed: int) -> None:
    logits, codes, weights = made(n_classes, seed)
    chances, n = probabilities(logits), weights.sum()
    found = class_metrics(logits, codes, weights, n_classes, 10)
    likely = (chances > 0.5).astype(int) if n_classes == 2 else chances.argmax(axis=1)
    area = metrics.roc_auc_score(codes, chances, sample_weight=weights, multi_class="ovr")
    assert found.cost / n == pytest.approx(metrics.log_loss(codes, chances, sample_weight=weights), **CLOSE)
    assert found.brier / n == pytest.approx(metrics.brier_score_loss(codes, chances, sample_weight=weights), **CLOSE)
    assert found.areas[-1, 0] == pytest.approx(area, **CLOSE)
    expected = metrics.confusion_matrix(codes, likely, sample_weight=weights)
    np.testing.assert_allclose(found.confusion, expected, rtol=1e-12)
    assert found.areas.shape == (1 if n_classes == 2 else n_classes + 1, 2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_row_of_weight_k_is_k_copies_of_it(n_classes: int) -> None:
    logits, codes, weights = made(n_classes, 7, 2000)
    copies = np.repeat(np.arange(len(weights)), weights.astype(int))
    ours = class_metrics(logits, codes, weights, n_classes, 10)
    theirs = class_metrics(logits[copies], codes[copies], np.ones(len(copies)), n_classes, 10)
    for name in ("cost", "deviation", "brier", "confusion", "areas", "calibration"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("digits", [0, 2, 12])
def test_many_rows_are_as_one_by_one_whatever_is_equal(digits: int) -> None:
    """More rows than are looked at together, few or many of the same logit: counts of pairs are exact."""
    rng = np.random.default_rng(digits)
    logits = np.round(rng.normal(size=30_000), digits)
    codes = (rng.random(len(logits)) < probabilities(logits)).astype(np.int64)
    found, n = class_metrics(logits, codes, np.ones(len(codes)), 2, 10), len(codes)
    no = np.sort(logits[codes == 0])
    wins = sum(np.searchsorted(no, logits[codes == 1], side).sum() for side in ("left", "right")) / 2
    assert found.areas[0, 0] == pytest.approx(wins / ((codes == 1).sum() * len(no)), rel=1e-14)
    chances = probabilities(logits)
    assert found.cost / n == pytest.approx(metrics.log_loss(codes, chances), **CLOSE)
    assert found.brier / n == pytest.approx(metrics.brier_score_loss(codes, chances), **CLOSE)
    by_weight = class_metrics(logits, codes, np.full(n, 2.0), 2, 20)
    np.testing.assert_allclose(by_weight.calibration, found.calibration * [2, 1, 1], rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_variance_of_the_area_is_de_longs(seed: int) -> None:
    """By all pairs: the variance of rows' mean wins, of both classes, over how many there are."""
    logits, codes, _ = made(2, seed)
    yes, no = logits[codes == 1], logits[codes == 0]
    wins = (yes[:, np.newaxis] > no) + 0.5 * (yes[:, np.newaxis] == no)
    due = wins.mean(axis=1).var(ddof=1) / len(yes) + wins.mean(axis=0).var(ddof=1) / len(no)
    found = class_metrics(logits, codes, np.ones(len(codes)), 2, 10)
    assert found.areas[0].tolist() == pytest.approx([wins.mean(), due], **CLOSE)


def test_the_interval_of_a_mean_area_covers() -> None:
    """Of 3 classes, 300 tables of 200 rows: 95 % are 285; fewer than 267 come by chance once in 100,000 times."""
    rng = np.random.default_rng(0)
    true = class_metrics(*_three(rng, 400_000), 3, 10).areas[-1, 0]
    within = 0
    for _ in range(300):
        area, variance = class_metrics(*_three(rng, 200), 3, 10).areas[-1]
        within += abs(area - true) < 1.96 * np.sqrt(variance)
    assert within >= 267


def _three(rng: np.random.Generator, n_rows: int) -> tuple[Floats, Rows, Floats]:
    logits = rng.normal(size=(n_rows, 3)) * 1.5
    return logits, (rng.random((n_rows, 1)) > probabilities(logits).cumsum(axis=1)).sum(axis=1), np.ones(n_rows)


def test_an_area_without_both_kinds_of_rows_is_a_half_and_does_not_vary() -> None:
    found = class_metrics(np.arange(5.0), np.ones(5, np.int64), np.ones(5), 2, 10)
    assert found.areas.tolist() == [[0.5, 0.0]]
    assert found.calibration.shape == (0, 3), "5 rows are too few for a line"


def test_certain_chances_cost_what_they_miss() -> None:
    found = class_metrics(np.array([1000.0, -1000.0, 1000.0]), np.array([1, 0, 0]), np.ones(3), 2, 10)
    assert found.cost == pytest.approx(1000.0)
    assert found.confusion.tolist() == [[1.0, 1.0], [0.0, 1.0]]


@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 900),
    n_values=st.integers(1, 200),
    least=st.integers(1, 60),
    heavy=st.booleans(),
)
def test_lines_of_calibration_are_of_enough_rows_and_of_all_of_them(
    seed: int, n_rows: int, n_values: int, least: int, heavy: bool
) -> None:
    rng = np.random.default_rng(seed)
    chances = rng.integers(n_values, size=n_rows) / n_values
    came = (rng.random(n_rows) < chances).astype(float)
    weights = rng.pareto(1.0, n_rows) + 0.01 if heavy else np.ones(n_rows)
    table = calibration_table(chances, came, weights, least)
    assert len(table) <= n_lines(weights) <= 10
    if not len(table):
        return
    assert (np.diff(table[:, 1]) > 0).all(), "lines ascend, and equal chances are in one"
    np.testing.assert_allclose(table[:, 0].sum(), weights.sum())
    np.testing.assert_allclose(table[:, 0] @ table[:, 2], weights @ came, atol=1e-9)
    ends = _ends(chances, weights, table)
    for first, last in zip([0, *ends[:-1]], ends, strict=True):
        own = weights[np.argsort(chances, kind="stable")][first:last]
        assert own.sum() ** 2 / (own @ own) >= least * (1 - 1e-9)


def _ends(chances: Floats, weights: Floats, table: Floats) -> list[int]:
    """Find where lines end among rows by ascending chance."""
    summed = np.cumsum(weights[np.argsort(chances, kind="stable")])
    return (1 + np.searchsorted(summed, np.cumsum(table[:, 0]) * (1 - 1e-9))).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("digits", [1, 15])
def test_of_many_rows_the_numbers_are_those_of_scikit_learn(digits: int) -> None:
    """So many that they are sorted by digits; with ties, and without."""
    rng = np.random.default_rng(digits)
    logits = np.round(3 * rng.standard_t(3, size=80_000), digits)
    codes = (rng.random(80_000) < probabilities(logits)).astype(np.int64)
    found, chances = class_metrics(logits, codes, np.ones(80_000), 2, 10), probabilities(logits)
    assert found.areas[0, 0] == pytest.approx(metrics.roc_auc_score(codes, logits), rel=1e-12)
    assert found.cost / 80_000 == pytest.approx(metrics.log_loss(codes, chances), **CLOSE)
    assert found.brier / 80_000 == pytest.approx(metrics.brier_score_loss(codes, chances), **CLOSE)
    assert found.confusion.tolist() == metrics.confusion_matrix(codes, chances > 0.5).tolist()
    np.testing.assert_allclose(found.calibration, calibration_table(chances, codes == 1, np.ones(80_000), 10))


def test_rows_of_weight_one_are_as_rows_of_almost_that_weight() -> None:
    """Where all weigh 1, weights are left out of the sums."""
    logits, codes, _ = made(2, 0, n_rows=5000)
    one, other = (class_metrics(logits, codes, np.full(5000, weight), 2, 10) for weight in (1.0, 1.0 + 1e-12))
    for name in ("cost", "deviation", "brier", "confusion", "areas", "calibration"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9)
