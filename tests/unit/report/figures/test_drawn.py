"""What holds of every figure, whatever is drawn: a page with a strict policy can hold it."""

import re
import sys
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from colonnade.coreset import Coreset
from colonnade.errors import InputError
from colonnade.evaluation.classes.reports import CalibrationLine
from colonnade.ledger import Entry, Ledger
from colonnade.report import figures
from colonnade.report.figures import CoefficientBar, Figure, FrontierPoint
from colonnade.report.figures.centres import OPACITY
from colonnade.report.figures.colours import DARK, LIGHT

MOST_BYTES = 120_000
HOSTILE = (
    "<script>alert(1)</script>",
    "$x^2$",
    '" onload="x',
    "\x00\x1b[31m",
    "\u202egnp.exe",
    "&amp;",
    "a\u0300" * 90,
    "",
)
names = st.one_of(st.text(max_size=300), st.sampled_from(HOSTILE))
numbers = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 1e-320, 1.7e308, -1.7e308, 1e-17]),
    st.floats(allow_nan=False, allow_infinity=False),
)
shares = st.floats(0, 1)
# Each example draws a figure twice, a third of a second at most.
few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def elements(drawn: Figure) -> Iterator[ElementTree.Element]:
    yield from ElementTree.fromstring(f"<page>{drawn.svg}</page>").iter()  # noqa: S314  # drawn here, a moment ago


def texts(drawn: Figure) -> list[str]:
    return [element.text or "" for element in elements(drawn) if element.tag == "text"]


def check(drawn: Figure) -> None:
    """Require what a page's policy and its readers need."""
    assert len(drawn.svg.encode()) < MOST_BYTES
    tags = {element.tag for element in elements(drawn)}
    assert tags <= {"page", "svg", "g", "path", "text"}
    attributes = {name for element in elements(drawn) for name in element.attrib}
    assert not attributes & {"style", "id", "href"}
    assert not any(name.startswith("on") for name in attributes)
    assert "<script" not in drawn.svg.lower()
    assert "url(" not in drawn.svg
    assert "nan" not in re.sub(r"<text.*?</text>", "", drawn.svg)
    for element in elements(drawn):
        if element.tag == "svg":
            assert element.get("role") == "img"
            assert element.get("aria-label") == drawn.title
            left, top, width, height = map(float, element.attrib["viewBox"].split())
            assert (left, top) == (0, 0)
            assert 300 < width < 800
            assert 0 < height < 4000
        for paint in ("fill", "stroke"):
            # Whatever has a colour has it from the page's theme.
            colour = element.get(paint, "none")
            roles = [role for role, own in LIGHT.items() if own == colour]
            assert colour == "none" or f"fig-{paint[0]}-{roles[0]}" in element.get("class", "").split()
    assert drawn.title
    assert drawn.description
    assert not any(mark in drawn.description for mark in "\x00\x1b\u202e")


entries = st.builds(
    lambda phase, number, party, up, kind, size: Entry(
        phase, number, party if up else "server", "server" if up else party, kind, 1, size, ()
    ),
    names,
    st.integers(0, 2**40),
    names.filter(lambda name: name != "server"),
    st.booleans(),
    names,
    st.integers(-5, 2**63),
)


@given(st.lists(entries, max_size=60), names | st.none())
@few
def test_rounds_of_any_ledger(lines: list[Entry], run_by: str | None) -> None:
    check(figures.rounds(Ledger(lines, run_by=run_by)))


@given(st.lists(entries, max_size=60))
@few
def test_bytes_of_any_ledger(lines: list[Entry]) -> None:
    check(figures.bytes_by_phase_and_party(Ledger(lines)))


@given(
    st.lists(
        st.builds(FrontierPoint, names, numbers, numbers, numbers | st.none(), numbers | st.none(), st.booleans()),
        max_size=80,
    )
)
@few
def test_any_frontier(points: list[FrontierPoint]) -> None:
    check(figures.frontier(points))


@given(
    st.lists(st.builds(CoefficientBar, names, names, numbers, numbers | st.none(), numbers | st.none()), max_size=60)
)
@few
def test_any_coefficients(rows: list[CoefficientBar]) -> None:
    check(figures.coefficients(rows))


@given(st.data())
@few
def test_any_centres(data: st.DataObject) -> None:
    k, d = data.draw(st.integers(1, 25)), data.draw(st.integers(1, 30))
    values = np.array(data.draw(st.lists(st.lists(numbers, min_size=d, max_size=d), min_size=k, max_size=k)))
    features = data.draw(st.lists(names, min_size=d, max_size=d))
    parties = data.draw(st.lists(st.sampled_from(HOSTILE), min_size=d, max_size=d))
    sizes = data.draw(st.none() | st.lists(st.floats(0, 1e12), min_size=k, max_size=k))
    check(figures.centres(values, features, parties, sizes))


@given(
    st.lists(
        st.one_of(st.floats(0, allow_infinity=False), st.sampled_from([0.0, 1.0, 5e-324, 1.7e308])),
        min_size=1,
        max_size=50,
    )
)
@few
def test_weights_of_any_coreset(weights: list[float]) -> None:
    weights[0] = weights[0] or 1.0
    check(figures.weights(Coreset(np.arange(len(weights)), np.array(weights), len(weights), 1.0)))


@given(st.lists(st.builds(CalibrationLine, st.floats(0, 1e15), shares, shares), max_size=120), shares | st.none())
@few
def test_calibration_and_roc_of_any_groups(lines: list[CalibrationLine], auc: float | None) -> None:
    check(figures.calibration(lines))
    check(figures.roc(lines, auc))


def many_entries(n_parties: int, n_rounds: int) -> Ledger:
    return Ledger(
        [
            Entry("solving" if number > 1 else "sampling", number, sender, receiver, kind, 1, 100 + number, ())
            for number in range(n_rounds)
            for party in (f"party {i}" for i in range(n_parties))
            for sender, receiver, kind in (("server", party, "Ask"), (party, "server", "Reply"))
        ]
    )


DRAWINGS: dict[str, Callable[[], Figure]] = {
    "rounds of 50 parties and 10,000 messages": lambda: figures.rounds(many_entries(50, 100)),
    "bytes of 50 parties and 10,000 messages": lambda: figures.bytes_by_phase_and_party(many_entries(50, 100)),
    "rounds of one party": lambda: figures.rounds(many_entries(1, 3)),
    "rounds of nobody": lambda: figures.rounds(Ledger()),
    "bytes of nobody": lambda: figures.bytes_by_phase_and_party(Ledger()),
    "full heat map": lambda: figures.centres(
        np.random.default_rng(0).normal(size=(40, 60)) * 1234.5678,
        [f"feature {i}" for i in range(60)],
        ["a"] * 60,
        range(1, 41),
    ),
    "a centre": lambda: figures.centres(np.ones((1, 2)), ["a", "b"], ["p", "p"], None),
    "coefficients": lambda: figures.coefficients(
        [CoefficientBar(f"party {i % 3}", f"feature {i}", 10.0**-i, 0.0, 10.0**-i * 2) for i in range(60)]
    ),
    "equal points": lambda: figures.frontier([FrontierPoint("same", 1e5, 0.01)] * 20),
    "equal weights": lambda: figures.weights(Coreset(np.arange(9), np.ones(9), 9, 9.0)),
    "one group": lambda: figures.calibration([CalibrationLine(10.0, 0.0, 0.0)]),
    "curve": lambda: figures.roc([CalibrationLine(10.0, 0.1, 0.2), CalibrationLine(10.0, 0.9, 0.7)], 0.75),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_figures_are_fit_for_pages_and_the_same_each_time(name: str) -> None:
    drawn = DRAWINGS[name]()
    check(drawn)
    assert DRAWINGS[name]() == drawn


def test_settings_of_the_process_neither_matter_nor_change() -> None:
    plain = DRAWINGS["coefficients"]()
    with mpl.rc_context({"text.usetex": True, "svg.fonttype": "path", "font.size": 30, "axes.facecolor": "red"}):
        assert DRAWINGS["coefficients"]() == plain
        assert mpl.rcParams["svg.fonttype"] == "path"


def test_names_are_shown_as_text() -> None:
    name = "<script>alert('$x$')</script> & \u05e9\u05dc\u05d5\u05dd"
    drawn = figures.rounds(Ledger([Entry(name, 1, name, "server", name, 1, 10, ())]))
    shown = [text.strip("\u2068\u2069") for text in texts(drawn)]
    assert name in shown
    assert "<script" not in drawn.svg


def test_the_style_sheet_knows_every_role_in_both_themes() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert len(set(LIGHT.values())) == len(LIGHT)
    for role in LIGHT:
        assert f".fig-f-{role}{{fill:var(--{role}," in figures.FIGURE_CSS
        assert f".fig-s-{role}{{stroke:var(--{role}," in figures.FIGURE_CSS
        assert f"--{role}:{DARK[role]};" in figures.FIGURE_DARK
    assert "url(" not in figures.FIGURE_CSS
    assert "@import" not in figures.FIGURE_CSS


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def mixed(colour: str, paper: str, opacity: float) -> str:
    pairs = [(int(colour[i : i + 2], 16), int(paper[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(opacity * a + (1 - opacity) * b):02x}" for a, b in pairs)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_text_stands_out_from_the_paper_and_from_full_cells(theme: dict[str, str]) -> None:
    """By the rules of WCAG: 4.5 for text, 3 for shapes."""
    assert contrast(theme["muted"], theme["paper"]) > 4.5
    assert all(contrast(theme[role], theme["paper"]) > 3 for role in theme if role.startswith("series"))
    for role in ("series-1", "series-2"):
        assert contrast(theme["ink"], mixed(theme[role], theme["paper"], OPACITY)) > 4.5


def test_without_matplotlib_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: dict[str, Any] = {name: None for name in sys.modules if name.partition(".")[0] == "matplotlib"}
    for name in loaded:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=r"pip install 'colonnade\[report\]'"):
        figures.rounds(Ledger())
