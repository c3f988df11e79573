from itertools import combinations

from colonnade.report.figures import FrontierPoint, frontier
from colonnade.report.figures.labels import _box, _distance, placed
from colonnade.report.figures.sheet import Box
from drawings import drawings, marks, texts

POINTS = [
    FrontierPoint("uniform", 4e4, 0.2),
    FrontierPoint("coreset", 5e4, 0.01, 0.005, 0.02, chosen=True),
    FrontierPoint("beaten", 9e6, 0.05),
    FrontierPoint("all rows", 5e6, 0.0),
]


def test_points_lie_where_their_numbers_say() -> None:
    for drawing in drawings(frontier(POINTS)):
        ((x, y),) = marks(drawing, "fig-f-series-1")
        others = sorted(marks(drawing, "fig-s-ink"))
        assert [x > other for other, _ in others] == [True, False, False]  # more bytes than uniform only
        by_height = sorted(others, key=lambda place: place[1])
        # Lower is better, and a sheet's heights go down: uniform, beaten, the chosen one, all rows.
        assert by_height[0][1] < by_height[1][1] < y < by_height[2][1]


def test_ticks_are_for_people() -> None:
    wide, narrow = drawings(frontier(POINTS))
    assert {"100 kB", "1 MB", "1 %", "10 %"} <= set(texts(wide))
    assert {"1 MB", "1 %", "10 %"} <= set(texts(narrow))


def test_words_name_the_choice_and_what_is_beaten() -> None:
    words = frontier(POINTS).description
    assert "The filled mark: coreset, 50.0 kB at 1.0 %. Beaten in both: beaten." in words
    assert "all rows 5.0 MB at 0 %" in words


def test_points_that_are_not_finite_are_left_out() -> None:
    drawn = frontier(
        [*POINTS, FrontierPoint("endless", float("inf"), 0.1), FrontierPoint("unknown", 1e4, float("nan"))]
    )
    assert drawn == frontier(POINTS)


def test_labels_do_not_overlap() -> None:
    points = [(100.0 + 9 * i, 100.0 + 5 * (i % 4)) for i in range(20)]
    widths = [60.0] * 20
    found = placed(points, widths, Box(0, 0, 400, 220), height=16)
    boxes = [_box(label, width, 16) for label, width in zip(found, widths, strict=True) if label is not None]
    assert len(boxes) > 4
    assert not any(one.meets(other) for one, other in combinations(boxes, 2))
    dots = [Box(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    assert not any(box.meets(dot) for box in boxes for dot in dots)
    assert all(box.left >= 0 and box.right <= 400 for box in boxes)


def test_a_label_is_nearest_to_its_own_point() -> None:
    points = [(100.0, 100.0), (100.0, 114.0), (103.0, 128.0)]
    found = placed(points, [50.0] * 3, Box(0, 0, 400, 220), height=16)
    named = [(point, _box(label, 50.0, 16)) for point, label in zip(points, found, strict=True) if label is not None]
    assert named
    for point, box in named:
        assert min(points, key=lambda other: _distance(other, box)) == point


def test_the_chosen_point_has_its_label_also_among_many() -> None:
    crowd = [FrontierPoint(f"other {i}", 1e5 * 1.01**i, 0.01 * 1.02**i) for i in range(70)]
    drawn = frontier([*crowd, FrontierPoint("chosen one", 1.1e5, 0.011, chosen=True)])
    assert all("chosen one" in texts(drawing) for drawing in drawings(drawn))


def test_the_first_have_labels_also_where_others_are_in_the_way() -> None:
    points = [(200.0, 100.0), *((110.0 + 6 * i, 70.0 + 6 * j) for i in range(30) for j in range(12))]
    found = placed(points, [50.0] * len(points), Box(0, 0, 400, 220), height=16, sure=1)
    assert found[0] is not None
    assert placed(points, [50.0] * len(points), Box(0, 0, 400, 220), height=16)[0] is None
