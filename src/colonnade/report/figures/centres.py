"""Cluster centres as a heat map, with the sizes of the clusters."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.number_words import count, per_cent, value
from colonnade.report.figures.figure import Figure
from colonnade.report.figures.sheet import SIZE, SMALL, WIDE, Box, Sheet, figure, note
from colonnade.report.figures.words import fitted, isolated, listed, plain, width_of

TITLE = "Cluster centres"
MOST_CENTRES, MOST_FEATURES = 20, 24
# Differences that rounding makes, relative to the largest value of a column, and of all.
ROUNDING, TINY = 1e-12, 1e-15
# Standardised differences that have the full colour, how full that is, so that numbers stay legible on it, and the
# steps to it.
FULL, OPACITY, STEPS = 2.0, 0.5, 8
# Where so many of the lines have numbers that fit, they are shown; otherwise signs.
MOSTLY = 0.6
ROW, HEADING = 21.0, 26.0


class _Column(NamedTuple):
    party: str
    feature: str
    values: Floats
    differences: Floats | None  # standardised; None where it is constant


def centres(values: Floats, features: Sequence[str], parties: Sequence[str], sizes: Sequence[float] | None) -> Figure:
    """Draw centres as a table of colours: a line a feature, a column a centre.

    Parameters
    ----------
    values : ndarray of float64, shape (n_clusters, n_features)
        In the data's own units.
    features : sequence of str
        Their names.
    parties : sequence of str
        Who holds each feature, in the same order.
    sizes : sequence of float, or None
        How many rows each cluster has, by their weight, if it is known.

    Returns
    -------
    Figure
        Drawn, and in words. Of many centres the largest are drawn, of many features those in which most centres differ.

    Examples
    --------
    >>> import numpy as np
    >>> drawn = centres(np.array([[0.0, 5.0], [9.0, 5.0]]), ("wind", "rain"), ("weather", "weather"), (10, 30))
    >>> "25.0 %" in drawn.svg, "constant" in drawn.description
    (True, True)
    """
    if values.size == 0 or not np.isfinite(values).all():
        return note(TITLE, "There are no centres to draw.")
    sizes = None if sizes is None or not 0 < sum(sizes) < math.inf else [float(size) for size in sizes]
    order = _largest(len(values), sizes)
    columns = _columns(values, features, parties)
    told = sorted(range(len(columns)), key=lambda place: -_telling(columns[place]))[:MOST_FEATURES]
    shown = [columns[place] for place in sorted(told)]
    rest = [columns[place].feature for place in sorted(set(range(len(columns))) - set(told))]
    words = _words(columns, rest, len(values), sizes)
    return figure(TITLE, words, lambda width: _Map(shown, order, sizes, width).sheet)


def _largest(n_centres: int, sizes: Sequence[float] | None) -> list[int]:
    order = list(range(n_centres))
    if sizes is not None:
        order.sort(key=lambda number: -sizes[number])
    return sorted(order[:MOST_CENTRES])


def _columns(values: Floats, features: Sequence[str], parties: Sequence[str]) -> list[_Column]:
    values = np.where(np.abs(values) <= TINY * np.abs(values).max(), 0.0, values)
    columns = []
    for party, feature, own in zip(parties, features, values.T, strict=True):
        largest = np.abs(own).max()
        scaled = own / largest if largest else own
        spread = float(scaled.std())
        differences = (scaled - scaled.mean()) / spread if spread > ROUNDING else None
        columns.append(_Column(party, feature, own, differences))
    order = list(dict.fromkeys(parties))
    return sorted(columns, key=lambda column: order.index(column.party))


def _telling(column: _Column) -> float:
    """Say how many of the centres differ, more or less: of one that stands apart this is small."""
    return -1.0 if column.differences is None else float(np.abs(column.differences).mean())


def _words(columns: Sequence[_Column], rest: list[str], n_centres: int, sizes: Sequence[float] | None) -> str:
    text = f"{count(n_centres)} centres of {count(len(columns))} features, in the data's own units."
    if sizes is not None:
        shares = [size / sum(sizes) for size in sizes]
        most, least = max(shares), min(shares)
        text += f" The largest cluster, {shares.index(most)}, has {per_cent(most)} of the rows"
        text += f", the smallest, {shares.index(least)}, {per_cent(least)}."
    text += " Colours tell how far a centre is from the mean of all centres, in their standard deviations: "
    text += "blue above, orange below."
    constant = [column.feature for column in columns if column.differences is None]
    if constant:
        text += f" The same at all centres, constant: {listed(constant)}."
    if rest:
        text += f" Features not drawn: {listed(rest, 12)}."
    if n_centres > MOST_CENTRES:
        text += f" {count(n_centres - MOST_CENTRES)} clusters are not drawn."
    return text


class _Map:
    """The drawing of a heat map at one width."""

    def __init__(
        self, shown: Sequence[_Column], order: Sequence[int], sizes: Sequence[float] | None, width: float
    ) -> None:
        self.order, wide = order, width == WIDE
        self.left = 150.0 if wide else 104.0
        self.cell = min((width - self.left) / len(order), 96.0)
        self.size = SMALL if wide and len(order) <= 12 else 10.0
        self.filled: dict[tuple[str, float], list[Box]] = {}
        self.written: list[tuple[float, float, str]] = []
        parties = list(dict.fromkeys(column.party for column in shown))
        y = 66.0 if sizes is not None else 22.0
        self.sheet = Sheet(width, y + len(shown) * ROW + len(parties) * HEADING + 30)
        self._draw_head(sizes)
        texts = [self._texts(column) for column in shown]
        numbers = sum(each is not None for each in texts) >= MOSTLY * len(shown)
        for i, column in enumerate(shown):
            if i == 0 or column.party != shown[i - 1].party:
                name = isolated(fitted(plain(column.party), width, SIZE, bold=True))
                self.sheet.text(0, y + HEADING - 11, name, bold=True)
                y += HEADING
            self._add_line(column, texts[i] if numbers else None, y)
            y += ROW
        self._draw_key(y + 16)
        for (role, opacity), places in self.filled.items():
            self.sheet.boxes(places, role, opacity=opacity)
        for x, middle, text in self.written:
            self.sheet.text(x, middle, text, size=self.size, align="center")

    def _draw_key(self, y: float) -> None:
        x = self.left
        for role, text in (("series-2", "below the mean"), ("series-1", "above it")):
            self.sheet.boxes([Box(x, y - 6, x + 12, y + 6)], role, opacity=OPACITY)
            self.sheet.text(x + 18, y, text, size=SMALL, role="muted")
            x += 34 + width_of(text, SMALL)

    def _draw_head(self, sizes: Sequence[float] | None) -> None:
        self.sheet.text(0, 10, "centre", role="muted", size=SMALL)
        middles = [self.left + (i + 0.5) * self.cell for i in range(len(self.order))]
        size = SIZE if self.cell > 24 else 9.0
        for x, number in zip(middles, self.order, strict=True):
            self.sheet.text(x, 10, str(number), align="center", bold=True, size=size)
        if sizes is None:
            return
        shares = [sizes[number] / sum(sizes) for number in self.order]
        texts, unit = [per_cent(share) for share in shares], ""
        if max(width_of(text, self.size) for text in texts) > self.cell - 4:
            texts, unit = [f"{100 * share:.0f}" for share in shares], ", %"
        self.sheet.text(0, 56, f"share of rows{unit}", role="muted", size=SMALL)
        bars = [
            Box(x - 0.3 * self.cell, 46 - 24 * share / max(shares), x + 0.3 * self.cell, 46)
            for x, share in zip(middles, shares, strict=True)
        ]
        self.sheet.boxes(bars, "muted", opacity=0.55)
        for x, text in zip(middles, texts, strict=True):
            self.sheet.text(x, 56, text, align="center", size=min(size, self.size), role="muted")

    def _texts(self, column: _Column) -> list[str] | None:
        """Write the numbers with as many digits as fit, rounded alike; None where there is no room."""
        if column.differences is None:
            return []
        largest = float(np.abs(column.values).max())
        for digits in (4, 3, 2):
            decimals = min(max(digits - 1 - math.floor(math.log10(largest)), 0), 300)
            texts = [value(round(float(column.values[number]), decimals), digits) for number in self.order]
            if max(width_of(text, self.size) for text in texts) <= self.cell - 4:
                return texts
        return None

    def _add_line(self, column: _Column, texts: list[str] | None, y: float) -> None:
        name = isolated(fitted(plain(column.feature), self.left - 8, self.size))
        self.sheet.text(self.left - 8, y + ROW / 2, name, size=self.size, align="right")
        if column.differences is None:
            same = f"{value(float(column.values[0]))}, constant"
            self.sheet.text(self.left + 6, y + ROW / 2, same, role="muted", size=self.size)
            return
        for i, number in enumerate(self.order):
            away, x = float(column.differences[number]), self.left + i * self.cell
            step = round(STEPS * min(abs(away) / FULL, 1.0))
            shade = ("series-1" if away > 0 else "series-2", round(OPACITY * step / STEPS, 3))
            if step:
                self.filled.setdefault(shade, []).append(Box(x + 0.5, y + 0.5, x + self.cell - 0.5, y + ROW - 0.5))
            sign = "" if abs(away) < 1 else "+" if away > 0 else "\u2212"
            text = sign if texts is None else texts[i]
            if text:
                self.written.append((x + self.cell / 2, y + ROW / 2, text))
