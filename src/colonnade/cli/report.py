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
from colonnade.planning.records import Plan
from colonnade.run import Run

SavedRun = Annotated[Path, typer.Argument(help="Folder of a saved run, from `fit --out`.", metavar="RUN")]
RunsOrJob = Annotated[
    list[Path],
    typer.Argument(
        help="Folder of a saved run, and of others to compare it with; with --disclosure also a job file.",
        metavar="RUN...|JOB.toml",
    ),
]
PageOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="Write a page for people: one HTML file, which loads nothing.")
]
PlanOption = Annotated[Path | None, typer.Option("--plan", help="The plan of the run: the page shows its frontier.")]
SheetOption = Annotated[
    Path | None, typer.Option("--dpia", help="Write the disclosure sheet for a privacy officer, as Markdown.")
]
DisclosureFlag = Annotated[
    bool, typer.Option("--disclosure", help="Print the disclosure sheet: who learned what about whom.")
]


def command(
    run_folders: RunsOrJob,
    out: PageOption = None,
    plan: PlanOption = None,
    dpia: SheetOption = None,
    disclosure: DisclosureFlag = False,
    json: JsonFlag = False,
) -> None:
    """Show a saved run again, or who learned what in it (or would, in a job that is not run yet); or write its page.

    Example: colonnade report run -o page.html
    """
    if disclosure and (out is not None or dpia is not None):
        raise InputError("--disclosure prints, and -o and --dpia write: give one of the two.")
    if (out is None and plan is not None) or (len(run_folders) > 1 and out is None):
        raise InputError("Several runs, and a plan, are shown on a page. Add -o page.html.")
    if out is not None and out == dpia:
        raise InputError(f"The page and the sheet cannot both be {out}. Name two files.")
    if out is not None or dpia is not None:
        _write(run_folders, out, plan, dpia, json=json)
        return
    run_folder = run_folders[0]
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


def _write(folders: list[Path], out: Path | None, plan: Path | None, dpia: Path | None, *, json: bool) -> None:
    from colonnade.report import write_dpia, write_report

    runs = [Run.load(folder) for folder in folders]
    written = {}
    if out is not None:
        written["page"] = write_report(runs, out, None if plan is None else Plan.load(plan))
    if dpia is not None:
        written["dpia"] = write_dpia(runs[0], dpia)
    if json:
        show_json({what: str(file) for what, file in written.items()})
        return
    for file in written.values():
        show(f"Written to {file}")


def _planned(job_file: Path) -> Disclosure:
    """Rehearse a job: its files are read, and nothing in them is used but the number of columns."""
    job = read_job(job_file, None)
    with round_progress() as on_round, warnings.catch_warnings():
        warnings.simplefilter("ignore", DisclosureWarning)  # the sheet says it first
        federation = job.federation(job_file.parent, on_round)
        return federation.disclosure(job.task, sampler=job.sampler, solver=job.solver, split=job.split)
