"""What the person at a machine is told, on stderr: lines that no terminal obeys; and what is waited for."""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from colonnade.text_tables import n_columns, paragraphs

# To the beginning of the line, and clear it (ECMA-48).
CLEAR = "\r\x1b[2K"
# Who waits where no line can be written over says so again after so many seconds, then after twice as many, and so on.
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 3600.0
# What is waited for may change often: so many seconds lie between two lines.
LEAST_PAUSE = 1.0
MINUTE, HOUR = 60, 3600


class Screen:
    """stderr: lines, and on a terminal one that is written over, until the next line is said."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_counting = False

    @property
    def is_live(self) -> bool:
        """Whether a line can be written over: not in a file or pipe, nor beside somebody else's moving lines."""
        is_taken = hasattr(sys.stderr, "rich_proxied_file")
        return not is_taken and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def say(self, text: str) -> None:
        """Print a remark, in words that stay whole; where a full disk takes stderr, who talks goes on."""
        text = printable(text)
        text = paragraphs(text, shutil.get_terminal_size().columns) if self.is_live else text
        self._write(f"{text}\n", is_counting=False)

    def count(self, text: str) -> None:
        """Write over the last line, if that was counted, too."""
        words, width = printable(text).replace("\n", " "), shutil.get_terminal_size().columns - 1
        while n_columns(words) > width:
            words = f"{words[:-4]}..." if len(words) > 3 else ""
        self._write(words, is_counting=True)

    def clear(self) -> None:
        """Take away the line that is counted."""
        self._write("", is_counting=False)

    def _write(self, text: str, *, is_counting: bool) -> None:
        with suppress(OSError), self._lock:
            text = f"{CLEAR}{text}" if self._is_counting else text
            self._is_counting = is_counting
            if text:
                sys.stderr.write(text)
                sys.stderr.flush()


SCREEN = Screen()
say = SCREEN.say


class Passes:
    """Shows how far a pass over a table is, where it takes longer than a moment; and nothing when it ends."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show, self._last, self._is_shown = show, 0.0, False

    def tell(self, n_done: int, n_blocks: int) -> None:
        """Tell that so many blocks are done."""
        now = time.monotonic()
        if n_done == 1:
            self._last = now
        elif n_done == n_blocks and self._is_shown:
            self._show("")
            self._is_shown = False
        elif now - self._last >= LEAST_PAUSE:
            self._show(f"{n_done:,} of {n_blocks:,} blocks of a pass over the table ({n_done / n_blocks:.0%})")
            self._last, self._is_shown = now, True


class Waiting:
    """Tells what is waited for: on a terminal in one line that counts, else once, and again after longer and longer.

    `said` is told its lines; those that count are for a person at this screen.
    """

    def __init__(self, said: Callable[[str], None], screen: Screen | None = None) -> None:
        self._said, self._screen = said, screen
        self._words, self._since, self._last, self._pause = "", 0.0, 0.0, 0.0

    def tell(self, words: str) -> bool:
        """Tell it if it is time to, and whether it was."""
        now = time.monotonic()
        is_first = not self._words
        if is_first:
            self._since, self._pause = now, FIRST_PAUSE
        waited = now - self._since
        if self._screen is not None and self._screen.is_live:
            self._words = words
            self._screen.count(f"{words} ({duration(waited)})")
            return is_first
        is_due = now - self._last >= (self._pause if words == self._words else LEAST_PAUSE)
        if not is_first and not is_due:
            return False
        if not is_first and words == self._words:
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._words, self._last = words, now
        self._said(words if is_first else f"{words} ({duration(waited)})")
        return True

    def over(self) -> bool:
        """Stop, and tell whether anything was waited for."""
        was_waiting, self._words = bool(self._words), ""
        if self._screen is not None:
            self._screen.clear()
        return was_waiting


def duration(seconds: float) -> str:
    """Say how long something takes."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < 2 * HOUR else f"{seconds / HOUR:.0f} h"


def printable(text: str) -> str:
    """Replace control characters: names and reasons come from others, and a terminal obeys escape codes."""
    return "".join(character if character.isprintable() or character == "\n" else "\ufffd" for character in text)
