"""`colonnade spot-check`."""

from pathlib import Path
from typing import Annotated

import typer

from colonnade.cli.console import JsonFlag, show, show_as_is
from colonnade.cli.report import SavedRun
from colonnade.run import Run


def command(
    run_folder: SavedRun,
    pins: Annotated[
        Path | None, typer.Option(help="The parties' pins.toml: compares their signatures, too.", metavar="FILE")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Compare what parties drew and sent in a saved run with what they had committed to; asks no party.

    The run needs draws = "committed" in its sampler; to open rows, run `fit` or `coreset` with --spot-check 20. Exits
    with 4, and names the party, if something does not match.

    Example: colonnade spot-check run --pins pins.toml
    """
    found = Run.load(run_folder).spot_check(pins)
    if json:
        show_as_is(found.to_json())
    else:
        show(str(found))
