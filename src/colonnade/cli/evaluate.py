"""`colonnade evaluate`."""

from typing import Annotated, Literal

import msgspec
import typer

from colonnade.cli.console import JsonFlag, round_progress, say, show, show_json
from colonnade.cli.job import (
    BitsOption,
    FractionOption,
    JobFile,
    RunFolder,
    SplitOption,
    read_job,
    with_split,
)
from colonnade.evaluation.classes.reports import ClassificationReport
from colonnade.job_inputs import keep_evaluation, read_model, unseen
from colonnade.ledger import aligned

RowsOption = Annotated[
    int | None,
    typer.Option("--rows", min=1, help="Evaluate this many rows, drawn evenly, and give a 95 % interval."),
]
ByOption = Annotated[
    str | None,
    typer.Option("--by", help="Let this party evaluate: it learns each row's residual, the server only sums."),
]
ChangedOption = Annotated[
    Literal["refuse", "allow"],
    typer.Option("--changed", help="Whether to go on where a table changed since the model was learned."),
]
# What a report of classes lays out in tables.
TABLED = ("by_class", "confusion", "calibration")
TABLES: dict[str | None, str] = {
    "same": "The table that the model was learned from.",
    "changed": "The table CHANGED since the model was learned.",
    "aligned again": "Records were aligned again since: rows that the model was learned from may be among these.",
    "new rows": "A table with other rows than the one that the model was learned from.",
    None: "Whether this is the table that the model was learned from is not known.",
}
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed for drawing the rows of --rows.")]


def command(
    job_file: JobFile,
    run_folder: RunFolder,
    rows: RowsOption = None,
    test_fraction: FractionOption = None,
    split_by: SplitOption = None,
    bits: BitsOption = None,
    by: ByOption = None,
    seed: SeedOption = 0,
    changed: ChangedOption = "refuse",
    json: JsonFlag = False,
) -> None:
    """Compute a saved model's cost on all rows of a job's parties, or estimate it from a sample.

    If the run held out rows, or an option here does, only those rows are evaluated. What is found of a run's own rows
    is kept with the run: `colonnade report` shows it.

    Example: colonnade evaluate examples/bank/job.toml run
    """
    model, held_out = read_model(run_folder)
    job = with_split(read_job(job_file, None), test_fraction, split_by)
    with round_progress() as on_round:
        federation = job.federation(job_file.parent, on_round)
        split = job.split
        if test_fraction is None and split_by is None and held_out is not None:
            split = unseen(model, held_out, federation.roster)
        report = federation.evaluate(model, rows=rows, split=split, bits=bits, by=by, seed=seed, changed=changed)
    ledger = federation.sent
    values = msgspec.to_builtins(report)
    is_kept = keep_evaluation(run_folder, report, split)
    if json:
        show_json({**values, "split": split, "units": ledger.units, "bytes": ledger.bytes})
        return
    # Only in the table that a model was learned from, and by the same split, did it not see rows.
    is_unseen = report.table == "same" and split == held_out
    chosen = f"Rows held out by {split}." if is_unseen else f"Rows chosen by {split}: the model may have seen them."
    show(f"{TABLES[report.table]} {'All rows count.' if split is None else chosen}")
    left_out = ("table", *TABLED)
    told = [(name, _text(value)) for name, value in values.items() if value is not None and name not in left_out]
    show(aligned(told, numbers={1}))
    if isinstance(report, ClassificationReport):
        show(f"\n{report.tables()}")
    show(f"\nWhat was sent:\n{ledger}")
    if is_kept:
        say(f"Kept with the run in {run_folder}.")


def _text(value: object) -> str:
    if isinstance(value, tuple | list):
        return " to ".join(_text(item) for item in value) if len(value) == 2 else ", ".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else f"{value:,}"
