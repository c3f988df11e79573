"""`colonnade status`."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from colonnade.cli.console import JsonFlag, show, show_json
from colonnade.cli.server import FederationToml
from colonnade.node.files import read_federation_file
from colonnade.node.runs import RunStatus, ServerStatus, read_status
from colonnade.node.state_folder import is_held
from colonnade.options import listed
from colonnade.text_tables import aligned, in_a_line, paragraphs

# Of more parties, `--json` has the bytes of each; of more names, the first are told.
MOST_PARTIES, MOST_NAMES = 12, 10


def command(federation_file: FederationToml, json: JsonFlag = False) -> None:
    """Show a server's runs: phase, round, bytes so far, the last error. Run it where the server runs.

    Bytes of each party are told of the newest run; with --json of all.

    Example: colonnade status federation.toml
    """
    file = read_federation_file(federation_file)
    is_up, found = is_held(Path(file.state)), read_status(Path(file.state))
    if json:
        now = (found.connected, found.owners_asked) if is_up else ([], [])
        names = {"connected": now[0], "owners_asked": now[1], "parties": file.parties}
        show_json({"running": is_up, **names, "runs": found.runs})
        return
    parts = [_server(found) if is_up else "The server is not running."]
    if found.runs:
        shown = found.runs[-20:]
        header = ("run", "started (UTC)", "status", "phase", "round", "sent", "received")
        parts.append(aligned([header, *map(_line, shown)], numbers={4, 5, 6}))
        parts += [f"{run.run}: {in_a_line(run.error)}" for run in shown if run.error]
        parts += _by_party(shown[-1])
    show(paragraphs("\n\n".join(parts)))


def _server(found: ServerStatus) -> str:
    owners = f" It waits until the owners of these parties approve: {_names(found.owners_asked)}."
    words = f"The server is running. Connected: {_names(found.connected)}; missing: {_names(found.missing)}."
    return words + (owners if found.owners_asked else "")


def _line(run: RunStatus) -> tuple[str, ...]:
    sent, received = (f"{sum(each.values()):,}" for each in (run.bytes_sent, run.bytes_received))
    return run.run, _minute(run.started), run.status, run.phase, str(run.round), sent, received


def _minute(started: str) -> str:
    with suppress(ValueError):
        return f"{datetime.fromisoformat(started).astimezone(UTC):%b %d %H:%M}"
    return started


def _by_party(run: RunStatus) -> list[str]:
    """Lay out the newest run's bytes by party; of many parties only how many there are."""
    if len(run.bytes_sent) > MOST_PARTIES:
        return [f"{run.run}: bytes of {len(run.bytes_sent):,} parties; --json lists them, of all runs."]
    lines = [(party, f"{sent:,}", f"{run.bytes_received.get(party, 0):,}") for party, sent in run.bytes_sent.items()]
    return [aligned([(f"bytes of {run.run}", "sent", "received"), *lines], numbers={1, 2})] if lines else []


def _names(names: list[str]) -> str:
    """Name parties, of many the first."""
    return listed([in_a_line(name) for name in names], MOST_NAMES) or "none"
