"""`colonnade status`."""

from pathlib import Path

from colonnade.cli.console import JsonFlag, show, show_json
from colonnade.cli.server import FederationToml
from colonnade.ledger import aligned
from colonnade.node.files import read_federation_file
from colonnade.node.runs import RunStatus, read_status
from colonnade.node.state_folder import is_held


def command(federation_file: FederationToml, json: JsonFlag = False) -> None:
    """Show a server's runs: phase, round, bytes so far by party, the last error. Run it where the server runs.

    Example: colonnade status federation.toml
    """
    file = read_federation_file(federation_file)
    is_up, found = is_held(Path(file.state)), read_status(Path(file.state))
    if json:
        now = (found.connected, found.owners_asked) if is_up else ([], [])
        names = {"connected": now[0], "owners_asked": now[1], "parties": file.parties}
        show_json({"running": is_up, **names, "runs": found.runs})
        return
    if is_up:
        show(f"The server is running. Connected: {_names(found.connected)}; missing: {_names(found.missing)}.")
        if found.owners_asked:
            show(f"It waits until the owners of these parties approve: {_names(found.owners_asked)}.")
    else:
        show("The server is not running.")
    if found.runs:
        header = ("run", "started", "status", "phase", "round", "sent", "received", "error")
        show(aligned([header, *(_line(run) for run in found.runs[-20:])], numbers={4}))


def _line(run: RunStatus) -> tuple[str, ...]:
    sent, received = _bytes(run.bytes_sent), _bytes(run.bytes_received)
    return run.run, run.started, run.status, run.phase, str(run.round), sent, received, run.error or ""


def _bytes(by_party: dict[str, int]) -> str:
    return ", ".join(f"{party} {count:,}" for party, count in by_party.items())


def _names(names: list[str]) -> str:
    return ", ".join(names) or "none"
