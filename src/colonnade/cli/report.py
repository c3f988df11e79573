"""`colonnade report`."""

import warnings
from pathlib import Path
from typing import Annotated

import typer

from colonnade.cli.console import JsonFlag, round_progress, show, show_as_is, show_json
from colonnade.cli.job import read_job
from colonnade.cli.show import run_summary, run_text
from colonnade.disclosure import Disclosure
from colonnade.errors import DisclosureWarning, InputError
from colonnade.run import Run

SavedRun = Annotated[Path, typer.Argument(help="Folder of a saved run, from `fit --out`.", metavar="RUN")]
RunOrJob = Annotated[
    Path, typer.Argument(help="Folder of a saved run; with --disclosure also a job file.", metavar="RUN|JOB.toml")
]
DisclosureFlag = Annotated[
    bool, typer.Option("--disclosure", help="Print the disclosure sheet: who learned what about whom.")
]


def command(run_folder: RunOrJob, disclosure: DisclosureFlag = False, json: JsonFlag = False) -> None:
    """Show a saved run again, or who learned what in it (or would, in a job that is not run yet).

    Example: colonnade report run --disclosure
    """
    if disclosure:
        sheet = _planned(run_folder) if run_folder.is_file() else Run.load(run_folder).disclosure
        if json:
            show_as_is(sheet.to_json())
        else:
            show(str(sheet))
        return
    if run_folder.is_file():
        raise InputError(
            f"{run_folder} is a file, not the folder of a saved run. Add --disclosure for what a job would show."
        )
    run = Run.load(run_folder)
    if json:
        show_json(run_summary(run, run_folder))
    else:
        show(run_text(run))


def _planned(job_file: Path) -> Disclosure:
    """Rehearse a job: its files are read, and nothing in them is used but the number of columns."""
    job = read_job(job_file, None)
    with round_progress() as on_round, warnings.catch_warnings():
        warnings.simplefilter("ignore", DisclosureWarning)  # the sheet says it first
        federation = job.federation(job_file.parent, on_round)
        return federation.disclosure(job.task, sampler=job.sampler, solver=job.solver, split=job.split)
