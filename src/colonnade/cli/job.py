"""The job file: a small TOML that lists parties, task, sampler, solver and seed."""

from pathlib import Path
from typing import Annotated, cast

import msgspec
import typer

from colonnade.alignment import Mode
from colonnade.cli.console import RoundProgress
from colonnade.data.parties import Party
from colonnade.data.streamed_tables import StreamedTable
from colonnade.errors import InputError
from colonnade.federation import Federation
from colonnade.node.files import DataFile, data_beside
from colonnade.preparation.rules import HowToPrepare
from colonnade.protocol.policy import Policy
from colonnade.protocol.splits import AnySplit, HoldOut, SplitBy
from colonnade.sampling import AnySampler
from colonnade.solvers import AnySolver, Central
from colonnade.storage import check_file
from colonnade.tasks import AnyTask
from colonnade.toml_files import read_toml
from colonnade.transports.terminal import Passes, say

JobFile = Annotated[
    Path, typer.Argument(help="TOML file with parties, task, sampler, solver, seed.", metavar="JOB.toml")
]
RunFolder = Annotated[
    Path, typer.Argument(help="Folder of a saved run, from `fit --out`, or of a saved model.", metavar="RUN")
]
OutOption = Annotated[Path | None, typer.Option("--out", "-o", help="Save the run to this folder.")]
SpotCheckOption = Annotated[
    int | None,
    typer.Option(
        "--spot-check",
        min=1,
        help='Open this many of each party\'s draws and compare them; needs draws = "committed".',
    ),
]
BitsOption = Annotated[
    int | None,
    typer.Option("--bits", help="Round what parties send to this many bits, 4 to 32; exact if left out."),
]
FractionOption = Annotated[
    float | None,
    typer.Option("--test-fraction", help="Hold out this fraction of the rows, for example 0.2."),
]
SplitOption = Annotated[
    str | None,
    typer.Option("--split-by", help="Hold out the rows that this column of a party marks.", metavar="PARTY.COLUMN"),
]


class PartyEntry(DataFile, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One [[party]] of a job."""

    name: str
    prepare: HowToPrepare | None = None
    never: tuple[str, ...] = ()


class Job(msgspec.Struct, forbid_unknown_fields=True):
    """A job file's content; `folder` is where its relative paths start."""

    party: list[PartyEntry]
    task: AnyTask
    sampler: AnySampler
    solver: AnySolver = Central()
    align: str = "exact"
    split: AnySplit | None = None
    seed: int = 0

    def parties(self, folder: Path) -> list[Party]:
        """Read the parties' tables, and say what is unusual about them."""
        parties = [
            data_beside(entry, folder).party(entry.name, Policy(list(entry.never), level="open"), prepare=entry.prepare)
            for entry in self.party
        ]
        for note in (note for party in parties for note in party.notes):
            say(f"{note}.")
        return parties

    def federation(self, folder: Path, on_round: RoundProgress) -> Federation:
        """Read the parties' files and let them meet."""
        parties = self.parties(folder)
        for party in parties:
            if isinstance(party.table, StreamedTable):
                party.table = party.table.watched(Passes(on_round.of_pass).tell)
        return Federation(parties, align=cast(Mode, self.align), on_round=on_round)


def is_job(path: Path) -> bool:
    """Whether a file is a job file; who reads it otherwise says what is wrong with it."""
    try:
        return "party" in msgspec.toml.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False


def read_job(path: Path, seed: int | None) -> Job:
    """Read a job file; a seed takes the place of the file's."""
    job = read_toml(path, Job, _advice)
    return job if seed is None else msgspec.structs.replace(job, seed=seed)


def with_split(job: Job, fraction: float | None, split_by: str | None) -> Job:
    """Put the split of the command line, a fraction or PARTY.COLUMN, in the place of the file's."""
    if fraction is not None and split_by is not None:
        raise InputError("--test-fraction and --split-by both say which rows to hold out. Give one of them.")
    if fraction is not None:
        return msgspec.structs.replace(job, split=HoldOut(fraction))
    if split_by is None:
        return job
    entry = next((entry for entry in job.party if split_by.startswith(f"{entry.name}.")), None)
    if entry is None:
        names = ", ".join(entry.name for entry in job.party)
        raise InputError(f"--split-by {split_by} names no party. Write PARTY.COLUMN; the parties are {names}.")
    marked = msgspec.structs.replace(entry, split=split_by.removeprefix(f"{entry.name}."))
    parties = [marked if each is entry else each for each in job.party]
    return msgspec.structs.replace(job, party=parties, split=SplitBy(entry.name))


def check_is_no_input(out: Path | None, job: Job, job_file: Path) -> None:
    """Require a place to write to, if there is one, that is no part of what the job reads: it would spoil a table."""
    if out is None:
        return
    inputs = [job_file, *(job_file.parent / each.file for each in job.party if each.file is not None)]
    place = out.resolve()
    if not {place, *place.parents}.isdisjoint(each.resolve() for each in inputs):
        raise InputError(
            f"{out} is a file that the job reads, or lies in a folder that it reads. Choose another place."
        )


def check_out(out: Path | None, job: Job, job_file: Path) -> None:
    """Require, before anything is sent, a file that can be written, if there is one, and is no part of the inputs."""
    check_is_no_input(out, job, job_file)
    if out is not None:
        check_file(out)


def _advice(problem: str) -> str | None:
    if "unknown field `parties`" in problem:
        return (
            "a job has no option `parties`. If it is a server's federation.toml, use `colonnade server`, or "
            "Federation.connect in Python."
        )
    if "$.party" in problem and "got `object`" in problem:
        return "Write [[party]], with two brackets, once a party."
    if "`$.task.l2`" in problem or "`$.task.l1`" in problem:
        return f'{problem}. Write a number, or "cv" to let it be chosen by cross-validation.'
    return None
