"""What the person at a machine is told: text on stderr, without what a terminal would obey."""

import sys
from contextlib import suppress


def say(text: str) -> None:
    """Print a remark to stderr as it is; where a full disk takes stderr, who talks goes on."""
    with suppress(OSError):
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()


def printable(text: str) -> str:
    """Replace control characters: names and reasons come from others, and a terminal obeys escape codes."""
    return "".join(character if character.isprintable() or character == "\n" else "\ufffd" for character in text)
