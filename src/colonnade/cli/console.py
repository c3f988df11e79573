"""Where words go: results to stdout, talk and progress to stderr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from colonnade.node.terminal import printable
from colonnade.node.terminal import say as say

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON on stdout instead of tables.")]
SeedOption = Annotated[
    int | None, typer.Option("--seed", min=0, help="Overrides the file's seed; the same seed gives the same bits.")
]


def talk() -> Console:
    """Make the console that people watch: progress and remarks, with our own markup."""
    return Console(stderr=True, emoji=False)


def show(text: str) -> None:
    """Print a result to stdout as it is."""
    typer.echo(printable(text))


def show_json(value: Any) -> None:
    """Print a result to stdout as JSON, arrays as lists."""
    typer.echo(msgspec.json.encode(value, enc_hook=lambda array: array.tolist()).decode())


@contextmanager
def round_progress() -> Iterator[Callable[[str, int], None]]:
    """Show which round is under way: what this yields is for `Federation(on_round=...)`."""
    with talk().status("reading the parties' data") as status:
        yield lambda phase, number: status.update(f"{phase}: round {number}")
