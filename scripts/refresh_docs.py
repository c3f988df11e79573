"""Run the Python blocks of the docs and write what they print into the text blocks that follow them.

    python scripts/refresh_docs.py docs/tutorial/first-federation.md ...

Without arguments all pages are done. tests/docs fails where a page shows something else than its code prints.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

PROJECT = Path(__file__).parents[1]
DOCS = PROJECT / "docs"
PAGES = [*sorted(PROJECT.glob("*.md")), *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("[!_]*/**/*.md"))]
WIDTH = 120
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def printed(page: Path) -> Iterator[tuple[re.Match[str], str]]:
    """Run a page's Python blocks in order; give each text block that follows one, and what that one printed."""
    blocks = list(BLOCK.finditer(page.read_text(encoding="utf-8")))
    names = {"__name__": "__main__"}
    for block, following in zip_longest(blocks, blocks[1:]):
        if block[1] != "python":
            continue
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(block[2], str(page), "exec"), names)  # noqa: S102  # our own docs
        if following is not None and following[1] == "text" and output.getvalue().strip():
            yield following, _folded(output.getvalue())


def _folded(output: str) -> str:
    """Break long lines, as a page would."""
    lines = output.rstrip().splitlines()
    return "".join(f"{line if len(line) <= WIDTH else textwrap.fill(line, WIDTH)}\n" for line in lines)


def refresh(page: Path) -> None:
    """Write what a page's code prints where the page shows it."""
    text = page.read_text(encoding="utf-8")
    for block, output in reversed(list(printed(page))):
        text = text[: block.start(2)] + output + text[block.end(2) :]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    pages = [Path(name).resolve() for name in sys.argv[1:]] or PAGES
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        for page in pages:
            refresh(page)
