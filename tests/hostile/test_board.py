"""A stranger on the same machine, without the token, learns nothing from a board and changes nothing by it."""

import http.client
import json
from pathlib import Path

import pytest

from board_trial import TOKEN, Caller, MadeBoard, board_here, server_files, write_status
from colonnade.board.guard import MAX_BODY_BYTES
from colonnade.board.server_board import ServerBoard
from colonnade.node.runs import RunStatus

SECRETS = ("hospital", "fit-0123", "diagnosis", "importance")
PATHS = (
    *(
        "/",
        "/login",
        "/events",
        "/state",
        "/metrics",
        "/runs/fit-0123/report",
        "/do/start",
        "/do/cancel",
        "/logout",
        "/ticket",
    ),
    *(
        "/do/unqueue",
        "/assets/board.js",
        "/assets/board.html",
        "/docs",
        "/openapi.json",
        "/../status.json",
        "/%2e%2e/x",
    ),
)
FIT: dict[str, object] = {
    "do": "fit",
    "task": {"kind": "regression"},
    "sampler": {"kind": "importance", "size": 10},
    "out": "diagnosis",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    server_files(tmp_path, ("hospital", "bank"), job=[FIT])
    write_status(tmp_path, RunStatus("fit-0123", "fit", "diagnosis", None, None, "2026-11-18T08:00:00+00:00"))
    return tmp_path


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("cookie", ["", "colonnade-board-{port}=", "colonnade-board-{port}=guess", "a=b; \x01=c"])
def test_a_stranger_learns_nothing_and_changes_nothing(folder: Path, cookie: str) -> None:
    board = ServerBoard(folder / "federation.toml")
    before = files(folder)
    with board_here(board) as caller:
        caller.cookie = cookie.format(port=caller.place.port)
        for path in PATHS:
            for method in ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"):
                said = caller.call(method, path, b"", Content_Length="0")
                heard = (said.body + repr(said.headers).encode()).decode("latin-1")
                assert not [secret for secret in SECRETS if secret in heard], (method, path)
                assert "access-control-allow-origin" not in said.headers
        key = board.snapshot()["jobs"][0]["key"]
        for body in ({"job": key}, {"run": "fit-0123"}):
            for act in ("start", "cancel", "unqueue"):
                assert caller.post(f"/do/{act}", body).status == 401
    assert files(folder) == before


def test_another_pages_form_or_fetch_does_nothing_though_the_browser_is_logged_in(folder: Path) -> None:
    board = ServerBoard(folder / "federation.toml")
    before = files(folder)
    key = board.snapshot()["jobs"][0]["key"]
    with board_here(board) as caller:
        caller.log_in()
        forms = ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": None})
        for changes in forms:
            said = caller.post("/do/start", {"job": key}, **changes)
            assert said.status == 403
        rebound = caller.post("/do/start", {"job": key}, Host="evil.example:80", Origin="http://evil.example:80")
        assert rebound.status == 421
        two = Caller(caller.place, caller.session)
        assert two.get("/state", Host=f"127.0.0.1:{caller.place.port}@evil.example").status == 421
    assert files(folder) == before


def test_garbage_costs_only_who_sends_it() -> None:
    with board_here(MadeBoard()) as caller:
        for raw in (b"\x16\x03\x01" * 100, b"GET / HTTP/9\r\n\r\n", b"A" * 200_000, b"POST / HTTP/1.1\r\n\r\n\x00"):
            line = http.client.HTTPConnection("127.0.0.1", caller.place.port, timeout=20)
            line.connect()
            try:
                line.sock.sendall(raw)
                line.sock.shutdown(1)
                line.sock.recv(1000)
            except OSError:
                pass
            finally:
                line.close()
        idle = [http.client.HTTPConnection("127.0.0.1", caller.place.port, timeout=20) for _ in range(40)]
        for each in idle:
            each.connect()
        deep = b"[" * (MAX_BODY_BYTES - 1)
        assert caller.post("/login", deep).status == 400
        assert caller.post("/login", json.dumps({"token": "x" * 8000}).encode()).status == 403
        assert caller.log_in(TOKEN).status == 200
        for each in idle:
            each.close()
