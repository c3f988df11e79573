"""Metrics of classes: scikit-learn's where it has them, DeLong's by its definition, bins that show no single row."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as theirs

from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.kernels.class_metrics import BINS, auc_interval, auc_of, calibration_table, class_metrics
from colonnade.kernels.logits import probabilities

CLOSE = 1e-12


def drawn(m: int, n_classes: int, seed: int, *, coarse: bool) -> tuple[Floats, Rows, Floats]:
    """Draw logits that tell classes somewhat, with many ties where they are coarse; all classes have rows."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=m - n_classes)])
    logits = rng.normal(size=(m, n_classes)) + 1.5 * np.eye(n_classes)[codes]
    logits = logits[:, 1] - logits[:, 0] if n_classes == 2 else logits
    return np.round(logits) if coarse else logits, codes, rng.uniform(0.1, 3, size=m) * (rng.random(m) < 0.9) + 1e-3


@settings(deadline=None)
@given(st.integers(6, 80), st.sampled_from([2, 3, 5]), st.booleans(), st.booleans(), st.integers(0, 9999))
def test_they_are_scikit_learns(m: int, n_classes: int, coarse: bool, weighted: bool, seed: int) -> None:
    logits, codes, w = drawn(m, n_classes, seed, coarse=coarse)
    w = w if weighted else np.ones(m)
    found = class_metrics(logits, codes, w)
    shares = probabilities(logits)
    guesses = (logits > 0).astype(int) if n_classes == 2 else logits.argmax(axis=1)
    labels = np.arange(n_classes)
    log_loss = theirs.log_loss(codes, shares, sample_weight=w, labels=labels, normalize=True)
    assert found.log_loss / found.weight == pytest.approx(log_loss, rel=CLOSE)
    assert found.accuracy == pytest.approx(theirs.accuracy_score(codes, guesses, sample_weight=w), rel=CLOSE)
    brier = theirs.brier_score_loss(codes, shares, sample_weight=w, labels=labels)
    assert found.brier == pytest.approx(brier, rel=CLOSE)
    scores = logits if n_classes == 2 else shares
    auc = theirs.roc_auc_score(codes, scores, sample_weight=w, multi_class="ovr", average="macro")
    assert found.auc == pytest.approx(auc, rel=CLOSE)
    confusion = theirs.confusion_matrix(codes, guesses, sample_weight=w, labels=labels)
    np.testing.assert_allclose(found.confusion, confusion, rtol=CLOSE)
    columns = theirs.precision_recall_fscore_support(codes, guesses, sample_weight=w, labels=labels, zero_division=0.0)
    ours = np.array([(one.precision, one.recall, one.f1, one.support) for one in found.by_class])
    np.testing.assert_allclose(ours.T, np.array(columns), rtol=CLOSE, atol=CLOSE)
    assert (found.n_rows, found.weight) == (m, pytest.approx(w.sum()))


@given(st.integers(5, 40), st.sampled_from([2, 3]), st.integers(0, 9999))
def test_rows_without_weight_count_nowhere_and_the_order_does_not_matter(m: int, n_classes: int, seed: int) -> None:
    logits, codes, w = drawn(m, n_classes, seed, coarse=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(2 * m)
    twice = np.concatenate([logits, -3 * logits])[order], np.concatenate([codes, codes])[order]
    found = class_metrics(*twice, np.concatenate([w, np.zeros(m)])[order], least=2)
    plain = class_metrics(logits, codes, w, least=2)
    assert found.n_rows == plain.n_rows == m
    np.testing.assert_allclose(found.confusion, plain.confusion, rtol=CLOSE)
    assert found.auc == pytest.approx(plain.auc)
    assert found.auc_interval == (None if plain.auc_interval is None else pytest.approx(plain.auc_interval))
    for ours, others in zip(found.calibration, plain.calibration, strict=True):
        assert (ours.predicted, ours.observed) == pytest.approx((others.predicted, others.observed))


def delong_by_definition(scores: Floats, positive: Flags) -> tuple[float, float]:
    """Give the AUC and its standard error: all pairs, the variances of either side's means over the other."""
    pairs = np.sign(scores[positive][:, None] - scores[~positive][None, :]) / 2 + 0.5
    variance = np.var(pairs.mean(axis=1), ddof=1) / len(pairs) + np.var(pairs.mean(axis=0), ddof=1) / pairs.shape[1]
    return float(pairs.mean()), float(np.sqrt(variance))


@given(st.integers(4, 60), st.booleans(), st.integers(0, 9999))
def test_the_error_of_the_auc_is_delongs(m: int, coarse: bool, seed: int) -> None:
    logits, codes, _ = drawn(m, 2, seed, coarse=coarse)
    codes[2:4] = 0, 1
    found = auc_of(logits, codes == 1, np.full(m, 2.5))
    assert found is not None
    assert (found[0], np.linalg.norm(found[1])) == pytest.approx(delong_by_definition(logits, codes == 1))


@pytest.mark.parametrize(("n_classes", "weighted"), [(2, False), (2, True), (3, False)])
def test_the_interval_covers(n_classes: int, weighted: bool) -> None:
    """False alarms: of 400 tables 95 % should cover; fewer than 365 or more than 394 have chance about 0.001."""
    truth = class_metrics(*drawn_with_chances(400_000, n_classes, 10**6, weighted=weighted)).auc
    covered = 0
    for seed in range(400):
        interval = class_metrics(*drawn_with_chances(150, n_classes, seed, weighted=weighted)).auc_interval
        assert interval is not None
        covered += interval[0] <= truth <= interval[1]
    assert 365 <= covered <= 394


def drawn_with_chances(m: int, n_classes: int, seed: int, *, weighted: bool) -> tuple[Floats, Rows, Floats]:
    """Draw rows; if weighted, by chances that depend on the logit, with the weights that make up for it."""
    rng = np.random.default_rng(seed)
    pool = 4 * m if weighted else m
    codes = rng.integers(n_classes, size=pool)
    logits = rng.normal(size=(pool, n_classes)) + np.eye(n_classes)[codes]
    logits = logits[:, 1] - logits[:, 0] if n_classes == 2 else logits
    if not weighted:
        return logits, codes, np.ones(m)
    chances = 0.1 + 0.8 / (1 + np.exp(-logits))
    there = np.flatnonzero(rng.random(pool) < chances)[:m]
    return logits[there], codes[there], 1 / chances[there]


def test_where_rows_do_not_tell_the_auc_there_is_no_interval() -> None:
    ones = np.ones(4)
    assert class_metrics(np.arange(4.0), np.ones(4, np.int64), ones).auc is None
    ordered = class_metrics(np.arange(4.0), np.array([0, 0, 1, 1]), ones)
    assert (ordered.auc, ordered.auc_interval) == (1.0, None)
    single = class_metrics(np.arange(4.0), np.array([0, 0, 1, 0]), ones)
    assert (single.auc, single.auc_interval) == (pytest.approx(2 / 3), None)
    ties = class_metrics(np.zeros(4), np.array([0, 0, 1, 1]), ones)
    assert (ties.auc, ties.auc_interval) == (0.5, pytest.approx((0.5, 0.5)))


def test_the_interval_by_hand() -> None:
    low, high = auc_interval(0.8, np.array([0.03, 0.04])) or (0, 0)
    half = 1.959963984540054 * 0.05 / 0.16
    assert (np.log(low / (1 - low)), np.log(high / (1 - high))) == pytest.approx((np.log(4) - half, np.log(4) + half))


def test_a_class_without_rows_is_left_out_of_the_mean() -> None:
    logits, codes, w = drawn(60, 3, 0, coarse=False)
    found = class_metrics(logits[codes != 2], codes[codes != 2], w[codes != 2])
    shares = probabilities(logits[codes != 2])
    each = [auc_of(shares[:, code], codes[codes != 2] == code, w[codes != 2]) for code in (0, 1)]
    assert found.auc == pytest.approx(np.mean([one[0] for one in each if one is not None]))
    assert (found.by_class[2].recall, found.by_class[2].support) == (0.0, 0.0)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=200), st.sampled_from([1, 5, 10, 60]), st.integers(0, 9999))
def test_bins_have_enough_rows_and_keep_equal_ones_together(values: list[int], least: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    predicted, true, w = np.array(values) / 12, rng.random(len(values)) < 0.4, rng.uniform(0.1, 2, size=len(values))
    table = calibration_table(predicted, true, w, least)
    if len(values) < least:
        assert table == ()
        return
    assert 1 <= len(table) <= BINS
    assert min(one.n_rows for one in table) >= least
    assert sum(one.n_rows for one in table) == len(values)
    assert sum(one.weight for one in table) == pytest.approx(w.sum())
    assert sum(one.weight * one.predicted for one in table) == pytest.approx(w @ predicted, abs=1e-12)
    assert sum(one.weight * one.observed for one in table) == pytest.approx(w @ true, abs=1e-12)
    assert all(one.predicted < other.predicted for one, other in pairwise(table))
    # Runs of sorted values, cut only between different ones.
    ordered, ends = np.sort(predicted), np.cumsum([one.n_rows for one in table])[:-1]
    assert (ordered[ends - 1] < ordered[ends]).all()


def test_ten_even_bins() -> None:
    predicted = np.random.default_rng(0).permutation(1000) / 1000
    table = calibration_table(predicted, predicted > 0.5, np.ones(1000), least=10)
    assert [one.n_rows for one in table] == [100] * 10
    assert [one.predicted for one in table] == pytest.approx([0.1 * place + 0.0495 for place in range(10)])
    assert [one.observed for one in table] == pytest.approx([0, 0, 0, 0, 0, 0.99, 1, 1, 1, 1])


def test_of_more_classes_the_most_probable_is_what_comes_true() -> None:
    logits, codes, w = drawn(100, 3, 1, coarse=False)
    found = class_metrics(logits, codes, w, least=5)
    assert sum(one.weight * one.observed for one in found.calibration) == pytest.approx(found.accuracy * w.sum())
