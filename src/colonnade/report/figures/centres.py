"""Cluster centres as a heat map, with the sizes of the clusters."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.report.figures.figure import Figure
from colonnade.report.figures.sheet import SIZE, SMALL, WIDE, Sheet, figure, note
from colonnade.report.figures.words import fitted, isolated, listed, plain, width_of
from colonnade.report.numbers import count, per_cent, value

TITLE = "Cluster centres"
MOST_CENTRES, MOST_FEATURES = 20, 24
# Differences that rounding makes, relative to the largest value of a column, and of all.
ROUNDING, TINY = 1e-12, 1e-15
# Standardised differences that have the full colour, and how full that is: numbers stay legible on it.
FULL, OPACITY = 2.0, 0.62
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
        Drawn, and in words. Of many centres the largest are drawn, of many features those that tell them apart most.

    Examples
    --------
    >>> import numpy as np
    >>> drawn = centres(np.array([[0.0, 5.0], [9.0, 5.0]]), ("wind", "rain"), ("weather", "weather"), (10, 30))
    >>> "25.0 %" in drawn.svg, "constant" in drawn.description
    (True, True)
    """
    if values.size == 0 or not np.isfinite(values).all():
        return note(TITLE, "There are no centres to draw.")
    order = list(range(len(values)))
    if sizes is not None and len(order) > MOST_CENTRES:
        order = sorted(sorted(order, key=lambda number: -sizes[number])[:MOST_CENTRES])
    order = order[:MOST_CENTRES]
    columns = _columns(values, features, parties)
    told = sorted(columns, key=lambda column: -_spread(column))[:MOST_FEATURES]
    shown = [column for column in columns if any(column is each for each in told)]
    words = _words(values, columns, shown, order, sizes)
    return figure(TITLE, words, lambda width: _Map(shown, order, sizes, width).sheet)


def _columns(values: Floats, features: Sequence[str], parties: Sequence[str]) -> list[_Column]:
    values = np.where(np.abs(values) <= TINY * np.abs(values).max(), 0.0, values)
    columns = []
    for party, feature, own in zip(parties, features, values.T, strict=True):
        largest = np.abs(own).max()
        scaled = own / largest if largest else own
        spread = float(scaled.std())
        differences = (scaled - scaled.mean()) / spread if spread > ROUNDING else None
        columns.append(_Column(party, feature, own, differences))
    by_party = {party: [column for column in columns if column.party == party] for party in dict.fromkeys(parties)}
    return [column for own in by_party.values() for column in own]


def _spread(column: _Column) -> float:
    if column.differences is None:
        return -1.0
    return float(np.abs(column.differences).max())


def _words(
    values: Floats,
    columns: Sequence[_Column],
    shown: Sequence[_Column],
    order: Sequence[int],
    sizes: Sequence[float] | None,
) -> str:
    text = f"{len(values)} centres of {count(len(columns))} features, in the data's own units."
    if sizes is not None and sum(sizes) > 0:
        shares = [size / sum(sizes) for size in sizes]
        text += (
            f" The largest cluster, {shares.index(max(shares))}, has {per_cent(max(shares))} of the rows, the smallest, "
            f"{shares.index(min(shares))}, {per_cent(min(shares))}."
        )
    text += " Colour tells how far a centre is from the mean of the centres, in their standard deviations: "
    text += "blue (+) above, orange (-) below."
    constant = [column.feature for column in columns if column.differences is None]
    if constant:
        text += f" The same at all centres, constant: {listed(constant)}."
    drawn = {id(column) for column in shown}
    left_out = [column.feature for column in columns if id(column) not in drawn]
    if left_out:
        text += f" Features not drawn: {listed(left_out, 12)}."
    if len(order) < len(values):
        text += f" {len(values) - len(order)} smaller clusters are not drawn."
    return text


class _Map:
    """The drawing of a heat map at one width."""

    def __init__(
        self, shown: Sequence[_Column], order: Sequence[int], sizes: Sequence[float] | None, width: float
    ) -> None:
        self.wide, self.order = width == WIDE, order
        self.left = 150.0 if self.wide else 104.0
        self.cell = min((width - self.left) / len(order), 96.0)
        self.type = SMALL if self.wide else 10.0
        parties = list(dict.fromkeys(column.party for column in shown))
        top = 62.0 if sizes is not None else 28.0
        self.sheet = Sheet(width, top + len(shown) * ROW + len(parties) * HEADING + 4)
        self._draw_head(sizes)
        y, party = top, None
        for column in shown:
            if column.party != party:
                party = column.party
                self.sheet.text(0, y + HEADING - 9, isolated(fitted(plain(party), width - 4, SIZE)), bold=True)
                y += HEADING
            self._draw_line(column, y)
            y += ROW

    def _draw_head(self, sizes: Sequence[float] | None) -> None:
        self.sheet.text(0, 10, "centre", role="muted", size=SMALL)
        middles = [self.left + (i + 0.5) * self.cell for i in range(len(self.order))]
        for x, number in zip(middles, self.order, strict=True):
            self.sheet.text(x, 10, str(number), align="center", bold=True)
        if sizes is None:
            return
        self.sheet.text(0, 54, "share of rows", role="muted", size=SMALL)
        total, most = sum(sizes) or 1.0, max(sizes) or 1.0
        shares = [per_cent(sizes[number] / total) for number in self.order]
        if max(width_of(share, self.type) for share in shares) > self.cell:
            shares = [f"{100 * sizes[number] / total:.0f}" for number in self.order]
        for x, number, share in zip(middles, self.order, shares, strict=True):
            height = 24 * sizes[number] / most
            self.sheet.box(x - 0.3 * self.cell, 44 - height, 0.6 * self.cell, height, "muted", opacity=0.55)
            self.sheet.text(x, 54, share, align="center", size=self.type, role="muted")

    def _draw_line(self, column: _Column, y: float) -> None:
        name = isolated(fitted(plain(column.feature), self.left - 10, self.type))
        self.sheet.text(self.left - 8, y + ROW / 2, name, size=self.type, align="right")
        if column.differences is None:
            same = f"{value(float(column.values[0]))}, constant"
            self.sheet.text(self.left + 6, y + ROW / 2, same, role="muted", size=self.type)
            return
        texts = [value(float(column.values[number])) for number in self.order]
        if max(width_of(text, self.type) for text in texts) > self.cell - 2:
            texts = [value(float(column.values[number]), 2) for number in self.order]
        fit = max(width_of(text, self.type) for text in texts) <= self.cell - 2
        for i, number in enumerate(self.order):
            away = float(column.differences[number])
            x = self.left + i * self.cell
            full = round(OPACITY * min(abs(away) / FULL, 1.0), 2)
            self.sheet.box(
                x + 0.5, y + 0.5, self.cell - 1, ROW - 1, "series-1" if away > 0 else "series-2", opacity=full
            )
            sign = "" if abs(away) < 1 else "+" if away > 0 else "-"
            self.sheet.text(x + self.cell / 2, y + ROW / 2, texts[i] if fit else sign, size=self.type, align="center")
