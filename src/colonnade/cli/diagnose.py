"""`colonnade diagnose`."""

import warnings
from typing import Annotated

import typer

from colonnade.cli.console import JsonFlag, SeedOption, round_progress, show, show_json
from colonnade.cli.job import Job, JobFile, read_job
from colonnade.diagnosing import diagnose
from colonnade.diagnostics import Diagnosis
from colonnade.errors import AssumptionWarning

RowsOption = Annotated[
    int | None,
    typer.Option("--rows", min=1, help="How many rows to look at; if left out, 2,000, or ten a column if more."),
]
PairsOption = Annotated[int, typer.Option("--pairs", min=2, help="For k-means: how many pairs of rows to compare.")]
ExactFlag = Annotated[bool, typer.Option("--exact", help="Read all rows of all tables in one place, for a rehearsal.")]


def command(
    job_file: JobFile,
    rows: RowsOption = None,
    pairs: PairsOption = 2000,
    exact: ExactFlag = False,
    seed: SeedOption = None,
    json: JsonFlag = False,
) -> None:
    """Measure what the theory assumes of a job's data, and how good the coreset is that its sampler draws.

    Says what was measured, what it means and what to do, what it cost, and what the server was shown for it.

    Example: colonnade diagnose examples/bank/job.toml
    """
    job = read_job(job_file, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)  # they are printed with the rest
        found = _exactly(job, job_file, pairs) if exact else _over_parties(job, job_file, rows, pairs)
    if json:
        show_json(found)
    else:
        show(str(found))


def _over_parties(job: Job, job_file: JobFile, rows: int | None, pairs: int) -> Diagnosis:
    with round_progress() as on_round:
        federation = job.federation(job_file.parent, on_round)
        return federation.diagnose(job.task, sampler=job.sampler, rows=rows, pairs=pairs, seed=job.seed)


def _exactly(job: Job, job_file: JobFile, pairs: int) -> Diagnosis:
    with round_progress() as on_round:
        federation = job.federation(job_file.parent, on_round)
        coreset = federation.coreset(job.task, job.sampler, seed=job.seed).coreset
        return diagnose(job.parties(job_file.parent), job.task, coreset=coreset, pairs=pairs, seed=job.seed)
