"""The board's pages and what they ask for, behind the door: Starlette routes, the same for a server and a party."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any, Protocol, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from colonnade.board.door import Door
from colonnade.board.events import EventStream, News
from colonnade.board.guard import Guard, Place
from colonnade.errors import ColonnadeError

ASSETS = {"board.css": "text/css", "board.js": "text/javascript", "login.js": "text/javascript"}
T = TypeVar("T")
Answer = Callable[[Request, bytes], Awaitable[Response | EventStream]]
Acts = Mapping[str, Callable[["Body"], str]]


class Board(Protocol):
    """What a board shows and does: of a server, or of a party."""

    @property
    def name(self) -> str:
        """What it is a board of."""

    def snapshot(self) -> dict[str, Any]:
        """Put into words what is there now."""

    def acts(self) -> Acts:
        """Give what can be done, by name; each says what it did."""

    def report(self, run: str) -> str | None:
        """Make the page of a run, if it has one."""

    def metrics(self) -> bytes:
        """Give what is counted, as Prometheus reads it."""


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a request that does something may say."""

    run: str = ""
    job: str = ""
    plan: str = ""
    approve: bool = False
    reason: str = ""
    digest: str = ""


class _Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    token: str


class BoardApp:
    """Answers pages that know the secret of a session; others are told nothing of what is here."""

    def __init__(self, board: Board, door: Door, place: Place) -> None:
        self._board, self._door, self._place = board, door, place
        self._news = News(self._snapshot)
        self._at_reports = asyncio.Lock()

    def app(self) -> ASGIApp:
        """Make the application."""
        routes = [
            Route("/", self._page, methods=["GET"]),
            Route("/login", self._login_page, methods=["GET"]),
            Route("/login", self._login, methods=["POST"]),
            Route("/logout", self._inside(self._logout), methods=["POST"]),
            Route("/ticket", self._inside(self._ticket), methods=["POST"]),
            Route("/state", self._inside(self._state), methods=["GET"]),
            Route("/do/{act}", self._inside(self._do), methods=["POST"]),
            Route("/events", self._with_ticket(self._events), methods=["GET"]),
            Route("/runs/{run}/report", self._with_ticket(self._report), methods=["GET"]),
            Route("/metrics", self._metrics, methods=["GET"]),
            Route("/assets/{name}", self._asset, methods=["GET"]),
        ]
        return Guard(Starlette(routes=routes), self._place)

    def _snapshot(self) -> bytes:
        """Look, and if that fails say why: the board stays."""
        try:
            return msgspec.json.encode({"name": self._board.name, **self._board.snapshot()})
        except (ColonnadeError, OSError) as error:
            words = str(error)
        # Half of what is read was written by others. Whatever they found to break a look with, those who listen go on.
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            words = f"The board cannot show what is there now ({what}). Look into the state folder."
        return msgspec.json.encode({"kind": "problem", "words": words.encode("utf-8", "replace").decode()})

    def _inside(self, answer: Answer) -> Callable[[Request], Awaitable[Any]]:
        """Answer only a page that says the secret of its session."""

        async def answering(request: Request) -> Response | EventStream:
            session = self._door.session(_bearer(request))
            return _problem(401, "Log in first.") if session is None else await answer(request, session)

        return answering

    def _with_ticket(self, answer: Answer) -> Callable[[Request], Awaitable[Any]]:
        """Answer where a browser sends no header of ours: once for each ticket."""

        async def answering(request: Request) -> Response | EventStream:
            session = self._door.redeem(request.query_params.get("ticket", ""))
            if session is None:
                return _problem(401, "This address is good once, and at once. Open it from the board.")
            return await answer(request, session)

        return answering

    async def _page(self, _request: Request) -> Response:
        return HTMLResponse(_file("board.html"))

    async def _login_page(self, _request: Request) -> Response:
        return HTMLResponse(_file("login.html"))

    async def _login(self, request: Request) -> Response:
        body = await _read(request, _Token)
        if body is None:
            return _problem(400, "This is no token.")
        if not self._door.knows(body.token):
            return _problem(403, "This is not the token that this board printed when it was started.")
        return JSONResponse({"words": "Welcome.", "session": self._door.let_in()})

    async def _logout(self, _request: Request, session: bytes) -> Response:
        self._door.let_out(session)
        return JSONResponse({"words": "You are logged out."})

    async def _ticket(self, _request: Request, session: bytes) -> Response:
        return JSONResponse({"words": "Good once.", "ticket": self._door.ticket(session)})

    async def _events(self, _request: Request, session: bytes) -> Response | EventStream:
        if self._news.is_full:
            return _problem(503, "Too many pages listen to this board. Close some of them.")
        return EventStream(self._news, lambda: self._door.is_open(session))

    async def _state(self, _request: Request, _session: bytes) -> Response:
        return Response(await asyncio.to_thread(self._snapshot), media_type="application/json")

    async def _do(self, request: Request, _session: bytes) -> Response:
        act, body = self._board.acts().get(request.path_params["act"]), await _read(request, Body)
        if act is None:
            return _problem(404, "There is nothing of this name to do here.")
        if body is None:
            return _problem(400, "This request cannot be read.")
        try:
            words = await asyncio.to_thread(act, body)
        except (ColonnadeError, OSError) as error:
            return _problem(409, str(error))
        await self._news.look_now()
        return JSONResponse({"words": words})

    async def _report(self, request: Request, _session: bytes) -> Response:
        async with self._at_reports:  # one at a time: a large one takes a while
            try:
                page = await asyncio.to_thread(self._board.report, request.path_params["run"])
            except (ColonnadeError, OSError) as error:
                return _problem(409, str(error))
        if page is None:
            return _problem(404, "There is no report of this run.")
        return HTMLResponse(page, headers={"content-security-policy": REPORT_POLICY})

    async def _metrics(self, request: Request) -> Response:
        if not self._door.knows(_bearer(request)):
            return PlainTextResponse("Send the board's token as a bearer token.\n", 401, {"www-authenticate": "Bearer"})
        try:
            return PlainTextResponse(await asyncio.to_thread(self._board.metrics))
        except ColonnadeError as error:
            return _problem(501, str(error))

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            return _problem(404, "There is no such file.")
        return Response(_file(name), media_type=ASSETS[name])


# A report is one file with its own style and script in it. It has no origin here: no session, no request, no frame; its
# own policy names the scripts that may run.
REPORT_POLICY = (
    "sandbox allow-scripts allow-modals allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; font-src data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)


def _bearer(request: Request) -> str:
    """Read the secret that a request says; none is the empty one, which opens nothing."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if kind == "Bearer" else ""


def _file(name: str) -> bytes:
    return files("colonnade.board").joinpath("pages", name).read_bytes()


def _problem(status: int, words: str) -> Response:
    return JSONResponse({"words": words}, status)


async def _read(request: Request, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except (ValueError, RecursionError):
        return None
