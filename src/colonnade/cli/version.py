"""`colonnade version`."""

import msgspec

from colonnade.cli.console import JsonFlag, results
from colonnade.run import current_versions


def command(json: JsonFlag = False) -> None:
    """Print the versions of Colonnade, NumPy and Python."""
    versions = current_versions()
    if json:
        results().print(msgspec.json.encode(versions).decode(), markup=False)
    else:
        results().print("\n".join(f"{name} {number}" for name, number in versions.items()), markup=False)
