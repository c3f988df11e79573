"""How well chances of classes fit the classes that came: losses, confusion, areas under curves, calibration.

A row of weight k counts as k copies of it; only how many lines calibration has depends on how many rows there are.
"""

from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Codes, Flags, Floats, Rows
from colonnade.kernels.logits import chances_of_last, log_loss, probabilities
from colonnade.kernels.moments import Spread, joined_spread, spread_of
from colonnade.kernels.ranks import (
    ROWS_AT_ONCE,
    ascending,
    ascending_marked,
    each_of,
    firsts_of,
    groups_of,
    sums_by,
)

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


def class_metrics(logits: Floats, codes: Rows | Codes, weights: Floats, n_classes: int, least: int) -> ClassMetrics:
    """Compare chances with classes.

    Parameters
    ----------
    logits : ndarray of float64, shape (m,) for two classes, those of the last, or (m, K)
        The model's.
    codes : ndarray of int8 or int64, shape (m,)
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
    # A row of chances for each class, in which its rows are ordered.
    chances, largest, right = np.empty(logits.shape[::-1]), np.empty(len(codes)), np.empty(len(codes), np.bool_)
    spreads, brier, confusion = list[Spread](), 0.0, np.zeros((n_classes, n_classes))
    for start in range(0, len(codes), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        own, counts = codes[some].astype(np.int64, copy=False), weights[some]
        losses, found = losses_and_chances(logits[some], own)
        likely, came = found.argmax(axis=1), own[:, np.newaxis] == np.arange(n_classes)
        chances[:, some], largest[some], right[some] = found.T, found.max(axis=1), likely == own
        spreads.append(spread_of(losses, counts))
        brier += float(counts @ np.square(found - came).sum(axis=1))
        confusion += confusion_of(own, likely, counts, n_classes)
    calibration = calibration_table(largest, right, weights, least)
    del largest, right
    areas = _areas(chances, codes, weights)
    weight, mean, squares = joined_spread(spreads)
    deviation = float(np.sqrt(squares / (weight - 1))) if weight > 1 else 0.0
    return ClassMetrics(weight * mean, deviation, brier, confusion, areas, calibration)


def _of_two(logits: Floats, codes: Rows | Codes, weights: Floats, least: int) -> ClassMetrics:
    """Compare chances of the last of two classes with classes: rows are ordered once, and looked at in that order."""
    came, own = codes == 1, None
    if (weights == 1).all():
        ordered, came = ascending_marked(logits, came)
    else:
        order, ordered = ascending(logits)
        came, own = came[order], weights[order]
    chances, brier, confusion, spreads, curve = ordered, 0.0, np.zeros((2, 2)), list[Spread](), _Curve()
    for some in groups_of(ordered):
        yes, counts = came[some], None if own is None else own[some]
        curve.add(*_by_value(firsts_of(ordered[some]), yes, counts))
        losses, found = loss_and_chance(ordered[some], yes)
        spreads.append(spread_of(losses, counts))
        brier += _sum(np.square(found - yes), counts)
        confusion += _of_both(yes, found > 0.5, counts)
        chances[some] = found  # in the place of the logits
    weight, mean, squares = joined_spread(spreads)
    # Chances ascend as logits do, but for rounding.
    ascends = not (chances[1:] < chances[:-1]).any()
    table = _lines(chances, came, own, least) if ascends else calibration_table(chances, came, _given(own, came), least)
    deviation = float(np.sqrt(squares / (weight - 1))) if weight > 1 else 0.0
    area, variance = curve.area_and_variance()
    return ClassMetrics(weight * mean, deviation, brier, confusion, np.array([(area, min(variance, 0.25))]), table)


def _of_both(yes: Flags, likely: Flags, weights: Floats | None) -> Floats:
    """Add up rows by their class, and by the class that is most likely; shape (2, 2)."""
    if weights is not None:
        return confusion_of(yes.astype(np.int64), likely, weights, 2)
    n_yes, n_likely, n_both = (np.count_nonzero(each) for each in (yes, likely, yes & likely))
    return np.array([[len(yes) - n_yes - n_likely + n_both, n_likely - n_both], [n_yes - n_both, n_both]], np.float64)


class _Curve:
    """The area under the ROC curve, and its variance (DeLong), of rows that come in parts, by ascending chance."""

    def __init__(self) -> None:
        self._weights = (0.0, 0.0)
        self._spreads: tuple[list[Spread], list[Spread]] = ([], [])

    def add(self, yes: Floats | Rows, no: Floats | Rows) -> None:
        """Add the weights of rows that came true, and of the others, by ascending value."""
        for own, other, below, spreads in zip((yes, no), (no, yes), self._weights[::-1], self._spreads, strict=True):
            smaller = _below(other)
            smaller += below
            spreads.append(spread_of(smaller, own.astype(np.float64, copy=False)))
        self._weights = self._weights[0] + float(yes.sum()), self._weights[1] + float(no.sum())

    def area_and_variance(self) -> tuple[float, float]:
        """Divide by all pairs."""
        (n_yes, mean, of_yes), (n_no, _, of_no) = map(joined_spread, self._spreads)
        if not (n_yes > 0 and n_no > 0):
            return 0.5, 0.0
        variance = of_yes / (n_no * _spread_by(n_yes)) ** 2 + of_no / (n_yes * _spread_by(n_no)) ** 2
        return mean / n_no, variance


def loss_and_chance(logits: Floats, yes: Flags) -> tuple[Floats, Floats]:
    """Compute -log of the chance of each row's class, and the chance of the last, both of shape (m,)."""
    small = np.exp(-np.abs(logits))
    losses = np.log1p(small)
    # The logit where it speaks for the other class; no number is rounded by this.
    losses += np.maximum(logits, 0.0) - logits * yes
    return losses, chances_of_last(logits, small)


def losses_and_chances(logits: Floats, codes: Rows) -> tuple[Floats, Floats]:
    """Compute the same of more classes, of shapes (m,) and (m, K)."""
    return log_loss(logits, codes), probabilities(logits)


def _sum(numbers: Floats, weights: Floats | None) -> float:
    return float(numbers.sum() if weights is None else weights @ numbers)


def _given(weights: Floats | None, rows: Flags) -> Floats:
    return np.ones(len(rows)) if weights is None else weights


def confusion_of(codes: Rows, likely: Rows | Flags, weights: Floats, n_classes: int) -> Floats:
    """Add up the weight of rows of each class, by the one that is most likely; shape (K, K)."""
    table = np.bincount(n_classes * codes + likely, weights, minlength=n_classes**2)
    return np.asarray(table.reshape(n_classes, n_classes), np.float64)


def n_lines(weights: Floats) -> int:
    """Say how many lines a calibration table of rows of these weights has, at most."""
    return most_lines(float(weights.sum()), float(weights @ weights))


def most_lines(weight: float, squares: float) -> int:
    """Say how many it has of rows of this weight, whose weights have squares that add up to this."""
    effective = weight**2 / max(squares, np.finfo(float).tiny)
    return int(min(max(effective / ROWS_A_LINE, 1.0), MOST_LINES))


def calibration_table(chances: Floats, came: Floats | Flags, weights: Floats, least: int) -> Floats:
    """Put rows of like chances together, `n_lines` times at most, each time `least` rows or more; shape (b, 3).

    Rows of the same chance stay together. No line where there are fewer rows than that.
    """
    order, ordered = ascending(chances)
    return _lines(ordered, came[order] > 0, weights[order], least)


def _lines(chances: Floats, came: Flags, weights: Floats | None, least: int) -> Floats:
    """Make a calibration table of rows by ascending chance; weights are 1 each if left out."""
    if not len(chances):
        return np.empty((0, 3))
    starts = _even_starts(chances) if weights is None else _starts(chances, weights)
    return _of_enough_rows(_sums(chances, came, weights, starts), least)


def lines_of_bins(sums: Floats, least: int) -> Floats:
    """Make a calibration table of bins by ascending chance: weights, squares, chances and what came, shape (4, b)."""
    weight = sums[0]
    most = most_lines(float(weight.sum()), float(sums[1].sum()))
    begin = np.unique(np.searchsorted(_below(weight), float(weight.sum()) * np.arange(most) / most))
    return _of_enough_rows(np.add.reduceat(sums, begin[begin < len(weight)], axis=1).T, least)


def _of_enough_rows(sums: Floats, least: int) -> Floats:
    """Put lines together until each is of enough rows."""
    lines = [line for line in sums if line[0] > 0]
    while few := [number for number, line in enumerate(lines) if _effective(line) < least]:
        # It goes to the one before; the first, to the one after.
        at = max(few[0] - 1, 0)
        lines[at : at + 2] = [lines[at] + lines[at + 1]] if len(lines) > 1 else []
    return np.array([(line[0], line[2] / line[0], line[3] / line[0]) for line in lines]).reshape(-1, 3)


# Where lines begin: a row is in the one that the middle of the weight of its chance is in.


def _starts(chances: Floats, weights: Floats) -> Rows:
    firsts, most = firsts_of(chances), n_lines(weights)
    weight = sums_by(firsts, weights)
    begin = np.searchsorted(_below(weight), float(weight.sum()) * np.arange(most) / most)
    begin = np.unique(begin[begin < len(weight)])
    return begin if firsts is None else firsts[begin]


def _even_starts(chances: Floats) -> Rows:
    """Find them where all weights are 1: by the rows of the same chance as where a line would begin by itself."""
    most = most_lines(len(chances), len(chances))
    due = len(chances) * np.arange(most) / most
    first, stop = (np.searchsorted(chances, chances[due.astype(np.int64)], side) for side in ("left", "right"))
    begin = np.where((first + stop) / 2 >= due, first, stop)
    return np.unique(begin[begin < len(chances)])


def _sums(chances: Floats, came: Flags, weights: Floats | None, starts: Rows) -> Floats:
    """Add up weights, their squares, chances and what came true of lines that begin there, shape (lines, 4)."""
    if weights is None:
        counts = np.diff(starts, append=len(chances)).astype(np.float64)
        sums = [counts, counts, np.add.reduceat(chances, starts), np.add.reduceat(came, starts, dtype=np.float64)]
    else:
        each = (weights, np.square(weights), weights * chances, weights * came)
        sums = [np.add.reduceat(numbers, starts) for numbers in each]
    return np.array(sums).T


def _effective(line: Floats) -> float:
    """Count rows, those of little weight less: (sum of weights)^2 / sum of their squares."""
    return float(line[0] ** 2 / line[1]) if line[1] > 0 else 0.0


def _areas(chances: Floats, codes: Rows | Codes, weights: Floats) -> Floats:
    """Compute the area of each class by its chances, (K, m), its variance, and of their mean; shape (K + 1, 2)."""
    found, whole = list[tuple[float, float]](), np.zeros(len(weights))
    for place, own in enumerate(chances):
        order, ordered = ascending(own)
        firsts, yes = firsts_of(ordered), codes[order] == place
        area = _area(*_by_value(firsts, yes, weights[order]))
        found.append((area.area, area.variance))
        for came, parts in ((yes, area.of_yes), (~yes, area.of_no)):
            whole[order[came]] += each_of(firsts, len(order), parts)[came] / len(chances)
        del order, ordered, firsts, area, parts  # before the next are made
    mean = float(np.mean([area for area, _ in found])), float(weights @ np.square(whole))
    # No number within 0 and 1 varies more than by a quarter.
    return np.array([(area, min(variance, 0.25)) for area, variance in (*found, mean)])


def _by_value(firsts: Rows | None, came: Flags, weights: Floats | None) -> tuple[Floats, Floats] | tuple[Rows, Rows]:
    """Add up the weight of rows that came true, and of the others, by ascending value; without weights, count them."""
    if weights is None:
        return sums_by(firsts, came.astype(np.int64)), sums_by(firsts, (~came).astype(np.int64))
    return sums_by(firsts, weights * came), sums_by(firsts, weights * ~came)


def area_of(yes: Floats, no: Floats) -> tuple[float, float]:
    """Give the area, and its variance, by the weights of those that came true and of others, by ascending value."""
    found = _area(yes, no)
    return found.area, found.variance


@dataclass(frozen=True, eq=False)
class _Area:
    """An area, its variance (DeLong), and a row's part in how it varies: of one that came true, and of another.

    Parts, shape (v,), are by ascending chance: their squares, by weight, add up to the variance.
    """

    area: float
    variance: float
    of_yes: Floats
    of_no: Floats


def _area(yes: Floats | Rows, no: Floats | Rows) -> _Area:
    """Compute the weight of pairs in which the row that came true has the larger chance, equals by half."""
    n_yes, n_no = float(yes.sum()), float(no.sum())
    if not (n_yes > 0 and n_no > 0):
        nothing = np.zeros(len(yes))
        return _Area(0.5, 0.0, nothing, nothing)
    of_yes, of_no = _below(no), _below(yes)
    of_yes /= n_no
    np.subtract(1.0, np.divide(of_no, n_yes, out=of_no), out=of_no)
    area = float(yes @ of_yes) / n_yes
    variance = 0.0
    for parts, weights, size in ((of_yes, yes, n_yes), (of_no, no, n_no)):
        parts -= area
        parts /= _spread_by(size)
        variance += float(np.einsum("i,i,i->", weights, parts, parts))
    return _Area(area, variance, of_yes, of_no)


def _spread_by(weight: float) -> float:
    """Give the root of n (n - 1), which a mean of n numbers varies by; of a single row its own, for want of others."""
    return float(np.sqrt(weight * (weight - 1.0))) if weight > 1 else weight


def _below(weights: Floats | Rows) -> Floats:
    """Add up the weight at smaller chances, and half that at each, by ascending chance; shape (v,)."""
    below = np.cumsum(weights).astype(np.float64, copy=False)  # whole numbers are added up the faster
    below -= weights / 2
    return below
