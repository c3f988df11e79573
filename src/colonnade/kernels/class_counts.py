"""Chances of classes of rows without number, compared as they come: kept are sums, and counts of rows of like chances.

A bin is what has the leading bits of a logit. An area by bins takes half of every pair that shares one; where a bin has
different logits, that is off by half these pairs at most, which is added to how much the area varies.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from colonnade.kernels import per_row
from colonnade.kernels.arrays import Codes, Flags, Floats, Rows
from colonnade.kernels.class_metrics import (
    ClassMetrics,
    area_of,
    class_metrics,
    confusion_of,
    lines_of_bins,
    loss_and_chance,
    losses_and_chances,
)
from colonnade.kernels.moments import Spread, joined_spread, spread_of
from colonnade.kernels.ranks import ROWS_AT_ONCE

# Logits that are told apart: from 2^-16 to 2^16 in size. Of few classes, to 12 bits behind the leading one.
EXPONENTS, MOST_BITS, CLASSES_OF_MOST_BITS = 16, 12, 8
# Logits that differ by less, in parts of themselves, are the same but for rounding; no chance is nearer to 0 or 1.
ROUNDING, CERTAIN = 1e-12, 1e3
# Where the bits of a float32 begin that are kept: its exponent has 8, and is 127 for 1.
MANTISSA_BITS, BIAS = 23, 127


class Part(NamedTuple):
    """Some rows: logits, (m,) of the last of two classes or (m, K), classes, and weights, or None where all are 1."""

    logits: Floats
    codes: Codes
    weights: Floats | None


@dataclass(frozen=True, eq=False)
class Compared:
    """Rows that come in parts: few are kept, and of many what they add up to.

    Parts of whole blocks, but for the last, give the same bits however many blocks they have.

    Parameters
    ----------
    n_classes : int
        K.
    kept : tuple of Part
        Rows that wait: numbers for as many as a party keeps of any table.
    counted : Counted or None
        What other rows, which came before, add up to.
    """

    n_classes: int
    kept: tuple[Part, ...] = ()
    counted: "Counted | None" = None

    def __repr__(self) -> str:
        return "Compared(not shown)"

    def add(self, part: Part, *, keeping: bool = False) -> "Compared":
        """Give the same with more rows; all are kept, if so."""
        kept = (*self.kept, part)
        if keeping or sum(each.logits.size for each in kept) <= per_row.KEPT_ROWS:
            return replace(self, kept=kept)
        return replace(self, kept=(), counted=self._so_far.add(kept))

    @property
    def _so_far(self) -> "Counted":
        return Counted.nothing(self.n_classes) if self.counted is None else self.counted

    def metrics(self, least: int) -> ClassMetrics:
        """Compare all of them: few exactly; areas of many, and lines of their calibration, by bins."""
        if self.counted is not None:
            return self._so_far.add(self.kept).metrics(least)
        logits, codes, weights = self.together
        counts = np.broadcast_to(1.0, len(codes)) if weights is None else weights
        return class_metrics(logits, codes, counts, self.n_classes, least)

    @property
    def together(self) -> Part:
        """Give all rows that are kept; there is one part at least, and none has weights, or all."""
        if len(self.kept) == 1:
            return self.kept[0]
        weights = [part.weights for part in self.kept if part.weights is not None]
        logits, codes = (np.concatenate(each) for each in list(zip(*self.kept, strict=True))[:2])
        return Part(logits, codes, np.concatenate(weights) if weights else None)


class Bins(NamedTuple):
    """Rows by bin, shape (bins,) each: their weight where they came true, of others, and the ends of their logits."""

    yes: Floats
    no: Floats
    low: Floats
    high: Floats

    @classmethod
    def nothing(cls, n_bins: int) -> "Bins":
        """Give empty ones."""
        return cls(np.zeros(n_bins), np.zeros(n_bins), np.full(n_bins, np.inf), np.full(n_bins, -np.inf))

    def put(self, bins: Rows, logits: Floats, yes: Flags, weights: Floats) -> None:
        """Put rows into them, one after another."""
        np.add.at(self.yes, bins, weights * yes)
        np.add.at(self.no, bins, weights * ~yes)
        np.minimum.at(self.low, bins, logits)
        np.maximum.at(self.high, bins, logits)

    def area(self) -> tuple[float, float]:
        """Give the area, and how much it varies at most: as areas do, and by half the pairs of different logits."""
        n_pairs = float(self.yes.sum()) * float(self.no.sum())
        area, variance = area_of(self.yes, self.no)
        apart = self.high - self.low > ROUNDING * np.maximum(np.abs(self.low), np.abs(self.high))
        unsure = 0.5 * float(self.yes[apart] @ self.no[apart]) / n_pairs if n_pairs > 0 else 0.0
        return area, (np.sqrt(variance) + unsure) ** 2


class Lines(NamedTuple):
    """Rows by bin of the chance that calibration is of: their weight, its squares, chances, and what came true."""

    weight: Floats
    square: Floats
    chance: Floats
    came: Floats

    def put(self, bins: Rows, chances: Floats, yes: Flags, weights: Floats) -> None:
        """Put rows into them, one after another."""
        each = (weights, np.square(weights), weights * chances, weights * yes)
        for sums, numbers in zip(self, each, strict=True):
            np.add.at(sums, bins, numbers)


@dataclass(frozen=True, eq=False)
class Counted:
    """What rows add up to."""

    n_bits: int
    spread: Spread
    brier: float
    confusion: Floats
    curves: tuple[Bins, ...]
    lines: Lines

    @classmethod
    def nothing(cls, n_classes: int) -> "Counted":
        """Begin: the more classes there are, the fewer bins has each."""
        n_bits = MOST_BITS - (n_classes // CLASSES_OF_MOST_BITS).bit_length()
        n_bins = 4 * EXPONENTS << n_bits
        curves = tuple(Bins.nothing(n_bins) for _ in range(1 if n_classes == 2 else n_classes))
        lines = Lines(*np.zeros((4, n_bins)))
        return cls(n_bits, (0.0, 0.0, 0.0), 0.0, np.zeros((n_classes, n_classes)), curves, lines)

    def add(self, parts: Iterable[Part]) -> "Counted":
        """Give the same with more rows; this one stays as it is."""
        curves = tuple(Bins(*(each.copy() for each in curve)) for curve in self.curves)
        counted = replace(self, curves=curves, lines=Lines(*(each.copy() for each in self.lines)))
        for part in parts:
            for start in range(0, len(part.codes), ROWS_AT_ONCE):
                some = slice(start, start + ROWS_AT_ONCE)
                codes, weights = part.codes[some].astype(np.int64), None if part.weights is None else part.weights[some]
                counted = counted._with(part.logits[some], codes, np.ones(len(codes)) if weights is None else weights)
        return counted

    def _with(self, logits: Floats, codes: Rows, weights: Floats) -> "Counted":
        """Put few rows into the bins, which are this one's own, and add them up."""
        if logits.ndim == 1:
            yes = codes == 1
            losses, chances = loss_and_chance(logits, yes)
            likely, squares, right = chances > 0.5, np.square(chances - yes), yes
            bins = bins_of(logits, self.n_bits)
            self.curves[0].put(bins, logits, yes, weights)
        else:
            losses, each = losses_and_chances(logits, codes)
            came = codes[:, np.newaxis] == np.arange(len(self.curves))
            likely, squares = each.argmax(axis=1), np.square(each - came).sum(axis=1)
            for place, curve in enumerate(self.curves):
                against = _log_odds(each[:, place])
                curve.put(bins_of(against, self.n_bits), against, came[:, place], weights)
            chances, right = each.max(axis=1), likely == codes
            bins = bins_of(_log_odds(chances), self.n_bits)
        self.lines.put(bins, chances, right, weights)
        return replace(
            self,
            spread=joined_spread([self.spread, spread_of(losses, weights)]),
            brier=self.brier + float(weights @ squares),
            confusion=self.confusion + confusion_of(codes, likely, weights, len(self.confusion)),
        )

    def metrics(self, least: int) -> ClassMetrics:
        """Say what all rows add up to."""
        weight, mean, squares = self.spread
        areas = [curve.area() for curve in self.curves]
        if len(areas) > 1:
            # Which rows they share bins do not tell: their mean varies no more than they do in the mean.
            deviation = float(np.mean(np.sqrt([variance for _, variance in areas])))
            areas.append((float(np.mean([area for area, _ in areas])), deviation**2))
        capped = np.array([(area, min(variance, 0.25)) for area, variance in areas])
        deviation = float(np.sqrt(squares / (weight - 1))) if weight > 1 else 0.0
        table = lines_of_bins(np.array(self.lines), least)
        return ClassMetrics(weight * mean, deviation, self.brier, self.confusion, capped, table)


def bins_of(logits: Floats, n_bits: int) -> Rows:
    """Give the bin of each, which ascends with it: the leading bits of its float32, mirrored where it is negative."""
    size = np.clip(np.abs(logits), 2.0**-EXPONENTS, 2.0**EXPONENTS).astype(np.float32).view(np.int32)
    half = 2 * EXPONENTS << n_bits
    place = np.clip((size >> (MANTISSA_BITS - n_bits)) - ((BIAS - EXPONENTS) << n_bits), 0, half - 1)
    bins: Rows = np.where(logits < 0, half - 1 - place, half + place).astype(np.int64)
    return bins


def _log_odds(chances: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        odds: Floats = np.log(chances) - np.log1p(-chances)
    return np.clip(odds, -CERTAIN, CERTAIN, out=odds)
