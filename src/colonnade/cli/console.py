"""Where words go: results to stdout, talk and progress to stderr."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from colonnade.disk import PRIVATE
from colonnade.errors import InputError
from colonnade.node.terminal import printable
from colonnade.node.terminal import say as say
from colonnade.protocol.conductor import RoundNumber

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON on stdout instead of tables.")]
SeedOption = Annotated[
    int | None, typer.Option("--seed", min=0, help="Overrides the file's seed; the same seed gives the same bits.")
]

MINUTE = 60
# Before so many rounds nobody can tell how long the others take.
LEAST_ROUNDS = 6


def talk() -> Console:
    """Make the console that people watch: progress and remarks, with our own markup."""
    return Console(stderr=True, emoji=False)


def show(text: str) -> None:
    """Print a result to stdout as it is."""
    typer.echo(printable(text))


def show_json(value: Any) -> None:
    """Print a result to stdout as JSON, arrays as lists."""
    typer.echo(msgspec.json.encode(value, enc_hook=lambda array: array.tolist()).decode())


def write_new(path: Path, content: str | bytes) -> None:
    """Write a file that is not there yet; bytes, in which a model is, only for its owner to read."""
    mode = PRIVATE if isinstance(content, bytes) else 0o666
    try:
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(content if isinstance(content, bytes) else content.encode())
    except FileExistsError:
        raise InputError(f"{path} is there already, and would be lost. Name another file with --out.") from None
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error}. Name another file with --out.") from error


@contextmanager
def round_progress() -> Iterator[Callable[[str, int], None]]:
    """Show which round is under way: what this yields is for `Federation(on_round=...)`."""
    begun = time.monotonic()
    with talk().status("reading the parties' data") as status:

        def tell(phase: str, number: int) -> None:
            nonlocal begun
            begun = time.monotonic() if number == 1 else begun
            status.update(f"{phase}: {how_far(number, time.monotonic() - begun)}")

        yield tell


def how_far(number: int, seconds: float) -> str:
    """Say which round is about to start; where they are counted, how much is done and about how long the rest takes."""
    total = number.total if isinstance(number, RoundNumber) else 0
    if not total or number < LEAST_ROUNDS:
        return f"round {number}"
    left = seconds / (number - 1) * (total - number + 1)
    about = f"{left:.0f} s" if left < MINUTE else f"{left / MINUTE:.0f} min"
    return f"{(number - 1) / total:.0%} (about {about} left)"
