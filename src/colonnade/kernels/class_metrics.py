"""How well classes are told: sums over rows of losses, right classes and pairs in order. O(m log m).

Rows without weight count nowhere. Logits have shape (m, K), or (m,) for two classes: those of class 1.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import expit, logit, ndtri

from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.kernels.logits import log_loss, probabilities

BINS = 10
CONFIDENCE = 0.95
ROUNDING = 1e-12


@dataclass(frozen=True)
class ClassCounts:
    """How well one class is told from all others. What would be divided by no weight is 0."""

    precision: float
    recall: float
    f1: float
    support: float


@dataclass(frozen=True)
class CalibrationBin:
    """Rows of about the same predicted probability: its weighted mean, and how often it came true, by weight."""

    predicted: float
    observed: float
    weight: float
    n_rows: int


@dataclass(frozen=True)
class ClassMetrics:
    """How well classes are told.

    Parameters
    ----------
    n_rows : int
        How many rows have weight.
    weight : float
        Theirs in all.
    log_loss : float
        sum_i w_i (-log of the probability of the row's class).
    deviation : float
        The losses' standard deviation, unweighted; 0 for a single row.
    accuracy : float
        The share of weight whose class is the most probable one, the first of equal ones.
    brier : float
        The mean squared error of the probability of class 1; of more than two classes, the sum over classes.
    auc : float or None
        The chance that of two rows, one of class 1 and one not, the former has the larger logit, half where they are
        equal. Of more classes the mean over those that have rows, each against all others by its probability. None
        where there is but one class.
    auc_interval : tuple of float, or None
        95 % confidence interval for rows that are a sample (DeLong, of the AUC's logit); None where all pairs are in
        order, or none, and where a class has a single row: such rows do not tell.
    confusion : tuple of tuples of float
        Weight by true class (outer) and most probable class (inner).
    by_class : tuple of ClassCounts
    calibration : tuple of CalibrationBin
        By probability of class 1; of more classes by that of the most probable, which comes true where it is the row's.
    """

    n_rows: int
    weight: float
    log_loss: float
    deviation: float
    accuracy: float
    brier: float
    auc: float | None
    auc_interval: tuple[float, float] | None
    confusion: tuple[tuple[float, ...], ...]
    by_class: tuple[ClassCounts, ...]
    calibration: tuple[CalibrationBin, ...]


def class_metrics(logits: Floats, codes: Rows, weights: Floats, least: int = 1) -> ClassMetrics:
    """Sum up how well logits tell classes, codes 0 to K - 1, shape (m,); some row has weight.

    `least` is how few rows a bin of the calibration table may have; there is no table of fewer in all.
    """
    kept = weights > 0
    logits, codes, weights = logits[kept], codes[kept], weights[kept]
    losses, shares = log_loss(logits, codes), probabilities(logits)
    both = np.column_stack([1.0 - shares, shares]) if logits.ndim == 1 else shares
    guesses = (logits > 0).astype(np.int64) if logits.ndim == 1 else np.argmax(logits, axis=1)
    total = float(weights.sum())
    confusion = confusion_matrix(codes, guesses, weights, both.shape[1])
    auc, interval = _auc_of_all(logits, codes, weights)
    two = both.shape[1] == 2
    errors = np.square(both - np.eye(both.shape[1])[codes]).sum(axis=1) / (2 if two else 1)
    predicted, true = (both[:, 1], codes == 1) if two else (both.max(axis=1), codes == guesses)
    return ClassMetrics(
        n_rows=len(codes),
        weight=total,
        log_loss=float(weights @ losses),
        deviation=float(losses.std(ddof=1)) if len(losses) > 1 else 0.0,
        accuracy=float(np.trace(confusion)) / total,
        brier=float(weights @ errors) / total,
        auc=auc,
        auc_interval=interval,
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        by_class=by_class(confusion),
        calibration=calibration_table(predicted, true, weights, least),
    )


def confusion_matrix(codes: Rows, guesses: Rows, weights: Floats, n_classes: int) -> Floats:
    """Add up weights by true class and guess, shape (K, K)."""
    flat = np.bincount(codes * n_classes + guesses, weights=weights, minlength=n_classes**2)
    return flat.reshape(n_classes, n_classes)


def by_class(confusion: Floats) -> tuple[ClassCounts, ...]:
    """Compute each class's precision, recall and F1, and its weight."""
    right, true, guessed = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)

    def over(divisor: Floats) -> list[float]:
        return np.divide(right, divisor, out=np.zeros_like(right), where=divisor > 0).tolist()

    columns = over(guessed), over(true), over((true + guessed) / 2), true.tolist()
    return tuple(ClassCounts(*values) for values in zip(*columns, strict=True))


def auc_of(scores: Floats, positive: Flags, weights: Floats) -> tuple[float, Floats] | None:
    """Compute the AUC, and each row's part in its error, shape (m,): the squares' sum is the variance (DeLong).

    With weights of 1 it is DeLong's; others count as those of drawn rows, not as copies. A part is infinite where its
    side has one row only. None where one side has none.
    """
    above, below = float(weights[positive].sum()), float(weights[~positive].sum())
    if not (above > 0 and below > 0):
        return None
    _, group = np.unique(scores, return_inverse=True)
    sides = [np.bincount(group, weights=np.where(side, weights, 0.0)) for side in (positive, ~positive)]
    # The share of the other side's weight that a row is in order with, ties by half.
    under = ((np.cumsum(sides[1]) - 0.5 * sides[1]) / below)[group]
    over = ((above - np.cumsum(sides[0]) + 0.5 * sides[0]) / above)[group]
    placed = np.where(positive, under, over)
    auc = float(weights[positive] @ placed[positive]) / above
    counts = np.where(positive, np.count_nonzero(positive), np.count_nonzero(~positive))
    with np.errstate(divide="ignore"):
        correction = np.sqrt(counts / (counts - 1.0))
    parts = np.where(counts > 1, weights * (placed - auc) / np.where(positive, above, below), 1.0) * correction
    return auc, parts


def auc_interval(auc: float, parts: Floats) -> tuple[float, float] | None:
    """Give the interval, of 95 % confidence, on the scale of logits; None where the rows do not tell it."""
    deviation = float(np.linalg.norm(parts))
    if not (ROUNDING < auc < 1 - ROUNDING and math.isfinite(deviation)):
        return None
    centre, half = float(logit(auc)), float(ndtri((1 + CONFIDENCE) / 2)) * deviation / (auc * (1 - auc))
    return float(expit(centre - half)), float(expit(centre + half))


def _auc_of_all(logits: Floats, codes: Rows, weights: Floats) -> tuple[float | None, tuple[float, float] | None]:
    if logits.ndim == 1:
        found = [auc_of(logits, codes == 1, weights)]
    else:
        shares = probabilities(logits)
        found = [auc_of(shares[:, code], codes == code, weights) for code in range(shares.shape[1])]
    known = [one for one in found if one is not None]
    if not known:
        return None, None
    auc = float(np.mean([one for one, _ in known]))
    return auc, auc_interval(auc, np.mean([parts for _, parts in known], axis=0))


def calibration_table(predicted: Floats, true: Flags, weights: Floats, least: int) -> tuple[CalibrationBin, ...]:
    """Sort rows into at most ten bins of nearly equal count, equal probabilities in one, `least` rows in each or more.

    A bin with fewer goes to the one before it, the first to the one after it.
    """
    order = np.argsort(predicted, kind="stable")
    values = predicted[order]
    ends = np.searchsorted(values, values[np.arange(1, BINS + 1) * len(values) // BINS - 1], side="right")
    edges = [0]
    for end in np.unique(ends).tolist():
        if end - edges[-1] >= least:
            edges.append(end)
    if len(edges) == 1:
        return ()
    edges[-1] = len(values)
    bins = []
    for first, end in pairwise(edges):
        rows = order[first:end]
        weight = float(weights[rows].sum())
        mean, share = weights[rows] @ predicted[rows] / weight, weights[rows] @ true[rows] / weight
        bins.append(CalibrationBin(float(mean), float(share), weight, len(rows)))
    return tuple(bins)
