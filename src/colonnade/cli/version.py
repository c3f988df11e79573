"""`colonnade version`."""

from colonnade.cli.console import JsonFlag, show, show_json
from colonnade.run import current_versions


def command(json: JsonFlag = False) -> None:
    """Print the versions of Colonnade, NumPy and Python.

    Example: colonnade version --json
    """
    versions = current_versions()
    if json:
        show_json(versions)
    else:
        show("\n".join(f"{name} {number}" for name, number in versions.items()))
