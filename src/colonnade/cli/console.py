"""Where words go: results to stdout, talk and progress to stderr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout instead of tables.")]
SeedOption = Annotated[
    int | None, typer.Option("--seed", min=0, help="Overrides the file's seed; the same seed gives the same bits.")
]


def talk() -> Console:
    """Make the console that people watch."""
    return Console(stderr=True)


def results() -> Console:
    """Make the console that programs read."""
    return Console(soft_wrap=True, highlight=False)


@contextmanager
def round_progress() -> Iterator[Callable[[str, int], None]]:
    """Show which round is under way.

    Yields
    ------
    callable
        For `Federation(on_round=...)`.
    """
    with talk().status("reading the parties' data") as status:
        yield lambda phase, number: status.update(f"{phase}: round {number}")
