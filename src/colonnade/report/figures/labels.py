"""Where labels of points go, so that none lies on another."""

import math
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
    points: Sequence[Point],
    widths: Sequence[float],
    area: Box,
    *,
    height: float,
    around: Sequence[Box] = (),
    sure: int = 0,
) -> list[Label | None]:
    """Find a place beside each point and around what else is there, for the first before the others.

    The first `sure` have one also where that lies on other points; None for others that have no room.
    """
    dots = [Box(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    labels: list[Box] = []
    found: list[Label | None] = []
    for i, (point, width) in enumerate(zip(points, widths, strict=True)):
        free = [label for label in _beside(*point, height) if _is_free(_box(label, width, height), labels, area)]
        clear = (label for label in free if _is_clear(_box(label, width, height), point, points, [*around, *dots]))
        label = next(clear, free[0] if free and i < sure else None)
        found.append(label)
        if label is not None:
            labels.append(_box(label, width, height))
    return found


def _beside(x: float, y: float, height: float) -> list[Label]:
    beside = [Label(x + 10, y, "left"), Label(x - 10, y, "right")]
    over = [Label(x, y + sign * (height / 2 + 8), "center") for sign in (-1, 1)]
    askew = [
        Label(x + side, y + up, "left" if side > 0 else "right")
        for up, side in product((-height * 0.9, height * 0.9, -height * 1.7, height * 1.7), (8, -8))
    ]
    return [*beside, *over, *askew]


def _is_free(box: Box, labels: Sequence[Box], area: Box) -> bool:
    inside = box.left >= area.left and box.right <= area.right and box.top >= area.top and box.bottom <= area.bottom
    return inside and not any(box.meets(label) for label in labels)


def _is_clear(box: Box, own: Point, points: Sequence[Point], taken: Sequence[Box]) -> bool:
    """Tell whether it lies on nothing, and no other point is nearer to it, whose name it would seem to be."""
    near = _distance(own, box)
    return not any(box.meets(other) for other in taken) and all(_distance(point, box) >= near for point in points)


def _distance(point: Point, box: Box) -> float:
    x, y = point
    return math.hypot(max(box.left - x, 0, x - box.right), max(box.top - y, 0, y - box.bottom))


def _box(label: Label, width: float, height: float) -> Box:
    left = {"left": label.x, "right": label.x - width, "center": label.x - width / 2}[label.align]
    return Box(left, label.y - height / 2, left + width, label.y + height / 2)
