"""`colonnade party`."""

from pathlib import Path
from typing import Annotated

import typer

from colonnade.cli.console import JsonFlag, say, show_json
from colonnade.node.party import serve_party

PartyToml = Annotated[
    Path, typer.Argument(help="TOML file with data, server, certificates, policy.", metavar="PARTY.toml")
]
OnceFlag = Annotated[
    bool,
    typer.Option("--once", help="End with the server, with its exit code; give up if it stays away."),
]


def command(party_file: PartyToml, once: OnceFlag = False, json: JsonFlag = False) -> None:
    """Take part with this organisation's data: connect to the server and answer what the owner's policy allows.

    Runs until it is stopped. log.jsonl in the state folder says what was asked, by whom, and whether it was answered.

    Example: colonnade party bank.toml
    """
    goodbye = serve_party(party_file, once=once, say=say)
    if json:
        show_json({"status": goodbye.status, "reason": goodbye.reason} if goodbye else {"status": "stopped"})
    if goodbye is not None and goodbye.code:
        raise typer.Exit(goodbye.code)
