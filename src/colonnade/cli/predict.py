"""`colonnade predict`."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from colonnade.cli.console import JsonFlag, round_progress, say, show_as_is, show_json
from colonnade.cli.job import BitsOption, JobFile, RunFolder, check_out, read_job
from colonnade.contracts import Predictions
from colonnade.errors import InputError
from colonnade.job_inputs import read_model
from colonnade.kernels.class_predictions import ClassPredictions
from colonnade.node.predictions_file import (
    check_ending,
    has_ending,
    predictions_csv,
    save_predictions,
    write_predictions,
)
from colonnade.protocol.session import Delivery

OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="Write a CSV or Parquet file instead of printing, as its name ends.")
]
RowOption = Annotated[
    list[int] | None, typer.Option("--row", help="Predict this row; may be repeated. All rows if left out.")
]

# As files are that people make: what their umask leaves of it.
READABLE = 0o666

PartyOption = Annotated[str | None, typer.Option("--to", help="Deliver the predictions to this party too.")]


def command(
    job_file: JobFile,
    run_folder: RunFolder,
    out: OutOption = None,
    row: RowOption = None,
    to: PartyOption = None,
    bits: BitsOption = None,
    json: JsonFlag = False,
) -> None:
    """Predict rows of a job's parties with a saved model: values, classes and their chances, or numbers of clusters.

    With --to, the file is what that party gets: a CSV or Parquet file with its key columns, never over another one.

    Example: colonnade predict examples/bank/job.toml run --out predictions.csv
    """
    (model, _), job = read_model(run_folder), read_job(job_file, None)
    check_out(out, job, job_file)
    if out is not None and to is not None:
        check_ending(out)
    with round_progress() as on_round:
        federation = job.federation(job_file.parent, on_round)
        found = federation.predict(model, rows=row or None, to=to, bits=bits)
    if to is not None:
        say(f"Delivered to {to}: {len(found):,} predictions.")
    if out is not None:
        _write(out, row or None, found, None if to is None else federation.received(to))
    if json:
        of_classes = isinstance(found, ClassPredictions)
        chances = {"probabilities": found.probabilities, "classes": found.names} if of_classes else {}
        show_json({"rows": row or list(range(len(found))), "predictions": np.asarray(found), **chances})
    elif out is None:
        for text in predictions_csv(row or None, found):
            show_as_is(text.rstrip("\n"))


def _write(out: Path, rows: list[int] | None, found: Predictions, delivered: Delivery | None) -> None:
    try:
        if delivered is not None:
            write_predictions(out, delivered)
        else:
            save_predictions(out, rows, found, READABLE)
    except OSError as error:
        raise InputError(
            f"The predictions cannot be written to {out}: {error.strerror or error}. Choose another file."
        ) from error
    say(f"{len(found):,} predictions written to {out}{'' if has_ending(out) else ', as CSV'}")
