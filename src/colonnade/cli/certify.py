"""`colonnade certify`."""

from typing import Annotated

import msgspec
import typer

from colonnade.cli.console import JsonFlag, round_progress, say, show, show_json
from colonnade.cli.evaluate import ChangedOption
from colonnade.cli.job import JobFile, read_job
from colonnade.cli.report import SavedRun
from colonnade.job_inputs import keep_certificate, read_run

RowsOption = Annotated[int, typer.Option("--rows", min=1, help="How many rows to draw for the audit.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed for drawing them.")]


def command(
    job_file: JobFile,
    run_folder: SavedRun,
    rows: RowsOption = 600,
    seed: SeedOption = 1,
    changed: ChangedOption = "refuse",
    json: JsonFlag = False,
) -> None:
    """Say what a saved run's model costs on all rows, and how far from the best it can be, with 95 % confidence.

    Draws rows that the model has not seen, by their scores; for each the parties send 16 bits, for k-means 16 a centre.

    Example: colonnade certify examples/bank/job.toml run
    """
    run = read_run(run_folder)
    job = read_job(job_file, None)
    with round_progress() as on_round:
        federation = job.federation(job_file.parent, on_round)
        found = federation.certify(run, rows=rows, seed=seed, changed=changed)
    is_kept = keep_certificate(run_folder, run, found)
    if json:
        show_json({**msgspec.to_builtins(found), "trusted": found.trusted})
        return
    show(f"{found}.")
    show(f"\nWhat the audit sent:\n{federation.sent}")
    if is_kept:
        say(f"Kept with the run in {run_folder}: `colonnade report` shows it.")
