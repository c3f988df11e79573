"""Coefficients, centres and weights."""

from itertools import pairwise

import numpy as np
import pytest

import colonnade as cn
from colonnade.number_words import value
from colonnade.report.figures import CoefficientBar, centres, coefficients, weights
from drawings import drawings, marks, shapes, texts


def heights(drawing_marks: list[tuple[float, float]]) -> list[float]:
    return [x for x, _ in sorted(drawing_marks, key=lambda place: place[1])]


def test_coefficients_lie_in_the_order_of_their_values() -> None:
    rows = [CoefficientBar("airline", name, value) for name, value in (("a", 3.0), ("b", -2.0), ("c", 1.0))]
    for drawing in drawings(coefficients(rows)):
        x = heights(marks(drawing, "fig-f-series-1"))  # from above: the largest first
        assert x[1] < x[2] < x[0]
        assert (x[0] - x[1]) / (x[0] - x[2]) == pytest.approx(5 / 2, rel=0.01)
        assert {"a", "b", "c", "airline", "3", "-2", "1"} <= set(texts(drawing))


def test_intervals_that_hold_zero_have_hollow_marks() -> None:
    rows = [CoefficientBar("p", "sure", 1.0, 0.5, 1.5), CoefficientBar("p", "unsure", 1.0, -0.5, 2.5)]
    drawn = coefficients(rows)
    (wide, _) = drawings(drawn)
    assert len(marks(wide, "fig-f-paper")) == 1
    assert "1 of 2 intervals leave 0 out" in drawn.description
    assert "1 (-0.5 to 2.5)" in texts(wide)


def test_what_rounding_left_is_shown_as_zero() -> None:
    rows = [
        CoefficientBar("p", "large", 5.0),
        CoefficientBar("p", "constant", -3e-17),
        CoefficientBar("p", "small", 1e-9),
    ]
    drawn = coefficients(rows)
    for drawing in drawings(drawn):
        assert {"5", "0", value(1e-9)} <= set(texts(drawing))
        assert not any("e-17" in text for text in texts(drawing))
    assert "1 is 0" in drawn.description


def test_at_most_forty_are_drawn_and_the_rest_named() -> None:
    sure = [CoefficientBar("p", f"sure {i}", 0.1, 0.09, 0.11) for i in range(40)]
    vague = [CoefficientBar("p", f"vague {i}", 100.0, -900.0, 1100.0) for i in range(3)]
    drawn = coefficients([*vague, *sure])
    shown = texts(drawings(drawn)[0])
    assert sum(text.startswith("sure") for text in shown) == 40
    assert not any(text.startswith("vague") for text in shown)
    assert "Not drawn, since they stand out less: vague 0, vague 1, vague 2." in drawn.description


def test_without_intervals_the_largest_are_drawn() -> None:
    drawn = coefficients([CoefficientBar("p", f"feature {i}", float(i)) for i in range(50)])
    shown = texts(drawings(drawn)[0])
    assert "feature 49" in shown
    assert "feature 9" not in shown


def test_values_of_many_sizes_are_told_apart() -> None:
    rows = [CoefficientBar("p", f"{power}", 10.0**power) for power in range(5)]
    assert "logarithmic on both sides of 0" in coefficients(rows).description
    for drawing in drawings(coefficients(rows)):
        x = heights(marks(drawing, "fig-f-series-1"))
        assert all(left - right > 8 for left, right in pairwise(x))


VALUES = np.array([[10.0, 5.0, 1000.0], [30.0, 5.0, 3000.0], [20.0, 5.0, 2000.0]])


def test_centres_are_in_own_units_with_colours_by_side() -> None:
    drawn = centres(VALUES, ["wind", "same", "height"], ["weather", "weather", "survey"], [50, 25, 25])
    for drawing in drawings(drawn):
        assert {"10", "30", "1,000", "3,000", "5, constant", "50.0 %", "weather", "survey"} <= set(texts(drawing))
        above, below = shapes(drawing, "fig-f-series-1"), shapes(drawing, "fig-f-series-2")
        # The first of each colour is in the key or the line of wind: of the lines, centre 1 is above, centre 0 below.
        rightmost = min(max(x for x, _ in shape) for shape in below)
        assert all(min(x for x, _ in shape) > rightmost - 1 for shape in above)
    assert "The same at all centres, constant: same." in drawn.description


def test_centres_at_rounding_level_are_zero() -> None:
    drawn = centres(np.array([[1e-17, 4.0], [0.0, 8.0]]), ["nothing", "something"], ["p", "p"], None)
    assert "0, constant" in texts(drawings(drawn)[0])


def test_many_centres_and_features_are_named_in_words() -> None:
    values = np.random.default_rng(0).normal(size=(30, 40))
    values[:, 7] = 3.0
    drawn = centres(values, [f"f{i}" for i in range(40)], ["p"] * 40, range(30))
    shown = texts(drawings(drawn)[0])
    assert shown[1:21] == [str(number) for number in range(10, 30)]  # the largest
    assert sum(text.startswith("f") for text in shown) == 24
    assert "10 clusters are not drawn" in drawn.description
    assert "Features not drawn:" in drawn.description


def test_weights_tell_the_effective_size_of_the_coreset() -> None:
    rng = np.random.default_rng(0)
    coreset = cn.Coreset(np.arange(400), rng.lognormal(size=400), 10_000, 10_000.0)
    drawn = weights(coreset)
    assert f"as steady as {round(coreset.effective_size)} equal weights" in drawn.description
    assert "400 rows stand for 10,000." in drawn.description
    for drawing in drawings(drawn):
        bars = shapes(drawing, "fig-f-series-1")
        assert len(bars) > 8


def test_bars_of_weights_are_as_high_as_rows_are_many() -> None:
    coreset = cn.Coreset(np.arange(40), np.repeat([1.0, 100.0], [30, 10]), 40, 40.0)
    for drawing in drawings(weights(coreset)):
        first, second = shapes(drawing, "fig-f-series-1")
        (high, low) = (max(y for _, y in bar) - min(y for _, y in bar) for bar in (first, second))
        assert high / low == pytest.approx(3, rel=0.01)


def test_weights_of_zero_and_equal_weights_are_told() -> None:
    coreset = cn.Coreset(np.arange(4), np.array([0.0, 2.0, 2.0, 2.0]), 9, 9.0)
    assert weights(coreset).description == "All 3 rows have weight 2. 1 have weight 0 and are not drawn."
