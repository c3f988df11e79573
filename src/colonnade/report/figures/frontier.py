"""The frontier: how far each choice is from the best possible, against the bytes it sends."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from colonnade.report.figures.figure import Figure
from colonnade.report.figures.labels import Box, placed
from colonnade.report.figures.sheet import SIZE, SMALL, WIDE, Sheet, figure, note
from colonnade.report.figures.ticks import bytes_tick, log_ticks, per_cent_tick, set_ticks
from colonnade.report.figures.words import fitted, isolated, listed, plain, width_of
from colonnade.report.numbers import in_bytes, per_cent

TITLE = "Excess loss against bytes sent"
# Excess and bytes beyond these are drawn at the edge, by an arrowhead.
EXCESS_LIMITS, BYTE_LIMITS = (1e-6, 1e3), (1.0, 1e16)
# Points that are drawn: the chosen ones and those of the frontier first.
MOST = 60


class FrontierPoint(NamedTuple):
    """One choice, done or predicted.

    Parameters
    ----------
    label : str
        Its name.
    bytes : float
        What it sends.
    excess : float
        How far its objective is above the best possible, relative to that.
    low, high : float or None
        Bounds of the excess, where there are some.
    chosen : bool
        Whether this is what was done, or is advised.
    """

    label: str
    bytes: float
    excess: float
    low: float | None = None
    high: float | None = None
    chosen: bool = False


def frontier(points: Sequence[FrontierPoint]) -> Figure:
    """Draw excess against bytes, both on logarithmic axes, a point a choice.

    Parameters
    ----------
    points : sequence of FrontierPoint
        In any order; those that are not finite are left out.

    Returns
    -------
    Figure
        Drawn, and in words.

    Examples
    --------
    >>> drawn = frontier([FrontierPoint("500 rows", 2e4, 0.04), FrontierPoint("all rows", 1e7, 1e-4, chosen=True)])
    >>> drawn.title, "100 kB" in drawn.svg
    ('Excess loss against bytes sent', True)
    """
    finite = [point for point in points if math.isfinite(point.bytes) and math.isfinite(point.excess)]
    if not finite:
        return note(TITLE, "No run here has a known excess: there is nothing to compare.")
    best = _best(finite)
    shown = sorted(finite, key=lambda point: (not point.chosen, point not in best, point.bytes, point.excess))[:MOST]
    return figure(TITLE, _words(finite, best), lambda width: _draw(shown, best, width))


def _best(points: Sequence[FrontierPoint]) -> list[FrontierPoint]:
    """Find those that no other beats in bytes and excess both, by ascending bytes."""
    best: list[FrontierPoint] = []
    for point in sorted(points, key=lambda point: (point.bytes, point.excess)):
        if not best or point.excess < best[-1].excess:
            best.append(point)
    return best


def _words(points: Sequence[FrontierPoint], best: Sequence[FrontierPoint]) -> str:
    chosen = [point for point in points if point.chosen]
    told = "; ".join(
        f"{isolated(plain(point.label, 40))} sends {in_bytes(point.bytes)} and is {per_cent(point.excess)} above the best"
        for point in chosen[:3]
    )
    ends = (
        f"From {in_bytes(best[0].bytes)} at an excess of {per_cent(best[0].excess)} to {in_bytes(best[-1].bytes)} at "
        f"{per_cent(best[-1].excess)}."
    )
    beaten = [point.label for point in points if point not in best]
    others = f" Others are beaten in both: {listed(beaten)}." if beaten else ""
    chosen_words = f" Chosen: {told}." if told else ""
    return f"{ends}{chosen_words}{others} Lower and further left is better; both axes are logarithmic."


def _draw(points: Sequence[FrontierPoint], best: Sequence[FrontierPoint], width: float) -> Sheet:
    height = 360.0 if width == WIDE else 330.0
    sheet = Sheet(width, height)
    left, top, right, bottom = 52.0, 30.0, 14.0, 44.0
    axes = sheet.axes(left, top, width - left - right, height - top - bottom)
    _scale(axes, points, most=7 if width == WIDE else 4)
    sheet.text(0, 10, "excess over the best possible", role="muted", size=SMALL)
    sheet.text(width - right, height - 10, "bytes sent", role="muted", size=SMALL, align="right")
    line = [sheet.place(axes, *_within(point)) for point in best if point in points]
    if len(line) > 1:
        sheet.line(line, "muted", 1.0, dashes=(3, 3))
    places = [sheet.place(axes, *_within(point)) for point in points]
    for point, (x, y) in zip(points, places, strict=True):
        _whisker(sheet, axes, point, x)
        edge = (
            {"shape": "v"}
            if point.excess < EXCESS_LIMITS[0]
            else {"shape": "^"}
            if point.excess > EXCESS_LIMITS[1]
            else {}
        )
        if point.chosen:
            sheet.mark(x, y, "series-1", size=11, **edge)
        else:
            sheet.mark(x, y, "ink", size=7, hollow=True, **edge)
    names = [isolated(fitted(plain(point.label), 0.5 * width, SIZE)) for point in points]
    area = Box(0, top - 12, width, height - bottom)
    labels = placed(places, [width_of(name, SIZE) for name in names], area, height=SIZE + 4)
    for point, name, label in zip(points, names, labels, strict=True):
        if label is not None:
            sheet.text(label.x, label.y, name, align=label.align, bold=point.chosen, halo=True)
    return sheet


def _whisker(sheet: Sheet, axes: Any, point: FrontierPoint, x: float) -> None:
    if point.low is None and point.high is None:
        return
    ends = [_clipped(point.excess if end is None or math.isnan(end) else end, EXCESS_LIMITS) for end in point[3:5]]
    (low, high) = (sheet.place(axes, _within(point)[0], end)[1] for end in ends)
    role = "series-1" if point.chosen else "muted"
    sheet.line([(x, low), (x, high)], role, 1.5)
    for y in (low, high):
        sheet.line([(x - 4, y), (x + 4, y)], role, 1.5)


def _scale(axes: Any, points: Sequence[FrontierPoint], most: int) -> None:
    spread = [
        _clipped(excess, EXCESS_LIMITS)
        for point in points
        for excess in (point.excess, point.low, point.high)
        if excess is not None and not math.isnan(excess)
    ]
    axes.set(xscale="log", yscale="log")
    x = _room([_clipped(point.bytes, BYTE_LIMITS) for point in points])
    y = _room(spread)
    axes.set(xlim=x, ylim=y)
    set_ticks(axes.xaxis, log_ticks(*x, most), bytes_tick)
    set_ticks(axes.yaxis, log_ticks(*y, 6), per_cent_tick)


def _room(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = max((high / low) ** 0.08, 1.6)
    return low / margin, high * margin


def _within(point: FrontierPoint) -> tuple[float, float]:
    return _clipped(point.bytes, BYTE_LIMITS), _clipped(point.excess, EXCESS_LIMITS)


def _clipped(number: float, limits: tuple[float, float]) -> float:
    return min(max(number, limits[0]), limits[1])
