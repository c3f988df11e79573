"""Where words go: results to stdout, talk, progress and errors to stderr; with --json errors to stdout, too."""

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
import typer
from rich.console import Console
from rich.status import Status
from rich.text import Text

from colonnade.disk import PRIVATE
from colonnade.errors import InputError
from colonnade.protocol.conductor import RoundNumber
from colonnade.text_tables import paragraphs
from colonnade.transports.terminal import SCREEN, duration, printable
from colonnade.transports.terminal import say as say

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON on stdout instead of tables.")]
SeedOption = Annotated[
    int | None, typer.Option("--seed", min=0, help="Overrides the file's seed; the same seed gives the same bits.")
]

COLOURS = {"error": "bold red", "warning": "bold yellow"}
# Before so many rounds nobody can tell how long the others take.
LEAST_ROUNDS = 6


def talk() -> Console:
    """Make the console that people watch: progress and remarks, with our own markup."""
    return Console(stderr=True, emoji=False)


def show(text: str) -> None:
    """Print a result to stdout; on a terminal, long lines are broken between words."""
    show_as_is(paragraphs(text, shutil.get_terminal_size().columns) if sys.stdout.isatty() else text)


def show_as_is(text: str) -> None:
    """Print to stdout what is a file or a value: no line is broken."""
    typer.echo(printable(text))


def complain(kind: str, name: str, text: str) -> None:
    """Print an error or a warning to stderr; in colour where that is a terminal, unless NO_COLOR is set."""
    told = printable(f"{kind}: {name}\n{text}" if name else f"{kind}: {text}")
    if not sys.stderr.isatty() or os.environ.get("NO_COLOR"):
        say(told)
        return
    SCREEN.clear()
    words = Text(told)
    words.stylize(COLOURS[kind], 0, len(f"{kind}: {name}" if name else f"{kind}:"))
    talk().print(words)


def show_error(name: str, message: str, notes: Sequence[str], code: int, *, json: bool) -> NoReturn:
    """Print an error, with --json also as one object on stdout, and exit."""
    if json:
        show_json({"error": name or "OSError", "message": message, "notes": list(notes), "exit_code": code})
    complain("error", name, "\n".join([message, *notes]))
    sys.exit(code)


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


class RoundProgress:
    """Shows which round is under way, told as `Federation(on_round=...)` does, and how far a pass over a table is."""

    def __init__(self, status: Status) -> None:
        self._status, self._begun, self._words = status, time.monotonic(), str(status.status)

    def __call__(self, phase: str, number: int) -> None:
        """Tell that a round begins."""
        self._begun = time.monotonic() if number == 1 else self._begun
        self._words = f"{phase}: {how_far(number, time.monotonic() - self._begun)}"
        self._status.update(self._words)

    def of_pass(self, words: str) -> None:
        """Tell how far a pass is, or nothing."""
        self._status.update(f"{self._words}, {words}" if words else self._words)


@contextmanager
def round_progress() -> Iterator[RoundProgress]:
    """Show which round is under way while this lasts."""
    with talk().status("reading the parties' data") as status:
        yield RoundProgress(status)


def how_far(number: int, seconds: float) -> str:
    """Say which round is about to start; where they are counted, how much is done and about how long the rest takes."""
    total = number.total if isinstance(number, RoundNumber) else 0
    if not total or number < LEAST_ROUNDS:
        return f"round {number}"
    left = seconds / (number - 1) * (total - number + 1)
    return f"{(number - 1) / total:.0%} (about {duration(left)} left)"
