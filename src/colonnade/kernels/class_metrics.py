"""How well chances of classes fit the classes that came: losses, confusion, areas under curves, calibration.

A row of weight k counts as k copies of it; only how many lines calibration has depends on how many rows there are.
"""

from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.logits import log_loss, probabilities

# Lines of a calibration table: at most so many, and one for so many rows.
MOST_LINES, ROWS_A_LINE = 10, 50


@dataclass(frozen=True, eq=False)
class ClassMetrics:
    """Sums over rows of weight w_i and classes c_i, K of them.

    Parameters
    ----------
    cost : float
        sum_i w_i loss_i, where a loss is the negative log of the chance that was given to the row's class.
    deviation : float
        The losses' standard deviation, a row of weight k taken k times; 0 of a single one.
    brier : float
        sum_i w_i (p_i - y_i)^2 for two classes; of more, squares are added over the classes.
    confusion : ndarray of float64, shape (K, K)
        The weight of rows of each class (lines) that each class is most likely for (columns).
    areas : ndarray of float64, shape (L, 2)
        The area under the ROC curve and its variance (DeLong), 1/4 at most: one line for two classes, of the last; of
        more, a line for each class against all others, and one for their mean. 0.5 and 0 where a class or its opposite
        has no row.
    calibration : ndarray of float64, shape (b, 3)
        Rows of like chances, by ascending chance: their weight, their mean chance, and the share of them for which it
        came true. Chances are of the last of two classes; of more, of the most likely class.
    """

    cost: float
    deviation: float
    brier: float
    confusion: Floats
    areas: Floats
    calibration: Floats


def class_metrics(logits: Floats, codes: Rows, weights: Floats, n_classes: int, least: int) -> ClassMetrics:
    """Compare chances with classes.

    Parameters
    ----------
    logits : ndarray of float64, shape (m,) for two classes, those of the last, or (m, K)
        The model's.
    codes : ndarray of int64, shape (m,)
        Each row's class, 0 to K - 1.
    weights : ndarray of float64, shape (m,)
        How much rows count, or how often each is there.
    n_classes : int
        K.
    least : int
        Of how many rows, effectively, a line of the calibration table is, at least.

    Returns
    -------
    ClassMetrics
        Sums.
    """
    losses, chances = log_loss(logits, codes), probabilities(logits)
    if logits.ndim == 1:
        came = (codes == 1).astype(np.float64)
        likely, squares = (chances > 0.5).astype(np.int64), np.square(chances - came)
        areas = _areas([logits], [came], weights)[:1]  # chances near 1 are equal where these are not
        calibration = calibration_table(chances, came, weights, least)
    else:
        came = (codes[:, np.newaxis] == np.arange(n_classes)).astype(np.float64)
        likely, squares = chances.argmax(axis=1), np.square(chances - came).sum(axis=1)
        areas = _areas([*chances.T], [*came.T], weights)
        calibration = calibration_table(chances.max(axis=1), (likely == codes).astype(np.float64), weights, least)
    table = np.bincount(n_classes * codes + likely, weights, minlength=n_classes**2).reshape(n_classes, n_classes)
    cost, confusion = float(weights @ losses), np.asarray(table, np.float64)
    return ClassMetrics(cost, _deviation(losses, weights), float(weights @ squares), confusion, areas, calibration)


def n_lines(weights: Floats) -> int:
    """Say how many lines a calibration table of rows of these weights has, at most."""
    effective = float(weights.sum()) ** 2 / max(float(weights @ weights), np.finfo(float).tiny)
    return int(min(max(effective / ROWS_A_LINE, 1.0), MOST_LINES))


def calibration_table(chances: Floats, came: Floats, weights: Floats, least: int) -> Floats:
    """Put rows of like chances together, `n_lines` times at most, each time `least` rows or more; shape (b, 3).

    Rows of the same chance stay together. No line where there are fewer rows than that.
    """
    most = n_lines(weights)
    values, place = np.unique(chances, return_inverse=True)
    weight = np.bincount(place, weights, minlength=len(values))
    middle = (np.cumsum(weight) - weight / 2) / max(float(weight.sum()), np.finfo(float).tiny)
    near = np.minimum((most * middle).astype(np.int64), most - 1)[place]
    sums = np.array([np.bincount(near, each, minlength=most) for each in _summed(chances, came, weights)])
    lines = [line for line in sums.T if line[0] > 0]
    while few := [number for number, line in enumerate(lines) if _effective(line) < least]:
        # It goes to the one before; the first, to the one after.
        at = max(few[0] - 1, 0)
        lines[at : at + 2] = [lines[at] + lines[at + 1]] if len(lines) > 1 else []
    return np.array([(line[0], line[2] / line[0], line[3] / line[0]) for line in lines]).reshape(-1, 3)


def _summed(chances: Floats, came: Floats, weights: Floats) -> tuple[Floats, ...]:
    return weights, np.square(weights), weights * chances, weights * came


def _effective(line: Floats) -> float:
    """Count rows, those of little weight less: (sum of weights)^2 / sum of their squares."""
    return float(line[0] ** 2 / line[1]) if line[1] > 0 else 0.0


def _areas(chances: list[Floats], came: list[Floats], weights: Floats) -> Floats:
    """Compute the area of each class by its chances, or logits, its variance, and of their mean; shape (L + 1, 2)."""
    found = [_area(each, yes, weights) for each, yes in zip(chances, came, strict=True)]
    whole = float(np.mean([area for area, _ in found])), np.mean([part for _, part in found], axis=0)
    # No number within 0 and 1 varies more than by a quarter.
    return np.array([(area, min(float(weights @ np.square(part)), 0.25)) for area, part in (*found, whole)])


def _area(chances: Floats, came: Floats, weights: Floats) -> tuple[float, Floats]:
    """Compute the weight of pairs in which the row that came true has the larger chance, equals by half.

    Give each row's part in how it varies, too, shape (m,): their squares, by weight, add up to DeLong's variance.
    """
    yes, no = weights * came, weights * (1.0 - came)
    n_yes, n_no = float(yes.sum()), float(no.sum())
    if not (n_yes > 0 and n_no > 0):
        return 0.5, np.zeros(len(chances))
    _, place = np.unique(chances, return_inverse=True)
    below_yes, below_no = _below(place, yes) / n_yes, _below(place, no) / n_no
    area = float(yes @ below_no) / n_yes
    apart = np.where(came > 0, (below_no - area) / _spread_by(n_yes), (1.0 - below_yes - area) / _spread_by(n_no))
    return area, apart


def _spread_by(weight: float) -> float:
    """Give the root of n (n - 1), which a mean of n numbers varies by; of a single row its own, for want of others."""
    return float(np.sqrt(weight * (weight - 1.0))) if weight > 1 else weight


def _below(place: Rows, weights: Floats) -> Floats:
    """Add up the weight of rows of smaller chances, and half that of equal ones; shape (m,)."""
    each = np.bincount(place, weights)
    below: Floats = (np.cumsum(each) - each / 2)[place]
    return below


def _deviation(losses: Floats, weights: Floats) -> float:
    n = float(weights.sum())
    if n <= 1:
        return 0.0
    mean = float(weights @ losses) / n
    return float(np.sqrt(weights @ np.square(losses - mean) / (n - 1)))
