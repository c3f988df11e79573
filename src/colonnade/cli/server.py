"""`colonnade server`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from colonnade.api import Federation
from colonnade.cli.console import JsonFlag, say, show, show_json
from colonnade.cli.network_jobs import Progress, read_jobs
from colonnade.transports.network_files import read_federation_file

FederationToml = Annotated[
    Path, typer.Argument(help="TOML file with the parties, where to listen, and jobs.", metavar="FEDERATION.toml")
]


def command(federation_file: FederationToml, json: JsonFlag = False) -> None:
    """Listen, wait for the parties, and do the jobs of the file.

    Started again after it was stopped or killed, it goes on where it was: jobs that are done are not done again, and
    the one that was under way is finished first, with the same result.

    Example: colonnade server federation.toml
    """
    file = read_federation_file(federation_file)
    jobs = read_jobs(file.job, federation_file)
    progress, results = Progress(Path(file.state), jobs), []
    with Federation.connect(federation_file) as federation:
        for number, job in enumerate(jobs[progress.done() :], start=progress.done() + 1):
            done = {"job": number, "do": _verb(job), **job.play(federation, federation_file.resolve().parent)}
            progress.set(number)
            results.append(done)
            if not json:
                show(_line(done))
        progress.clear()
    if json:
        show_json({"jobs": results})
    else:
        say("All jobs are done.")


def _verb(job: Any) -> str:
    return str(job.__struct_config__.tag)


def _line(done: dict[str, Any]) -> str:
    facts = ", ".join(f"{name} {_text(value)}" for name, value in done.items() if name not in ("job", "do") and value)
    return f"job {done['job']}, {done['do']}: {facts}"


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else str(value)
