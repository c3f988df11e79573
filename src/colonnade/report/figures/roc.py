"""The ROC curve, through the boundaries of groups of rows."""

import math
from collections.abc import Sequence

from colonnade.evaluation.classes.reports import CalibrationLine
from colonnade.number_words import value
from colonnade.report.figures.figure import Figure
from colonnade.report.figures.sheet import HALF, SMALL, Point, Sheet, figure, note
from colonnade.report.figures.ticks import even_ticks, per_cent_tick, set_ticks

TITLE = "ROC curve"


def roc(lines: Sequence[CalibrationLine], auc: float | None) -> Figure:
    """Draw what is found against what is taken for it by mistake, as the bar for the chance is lowered.

    Only for two classes: of more, calibration is of the most likely class, and makes no such curve.

    Parameters
    ----------
    lines : sequence of CalibrationLine
        Of a `ClassificationReport`.
    auc : float or None
        The area under the curve of all rows, if it is known.

    Returns
    -------
    Figure
        Drawn, and in words.

    Examples
    --------
    >>> drawn = roc([CalibrationLine(100.0, 0.1, 0.1), CalibrationLine(100.0, 0.8, 0.7)], 0.81)
    >>> "0.81" in drawn.svg, "groups of rows" in drawn.description
    (True, True)
    """
    points = roc_points(lines)
    if not points:
        return note(TITLE, "No ROC curve: it needs groups of rows, with rows of both classes among them.")
    known = (
        "" if auc is None else f" The area under the curve of all rows is {value(auc, 3)}: 0.5 is chance, 1 perfect."
    )
    words = (
        f"Drawn through the boundaries of {len(lines)} groups of rows of like chances, not through every row: the area "
        f"under what is drawn is not quite that of all rows.{known}"
    )
    return figure(TITLE, words, lambda width: _draw(points, auc, width), half=True)


def roc_points(lines: Sequence[CalibrationLine]) -> list[Point]:
    """Find the corners: shares of other rows and of rows of the class above each boundary, by descending chance.

    Examples
    --------
    >>> roc_points([CalibrationLine(10.0, 0.2, 0.0), CalibrationLine(10.0, 0.9, 1.0)])
    [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    """
    ordered = sorted(lines, key=lambda line: -line.predicted)
    found = [0.0, *_sums([line.support * line.observed for line in ordered])]
    mistaken = [0.0, *_sums([line.support * (1 - line.observed) for line in ordered])]
    if found[-1] <= 0 or mistaken[-1] <= 0 or not math.isfinite(found[-1] + mistaken[-1]):
        return []
    return [(x / mistaken[-1], y / found[-1]) for x, y in zip(mistaken, found, strict=True)]


def _sums(values: list[float]) -> list[float]:
    total, sums = 0.0, []
    for each in values:
        total += each
        sums.append(total)
    return sums


def _draw(points: Sequence[Point], auc: float | None, width: float) -> Sheet:
    sheet = Sheet(width, HALF)
    left, top, side = 46.0, 26.0, HALF - 72.0
    axes = sheet.axes(left, top, side, side)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    for axis in (axes.xaxis, axes.yaxis):
        set_ticks(axis, even_ticks(0, 1, 5), per_cent_tick)
    sheet.text(0, 9, "found, of the rows of the class", role="muted", size=SMALL)
    sheet.text(left + side, HALF - 8, "mistaken, of the other rows", role="muted", size=SMALL, align="right")
    sheet.line([sheet.place(axes, 0, 0), sheet.place(axes, 1, 1)], "muted", 1.2, dashes=(4, 3))
    places = [sheet.place(axes, x, y) for x, y in points]
    sheet.shape([*places, sheet.place(axes, 1, 0)], "series-1", opacity=0.12)
    sheet.line(places, "series-1", 2.0)
    for x, y in places[1:-1]:
        sheet.mark(x, y, "series-1", size=6)
    if auc is not None:
        x, y = sheet.place(axes, 0.62, 0.3)
        sheet.text(x, y, f"AUC {value(auc, 3)}", bold=True, size=15, align="center")
    return sheet
