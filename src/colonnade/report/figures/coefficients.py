"""Coefficients by party, with intervals where there are some."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from colonnade.report.figures.figure import Figure
from colonnade.report.figures.sheet import SIZE, SMALL, WIDE, Sheet, figure, note
from colonnade.report.figures.ticks import even_ticks, set_ticks
from colonnade.report.figures.words import fitted, isolated, listed, plain
from colonnade.report.numbers import count, value

TITLE = "Coefficients by party"
MOST = 40
# What is smaller, relative to the largest, is what rounding left of 0.
ROUNDING = 1e-15
# Where the largest is this many times the middle one, the axis is logarithmic on both sides of 0, over so many decades.
EVEN, DECADES = 30.0, 5
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
        Of more than 40 those that stand out most are drawn: by their value over the width of their intervals, if all
        have some, by their value otherwise.

    Returns
    -------
    Figure
        Drawn, and in words.

    Examples
    --------
    >>> drawn = coefficients([CoefficientBar("airline", "distance", 1.5, 1.2, 1.8), CoefficientBar("weather", "wind", 0.0)])
    >>> "1.5 (1.2 to 1.8)" in drawn.svg
    True
    """
    finite = [_rounded(row, max(abs(each.value) for each in rows)) for row in rows if math.isfinite(row.value)]
    if not finite:
        return note(TITLE, "The model has no coefficients.")
    all_have = all(_has_interval(row) for row in finite)
    ranked = sorted(finite, key=lambda row: -(_standing(row) if all_have else abs(row.value)))
    shown, rest = ranked[:MOST], ranked[MOST:]
    groups = {party: [row for row in shown if row.party == party] for party in dict.fromkeys(r.party for r in finite)}
    groups = {party: own for party, own in groups.items() if own}
    return figure(TITLE, _words(finite, rest), lambda width: _draw(groups, width))


def _rounded(row: CoefficientBar, largest: float) -> CoefficientBar:
    return row._replace(value=0.0) if abs(row.value) <= ROUNDING * largest else row


def _has_interval(row: CoefficientBar) -> bool:
    return row.low is not None and row.high is not None and math.isfinite(row.low) and math.isfinite(row.high)


def _standing(row: CoefficientBar) -> float:
    width = (row.high or 0.0) - (row.low or 0.0)
    return abs(row.value) / width if width > 0 else math.inf if row.value else 0.0


def _sure(row: CoefficientBar) -> bool:
    """Tell whether the interval leaves 0 out."""
    return _has_interval(row) and ((row.low or 0.0) > 0 or (row.high or 0.0) < 0)


def _words(finite: Sequence[CoefficientBar], rest: Sequence[CoefficientBar]) -> str:
    sure, known = sum(map(_sure, finite)), sum(map(_has_interval, finite))
    largest = max(finite, key=lambda row: abs(row.value))
    text = (
        f"{count(len(finite))} coefficients, each in the units of its own column. The largest is "
        f"{isolated(plain(largest.feature, 40))} of {isolated(plain(largest.party, 40))}: {value(largest.value)}."
    )
    if known:
        text += f" {count(sure)} of {count(known)} intervals leave 0 out: their marks are filled, the others hollow."
    zeros = sum(row.value == 0 for row in finite)
    if zeros:
        text += f" {count(zeros)} {'is' if zeros == 1 else 'are'} 0."
    if rest:
        text += f" Not drawn, since they stand out less: {listed([row.feature for row in rest], 12)}."
    return text


def _draw(groups: dict[str, list[CoefficientBar]], width: float) -> Sheet:
    wide = width == WIDE
    shown = [row for own in groups.values() for row in own]
    top, bottom = 4.0, 26.0
    body = len(groups) * HEADING + len(shown) * ROW
    sheet = Sheet(width, top + body + bottom)
    left, right = (160.0, 176.0) if wide else (112.0, 70.0)
    axes = sheet.axes(left, top, width - left - right, body)
    _scale(axes, shown, 6 if wide else 3)
    axes.set(ylim=(body, 0))
    axes.set_yticks([])
    zero = sheet.place(axes, 0, 0)[0]
    sheet.line([(zero, top), (zero, top + body)], "muted", 1.0)
    y = top
    for party, own in groups.items():
        name = isolated(fitted(plain(party), width - 8, SIZE))
        sheet.text(0, y + HEADING - 9, name, bold=True, halo=True)
        y += HEADING
        for row in own:
            _draw_row(sheet, axes, row, y + ROW / 2, left, wide=wide)
            y += ROW
    return sheet


def _draw_row(sheet: Sheet, axes: Any, row: CoefficientBar, y: float, left: float, *, wide: bool) -> None:
    sheet.text(left - 10, y, isolated(fitted(plain(row.feature), left - 10, SMALL)), size=SMALL, align="right")
    text = value(row.value)
    low, high = axes.get_xlim()
    if _has_interval(row):
        ends = [sheet.place(axes, min(max(end or 0.0, low), high), 0)[0] for end in (row.low, row.high)]
        sheet.line([(ends[0], y), (ends[1], y)], "series-1", 2.0)
        if wide:
            text += f" ({value(row.low or 0.0)} to {value(row.high or 0.0)})"
    x = sheet.place(axes, row.value, 0)[0]
    sheet.mark(x, y, "series-1", size=7.5, hollow=_has_interval(row) and not _sure(row))
    room = 176.0 if wide else 70.0
    sheet.text(sheet.width - room + 12, y, fitted(text, room - 12, SMALL), size=SMALL, role="muted")


def _scale(axes: Any, shown: Sequence[CoefficientBar], most: int) -> None:
    sizes = sorted(abs(row.value) for row in shown if row.value)
    # An interval may be far wider than any value: what is beyond is cut off, and told in numbers.
    reach = 3 * sizes[-1] if sizes else 1.0
    ends = [0.0, *(row.value for row in shown)]
    for row in shown:
        if _has_interval(row):
            ends += [min(max(end or 0.0, -reach), reach) for end in (row.low, row.high)]
    low, high = min(ends), max(ends)
    if sizes and sizes[-1] > EVEN * sizes[len(sizes) // 2]:
        power = math.floor(math.log10(sizes[-1]))
        linear = 10.0 ** max(math.floor(math.log10(sizes[0])), power - DECADES)
        axes.set_xscale("symlog", linthresh=linear, linscale=0.5)
        ticks = _both_sides(low, high, linear, most)
        axes.set(xlim=(1.6 * low if low < 0 else -linear / 2, 1.6 * high if high > 0 else linear / 2))
    else:
        margin = 0.05 * (high - low) or 1.0
        axes.set(xlim=(low - margin, high + margin))
        ticks = even_ticks(low - margin, high + margin, most)
    set_ticks(axes.xaxis, ticks, lambda tick: value(tick, 3))


def _both_sides(low: float, high: float, linear: float, most: int) -> list[float]:
    first, last = round(math.log10(linear)), math.floor(math.log10(max(-low, high)))
    sides = (low < -linear) + (high > linear)
    step = max(1, math.ceil((last - first + 1) * sides / most))
    sizes = [10.0**power for power in range(last, first - 1, -step)]
    return [0.0, *(size for size in sizes if size <= high), *(-size for size in sizes if -size >= low)]
