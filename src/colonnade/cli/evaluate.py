"""`colonnade evaluate`."""

from typing import Annotated

import msgspec
import typer

from colonnade.cli.console import JsonFlag, round_progress, show, show_json
from colonnade.cli.job import JobFile, RunFolder, read_job, read_model
from colonnade.ledger import aligned

RowsOption = Annotated[
    int | None, typer.Option("--rows", min=1, help="Evaluate so many rows, drawn evenly, and give a 95 % interval.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Draws the rows of --rows.")]


def command(
    job_file: JobFile, run_folder: RunFolder, rows: RowsOption = None, seed: SeedOption = 0, json: JsonFlag = False
) -> None:
    """Count a saved model's cost on all rows of a job's parties, or estimate it from a sample.

    Example: colonnade evaluate examples/bank/job.toml run
    """
    model, job = read_model(run_folder), read_job(job_file, None)
    with round_progress() as on_round:
        federation = job.federation(job_file.parent, on_round)
        position = len(federation.ledger)
        report = federation.evaluate(model, rows=rows, seed=seed)
    ledger = federation.ledger.since(position)
    values = msgspec.to_builtins(report)
    if json:
        show_json({**values, "units": ledger.units, "bytes": ledger.bytes})
        return
    show(aligned([(name, _text(value)) for name, value in values.items() if value is not None], numbers={1}))
    show(f"\nWhat was sent:\n{ledger}")


def _text(value: object) -> str:
    if isinstance(value, tuple | list):
        return " to ".join(_text(item) for item in value) if len(value) == 2 else ", ".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else f"{value:,}"
