"""A board on loopback in this process, and a caller that says exactly what a test wants said."""

import http.client
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from colonnade.board.app import Board
from colonnade.board.door import Door
from colonnade.board.guard import Place
from colonnade.board.serving import Tls, listening
from colonnade.node.runs import RunStatus, ServerStatus
from colonnade.node.state_folder import is_held
from network_trial import until, write_federation_file

TOKEN = "the token that was printed"  # noqa: S105  # of tests
MARKUP = "<img src=x onerror=alert(1)>"


@dataclass
class Said:
    """What a board answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def words(self) -> str:
        return str(json.loads(self.body)["words"])


@dataclass
class Caller:
    """Calls a board, as a browser or as anybody else would."""

    place: Place
    session: str = ""
    cookie: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def call(self, method: str, path: str, body: object = None, **changes: str | None) -> Said:
        """Send a request; what is in `changes` takes the place of a header, or leaves it out where it is None."""
        given: dict[str, str | None] = {"Host": f"127.0.0.1:{self.place.port}"}
        given |= {"Cookie": self.cookie} if self.cookie else {}
        given |= {"Authorization": f"Bearer {self.session}"} if self.session else {}
        if method == "POST":
            given |= {"Origin": f"http://127.0.0.1:{self.place.port}"}
        given |= {name.replace("_", "-"): value for name, value in changes.items()}
        data = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        line = http.client.HTTPConnection("127.0.0.1", self.place.port, timeout=20)
        try:
            line.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                if value is not None:
                    line.putheader(name, value)
            if method == "POST" and "Content-Length" not in given:
                line.putheader("Content-Length", str(len(data)))
            line.endheaders()
            line.send(data)
            found = line.getresponse()
            return Said(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
        finally:
            line.close()

    def get(self, path: str, **changes: str | None) -> Said:
        return self.call("GET", path, None, **changes)

    def post(self, path: str, body: object = None, **changes: str | None) -> Said:
        return self.call("POST", path, {} if body is None else body, **changes)

    def log_in(self, token: str = TOKEN) -> Said:
        said = self.post("/login", {"token": token})
        if said.status == 200:
            self.session = json.loads(said.body)["session"]
            assert self.session
        return said

    def ticket(self) -> str:
        """Ask for a ticket, as a query."""
        return f"?ticket={json.loads(self.post('/ticket').body)['ticket']}"


@contextmanager
def board_here(board: Board, door: Door | None = None) -> Iterator[Caller]:
    """Let a board answer on loopback."""
    with listening(board, door or Door(TOKEN), "127.0.0.1:0", Tls(None, None), []) as (place, answer, stop):
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield Caller(place)
        finally:
            stop()
            thread.join(20)
            assert not thread.is_alive(), "the board hangs"


class MadeBoard:
    """A board that shows what it is told to."""

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        self.state = {"kind": "made"} if state is None else state
        self.done: list[object] = []
        self.name = MARKUP

    def snapshot(self) -> dict[str, Any]:
        return self.state

    def acts(self) -> Mapping[str, Any]:
        return {"note": self._note}

    def report(self, run: str) -> str | None:
        return f"<!doctype html><title>{len(run)}</title>" if run == "fit-1" else None

    def metrics(self) -> bytes:
        return b"colonnade_made 1.0\n"

    def _note(self, body: object) -> str:
        self.done.append(body)
        return "noted"


def stop_server(folder: Path) -> None:
    """End the server that a board started: it is nobody's child here."""
    state = folder / "server-state"
    if is_held(state):
        os.kill(int((state / "queue" / "pid").read_text()), signal.SIGTERM)
    until(lambda: not is_held(state))


def server_files(folder: Path, parties: tuple[str, ...] = ("bank", "shop"), **changes: object) -> Path:
    """Write a federation.toml whose server is not running, and give its path."""
    return write_federation_file(folder, parties, 7143, **changes)


def write_status(folder: Path, *runs: RunStatus, **facts: Any) -> None:
    """Write what a server would have written of itself."""
    state = folder / "server-state"
    state.mkdir(exist_ok=True)
    (state / "status.json").write_bytes(msgspec.json.encode(ServerStatus(runs=list(runs), **facts)))
