"""A run that whoever runs the server has cancelled: a small file in the state folder, for which the server looks."""

import re
from pathlib import Path

from colonnade import disk
from colonnade.errors import InputError, RunCancelledError
from colonnade.node.state_folder import write_private

CANCELLED = "cancelled by whoever runs the server"


def cancel_run(state: Path, run: str) -> None:
    """Ask a server to end a run, for all sides: between two rounds, or within about a second while it waits."""
    write_private(_path(state, run), b"")


def stop_if_cancelled(state: Path, run: str) -> None:
    """Raise where a run was cancelled."""
    if is_being_cancelled(state, run):
        raise RunCancelledError(f"{CANCELLED}. Ask them why, or start it again.")


def is_being_cancelled(state: Path, run: str) -> bool:
    """Tell whether a server was asked to end a run, and has not done so yet."""
    return _path(state, run).exists()


def forget_cancelling(state: Path, run: str) -> None:
    """Remove the file, if there is one: the run is over."""
    if is_being_cancelled(state, run):
        disk.remove(_path(state, run))


def _path(state: Path, run: str) -> Path:
    if not re.fullmatch(r"[a-z0-9-]{1,64}", run):
        raise InputError(f"{run!r} names no run. `colonnade status FEDERATION.toml` lists the runs.")
    return state / f"{run}.cancel"
