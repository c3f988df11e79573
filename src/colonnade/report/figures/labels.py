"""Where labels of points go, so that none lies on another."""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from colonnade.report.figures.sheet import Box, Point


class Label(NamedTuple):
    """Where the middle of a label's height is, and which of its ends is there."""

    x: float
    y: float
    align: str


def placed(
    points: Sequence[Point], widths: Sequence[float], area: Box, *, height: float, around: Sequence[Box] = ()
) -> list[Label | None]:
    """Find a place beside each point and around what else is there, for the first before the others.

    None where there is no room.
    """
    taken = [*around, *(Box(x - 6, y - 6, x + 6, y + 6) for x, y in points)]
    found: list[Label | None] = []
    for (x, y), width in zip(points, widths, strict=True):
        label = _first_free(x, y, width, height, taken, area)
        found.append(label)
        if label is not None:
            taken.append(_box(label, width, height))
    return found


def _first_free(x: float, y: float, width: float, height: float, taken: list[Box], area: Box) -> Label | None:
    beside = [Label(x + 10, y, "left"), Label(x - 10, y, "right")]
    over = [Label(x, y + sign * (height / 2 + 8), "center") for sign in (-1, 1)]
    askew = [
        Label(x + side, y + up, "left" if side > 0 else "right")
        for up, side in product((-height * 0.9, height * 0.9, -height * 1.7, height * 1.7), (8, -8))
    ]
    for label in (*beside, *over, *askew):
        box = _box(label, width, height)
        inside = box.left >= area.left and box.right <= area.right and box.top >= area.top and box.bottom <= area.bottom
        if inside and not any(box.meets(other) for other in taken):
            return label
    return None


def _box(label: Label, width: float, height: float) -> Box:
    left = {"left": label.x, "right": label.x - width, "center": label.x - width / 2}[label.align]
    return Box(left, label.y - height / 2, left + width, label.y + height / 2)
