"""Names of anyone's making as a figure can bear them: one line, no hidden marks, no longer than there is room."""

import unicodedata

ELLIPSIS = "\u2026"
REPLACED = "\ufffd"
# Marks above or below one letter; more would climb over the lines around.
MOST_MARKS = 2
# Characters that any name is cut to before anything else is done with it.
LONGEST = 200
# Widths in parts of the size of the type, those of a wide typeface: what fits by them fits in others.
WIDE, CAPITAL, DIGIT, PLAIN, THIN = 1.05, 0.74, 0.64, 0.61, 0.4
BOLD = 1.1


def plain(text: str, longest: int = 60) -> str:
    """Give a name that can be drawn: without control characters, changes of direction or towers of marks."""
    letters: list[str] = []
    marks = 0
    for letter in text[:LONGEST]:
        kind = unicodedata.category(letter)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if marks <= MOST_MARKS:
            letters.append(" " if kind == "Zs" else REPLACED if kind[0] == "C" or kind in ("Zl", "Zp") else letter)
    name = " ".join("".join(letters).split(" ")).strip() or "(no name)"
    return name if len(text) <= LONGEST and len(name) <= longest else shortened(name, longest)


def shortened(text: str, longest: int) -> str:
    """Leave out the middle: names often differ at their ends."""
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 3
    return text[: longest - 1 - tail] + ELLIPSIS + (text[-tail:] if tail else "")


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Say how wide a text is at most, in the units of its size; typefaces differ, and most are narrower."""
    return size * (BOLD if bold else 1.0) * sum(map(_width, text))


def fitted(text: str, width: float, size: float, *, bold: bool = False) -> str:
    """Shorten a text until it fits."""
    longest = len(text)
    while longest > 1 and width_of(shortened(text, longest), size, bold=bold) > width:
        longest -= 1
    return shortened(text, longest)


def isolated(name: str) -> str:
    """Keep a name that runs from right to left from turning round what stands beside it."""
    return name if name.isascii() else f"\u2068{name}\u2069"


def listed(names: list[str], limit: int = 8) -> str:
    """Write names one after another, the first of them if there are many."""
    rest = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(isolated(plain(name, 40)) for name in names[:limit]) + rest


def _width(letter: str) -> float:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0.0
    if not letter.isascii():
        return WIDE if unicodedata.east_asian_width(letter) in "WF" or ord(letter) > 0x2E80 else CAPITAL
    if letter in " .,:;'!|()[]/-ijltfr":
        return THIN
    if letter.isdigit():
        return DIGIT
    return CAPITAL if letter.isupper() or letter in "mw%@&" else PLAIN
