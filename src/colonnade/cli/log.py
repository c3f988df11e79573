"""`colonnade log`: look whether a party's log is as it was written, and hand it over."""

from pathlib import Path
from typing import Annotated, BinaryIO, NamedTuple

import typer

from colonnade.cli.console import JsonFlag, show, show_json
from colonnade.errors import InputError
from colonnade.node.files import read_party_file
from colonnade.node.identity_files import read_pins
from colonnade.node.log import LOG, read_head
from colonnade.node.log_chain import Head, LogReport, facts_of, raw_lines
from colonnade.node.log_chain import verify as verified
from colonnade.node.log_export import log_csv
from colonnade.privacy.identities import Pins as SigningPins

app = typer.Typer(help="A party's log: was it changed; hand it over.", no_args_is_help=True)
Source = Annotated[
    Path, typer.Argument(help="A party.toml, or a copy of a party's log.jsonl.", metavar="PARTY.toml|LOG.jsonl")
]
Pins = Annotated[Path | None, typer.Option("--pins", help="The pins.toml to check a copy's signatures with.")]


class _Log(NamedTuple):
    path: Path
    pins: SigningPins
    head: Head | None


@app.callback()
def log() -> None:
    """Look whether a party's log is as it was written, or hand it over."""


@app.command("verify")
def verify(source: Source, pins: Pins = None, json: JsonFlag = False) -> None:
    """Find lines of a log that were changed, cut, added or moved, and say where; exit with 3 if there are any.

    A cut at the end is found where the party runs; in a copy only back to the last signed checkpoint.

    Example: colonnade log verify bank.toml
    """
    found = _log(source, pins)
    with _opened(found.path) as file:
        report = verified(raw_lines(file), found.pins, found.head)
    if json:
        show_json(report)
    else:
        show(_words(report))
    if report.findings:
        raise typer.Exit(InputError.exit_code)


@app.command("export")
def export(
    source: Source,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV, one row an event.")] = False,
    json: JsonFlag = False,
) -> None:
    """Print a log's events for a privacy officer, as CSV or as JSON: what was asked, answered, refused. No values.

    Example: colonnade log export bank.toml --csv > bank-log.csv
    """
    if csv == json:
        raise typer.BadParameter("Give --csv or --json.")
    path = Path(read_party_file(source).state) / LOG if source.suffix == ".toml" else source
    with _opened(path) as file:
        events = facts_of(raw_lines(file))
        if json:
            show_json(list(events))
        else:
            typer.echo(log_csv(events), nl=False)


def _log(source: Path, pins: Path | None) -> _Log:
    if source.suffix == ".toml":
        file = read_party_file(source)
        path = Path(file.state) / LOG
        return _Log(path, read_pins(file.identity.pins if pins is None else pins), read_head(path))
    if pins is None:
        raise InputError(f"{source} is signed by a party. Give --pins with the pins.toml that has its pin.")
    return _Log(source, read_pins(pins), None)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error}. Pass a party.toml, or a copy of its log.jsonl.") from error


def _words(report: LogReport) -> str:
    whose = f"of {report.party}" if report.party else "of nobody: no checkpoint is signed"
    lines = [f"Log {whose}: {report.lines:,} lines, {report.checkpoints:,} signed checkpoints."]
    lines += [f"line {finding.line:,} {finding.what}" for finding in report.findings]
    if not report.findings:
        unsigned = report.lines - report.signed_to
        rest = f". Later lines ({unsigned:,}) are chained, and not signed yet" if unsigned else ""
        lines.append(f"Nothing was changed up to line {report.signed_to:,}, the last signed checkpoint{rest}.")
    return "\n".join(lines)
