"""From what matplotlib writes to what a page with a strict content policy can hold: classes, and no styles or ids."""

import itertools
import re
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree  # reads what matplotlib wrote here, nothing from outside

from colonnade.report.figures.colours import LIGHT

ROLES = {colour: role for role, colour in LIGHT.items()}
PAINT = {"fill": "fig-f-", "stroke": "fig-s-"}
# Properties that stay, as attributes of their own names.
KEPT = (
    "opacity",
    "fill-opacity",
    "stroke-opacity",
    "stroke-width",
    "stroke-dasharray",
    "stroke-linecap",
    "text-anchor",
)
# What is an element's own, and not how it looks.
OWN = ("x", "y", "d", "transform")
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?|-?\d+e-?\d+")
HREF = "{http://www.w3.org/1999/xlink}href"


class Drawn(NamedTuple):
    """A text of a sheet, and how it looks."""

    text: str
    bold: bool
    halo: bool


def for_pages(written: str, texts: Mapping[str, Drawn], *, label: str, kind: str) -> str:
    """Turn one drawing of matplotlib's into an element for pages."""
    root = ElementTree.fromstring(written)  # noqa: S314  # matplotlib wrote it, a moment ago
    marks = {element.get("id", ""): element for element in root.iter() if _tag(element) == "path" and element.get("id")}
    box = [_number(each) for each in root.get("viewBox", "").split()]
    page = ElementTree.Element("svg", {"class": f"fig fig-{kind}", "viewBox": " ".join(box)})
    page.attrib.update({"role": "img", "aria-label": label, "font-family": "system-ui, sans-serif"})
    flat = ElementTree.Element("flat")
    for child in root:
        _add(flat, child, marks, texts)
    for look, run in itertools.groupby(flat, _look_alike):
        page.extend(_together(dict(look), list(run)))
    return ElementTree.tostring(page, encoding="unicode")


def _look_alike(element: ElementTree.Element) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in element.items() if name not in OWN)


def _together(look: dict[str, str], run: list[ElementTree.Element]) -> list[ElementTree.Element]:
    """Say once how neighbours look that look alike."""
    if len(run) == 1 or not look:
        return run
    group = ElementTree.Element("g", look)
    for element in run:
        for name in look:
            del element.attrib[name]
        group.append(element)
    return [group]


def _add(
    page: ElementTree.Element,
    element: ElementTree.Element,
    marks: Mapping[str, ElementTree.Element],
    texts: Mapping[str, Drawn],
) -> None:
    tag = _tag(element)
    if tag == "g":
        inside = texts.get(element.get("id", ""))
        for child in element:
            if inside is not None and _tag(child) == "text":
                page.append(_text(child, inside))
            else:
                _add(page, child, marks, texts)
    elif tag == "use":
        page.append(_placed(marks[element.get(HREF, "").lstrip("#")], element))
    elif tag == "path":
        page.append(_path(element, _styles(element)))
    elif tag == "text":
        page.append(_text(element, Drawn(element.text or "", bold=False, halo=False)))


def _path(element: ElementTree.Element, styles: dict[str, str]) -> ElementTree.Element:
    return ElementTree.Element("path", {"d": _short(element.get("d", "")), **_look(styles)})


def _placed(mark: ElementTree.Element, use: ElementTree.Element) -> ElementTree.Element:
    path = _path(mark, {**_styles(mark), **_styles(use)})
    path.set("transform", f"translate({_number(use.get('x', '0'))} {_number(use.get('y', '0'))})")
    return path


def _text(element: ElementTree.Element, drawn: Drawn) -> ElementTree.Element:
    styles = _styles(element)
    size = re.search(r"([\d.]+)px", styles.get("font", "") + styles.get("font-size", ""))
    place = {name: _number(element.get(name, "0")) for name in ("x", "y")}
    text = ElementTree.Element("text", {**place, "font-size": _number(size[1]) if size else "12"})
    text.attrib.update(_look({"fill": LIGHT["ink"], **styles}))
    if drawn.bold:
        text.set("font-weight", "600")
    if drawn.halo:
        halo = {"stroke": LIGHT["paper"], "stroke-width": "4", "paint-order": "stroke", "stroke-linejoin": "round"}
        text.set("class", f"{text.get('class')} fig-s-paper")
        text.attrib.update(halo)
    text.text = drawn.text
    return text


def _styles(element: ElementTree.Element) -> dict[str, str]:
    pairs = (each.partition(":") for each in element.get("style", "").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


def _look(styles: dict[str, str]) -> dict[str, str]:
    look = {name: _short(styles[name]) for name in KEPT if name in styles}
    if look.get("text-anchor") == "start":
        del look["text-anchor"]
    classes = []
    for name, start in PAINT.items():
        value = styles.get(name)
        if value in ROLES:
            classes.append(start + ROLES[value])
        if value is not None:
            look[name] = value
    return ({"class": " ".join(classes)} if classes else {}) | look


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _number(text: str) -> str:
    shown = f"{float(text):.2f}".rstrip("0").rstrip(".")
    return "0" if shown == "-0" else shown


def _short(text: str) -> str:
    return " ".join(NUMBER.sub(lambda found: _number(found[0]), text).split())
