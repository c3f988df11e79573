"""The board's door on a real connection: who gets what, and what every answer says."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from board_trial import MARKUP, TOKEN, Caller, MadeBoard, board_here
from colonnade.board import events
from colonnade.board.door import TICKET_SECONDS, Door
from colonnade.board.events import MAX_LISTENERS
from colonnade.board.guard import MAX_BODY_BYTES, POLICY
from colonnade.errors import InputError


@pytest.fixture
def board() -> MadeBoard:
    return MadeBoard()


@pytest.fixture
def caller(board: MadeBoard) -> Iterator[Caller]:
    with board_here(board) as caller:
        yield caller


@pytest.fixture
def inside(caller: Caller) -> Caller:
    assert caller.log_in().status == 200
    return caller


def test_a_stranger_is_shown_the_login_page_and_nothing_else(caller: Caller) -> None:
    for path in ("/", "/login"):
        page = caller.get(path)
        assert (page.status, b"made" in page.body, b"img" in page.body) == (200, False, False)
    for path in ("/events", "/state", "/runs/fit-1/report", "/metrics"):
        refused = caller.get(path)
        assert refused.status == 401
        assert b"colonnade_made" not in refused.body
    assert caller.post("/do/note").status == 401
    assert caller.post("/logout").status == 401
    assert caller.post("/ticket").status == 401


def test_wrong_tokens_are_refused_and_do_not_shut_out_the_owner(caller: Caller) -> None:
    for _ in range(30):
        found = caller.log_in("wrong")
        assert (found.status, b"session" in found.body) == (403, False)
    assert caller.log_in(TOKEN).status == 200


@pytest.mark.parametrize("body", [b"", b"[]", b"token=x", b'{"token": 1}', b'{"token": "x", "more": 1}', b"\xff" * 10])
def test_what_is_no_token_is_refused(caller: Caller, body: bytes) -> None:
    assert caller.post("/login", body).status == 400


def test_there_is_no_cookie_and_none_opens_anything(caller: Caller, board: MadeBoard) -> None:
    """A browser sends this machine's cookies to all its ports: whoever listens on another one would have them."""
    said = [caller.log_in()]
    assert TOKEN.encode() not in said[0].body
    secret, ticket = caller.session, caller.ticket()
    said += [caller.get(path) for path in ("/", "/login", "/state", "/assets/board.js", f"/runs/fit-1/report{ticket}")]
    said += [caller.post("/ticket"), caller.post("/do/note")]
    assert [each.status for each in said] == [200] * len(said)
    assert [each for each in said if "set-cookie" in each.headers] == []
    board.done.clear()
    thief = Caller(
        caller.place, cookie=f"colonnade-board-{caller.place.port}={secret}; session={secret}; ticket={secret}"
    )
    for path in (
        "/events",
        "/state",
        "/runs/fit-1/report",
        "/metrics",
        f"/state?ticket={secret}",
        f"/events?ticket={secret}",
    ):
        assert (thief.get(path).status, b"made" in thief.get(path).body) == (401, False)
    assert [thief.post(path).status for path in ("/do/note", "/ticket", "/logout")] == [401] * 3
    assert board.done == []
    assert caller.post("/logout").headers.get("set-cookie") is None


def test_a_ticket_is_good_once_and_not_after_its_time(board: MadeBoard) -> None:
    now = [0.0]
    with board_here(board, Door(TOKEN, lambda: now[0])) as caller:
        caller.log_in()
        first, late, left = (f"/runs/fit-1/report{caller.ticket()}" for _ in range(3))
        anybody = Caller(caller.place)
        assert [anybody.get(first).status, anybody.get(first).status] == [200, 401]
        now[0] += TICKET_SECONDS
        assert anybody.get(late).status == 401
        left = f"/runs/fit-1/report{caller.ticket()}"
        caller.post("/logout")
        assert anybody.get(left).status == 401, "its session is over"


def test_a_ticket_opens_only_what_a_header_cannot(inside: Caller, board: MadeBoard) -> None:
    anybody = Caller(inside.place)
    assert anybody.get(f"/state{inside.ticket()}").status == 401
    assert anybody.post(f"/do/note{inside.ticket()}").status == 401
    assert inside.get("/events").status == 401, "nor a header what a ticket opens"
    assert inside.get("/metrics").status == 401
    assert board.done == []


def test_every_answer_has_the_headers_that_keep_it_here(inside: Caller) -> None:
    inside_paths = ("/", "/state", "/assets/board.css", "/assets/board.js", "/nowhere", "/metrics", "/events")
    for path in inside_paths:
        headers = inside.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers
    assert inside.get("/", Host="elsewhere").headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY


def test_names_are_data_and_in_no_page(inside: Caller) -> None:
    assert b"img" not in inside.get("/").body
    said = inside.get("/state")
    assert said.headers["content-type"] == "application/json"
    assert json.loads(said.body) == {"name": MARKUP, "kind": "made"}


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", "", None])
def test_another_name_is_refused_whoever_asks(inside: Caller, name: str | None) -> None:
    """A page of elsewhere whose name was made to lead here (DNS rebinding) is known by its name."""
    found = inside.get("/state", Host=name)
    assert found.status in (400, 421)
    assert b"made" not in found.body


def test_localhost_is_this_board_too(inside: Caller) -> None:
    assert inside.get("/state", Host=f"LOCALHOST:{inside.place.port}").status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", None, "https://127.0.0.1:{port}"])
def test_a_request_from_another_origin_changes_nothing(inside: Caller, board: MadeBoard, origin: str | None) -> None:
    told = None if origin is None else origin.format(port=inside.place.port)
    assert inside.post("/do/note", Origin=told).status == 403
    assert inside.post("/login", {"token": TOKEN}, Origin=told).status == 403
    assert board.done == []


@pytest.mark.parametrize("said", ["", "Bearer", "Bearer ", "Bearer x", "bearer {secret}", "Basic {secret}", None])
def test_a_request_that_does_not_say_the_secret_changes_nothing(
    inside: Caller, board: MadeBoard, said: str | None
) -> None:
    words = None if said is None else said.format(secret=inside.session)
    assert inside.post("/do/note", Authorization=words).status == 401
    assert inside.post("/do/note", Authorization=f"Bearer {TOKEN}").status == 401, "the token is for the login"
    assert board.done == []
    assert inside.post("/do/note").status == 200
    assert len(board.done) == 1


def test_nothing_is_done_by_looking(inside: Caller, board: MadeBoard) -> None:
    assert inside.get("/do/note").status == 405
    assert board.done == []


def test_large_bodies_are_not_read(inside: Caller, board: MadeBoard) -> None:
    assert inside.post("/do/note", b" " * (MAX_BODY_BYTES + 1)).status == 413
    assert inside.call("POST", "/do/note", b"", Content_Length=str(10**12)).status == 413
    assert inside.call("POST", "/do/note", b"", Content_Length="-1").status in (400, 411)
    chunk = b"2000\r\n" + b" " * 0x2000 + b"\r\n"
    pieces = chunk * 4 + b"0\r\n\r\n"
    assert inside.call("POST", "/do/note", pieces, Content_Length=None, Transfer_Encoding="chunked").status == 411
    assert board.done == []


@pytest.mark.parametrize("body", [b"", b"[", b"[[[[", b'{"unknown": 1}', b'{"run": 5}', b"[" * 4000])
def test_bodies_that_say_nothing_known_are_refused(inside: Caller, board: MadeBoard, body: bytes) -> None:
    assert inside.post("/do/note", body).status == 400
    assert board.done == []


@pytest.mark.parametrize(
    "path", ["/do/unheard-of", "/do/", "/assets/../app.py", "/assets/..%2fapp.py", "/assets/board.html", "/docs", "//x"]
)
def test_there_is_nothing_else(inside: Caller, path: str) -> None:
    for said in (inside.get(path), inside.post(path)):
        assert said.status in (404, 405)
        assert b"import" not in said.body


def test_a_report_has_no_origin_here(inside: Caller) -> None:
    found = inside.get(f"/runs/fit-1/report{inside.ticket()}")
    policy = found.headers["content-security-policy"]
    assert (found.status, policy.startswith("sandbox allow-scripts ")) == (200, True)
    assert "allow-same-origin" not in policy
    for rule in ("default-src 'none'", "frame-ancestors 'none'", "form-action 'none'"):
        assert rule in policy
    for run in ("fit-2", "..%2f..%2fetc%2fpasswd", "%00"):
        assert inside.get(f"/runs/{run}/report{inside.ticket()}").status == 404


def test_metrics_need_the_token(caller: Caller) -> None:
    assert caller.get("/metrics").status == 401
    assert caller.get("/metrics", Authorization="Bearer wrong").status == 401
    assert caller.get("/metrics", Authorization=f"Basic {TOKEN}").status == 401
    found = caller.get("/metrics", Authorization=f"Bearer {TOKEN}")
    assert (found.status, found.body) == (200, b"colonnade_made 1.0\n")


def test_who_logs_out_is_out(inside: Caller) -> None:
    assert inside.post("/logout").status == 200
    assert inside.get("/state").status == 401


def test_an_error_of_an_act_is_told_in_words(inside: Caller, board: MadeBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_body: object) -> str:
        raise InputError("This cannot be. Do that.")

    monkeypatch.setattr(board, "_note", fail)
    found = inside.post("/do/note")
    assert (found.status, found.words) == (409, "This cannot be. Do that.")


def test_a_board_that_cannot_look_says_why_and_stays(inside: Caller, board: MadeBoard) -> None:
    def fail() -> dict[str, object]:
        raise InputError("The file is gone. Put it back.")

    board.snapshot = fail  # type: ignore[method-assign]
    found = inside.get("/state")
    assert (found.status, found.words) == (200, "The file is gone. Put it back.")


@pytest.mark.parametrize("state", [RecursionError("deep"), KeyError("run"), {"n": object()}, {"words": "\ud800"}])
def test_whatever_breaks_a_look_is_said_and_who_listens_goes_on(
    inside: Caller, board: MadeBoard, state: Exception | dict[str, object]
) -> None:
    def look() -> dict[str, object]:
        if isinstance(state, Exception):
            raise state
        return state

    seeing, board.snapshot = board.snapshot, look  # type: ignore[method-assign]
    assert inside.get("/state").words.startswith("The board cannot show what is there now (")
    listener = Listener(inside)
    try:
        listener.until(b'data: {"kind":"problem"')
        board.snapshot = seeing  # type: ignore[method-assign]
        listener.until(b'"kind":"made"')
    finally:
        listener.line.close()


class Listener:
    """A browser's line for events."""

    def __init__(self, caller: Caller, *, room: int = 0) -> None:
        self.line = socket.socket()
        if room:
            self.line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.line.settimeout(20)
        self.line.connect(("127.0.0.1", caller.place.port))
        ask = f"GET /events{caller.ticket()} HTTP/1.1\r\nHost: 127.0.0.1:{caller.place.port}\r\n\r\n"
        self.line.sendall(ask.encode())

    def until(self, words: bytes) -> bytes:
        seen = b""
        while words not in seen:
            more = self.line.recv(65536)
            assert more, seen[-300:]
            seen += more
        return seen


def test_changes_are_pushed_and_the_newest_comes_first(inside: Caller, board: MadeBoard) -> None:
    listener = Listener(inside)
    try:
        assert b"text/event-stream" in listener.until(b'"kind":"made"}')
        board.state = {"kind": "made", "number": 2}
        listener.until(b'"number":2')
    finally:
        listener.line.close()


def test_listeners_are_few_and_those_who_leave_make_room(inside: Caller) -> None:
    listeners = [Listener(inside) for _ in range(MAX_LISTENERS)]
    try:
        for each in listeners:
            each.until(b"data: ")
        assert inside.get(f"/events{inside.ticket()}").status == 503
        assert inside.get("/state").status == 200
        listeners.pop().line.close()
        deadline = time.monotonic() + 20
        while True:
            again = Listener(inside)
            if b"200 OK" in again.line.recv(100):
                listeners.append(again)
                break
            again.line.close()
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        for each in listeners:
            each.line.close()


def test_who_does_not_read_is_let_go_and_holds_up_nobody(board: MadeBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "SLOW_SECONDS", 0.5)
    monkeypatch.setattr(events, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(events.News.__init__, "__defaults__", (0.05,))
    board.state = {"kind": "made", "much": "x" * 500_000, "number": 0}
    stop = threading.Event()

    def change() -> None:
        while not stop.wait(0.05):
            board.state = {**board.state, "number": int(board.state["number"]) + 1}

    changing = threading.Thread(target=change)
    with board_here(board) as caller:
        caller.log_in()
        slow, quick = Listener(caller, room=4096), Listener(caller)
        changing.start()
        try:
            deadline = time.monotonic() + 30
            seen = b""
            while seen.count(b"data: ") < 60 and time.monotonic() < deadline:
                seen += quick.line.recv(1 << 20)
            assert seen.count(b"data: ") >= 60, "the other was held up"
            slow.line.settimeout(5)
            late = b""  # what was on its way when it was let go; then nothing comes any more
            with suppress(ConnectionError, TimeoutError):
                while more := slow.line.recv(1 << 20):
                    late += more
            assert late.count(b"data: ") < 10
        finally:
            stop.set()
            changing.join()
            slow.line.close()
            quick.line.close()


def test_a_session_that_ended_hears_nothing_more(board: MadeBoard) -> None:
    now = [0.0]
    with board_here(board, Door(TOKEN, lambda: now[0])) as caller:
        caller.log_in()
        listener = Listener(caller)
        listener.until(b"data: ")
        now[0] = 1e9
        board.state = {"kind": "made", "number": 2}
        assert b"number" not in listener.until(b"0\r\n\r\n")
        listener.line.close()
