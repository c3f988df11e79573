"""Calibration: how often what was given a chance came true."""

from collections.abc import Sequence

from colonnade.evaluation.classes.reports import CalibrationLine
from colonnade.number_words import count, per_cent
from colonnade.report.figures.figure import Figure
from colonnade.report.figures.sheet import HALF, SMALL, Sheet, figure, note
from colonnade.report.figures.ticks import even_ticks, per_cent_tick, set_ticks

TITLE = "Predicted chances and what came true"
MOST = 100


def calibration(lines: Sequence[CalibrationLine]) -> Figure:
    """Draw the share that came true against the chance given, a point a group of rows.

    Parameters
    ----------
    lines : sequence of CalibrationLine
        Of a `ClassificationReport`.

    Returns
    -------
    Figure
        Drawn, and in words.

    Examples
    --------
    >>> drawn = calibration([CalibrationLine(100.0, 0.1, 0.12), CalibrationLine(100.0, 0.7, 0.66)])
    >>> drawn.description.partition(".")[0]
    'Groups of rows by the chance they were given: 2 groups, 200 rows'
    """
    if not lines:
        return note(TITLE, "Too few rows were evaluated to compare chances with what came true.")
    return figure(TITLE, _words(lines), lambda width: _draw(lines[:MOST], width), half=True)


def _words(lines: Sequence[CalibrationLine]) -> str:
    worst = max(lines, key=lambda line: abs(line.predicted - line.observed))
    n_rows = count(sum(line.support for line in lines))
    return (
        f"Groups of rows by the chance they were given: {len(lines)} groups, {n_rows} rows. On the dashed line, "
        f"chances are exactly right. Furthest from it: given {per_cent(worst.predicted)}, came true for "
        f"{per_cent(worst.observed)} of {count(worst.support)} rows. Larger marks are of more rows."
    )


def _draw(lines: Sequence[CalibrationLine], width: float) -> Sheet:
    sheet = Sheet(width, HALF)
    left, top, side = 46.0, 26.0, HALF - 72.0
    axes = sheet.axes(left, top, side, side)
    high = min(1.0, 1.08 * max(max(line.predicted, line.observed) for line in lines) or 1.0)
    axes.set(xlim=(0, high), ylim=(0, high))
    for axis in (axes.xaxis, axes.yaxis):
        set_ticks(axis, even_ticks(0, high, 5), per_cent_tick)
    sheet.text(0, 9, "share that came true", role="muted", size=SMALL)
    sheet.text(left + side, HALF - 8, "chance given", role="muted", size=SMALL, align="right")
    sheet.line([sheet.place(axes, 0, 0), sheet.place(axes, high, high)], "muted", 1.2, dashes=(4, 3))
    places = [sheet.place(axes, line.predicted, line.observed) for line in lines]
    if len(places) > 1:
        sheet.line(places, "series-1", 1.5)
    most = max(line.support for line in lines) or 1.0
    for line, (x, y) in zip(lines, places, strict=True):
        sheet.mark(x, y, "series-1", size=5 + 8 * (line.support / most) ** 0.5)
    return sheet
