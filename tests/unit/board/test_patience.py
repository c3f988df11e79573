"""Idle connections are closed, and those that are answered stay."""

import socket
import time
from contextlib import suppress

import pytest

from board_trial import MadeBoard, board_here
from colonnade.board import patience
from colonnade.board.serving import MAX_CONNECTIONS


def test_connections_that_ask_nothing_do_not_shut_out_the_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 5.0)
    board = MadeBoard()
    with board_here(board) as caller:
        caller.log_in()
        here = f"Host: 127.0.0.1:{caller.place.port}\r\n"
        listener = _line(caller.place.port, f"GET /events{caller.ticket()} HTTP/1.1\r\n{here}\r\n")
        # Its request is looked at before others take all the room: else it is told that there is none.
        assert listener.recv(65536).startswith(b"HTTP/1.1 200")
        half = (
            f"POST /login HTTP/1.1\r\n{here}Origin: http://127.0.0.1:{caller.place.port}\r\nContent-Length: 9\r\n\r\n"
        )
        starts = ("", "GET / HT", half)
        idle = [_line(caller.place.port, starts[number % 3]) for number in range(MAX_CONNECTIONS)]
        try:
            assert caller.get("/").status == 503
            deadline = time.monotonic() + 20
            while caller.get("/state").status != 200:
                assert time.monotonic() < deadline
                time.sleep(0.2)
            for each in idle:
                with suppress(ConnectionError):
                    while each.recv(1000):  # one may be told that there are too many
                        pass
            board.state = {"kind": "made", "number": 2}
            seen = b""
            while b'"number":2' not in seen:
                more = listener.recv(65536)
                assert more, "who listens is let go"
                seen += more
        finally:
            for each in (listener, *idle):
                each.close()


def _line(port: int, words: str) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", port), timeout=20)
    line.sendall(words.encode())
    return line
