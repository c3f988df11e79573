"""The weights of a coreset: how they are spread, and how many equal ones would be as steady."""

import numpy as np

from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats
from colonnade.number_words import count, per_cent, value
from colonnade.report.figures.figure import Figure
from colonnade.report.figures.sheet import SIZE, SMALL, WIDE, Box, Sheet, figure
from colonnade.report.figures.ticks import even_ticks, log_ticks, set_ticks

TITLE = "Weights of the coreset's rows"
BINS = 24
# Powers of ten that are drawn at most, and the least between both ends of the axis.
LARGEST_POWER, LEAST_SPREAD = 290.0, 0.6


def weights(coreset: Coreset) -> Figure:
    """Draw how many rows of the coreset have which weight, on a logarithmic axis.

    Parameters
    ----------
    coreset : Coreset
        Any.

    Returns
    -------
    Figure
        Drawn, and in words: the effective size among them.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> drawn = weights(cn.Coreset(np.array([0, 3, 3]), np.array([2.0, 1.0, 1.0]), n_rows=4, total_weight=4.0))
    >>> "as steady as 3 equal weights" in drawn.description
    True
    """
    positive = coreset.weights[coreset.weights > 0]
    return figure(TITLE, _words(coreset, positive), lambda width: _draw(positive, width))


def _words(coreset: Coreset, positive: Floats) -> str:
    size, scaled = len(coreset), positive / positive.max()
    steady = float(scaled.sum() ** 2 / np.square(scaled).sum())
    zero = size - len(positive)
    none = f" {count(zero)} have weight 0 and are not drawn." if zero else ""
    if positive.min() == positive.max():
        return f"All {count(len(positive))} rows have weight {value(float(positive[0]))}.{none}"
    mean = value(float(scaled.mean() * positive.max()))
    return (
        f"{count(size)} rows stand for {count(coreset.n_rows)}. Weights go from {value(float(positive.min()))} to "
        f"{value(float(positive.max()))}, on average {mean}; together they are as steady as "
        f"{count(steady)} equal weights ({per_cent(steady / size)} of the rows).{none}"
    )


def _draw(positive: Floats, width: float) -> Sheet:
    height = 240.0
    sheet = Sheet(width, height)
    left, top, right, bottom = 46.0, 28.0, 12.0, 40.0
    axes = sheet.axes(left, top, width - left - right, height - top - bottom)
    edges = _edges(positive, BINS if width == WIDE else BINS // 2)
    rows, _ = np.histogram(np.clip(positive, edges[0], edges[-1]), edges)
    axes.set(xscale="log", xlim=(edges[0], edges[-1]), ylim=(0, 1.08 * rows.max()))
    axes.grid(visible=False, axis="x")
    set_ticks(axes.xaxis, log_ticks(edges[0], edges[-1], 7 if width == WIDE else 4), lambda tick: value(tick, 3))
    set_ticks(axes.yaxis, [tick for tick in even_ticks(0, float(rows.max()), 4) if tick == int(tick)], count)
    sheet.text(0, 9, "rows", role="muted", size=SMALL)
    sheet.text(width - right, height - 8, "weight", role="muted", size=SMALL, align="right")
    bars = []
    for low, high, number in zip(edges[:-1], edges[1:], rows.tolist(), strict=True):
        if number:
            (x, y), (end, floor) = sheet.place(axes, low, number), sheet.place(axes, high, 0)
            bars.append(Box(x + 0.75, y, end - 0.75, floor))
    sheet.boxes(bars, "series-1", opacity=0.85)
    mean = float((positive / positive.max()).mean() * positive.max())
    x, y = sheet.place(axes, min(max(mean, edges[0]), edges[-1]), 0)
    sheet.line([(x, y), (x, top - 4)], "ink", 1.2)
    align = "left" if x < width / 2 else "right"
    sheet.text(x + (6 if align == "left" else -6), top + 2, "mean", align=align, size=SIZE, halo=True)
    return sheet


def _edges(positive: Floats, n_bins: int) -> list[float]:
    # In logarithms: a product of the largest and the smallest could be out of range. Nor can any size be drawn.
    low, high = np.clip(np.log10([positive.min(), positive.max()]), -LARGEST_POWER, LARGEST_POWER)
    if high - low < LEAST_SPREAD:
        low, high = (low + high - LEAST_SPREAD) / 2, (low + high + LEAST_SPREAD) / 2
    return [float(edge) for edge in 10 ** np.linspace(low, high, n_bins + 1)]
