"""`colonnade summary`."""

from typing import Annotated

import msgspec
import typer

from colonnade.cli.console import JsonFlag, show, show_json
from colonnade.cli.report import SavedRun
from colonnade.job_inputs import read_run
from colonnade.tasks.summary import Covariance, Of

OfOption = Annotated[
    Of,
    typer.Option("--of", help="What coefficients tell of: the population that rows are drawn from, or the table."),
]
CovarianceOption = Annotated[
    Covariance,
    typer.Option("--covariance", help="Whether residuals may vary from row to row (sandwich), or vary alike."),
]
ConfidenceOption = Annotated[float, typer.Option("--confidence", help="Of the intervals, above 0 and below 1.")]


def command(
    run_folder: SavedRun,
    of: OfOption = "population",
    covariance: CovarianceOption = "sandwich",
    confidence: ConfidenceOption = 0.95,
    json: JsonFlag = False,
) -> None:
    """Show a saved run's coefficients with standard errors, p-values and intervals. Sends nothing.

    Example: colonnade summary run --of table
    """
    found = read_run(run_folder).summary(of, covariance, confidence=confidence)
    if json:
        show_json(msgspec.to_builtins(found))
    else:
        show(str(found))
