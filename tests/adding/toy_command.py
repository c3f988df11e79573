"""A toy subcommand: it counts what can travel."""

from colonnade.catalogue import kinds
from colonnade.cli.console import JsonFlag, show, show_json


def command(json: JsonFlag = False) -> None:
    """Count the kinds of message there are."""
    if json:
        show_json({"kinds": len(kinds())})
    else:
        show(f"{len(kinds())} kinds of message")
