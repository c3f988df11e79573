"""`colonnade align`."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from colonnade.alignment.records import AlignmentReport
from colonnade.cli.console import JsonFlag, round_progress, show, show_json
from colonnade.cli.job import is_job, read_job
from colonnade.data.keys import RULE
from colonnade.errors import InputError
from colonnade.federation import Federation
from colonnade.node.files import read_federation_file

FileArgument = Annotated[
    Path, typer.Argument(help="A server's federation.toml, or a job file.", metavar="FEDERATION.toml")
]
AgainFlag = Annotated[bool, typer.Option("--again", help="Match anew, also where the parties have an alignment.")]


def command(file: FileArgument, again: AgainFlag = False, json: JsonFlag = False) -> None:
    """Match the records of all parties by their keys, once for all later jobs.

    Each party keeps which of its rows are common, and where; the server learns what
    the mode that federation.toml names tells it, and no more. A table
    that is sorted again keeps its alignment; one with other keys must be aligned again. A job file's parties, which are
    all here, are aligned in every job: this shows how.

    Example: colonnade align federation.toml
    """
    report = _aligned_here(file) if is_job(file) else _aligned_as_server(file, again=again)
    if report is None:
        raise InputError(
            f'{file} says that rows are aligned already. Write [align] and mode = "aided" or "curve" into it, or '
            "align = ... at the top of a job file."
        )
    if json:
        show_json({**msgspec.to_builtins(report), "rule": RULE})
        return
    show(f"{report}\n\n{RULE}")


def _aligned_here(file: Path) -> AlignmentReport | None:
    with round_progress() as on_round:
        return read_job(file, None).federation(file.parent, on_round).alignment


def _aligned_as_server(file: Path, *, again: bool) -> AlignmentReport | None:
    if read_federation_file(file).align.mode == "exact":
        return None
    with round_progress() as on_round, Federation.connect(file, align_again=again, on_round=on_round) as federation:
        return federation.alignment
