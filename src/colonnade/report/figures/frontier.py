"""The frontier: how far each choice is from the best possible, against the bytes it sends."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from colonnade.number_words import in_bytes, per_cent
from colonnade.report.figures.figure import Figure
from colonnade.report.figures.labels import placed
from colonnade.report.figures.sheet import SIZE, SMALL, WIDE, Box, Point, Sheet, figure, note
from colonnade.report.figures.ticks import bytes_tick, log_ticks, per_cent_tick, set_ticks
from colonnade.report.figures.words import fitted, isolated, listed, plain, width_of

TITLE = "Excess loss against bytes sent"
# Excess and bytes beyond these are drawn at the edge, excess by an arrowhead; no excess at all is drawn so many times
# lower than the least that there is.
EXCESS_LIMITS, BYTE_LIMITS = (1e-6, 1e3), (1.0, 1e16)
BELOW = 4.0
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
    text = f"{_told(best[0])} sends {in_bytes(best[0].bytes)} at an excess of {per_cent(best[0].excess)}"
    if len(best) > 1:
        text += f", {_told(best[-1])} {in_bytes(best[-1].bytes)} at {per_cent(best[-1].excess)}"
    chosen = [
        f"{_told(point)}, {in_bytes(point.bytes)} at {per_cent(point.excess)}" for point in points if point.chosen
    ]
    if chosen:
        text += f". The filled mark: {'; '.join(chosen[:3])}"
    beaten = [point.label for point in points if point not in best]
    if beaten:
        text += f". Beaten in both: {listed(beaten)}"
    return f"{text}. Lower and further left is better; both axes are logarithmic."


def _told(point: FrontierPoint) -> str:
    return isolated(plain(point.label, 40))


class _Axes:
    """Axes for these points, and what is drawn on them."""

    def __init__(self, sheet: Sheet, area: Box, points: Sequence[FrontierPoint], most: int) -> None:
        self.sheet = sheet
        ends = [end for point in points for end in _ends(point)]
        above = [end for end in ends if end > EXCESS_LIMITS[0]]
        self.floor = max(EXCESS_LIMITS[0], min(above, default=EXCESS_LIMITS[0]) / BELOW)
        if min(ends) > EXCESS_LIMITS[0]:
            self.floor = EXCESS_LIMITS[0]
        self.axes = sheet.axes(area.left, area.top, area.right - area.left, area.bottom - area.top)
        self.axes.set(xscale="log", yscale="log")
        x = _room([_clipped(point.bytes, BYTE_LIMITS) for point in points])
        y = _room([self._height(end) for end in ends])
        self.axes.set(xlim=x, ylim=y)
        set_ticks(self.axes.xaxis, log_ticks(*x, most), bytes_tick)
        set_ticks(self.axes.yaxis, log_ticks(*y, 7), per_cent_tick)

    def _height(self, excess: float) -> float:
        return _clipped(excess, (self.floor, EXCESS_LIMITS[1]))

    def place(self, point: FrontierPoint, excess: float) -> Point:
        """Say where a point is, or an end of its bounds."""
        return self.sheet.place(self.axes, _clipped(point.bytes, BYTE_LIMITS), self._height(excess))

    def bounds(self, point: FrontierPoint) -> Box:
        """Say where a point's bounds are."""
        (x, bottom), (_, top) = (self.place(point, end) for end in (min(_ends(point)), max(_ends(point))))
        return Box(x - 4, top, x + 4, bottom)

    def draw(self, point: FrontierPoint) -> None:
        """Draw a point and its bounds."""
        role = "series-1" if point.chosen else "ink"
        if len(_ends(point)) > 1:
            box = self.bounds(point)
            middle = (box.left + box.right) / 2
            caps = [((box.left, y), (box.right, y)) for y in (box.top, box.bottom)]
            stem = ((middle, box.top), (middle, box.bottom))
            self.sheet.lines([stem, *caps], role if point.chosen else "muted", 1.5)
        shape = "v" if point.excess < self.floor else "^" if point.excess > EXCESS_LIMITS[1] else "o"
        x, y = self.place(point, point.excess)
        self.sheet.mark(x, y, role, size=11 if point.chosen else 7, shape=shape, hollow=not point.chosen)


def _ends(point: FrontierPoint) -> list[float]:
    return [each for each in (point.excess, point.low, point.high) if each is not None and not math.isnan(each)]


def _draw(points: Sequence[FrontierPoint], best: Sequence[FrontierPoint], width: float) -> Sheet:
    wide = width == WIDE
    height = 350.0 if wide else 330.0
    sheet = Sheet(width, height)
    area = Box(56, 28, width - 12, height - 40)
    axes = _Axes(sheet, area, points, most=7 if wide else 4)
    sheet.text(0, 9, "excess over the best possible", role="muted", size=SMALL)
    sheet.text(area.right, height - 8, "bytes sent", role="muted", size=SMALL, align="right")
    line = [axes.place(point, point.excess) for point in best if point in points]
    if len(line) > 1:
        sheet.line(line, "muted", 1.0, dashes=(3, 3))
    for point in reversed(points):
        axes.draw(point)
    names = [isolated(fitted(plain(point.label), 0.5 * width, SIZE, bold=point.chosen)) for point in points]
    widths = [width_of(name, SIZE, bold=point.chosen) for name, point in zip(names, points, strict=True)]
    places = [axes.place(point, point.excess) for point in points]
    around = [axes.bounds(point) for point in points if len(_ends(point)) > 1]
    room, sure = Box(area.left, 18, width, area.bottom), sum(point.chosen for point in points)
    labels = placed(places, widths, room, height=SIZE + 4, around=around, sure=sure)
    for point, name, label in zip(points, names, labels, strict=True):
        if label is not None:
            sheet.text(label.x, label.y, name, align=label.align, bold=point.chosen, halo=True)
    return sheet


def _room(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = max((high / low) ** 0.06, 1.6)
    return low / margin, high * margin


def _clipped(number: float, limits: tuple[float, float]) -> float:
    return min(max(number, limits[0]), limits[1])
