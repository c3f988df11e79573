"""The board's pages and what they ask for, behind the door: Starlette routes, the same for a server and a party."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any, Protocol, TypeVar

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from colonnade.board.door import SESSION_SECONDS, Door, Session, is_word
from colonnade.board.events import EventStream, News
from colonnade.board.guard import Guard, Place
from colonnade.errors import ColonnadeError

WORD = "x-colonnade-word"
ASSETS = {"board.css": "text/css", "board.js": "text/javascript", "login.js": "text/javascript"}
T = TypeVar("T")
Answer = Callable[[Request], Awaitable[Response | EventStream]]
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


class _Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    token: str


class BoardApp:
    """Answers browsers that have shown the token, and sends others to the login page."""

    def __init__(self, board: Board, door: Door, place: Place) -> None:
        self._board, self._door, self._place = board, door, place
        # Ports share a machine's cookies: two boards need two names.
        self._cookie = f"colonnade-board-{place.port}"
        self._news = News(self._snapshot)
        self._at_reports = asyncio.Lock()
        self._pages = Environment(
            loader=PackageLoader("colonnade.board", "pages"), autoescape=True, undefined=StrictUndefined
        )

    def app(self) -> ASGIApp:
        """Make the application."""
        routes = [
            Route("/", self._page, methods=["GET"]),
            Route("/login", self._login_page, methods=["GET"]),
            Route("/login", self._login, methods=["POST"]),
            Route("/logout", self._inside(self._logout), methods=["POST"]),
            Route("/events", self._inside(self._events), methods=["GET"]),
            Route("/state", self._inside(self._state), methods=["GET"]),
            Route("/do/{act}", self._inside(self._do), methods=["POST"]),
            Route("/runs/{run}/report", self._inside(self._report), methods=["GET"]),
            Route("/metrics", self._metrics, methods=["GET"]),
            Route("/assets/{name}", self._asset, methods=["GET"]),
        ]
        return Guard(Starlette(routes=routes), self._place)

    def _snapshot(self) -> Mapping[str, object]:
        """Look, and if that fails say why: the board stays."""
        try:
            return self._board.snapshot()
        except (ColonnadeError, OSError) as error:
            return {"kind": "problem", "words": str(error)}

    def _session(self, request: Request) -> Session | None:
        return self._door.session(request.cookies.get(self._cookie, ""))

    def _inside(self, answer: Answer) -> Callable[[Request], Awaitable[Any]]:
        """Answer only who is logged in; what changes something repeats the word that stands in the page."""

        async def answering(request: Request) -> Response | EventStream:
            session = self._session(request)
            if session is None:
                return _problem(401, "Log in first.")
            if request.method == "POST" and not is_word(session, request.headers.get(WORD, "")):
                return _problem(403, "This request is not from the board's own page. Load it again.")
            return await answer(request)

        return answering

    async def _page(self, request: Request) -> Response:
        session = self._session(request)
        if session is None:
            return RedirectResponse("/login", 303)
        return HTMLResponse(self._rendered("board.html", name=self._board.name, word=session.word))

    async def _login_page(self, request: Request) -> Response:
        if self._session(request) is not None:
            return RedirectResponse("/", 303)
        return HTMLResponse(self._rendered("login.html"))

    async def _login(self, request: Request) -> Response:
        body = await _read(request, _Token)
        if body is None:
            return _problem(400, "This is no token.")
        if not self._door.knows(body.token):
            return _problem(403, "This is not the token that this board printed when it was started.")
        answer = JSONResponse({"words": "Welcome."})
        answer.set_cookie(
            self._cookie,
            self._door.let_in(),
            max_age=int(SESSION_SECONDS),
            httponly=True,
            samesite="strict",
            secure=self._place.is_tls,
        )
        return answer

    async def _logout(self, request: Request) -> Response:
        self._door.let_out(request.cookies.get(self._cookie, ""))
        answer = JSONResponse({"words": "You are logged out."})
        answer.delete_cookie(self._cookie, httponly=True, samesite="strict", secure=self._place.is_tls)
        return answer

    async def _events(self, request: Request) -> Response | EventStream:
        if self._news.is_full:
            return _problem(503, "Too many pages listen to this board. Close some of them.")
        secret = request.cookies.get(self._cookie, "")
        return EventStream(self._news, lambda: self._door.session(secret) is not None)

    async def _state(self, _request: Request) -> Response:
        state = await asyncio.to_thread(self._snapshot)
        return Response(msgspec.json.encode(state), media_type="application/json")

    async def _do(self, request: Request) -> Response:
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

    async def _report(self, request: Request) -> Response:
        async with self._at_reports:  # one at a time: a large one takes a while
            try:
                page = await asyncio.to_thread(self._board.report, request.path_params["run"])
            except (ColonnadeError, OSError) as error:
                return _problem(409, str(error))
        if page is None:
            return _problem(404, "There is no report of this run.")
        return HTMLResponse(page, headers={"content-security-policy": REPORT_POLICY})

    async def _metrics(self, request: Request) -> Response:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if self._session(request) is None and not (kind == "Bearer" and token and self._door.knows(token.strip())):
            return PlainTextResponse("Send the board's token as a bearer token.\n", 401, {"www-authenticate": "Bearer"})
        try:
            return PlainTextResponse(await asyncio.to_thread(self._board.metrics))
        except ColonnadeError as error:
            return _problem(501, str(error))

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            return _problem(404, "There is no such file.")
        content = files("colonnade.board").joinpath("pages", name).read_bytes()
        return Response(content, media_type=ASSETS[name])

    def _rendered(self, page: str, **facts: str) -> str:
        return self._pages.get_template(page).render(facts)


# A report is one file with its own style and script in it. It has no origin here: no cookie, no request, no frame; its
# own policy names the scripts that may run.
REPORT_POLICY = (
    "sandbox allow-scripts allow-modals allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; font-src data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)


def _problem(status: int, words: str) -> Response:
    return JSONResponse({"words": words}, status)


async def _read(request: Request, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except (ValueError, RecursionError):
        return None
