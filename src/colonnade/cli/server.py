"""`colonnade server`."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from colonnade.cli.console import JsonFlag, say, show, show_json
from colonnade.server_jobs import do_jobs, summary
from colonnade.server_queue import FinishedJob, Stopping, do_queue
from colonnade.transports.grpc.handshakes import overheard

FederationToml = Annotated[
    Path, typer.Argument(help="TOML file with the parties, where to listen, and jobs.", metavar="FEDERATION.toml")
]
QueueFlag = Annotated[
    bool,
    typer.Option(
        "--queue", help="Do what stands in the state folder's queue in place of the file's jobs, and wait for more."
    ),
]


def command(federation_file: FederationToml, queue: QueueFlag = False, json: JsonFlag = False) -> None:
    """Listen, wait for the parties, and do the jobs of the file.

    If it was stopped or killed, start it again: it goes on where it was. Finished jobs are not repeated, and the one
    that was under way is finished first, with the same result.

    Example: colonnade server federation.toml
    """
    with overheard():
        if queue:
            _serve_queue(federation_file, json=json)
        else:
            _do_jobs(federation_file, json=json)


def _do_jobs(federation_file: Path, *, json: bool) -> None:
    results = []
    for done in do_jobs(federation_file):
        results.append(done)
        if not json:
            show(summary(done))
    if json:
        show_json({"jobs": results})
    else:
        say("All jobs are done.")


def _serve_queue(federation_file: Path, *, json: bool) -> None:
    """Do what `colonnade board` puts into the queue, until Ctrl-C or SIGTERM; a line for each job."""
    stopping = Stopping()
    earlier = {number: signal.signal(number, stopping.ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for ended in do_queue(federation_file, stopping):
            if json:
                show_json(ended)
            else:
                show(_line(ended))
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
    say("Stopped. What waits in the queue is done when it is started again.")


def _line(ended: FinishedJob) -> str:
    if ended.status == "failed":
        return f"{ended.ended} failed: {ended.error}"
    return f"{ended.ended} {summary({'job': ended.name, **ended.result})}"
