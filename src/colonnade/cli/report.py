"""`colonnade report`."""

from pathlib import Path
from typing import Annotated

import typer

from colonnade.cli.console import JsonFlag, show, show_json
from colonnade.cli.show import run_summary, run_text
from colonnade.run import Run

SavedRun = Annotated[Path, typer.Argument(help="Folder of a saved run, from `fit --out`.", metavar="RUN")]
DisclosureFlag = Annotated[
    bool, typer.Option("--disclosure", help="Print the disclosure sheet: who learned what about whom.")
]


def command(run_folder: SavedRun, disclosure: DisclosureFlag = False, json: JsonFlag = False) -> None:
    """Show a saved run again, or its disclosure sheet.

    Example: colonnade report run --disclosure
    """
    run = Run.load(run_folder)
    if disclosure:
        show(run.disclosure.to_json() if json else str(run.disclosure))
    elif json:
        show_json(run_summary(run, run_folder))
    else:
        show(run_text(run))
