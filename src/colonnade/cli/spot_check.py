"""`colonnade spot-check`."""

from colonnade.cli.console import JsonFlag, show
from colonnade.cli.report import SavedRun
from colonnade.run import Run


def command(run_folder: SavedRun, json: JsonFlag = False) -> None:
    """Compare what parties drew and told in a saved run with what they had committed to. Asks no party.

    The run needs draws = "committed" in its sampler, and `--spot-check 20` at `fit` or `coreset` to open rows. Exits
    with 4, and names the party, where something does not fit.

    Example: colonnade spot-check run
    """
    found = Run.load(run_folder).spot_check()
    show(found.to_json() if json else str(found))
