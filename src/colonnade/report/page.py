"""One HTML file with all of a run in it: no network, no script but its own, nothing that a name could run."""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from colonnade.errors import InputError, UnsupportedError
from colonnade.planning.records import Plan
from colonnade.report import headline, known
from colonnade.report.figures import FIGURE_CSS, FIGURE_DARK, FIGURE_LIGHT
from colonnade.report.frontier import frontier_section
from colonnade.report.learned import model_section, weights_section
from colonnade.report.remarks import remarks, remarks_section
from colonnade.report.repeating import repeat_section
from colonnade.report.sections import Section, Shown
from colonnade.report.sending import bytes_section, rounds_section
from colonnade.report.sheet import sheet_section
from colonnade.report.tables import name, printable
from colonnade.report.told_apart import quality_section
from colonnade.run import Run

# By this a file is known to be a page of ours, which the next one may replace.
MARK = "<!doctype html>\n<!-- Colonnade report -->"
# Between a number and its unit no line ends.
UNIT = re.compile(r"(?<=\d) (?=(?:%|bytes?|[kMGTP]B|ms|s|min|h)\b|%)")
MOST_BYTES = 1_500_000
# A figure of more is left out: nobody can read it, and the page would be too large.
MOST_FIGURE_BYTES = 110_000


def page(runs: Sequence[Run[Any]], plan: Plan | None = None) -> str:
    """Make the page of the first run, with the others beside it."""
    if not runs:
        raise InputError("A report needs a run. Pass one.")
    run = runs[0]
    sections = [_checked(section) for section in _sections(runs, plan) if section is not None]
    style, script = _style(), _asset("page.js")
    found: str = _template().render(
        mark=MARK,
        policy=_policy(style, script),
        style=style,
        script=script,
        title=printable(known.learned(run)),
        sentences=list(map(printable, headline.sentences(run))),
        n_remarks=len(list(remarks(run))),
        tiles=list(headline.tiles(run)),
        sections=sections,
        version=f" {name(run.versions.get('colonnade', ''))}".rstrip(),
    )
    return found


def _sections(runs: Sequence[Run[Any]], plan: Plan | None) -> list[Section | None]:
    run = runs[0]
    return [
        frontier_section(runs, plan),
        rounds_section(run),
        bytes_section(run),
        weights_section(run),
        model_section(run),
        quality_section(run),
        remarks_section(run),
        sheet_section(run),
        repeat_section(run),
    ]


def _checked(section: Section) -> Section:
    """Leave out figures that are too large, and what does not print."""
    figures = tuple(map(_small, section.figures))
    words, said = (tuple(map(printable, each)) for each in (section.words, section.remarks))
    return section._replace(figures=figures, words=words, remarks=said)


def _small(shown: Shown) -> Shown:
    if shown.figure is None or len(shown.figure.svg.encode()) <= MOST_FIGURE_BYTES:
        return shown
    return shown._replace(figure=None)


def _policy(style: str, script: str) -> str:
    """Allow the one style and the one script, by their hashes, and nothing else."""
    allowed = {"style-src": style, "script-src": script}
    hashes = [f"{source} 'sha256-{_digest(text)}'" for source, text in allowed.items()]
    return "; ".join(["default-src 'none'", *hashes, "base-uri 'none'", "form-action 'none'"])


def _style() -> str:
    """Put the colours of the figures beside the page's own, theme by theme."""
    own = _asset("page.css")
    for mark, colours in (("/* figures: light */", FIGURE_LIGHT), ("/* figures: dark */", FIGURE_DARK)):
        own = own.replace(mark, colours)
    return FIGURE_CSS + own


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _asset(name: str) -> str:
    return (files("colonnade.report") / "assets" / name).read_text(encoding="utf-8")


@cache
def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise UnsupportedError(
            "A report is made with Jinja2, which is not here. Install the extra: pip install 'colonnade[report]'."
        ) from error
    around = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    around.filters["unbroken"] = lambda text: UNIT.sub("\u00a0", text)
    return around.from_string(_asset("page.html"))
