"""What tests of figures read out of a drawing."""

import re
from xml.etree import ElementTree

from colonnade.report.figures.figure import Figure

Corner = tuple[float, float]


def drawings(drawn: Figure) -> list[ElementTree.Element]:
    """Give the drawings of a figure, the widest first."""
    return list(ElementTree.fromstring(f"<page>{drawn.svg}</page>"))  # noqa: S314  # drawn here, a moment ago


def texts(drawing: ElementTree.Element) -> list[str]:
    """Read all texts, without the marks that keep directions apart."""
    return [re.sub("[\u2068\u2069]", "", element.text or "") for element in drawing.iter("text")]


def shapes(drawing: ElementTree.Element, look: str) -> list[list[Corner]]:
    """Find the corners of paths of a class, one list a piece."""
    found = []
    for parent in drawing.iter():
        for path in parent.findall("path"):
            classes = (path.get("class") or parent.get("class") or "").split()
            if look in classes and "transform" not in path.attrib:
                found += [_corners(piece) for piece in path.attrib["d"].split("M") if piece.strip()]
    return found


def marks(drawing: ElementTree.Element, look: str) -> list[Corner]:
    """Find where marks of a class are."""
    found = []
    for parent in drawing.iter():
        for path in parent.findall("path"):
            place = re.fullmatch(r"translate\((\S+) (\S+)\)", path.get("transform", ""))
            if place and look in (path.get("class") or parent.get("class") or "").split():
                found.append((float(place[1]), float(place[2])))
    return found


def _corners(piece: str) -> list[Corner]:
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", piece)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))
