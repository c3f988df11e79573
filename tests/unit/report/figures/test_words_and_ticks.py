import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.report.figures.ticks import apart, bytes_tick, even_ticks, log_ticks, per_cent_tick
from colonnade.report.figures.words import fitted, isolated, listed, plain, shortened, width_of


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("airline", "airline"),
        ("two\nlines\x07", "two\ufffdlines\ufffd"),
        ("\u202egnp.exe", "\ufffdgnp.exe"),
        ("a" + "\u0300" * 9, "a\u0300\u0300"),
        ("", "(no name)"),
        ("\u00a0", "(no name)"),
        ("\ud800", "\ufffd"),
        ("x" * 100, "x" * 40 + "\u2026" + "x" * 19),
    ],
)
def test_names_as_they_can_be_drawn(name: str, shown: str) -> None:
    assert plain(name) == shown


@given(st.text(max_size=400), st.integers(4, 80))
def test_every_name_becomes_a_short_line(name: str, longest: int) -> None:
    shown = plain(name, longest)
    assert 0 < len(shown) <= max(longest, len("(no name)"))
    assert shown.isprintable()


def test_names_that_differ_at_their_ends_stay_apart() -> None:
    assert shortened("Horizontal_Distance_To_Hydrology", 12) != shortened("Horizontal_Distance_To_Roadways", 12)


@given(st.text(min_size=1, max_size=80), st.floats(30, 300))
def test_what_is_fitted_fits(text: str, width: float) -> None:
    assert width_of(fitted(text, width, 12), 12) <= width


def test_only_names_that_may_turn_the_line_are_isolated() -> None:
    assert isolated("airline") == "airline"
    assert isolated("\u05e9\u05dc\u05d5\u05dd") == "\u2068\u05e9\u05dc\u05d5\u05dd\u2069"


def test_long_lists_end_with_how_many_more() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed([str(i) for i in range(2000)], 2) == "0, 1 and 1,998 more"


@given(st.floats(1e-300, 1e300), st.floats(1.0, 1e6), st.integers(3, 8))
def test_ticks_are_few_and_within(low: float, ratio: float, most: int) -> None:
    high = low * ratio * 1.5
    ticks = log_ticks(low, high, most)
    assert len(ticks) <= most + 2
    assert all(low <= tick <= high for tick in ticks)


def test_ticks_that_people_would_choose() -> None:
    assert [bytes_tick(tick) for tick in log_ticks(9e3, 2e6, 4)] == ["10 kB", "100 kB", "1 MB"]
    assert [per_cent_tick(tick) for tick in log_ticks(0.0008, 0.15, 4)] == ["0.1 %", "1 %", "10 %"]
    assert even_ticks(0, 1, 5) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])


def test_names_of_ticks_lie_apart_and_the_first_stay() -> None:
    from matplotlib.figure import Figure

    axes = Figure(figsize=(4, 2), dpi=72).add_axes((0, 0, 1, 1))
    axes.set(xlim=(-10, 10))
    assert apart(axes, [0.0, 10.0, -10.0, 0.5, -5.0], lambda tick: f"{tick:.4f}", 11) == [0.0, 10.0, -10.0, -5.0]
