"""A server's board: what it shows of the state folder, and the small files that it writes there."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from colonnade.board.app import Acts, Body
from colonnade.board.metrics import server_metrics
from colonnade.board.saved_jobs import table_of_job, table_of_plan
from colonnade.board.server_view import SAID, ServerView
from colonnade.disk import PRIVATE
from colonnade.errors import InputError
from colonnade.node.cancelling import cancel_run
from colonnade.node.runs import read_status
from colonnade.node.state_folder import is_held
from colonnade.report.page import page
from colonnade.run import Run
from colonnade.server_queue import Queue


class ServerBoard:
    """What whoever runs the server sees, and may do: start a saved job, cancel a run, open its report."""

    def __init__(self, federation_file: Path) -> None:
        self._view = ServerView(federation_file)
        self._path = federation_file
        self._started: list[subprocess.Popen[bytes]] = []

    @property
    def name(self) -> str:
        """What it is a board of."""
        return f"Server of {len(self._view.file().parties)} parties"

    def snapshot(self) -> dict[str, Any]:
        """Put into words what is there now."""
        self._started = [each for each in self._started if each.poll() is None]  # so that none stays as a zombie
        return self._view.snapshot()

    def acts(self) -> Acts:
        """Give what can be done, by name."""
        return {"start": self._start, "cancel": self._cancel, "unqueue": self._unqueue}

    def report(self, run: str) -> str | None:
        """Make the page of a run that was saved."""
        folder = self._view.saved_run(run)
        return None if folder is None else page([Run.load(folder)])

    def metrics(self) -> bytes:
        """Give what is counted."""
        file = self._view.file()
        state = Path(file.state)
        is_up = is_held(state)
        return server_metrics(read_status(state), file.parties, len(Queue(state).waiting()), is_up=is_up)

    def _start(self, body: Body) -> str:
        if bool(body.job) == bool(body.plan):
            raise InputError("Name a saved job or a plan to start.")
        file = self._view.file()
        table = table_of_job(file, self._path, body.job) if body.job else table_of_plan(self._path, body.plan)
        queue = Queue(Path(file.state))
        queue.add(table)
        if is_held(Path(file.state)):
            return "The job is in the queue." if queue.is_served else "The job waits for a server with --queue."
        self._start_server(Path(file.state))
        return "The server is starting. It does the job as soon as all parties are connected."

    def _start_server(self, state: Path) -> None:
        """Start a server in a session of its own: it goes on when this board ends."""
        said = os.open(state / SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
        try:
            command = [sys.executable, "-m", "colonnade", "server", str(self._path.resolve()), "--queue"]
            started = subprocess.Popen(  # noqa: S603  # our own command, with the file this board was started with
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
        finally:
            os.close(said)
        self._started.append(started)

    def _cancel(self, body: Body) -> str:
        if not self._view.under_way(body.run):
            raise InputError(f"No run {body.run[:64]!r} is under way. It may be over already: look again.")
        state = Path(self._view.file().state)
        cancel_run(state, body.run)
        if is_held(state):
            return f"Run {body.run} is being cancelled: all parties are told."
        return f"Run {body.run} is cancelled as soon as a server is started again."

    def _unqueue(self, body: Body) -> str:
        Queue(Path(self._view.file().state)).remove(body.job)
        return "The job was taken off the queue."
