"""`colonnade server`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from colonnade.api import Federation
from colonnade.cli.console import JsonFlag, say, show, show_json
from colonnade.cli.network_jobs import Progress, read_jobs
from colonnade.node.files import read_federation_file

FederationToml = Annotated[
    Path, typer.Argument(help="TOML file with the parties, where to listen, and jobs.", metavar="FEDERATION.toml")
]


def command(federation_file: FederationToml, json: JsonFlag = False) -> None:
    """Listen, wait for the parties, and do the jobs of the file.

    Started again after it was stopped or killed, it goes on where it was: jobs that are done are not done again, and
    the one that was under way is finished first, with the same result.

    Example: colonnade server federation.toml
    """
    results = []
    for done in do_jobs(federation_file):
        results.append(done)
        if not json:
            show(line(done))
    if json:
        show_json({"jobs": results})
    else:
        say("All jobs are done.")


def do_jobs(federation_file: Path) -> Iterator[dict[str, Any]]:
    """Do the jobs of a file that are not done yet, and give what came of each."""
    file = read_federation_file(federation_file)
    jobs = read_jobs(file.job, federation_file)
    folder = federation_file.resolve().parent
    progress = Progress(Path(file.state), jobs, folder)
    with Federation.connect(federation_file) as federation:
        for number, job in enumerate(jobs[progress.done() :], start=progress.done() + 1):
            done = {"job": number, "do": _verb(job), **job.play(federation, folder)}
            progress.set(number)
            yield done
        progress.clear()


def line(done: dict[str, Any]) -> str:
    """Put what came of a job into one line."""
    facts = ", ".join(f"{name} {_text(value)}" for name, value in done.items() if name not in ("job", "do") and value)
    return f"job {done['job']}, {done['do']}: {facts}"


def _verb(job: Any) -> str:
    return str(job.__struct_config__.tag)


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else str(value)
