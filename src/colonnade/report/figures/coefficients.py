"""Coefficients by party, with intervals where there are some."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from colonnade.number_words import count, value
from colonnade.report.figures.figure import Figure
from colonnade.report.figures.sheet import SIZE, SMALL, WIDE, Sheet, figure, note
from colonnade.report.figures.ticks import apart, even_ticks, set_ticks
from colonnade.report.figures.words import fitted, isolated, listed, plain, width_of

TITLE = "Coefficients by party"
MOST = 40
# What is smaller, relative to the largest, is what rounding left of 0.
ROUNDING = 1e-15
# Where the largest is this many times the middle one, the axis is logarithmic on both sides of 0, over so many decades.
EVEN, DECADES = 30.0, 5
# Exponents between which matplotlib draws what it is given; others are cut off there.
EXPONENTS = (-290, 290)
ROW, HEADING = 20.0, 28.0


class CoefficientBar(NamedTuple):
    """One coefficient.

    Parameters
    ----------
    party : str
        Who holds the feature.
    feature : str
        Its name.
    value : float
        In the data's own units.
    low, high : float or None
        The ends of its interval, if it has one.
    """

    party: str
    feature: str
    value: float
    low: float | None = None
    high: float | None = None


def coefficients(rows: Sequence[CoefficientBar]) -> Figure:
    """Draw coefficients, a line each, grouped by party.

    Parameters
    ----------
    rows : sequence of CoefficientBar
        Of more than 40 those that stand out most are drawn: by their value over the width of their intervals, if half
        of them have some, by their value otherwise.

    Returns
    -------
    Figure
        Drawn, and in words.

    Examples
    --------
    >>> rows = [CoefficientBar("airline", "distance", 1.5, 1.2, 1.8), CoefficientBar("weather", "wind", 0.0)]
    >>> "1.5 (1.2 to 1.8)" in coefficients(rows).svg
    True
    """
    finite = [row for row in rows if math.isfinite(row.value)]
    if not finite:
        return note(TITLE, "The model has no coefficients.")
    largest = max(abs(row.value) for row in finite)
    finite = [row._replace(value=0.0) if abs(row.value) <= ROUNDING * largest else row for row in finite]
    by_interval = 2 * sum(map(_has_interval, finite)) >= len(finite)
    ranked = sorted(finite, key=lambda row: -(_standing(row) if by_interval else abs(row.value)))
    shown, rest = ranked[:MOST], ranked[MOST:]
    groups = {party: [row for row in shown if row.party == party] for party in dict.fromkeys(r.party for r in finite)}
    groups = {party: own for party, own in groups.items() if own}
    return figure(TITLE, _words(finite, shown, rest), lambda width: _draw(groups, width))


def _has_interval(row: CoefficientBar) -> bool:
    return row.low is not None and row.high is not None and math.isfinite(row.low) and math.isfinite(row.high)


def _interval(row: CoefficientBar) -> tuple[float, float]:
    return row.low or 0.0, row.high or 0.0


def _standing(row: CoefficientBar) -> float:
    if not _has_interval(row):
        return 0.0
    low, high = _interval(row)
    return abs(row.value) / (high - low) if high > low else math.inf if row.value else 0.0


def _sure(row: CoefficientBar) -> bool:
    """Tell whether the interval leaves 0 out."""
    low, high = _interval(row)
    return _has_interval(row) and (low > 0 or high < 0)


def _words(finite: Sequence[CoefficientBar], shown: Sequence[CoefficientBar], rest: Sequence[CoefficientBar]) -> str:
    sure, known = sum(map(_sure, finite)), sum(map(_has_interval, finite))
    largest = max(finite, key=lambda row: abs(row.value))
    text = (
        f"{count(len(finite))} coefficients, each in the units of its own column. The largest is "
        f"{isolated(plain(largest.feature, 40))} of {isolated(plain(largest.party, 40))}: {value(largest.value)}."
    )
    if known:
        text += f" {count(sure)} of {count(known)} intervals leave 0 out: their marks are filled, the others hollow."
    if _is_uneven(shown):
        text += " The axis is logarithmic on both sides of 0."
    zeros = sum(row.value == 0 for row in finite)
    if zeros:
        text += f" {count(zeros)} {'is' if zeros == 1 else 'are'} 0."
    if rest:
        text += f" Not drawn, since they stand out less: {listed([row.feature for row in rest], 12)}."
    return text


def _draw(groups: dict[str, list[CoefficientBar]], width: float) -> Sheet:
    wide = width == WIDE
    shown = [row for own in groups.values() for row in own]
    body = len(groups) * HEADING + len(shown) * ROW
    sheet = Sheet(width, body + 26)
    left, room = (150.0, 190.0) if wide else (104.0, 80.0)
    across = _Across(shown, sheet.axes(left, 4, width - left - room - 12, body), 6 if wide else 3)
    across.axes.set(ylim=(body, 0))
    across.axes.set_yticks([])
    zero = sheet.place(across.axes, 0, 0)[0]
    sheet.lines([((zero, 4), (zero, 4 + body))], "muted")
    y = 4.0
    for party, own in groups.items():
        sheet.text(0, y + HEADING - 9, isolated(fitted(plain(party), width, SIZE, bold=True)), bold=True, halo=True)
        y += HEADING
        for row in own:
            feature = isolated(fitted(plain(row.feature), left - 10, SMALL))
            sheet.text(left - 10, y + ROW / 2, feature, size=SMALL, align="right")
            _draw_mark(sheet, across, row, y + ROW / 2)
            sheet.text(width - room, y + ROW / 2, _told(row, room), size=SMALL, role="muted")
            y += ROW
    return sheet


def _draw_mark(sheet: Sheet, across: "_Across", row: CoefficientBar, y: float) -> None:
    if _has_interval(row):
        low, high = ((sheet.place(across.axes, across.at(end), 0)[0], y) for end in _interval(row))
        sheet.lines([(low, high)], "series-1", 2.0)
    hollow = _has_interval(row) and not _sure(row)
    sheet.mark(sheet.place(across.axes, across.at(row.value), 0)[0], y, "series-1", size=7.5, hollow=hollow)


def _told(row: CoefficientBar, room: float) -> str:
    """Write a coefficient and its interval with as many digits as there is room for."""
    texts = []
    if _has_interval(row):
        low, high = _interval(row)
        texts = [f"{value(row.value, n)} ({value(low, n)} to {value(high, n)})" for n in (4, 3, 2)]
    texts += [value(row.value, n) for n in (4, 3, 2, 1)]
    return next((text for text in texts if width_of(text, SMALL) <= room), f"{row.value:.2e}")


def _is_uneven(shown: Sequence[CoefficientBar]) -> bool:
    sizes = sorted(abs(row.value) for row in shown if row.value)
    return bool(sizes) and sizes[-1] / EVEN > sizes[len(sizes) // 2]


class _Across:
    """The axis of values: even, or logarithmic on both sides of 0.

    Values are drawn as multiples of a power of ten, so that none is too large or too small for matplotlib.
    """

    def __init__(self, shown: Sequence[CoefficientBar], axes: Any, most: int) -> None:
        self.axes = axes
        sizes = sorted(abs(row.value) for row in shown if row.value)
        power = math.floor(math.log10(sizes[-1])) if sizes else 0
        self.unit = 10.0 ** min(max(power, EXPONENTS[0]), EXPONENTS[1])
        # An interval may be far wider than any value: what is beyond is cut off, and told in numbers.
        self.reach = 30.0
        ends = [0.0, *(self.at(row.value) for row in shown)]
        ends += [self.at(end) for row in shown if _has_interval(row) for end in _interval(row)]
        low, high = min(ends), max(ends)
        if _is_uneven(shown):
            smallest = math.floor(math.log10(max(sizes[0] / self.unit, 1e-300)))
            linear = 10.0 ** max(smallest, -DECADES)
            axes.set_xscale("symlog", linthresh=linear, linscale=0.5)
            limits = (1.6 * low if low < 0 else -linear / 2, 1.6 * high if high > 0 else linear / 2)
            ticks = _both_sides(low, high, linear, most)
        else:
            margin = 0.05 * (high - low) or 1.0
            limits = (low - margin, high + margin)
            ticks = even_ticks(*limits, most)
        axes.set(xlim=limits)
        set_ticks(axes.xaxis, apart(axes, ticks, self._name, SMALL), self._name)

    def _name(self, tick: float) -> str:
        return value(tick * self.unit, 3)

    def at(self, number: float) -> float:
        """Say where a value is on the axis."""
        return min(max(number / self.unit, -self.reach), self.reach)


def _both_sides(low: float, high: float, linear: float, most: int) -> list[float]:
    first, last = round(math.log10(linear)), math.floor(math.log10(max(-low, high)))
    sides = (low < -linear) + (high > linear)
    step = max(1, math.ceil((last - first + 1) * sides / most))
    sizes = [10.0**power for power in range(last, first - 1, -step)]
    return [0.0, *(size for size in sizes if size <= high), *(-size for size in sizes if -size >= low)]
