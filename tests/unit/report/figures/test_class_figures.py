"""Calibration and ROC curve."""

from xml.etree.ElementTree import Element

import numpy as np
import pytest

from colonnade.evaluation.classes.reports import CalibrationLine
from colonnade.report.figures import calibration, roc
from colonnade.report.figures.roc import roc_points
from drawings import drawings, marks, shapes, texts

GROUPS = [CalibrationLine(100.0, 0.1, 0.1), CalibrationLine(100.0, 0.5, 0.4), CalibrationLine(200.0, 0.9, 0.75)]


def test_a_roc_curve_of_a_known_case() -> None:
    """200 rows of the class, 200 others: the highest group has 150 and 50, the next 40 and 60, the last 10 and 90."""
    corners = np.array([(0, 0), (0.25, 0.75), (0.55, 0.95), (1, 1)])
    assert np.array(roc_points(GROUPS)) == pytest.approx(corners)
    assert roc_points(GROUPS[::-1]) == roc_points(GROUPS)


def test_its_area_is_that_of_rows_that_differ_by_group_only() -> None:
    from sklearn.metrics import roc_auc_score

    came = np.concatenate(
        [np.repeat([1, 0], [round(g.support * g.observed), round(g.support * (1 - g.observed))]) for g in GROUPS]
    )
    chances = np.concatenate([np.repeat(g.predicted, round(g.support)) for g in GROUPS])
    x, y = np.array(roc_points(GROUPS)).T
    assert np.trapezoid(y, x) == pytest.approx(roc_auc_score(came, chances))


def test_the_curve_is_drawn_through_the_points() -> None:
    (drawing,) = drawings(roc(GROUPS, 0.8))
    start, *inner, end = sorted([*marks(drawing, "fig-f-series-1"), *_ends(drawing)])
    side = end[0] - start[0]
    found = [((x - start[0]) / side, (start[1] - y) / side) for x, y in inner]
    assert np.array(found) == pytest.approx(np.array(roc_points(GROUPS)[1:-1]), abs=1e-3)
    assert "AUC 0.8" in texts(drawing)


def _ends(drawing: Element) -> list[tuple[float, float]]:
    curve = next(line for line in shapes(drawing, "fig-s-series-1") if len(line) == 4)
    return [curve[0], curve[-1]]


def test_words_say_that_it_is_drawn_through_groups() -> None:
    words = roc(GROUPS, 0.8123).description
    assert "Drawn through the boundaries of 3 groups of rows" in words
    assert "The area under the curve of all rows is 0.812" in words


@pytest.mark.parametrize("lines", [[], [CalibrationLine(10.0, 0.4, 0.0)], [CalibrationLine(10.0, 0.4, 1.0)]])
def test_one_class_has_no_curve(lines: list[CalibrationLine]) -> None:
    assert roc_points(lines) == []
    assert "No ROC curve" in roc(lines, None).description


def test_groups_lie_where_chance_and_share_say() -> None:
    (drawing,) = drawings(calibration(GROUPS))
    places = np.array(marks(drawing, "fig-f-series-1"))
    x, y = places[:, 0], places[:, 1]
    assert (x[2] - x[1]) / (x[1] - x[0]) == pytest.approx(1, abs=0.01)
    assert (y[1] - y[2]) / (y[0] - y[1]) == pytest.approx(0.35 / 0.3, abs=0.01)
    # On the diagonal, given and observed are the same length.
    assert (x[2] - x[0]) / 0.8 == pytest.approx((y[0] - y[2]) / 0.65, rel=0.01)


def test_words_name_the_group_that_is_furthest_off() -> None:
    words = calibration(GROUPS).description
    assert "3 groups, 400 rows" in words
    assert "given 90.0 %, came true for 75.0 % of 200 rows" in words
