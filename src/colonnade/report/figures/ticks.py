"""Ticks that people would choose: 10 kB, 1 MB, 0.1 %, 1 %."""

import math
from collections.abc import Callable
from typing import Any

from colonnade.number_words import in_bytes, value
from colonnade.report.figures.words import width_of

# Leading digits of ticks on a logarithmic axis, the densest first.
LEADING = ((1, 2, 5), (1, 3), (1,))


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Choose round numbers between two positive ones, at most so many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for leading in LEADING:
        found = [lead * 10.0**power for power in range(first, last + 1) for lead in leading]
        found = [tick for tick in found if low <= tick <= high]
        if len(found) <= most:
            return found if len(found) > 1 else even_ticks(low, high, most)
    step = math.ceil((last - first) / most)
    return [10.0**power for power in range(first, last + 1, step) if low <= 10.0**power <= high]


def even_ticks(low: float, high: float, most: int) -> list[float]:
    """Choose round numbers at equal distances between two numbers, at most so many."""
    from matplotlib.ticker import MaxNLocator

    found = MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(tick) for tick in found if low <= tick <= high]


def set_ticks(axis: Any, ticks: list[float], name: Callable[[float], str]) -> None:
    """Put these ticks on an axis of matplotlib's, and no others."""
    axis.set_ticks(ticks, labels=[name(tick) for tick in ticks])
    axis.set_ticks([], minor=True)


def apart(axes: Any, ticks: list[float], name: Callable[[float], str], size: float) -> list[float]:
    """Leave out ticks across whose names would lie on those of ticks that come before them."""
    kept: list[tuple[float, float, float]] = []
    for tick in ticks:
        middle, half = float(axes.transData.transform((tick, 0))[0]), width_of(name(tick), size) / 2 + 3
        if all(abs(middle - other) > half + reach for _, other, reach in kept):
            kept.append((tick, middle, half))
    return [tick for tick, _, _ in kept]


def bytes_tick(number: float) -> str:
    """Write a round number of bytes."""
    return in_bytes(number).replace(".0 ", " ")


def per_cent_tick(share: float) -> str:
    """Write a round share."""
    return f"{value(100 * share, 3)} %"
