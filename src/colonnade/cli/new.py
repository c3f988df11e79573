"""`colonnade new`: files to start from."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from colonnade.cli.console import JsonFlag, say, show, show_json, talk, write_new
from colonnade.data.checking.starting import Start, start_from
from colonnade.data.parties import check_party_name
from colonnade.errors import InputError
from colonnade.node.new_files import ADDRESS, new_federation_file, new_job_file, new_party_file

app = typer.Typer(no_args_is_help=True)

KINDS = "a CSV, Parquet, Arrow or Feather file, or a folder of Parquet files."
TableArgument = Annotated[Path, typer.Argument(help=f"The party's table: {KINDS}", metavar="TABLE")]
KeyOption = Annotated[
    list[str] | None,
    typer.Option("--key", help="The column that names rows; guessed if left out. Once for each of several."),
]
OutOption = Annotated[Path | None, typer.Option("--out", "-o", help="The file to write; it must not be there yet.")]


@app.callback()
def new() -> None:
    """Write a party.toml, federation.toml or job.toml to start from, with remarks.

    No file is ever written over.

    Example: colonnade new party bank.csv --label spending
    """


@app.command("party")
def party(
    table: TableArgument,
    name: Annotated[str | None, typer.Option("--name", help="The party's name; if left out, the table's.")] = None,
    label: Annotated[
        str | None, typer.Option("--label", help="The column to learn, at the one party that has it.")
    ] = None,
    key: KeyOption = None,
    server: Annotated[str, typer.Option("--server", help="Address and port of the server.")] = ADDRESS,
    out: OutOption = None,
    json: JsonFlag = False,
) -> None:
    """Write the party.toml of a table: its key guessed, a rule for each column, what was seen of it.

    Nothing leaves the machine. Read the file, then run `colonnade check` on it.

    Example: colonnade new party bank.csv

    Example: colonnade new party data/bank.parquet --name bank --key customer --label spending --out bank.toml
    """
    name = name or _name_of(table)
    check_party_name(name)
    path = out or Path(f"{name}.toml")
    start = _started(name, table, path, key or (), label)
    write_new(path, new_party_file(start, path, server))
    _tell(path, [start], f"Read it, then run: colonnade check {path}", json=json)


@app.command("federation")
def federation(
    parties: Annotated[list[str], typer.Option("--party", help="A party's name; once for each party.")],
    out: OutOption = None,
    json: JsonFlag = False,
) -> None:
    """Write the federation.toml of a server: who takes part, how records are matched, jobs to choose from.

    Example: colonnade new federation --party bank --party shop --party telephone
    """
    for name in parties:
        check_party_name(name)
    if len(set(parties)) < len(parties):
        raise InputError("A party is named twice. Give each its own name.")
    path = out or Path("federation.toml")
    write_new(path, new_federation_file(parties, path))
    _tell(path, [], f"Read it, choose its jobs, then run: colonnade server {path}", json=json)


@app.command("job")
def job(
    tables: Annotated[list[Path], typer.Argument(help=f"A table for each party: {KINDS}", metavar="TABLE")],
    label: Annotated[
        str | None, typer.Option("--label", help="The column to learn; PARTY.COLUMN where several tables have it.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="The column that names rows in all tables; guessed if left out.")
    ] = None,
    out: OutOption = None,
    json: JsonFlag = False,
) -> None:
    """Write a job.toml for tables that are all here, to learn from them in one process.

    Example: colonnade new job bank.csv shop.csv --label spending
    """
    path = out or Path("job.toml")
    keys = [] if key is None else [key]
    names = _names_of(tables)
    starts = [_started(name, table, path, keys) for name, table in names.items()]
    if label is not None:
        place, column = _labelled(label, starts)
        table = names[starts[place].name]
        starts[place] = _started(starts[place].name, table, path, keys, column)
    write_new(path, new_job_file(starts, path))
    _tell(path, starts, f"Read it, then run: colonnade fit {path}", json=json)


def _started(name: str, table: Path, file: Path, key: Sequence[str], label: str | None = None) -> Start:
    """Look at a table for a file that is to name it, and show what is under way."""
    with talk().status("reading the table") as status:
        return start_from(name, str(table), _beside(table, file), key=key, label=label, tell=status.update)


def _name_of(table: Path) -> str:
    stem = re.sub(r"(\.csv|\.tsv|\.parquet|\.arrow|\.feather|\.gz)+$", "", table.resolve().name, flags=re.IGNORECASE)
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", stem).strip("-.") or "party"


def _names_of(tables: Sequence[Path]) -> dict[str, Path]:
    """Name parties after their tables; where two are called the same, with a number."""
    names: dict[str, Path] = {}
    for table in tables:
        name = stem = _name_of(table)
        number = 2
        while name in names:
            name, number = f"{stem}-{number}", number + 1
        names[name] = table
    return names


def _beside(table: Path, file: Path) -> str:
    """Give the path of a table from the folder of a file."""
    return Path(os.path.relpath(table.resolve(), file.resolve().parent)).as_posix()


def _labelled(label: str, starts: Sequence[Start]) -> tuple[int, str]:
    """Find the table and the column that a label names: COLUMN, or PARTY.COLUMN."""
    found = [
        (place, column)
        for place, start in enumerate(starts)
        for column in start.seen
        if label in (column, f"{start.name}.{column}")
    ]
    if len(found) != 1:
        where = "No table has" if not found else f"{len(found)} tables have"
        names = ", ".join(start.name for start in starts)
        raise InputError(f"{where} the column {label!r}. Write --label PARTY.COLUMN; the parties are {names}.")
    return found[0]


def _tell(path: Path, starts: Sequence[Start], next_step: str, *, json: bool) -> None:
    if json:
        show_json({"file": str(path), "parties": [_summary(start) for start in starts]})
        return
    show(str(path))
    for start in starts:
        say("\n".join([*(f"{note}." for note in start.notes), _words(start)]))
    say(next_step)


def _summary(start: Start) -> dict[str, Any]:
    return {
        "name": start.name,
        "rows": start.n_rows,
        "key": list(start.key.columns),
        "label": next(iter(start.label.columns), None),
        "rules": start.rules,
        "left_out": start.left_out,
    }


def _words(start: Start) -> str:
    key = ", ".join(map(repr, start.key.columns)) or "none"
    label = next(map(repr, start.label.columns), "none named")
    left_out = f", {len(start.left_out):,} left out" if start.left_out else ""
    return f"{start.name}: {start.n_rows:,} rows; key {key}; label {label}; {len(start.rules):,} columns{left_out}."
