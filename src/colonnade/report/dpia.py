"""The disclosure sheet as Markdown, ready for a privacy officer."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from colonnade.disclosure import LIMITS
from colonnade.number_words import count, in_bytes
from colonnade.report import headline
from colonnade.report.remarks import remarks
from colonnade.report.sheet import not_counted, rows_of, safeguards
from colonnade.report.tables import name, printable
from colonnade.run import Run

MARK = "<!-- Colonnade disclosure sheet -->"
# What Markdown would take for more than text: anywhere, in what looks like an address, and where a line begins.
SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&$@^]|:(?=//)|(?<=[wW]{3})\.|^\s*[-+=])")
# The first item of a list: what ends its number is escaped, since a backslash before a digit would be shown.
NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
MOST_LINES = 1000


def sheet(run: Run[Any]) -> str:
    """Write what is processed, who learns what about whom, of how many rows, safeguards and limits."""
    return "\n".join([MARK, "# Disclosure sheet", "", *_what(run), *_who(run), *_kept(run), *_made(run)])


def escaped(text: str) -> str:
    """Make text of anyone's making stand for itself in Markdown, in one line."""
    return NUMBERED.sub(r"\1\\\2", SPECIAL.sub(r"\\\1", printable(text).strip()))


def _what(run: Run[Any]) -> Iterator[str]:
    yield "## What is processed"
    yield ""
    for sentence in headline.sentences(run):
        yield f"- {escaped(sentence)}"
    yield ""
    yield from _table(
        ("party", "rows", "columns", "label", "names of columns"),
        [
            (
                name(card.name),
                count(card.n_rows),
                count(card.n_features),
                name(card.label_name or ""),
                _first(card.feature_names),
            )
            for card in run.roster.cards
        ],
    )


def _first(columns: Sequence[str], most: int = 30) -> str:
    shown = ", ".join(name(each) for each in columns[:most])
    return shown if len(columns) <= most else f"{shown} and {len(columns) - most:,} more"


def _who(run: Run[Any]) -> Iterator[str]:
    yield "## Who learned what about whom"
    yield ""
    yield escaped(run.disclosure.headline)
    yield ""
    lines = []
    for line in run.disclosure.lines:
        rows = rows_of(run, line)
        of_rows = "no single row" if rows is None else f"at most {count(rows)}"
        lines.append((name(line.who), name(line.about), line.meaning, f"at most {count(line.numbers)}", of_rows))
    yield from _table(("who", "about whom", "what", "numbers", "rows"), lines)
    if run.coreset.alignment is None:
        yield "The server is told of no row by name: rows are numbers, in the order that the parties' tables have."
        yield ""
    for each in not_counted(run):
        yield escaped(each)
        yield ""


def _kept(run: Run[Any]) -> Iterator[str]:
    yield "## Safeguards"
    yield ""
    for each in safeguards(run):
        yield f"- {escaped(each)}"
    yield ""
    yield "## Limits"
    yield ""
    yield f"- {escaped(LIMITS)}"
    yield "- Whether this is enough depends on the data, and on who the parties are. This sheet decides nothing."
    for each in remarks(run):
        yield f"- {escaped(each)}"
    yield ""


def _made(run: Run[Any]) -> Iterator[str]:
    yield "## How it was made"
    yield ""
    facts = [
        ("task", repr(run.task)),
        ("sampler", run.coreset.sampler if run.sampler is None else repr(run.sampler)),
        ("solver", "none" if run.solver is None else repr(run.solver)),
        ("rows held out", "none" if run.split is None else repr(run.split)),
        ("seed", str(run.seed)),
        ("sent", f"{in_bytes(run.ledger.bytes)} in {run.ledger.n_rounds} rounds"),
        *((f"version of {package}", version) for package, version in run.versions.items()),
    ]
    if run.tables is not None:
        facts += [(f"table of {name(party)}", mark) for party, mark in run.tables.fingerprints.items()]
    yield from _table(("what", "how"), facts)


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for line in lines[:MOST_LINES]:
        yield f"| {' | '.join(map(escaped, line))} |"
    if len(lines) > MOST_LINES:
        yield ""
        yield f"The first {MOST_LINES:,} of {len(lines):,} lines."
    yield ""
