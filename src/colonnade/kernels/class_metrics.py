"""How well chances of classes fit the classes that came: losses, confusion, areas under curves, calibration.

A row of weight k counts as k copies of it; only how many lines calibration has depends on how many rows there are.
"""

from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.logits import log_loss, probabilities
from colonnade.kernels.ranks import Ranks

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
    if logits.ndim == 1:
        return _of_two(logits, codes, weights, least)
    losses, chances = log_loss(logits, codes), probabilities(logits)
    came = (codes[:, np.newaxis] == np.arange(n_classes)).astype(np.float64)
    likely, squares = chances.argmax(axis=1), np.square(chances - came).sum(axis=1)
    areas = _areas([*chances.T], [*came.T], weights)
    calibration = calibration_table(chances.max(axis=1), (likely == codes).astype(np.float64), weights, least)
    cost, confusion = float(weights @ losses), _confusion(codes, likely, weights, n_classes)
    return ClassMetrics(cost, _deviation(losses, weights), float(weights @ squares), confusion, areas, calibration)


def _of_two(logits: Floats, codes: Rows, weights: Floats, least: int) -> ClassMetrics:
    """Compare chances of the last of two classes with classes: rows are ordered once."""
    came = (codes == 1).astype(np.float64)
    # exp(-|z|) gives both the chance and -log of it, or of what is left of it: nothing overflows, nothing cancels.
    small = np.exp(-np.abs(logits))
    losses = np.log1p(small)
    losses += np.maximum(np.where(codes == 1, -logits, logits), 0.0)
    chances = np.where(logits >= 0, 1.0, small)
    chances /= 1.0 + small
    ranks = Ranks.of(logits)  # chances near 1 are equal where these are not
    parts = _area(ranks, came, weights)
    areas = np.array([(parts.area, min(parts.variance, 0.25))])
    calibration = calibration_table(chances, came, weights, least, ranks.order)
    confusion = _confusion(codes, (chances > 0.5).astype(np.int64), weights, 2)
    brier = float(weights @ np.square(chances - came))
    return ClassMetrics(float(weights @ losses), _deviation(losses, weights), brier, confusion, areas, calibration)


def _confusion(codes: Rows, likely: Rows, weights: Floats, n_classes: int) -> Floats:
    table = np.bincount(n_classes * codes + likely, weights, minlength=n_classes**2)
    return np.asarray(table.reshape(n_classes, n_classes), np.float64)


def n_lines(weights: Floats) -> int:
    """Say how many lines a calibration table of rows of these weights has, at most."""
    effective = float(weights.sum()) ** 2 / max(float(weights @ weights), np.finfo(float).tiny)
    return int(min(max(effective / ROWS_A_LINE, 1.0), MOST_LINES))


def calibration_table(chances: Floats, came: Floats, weights: Floats, least: int, order: Rows | None = None) -> Floats:
    """Put rows of like chances together, `n_lines` times at most, each time `least` rows or more; shape (b, 3).

    Rows of the same chance stay together. No line where there are fewer rows than that. Chances ascend in `order`, if
    one is given, but for rounding.
    """
    if not len(chances):
        return np.empty((0, 3))
    most, ranks = n_lines(weights), _ranks(chances, order)
    weight = ranks.sums(weights)
    middle = np.cumsum(weight)
    middle -= weight / 2
    # Where the lines begin: a row is in the one that the middle of the weight of its chance is in.
    firsts = np.searchsorted(middle, float(weight.sum()) * np.arange(most) / most)
    starts = ranks.starts(np.unique(firsts[firsts < len(middle)]))
    each = (np.add.reduceat(numbers[ranks.order], starts) for numbers in _summed(chances, came, weights))
    lines = [line for line in np.array([*each]).T if line[0] > 0]
    while few := [number for number, line in enumerate(lines) if _effective(line) < least]:
        # It goes to the one before; the first, to the one after.
        at = max(few[0] - 1, 0)
        lines[at : at + 2] = [lines[at] + lines[at + 1]] if len(lines) > 1 else []
    return np.array([(line[0], line[2] / line[0], line[3] / line[0]) for line in lines]).reshape(-1, 3)


def _ranks(chances: Floats, order: Rows | None) -> Ranks:
    if order is None:
        return Ranks.of(chances)
    ordered = chances[order]
    return Ranks.of(chances) if (ordered[1:] < ordered[:-1]).any() else Ranks.among(order, ordered)


def _summed(chances: Floats, came: Floats, weights: Floats) -> tuple[Floats, ...]:
    return weights, np.square(weights), weights * chances, weights * came


def _effective(line: Floats) -> float:
    """Count rows, those of little weight less: (sum of weights)^2 / sum of their squares."""
    return float(line[0] ** 2 / line[1]) if line[1] > 0 else 0.0


def _areas(chances: list[Floats], came: list[Floats], weights: Floats) -> Floats:
    """Compute the area of each class by its chances, its variance, and of their mean; shape (L + 1, 2)."""
    ranks = [Ranks.of(each) for each in chances]
    found = [_area(own, yes, weights) for own, yes in zip(ranks, came, strict=True)]
    whole = np.mean([each.by_row(own, yes) for each, own, yes in zip(found, ranks, came, strict=True)], axis=0)
    mean = float(np.mean([each.area for each in found])), float(weights @ np.square(whole))
    # No number within 0 and 1 varies more than by a quarter.
    return np.array([(area, min(part, 0.25)) for area, part in (*((e.area, e.variance) for e in found), mean)])


@dataclass(frozen=True, eq=False)
class _Area:
    """An area, its variance (DeLong), and a row's part in how it varies: of rows that came true, and of others.

    Parts, shape (v,), are by ascending chance: their squares, by weight, add up to the variance.
    """

    area: float
    variance: float
    of_yes: Floats
    of_no: Floats

    def by_row(self, ranks: Ranks, came: Floats) -> Floats:
        """Give each row's part, shape (m,)."""
        return np.where(came > 0, ranks.by_row(self.of_yes), ranks.by_row(self.of_no))


def _area(ranks: Ranks, came: Floats, weights: Floats) -> _Area:
    """Compute the weight of pairs in which the row that came true has the larger chance, equals by half."""
    weight, yes = ranks.sums(weights), ranks.sums(weights * came)
    no = weight - yes
    n_yes, n_no = float(yes.sum()), float(no.sum())
    if not (n_yes > 0 and n_no > 0):
        nothing = np.zeros(len(weight))
        return _Area(0.5, 0.0, nothing, nothing)
    of_yes, of_no = _below(no) / n_no, 1.0 - _below(yes) / n_yes
    area = float(yes @ of_yes) / n_yes
    for part, size in ((of_yes, n_yes), (of_no, n_no)):
        part -= area
        part /= _spread_by(size)
    return _Area(area, float(yes @ np.square(of_yes) + no @ np.square(of_no)), of_yes, of_no)


def _spread_by(weight: float) -> float:
    """Give the root of n (n - 1), which a mean of n numbers varies by; of a single row its own, for want of others."""
    return float(np.sqrt(weight * (weight - 1.0))) if weight > 1 else weight


def _below(weights: Floats) -> Floats:
    """Add up the weight at smaller chances, and half that at each, by ascending chance; shape (v,)."""
    below = np.cumsum(weights)
    below -= weights / 2
    return below


def _deviation(losses: Floats, weights: Floats) -> float:
    n = float(weights.sum())
    if n <= 1:
        return 0.0
    mean = float(weights @ losses) / n
    return float(np.sqrt(weights @ np.square(losses - mean) / (n - 1)))
