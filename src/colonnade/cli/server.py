"""`colonnade server`."""

from pathlib import Path
from typing import Annotated

import typer

from colonnade.cli.console import JsonFlag, say, show, show_json
from colonnade.server_jobs import do_jobs, summary
from colonnade.transports.grpc.handshakes import overheard

FederationToml = Annotated[
    Path, typer.Argument(help="TOML file with the parties, where to listen, and jobs.", metavar="FEDERATION.toml")
]


def command(federation_file: FederationToml, json: JsonFlag = False) -> None:
    """Listen, wait for the parties, and do the jobs of the file.

    If it was stopped or killed, start it again: it goes on where it was. Finished jobs are not repeated, and the one
    that was under way is finished first, with the same result.

    Example: colonnade server federation.toml
    """
    results = []
    with overheard():
        for done in do_jobs(federation_file):
            results.append(done)
            if not json:
                show(summary(done))
    if json:
        show_json({"jobs": results})
    else:
        say("All jobs are done.")
