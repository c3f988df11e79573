"""What every request passes before the board looks at it: name, origin, size; and what every answer says."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Tokens, reasons, names of jobs: nothing longer is read.
MAX_BODY_BYTES = 8192
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}


@dataclass(frozen=True)
class Place:
    """Where a board is: its port, and the names by which browsers may call it."""

    names: Sequence[str]
    port: int
    is_tls: bool = False

    @property
    def scheme(self) -> str:
        """How it is spoken to."""
        return "https" if self.is_tls else "http"

    def addresses(self) -> frozenset[str]:
        """List what a browser may call it; without a port, too, where that is the usual one."""
        usual = 443 if self.is_tls else 80
        named = {f"{name}:{self.port}".lower() for name in self.names}
        return frozenset(named | ({name.lower() for name in self.names} if self.port == usual else set()))

    def url(self) -> str:
        """Give the address to open."""
        return f"{self.scheme}://{self.names[0]}:{self.port}/"


class Guard:
    """Refuses what no browser of the owner's sends: another name (DNS rebinding), another origin, too much."""

    def __init__(self, app: ASGIApp, place: Place) -> None:
        self._app = app
        self._names = place.addresses()
        self._origins = {f"{place.scheme}://{name}" for name in self._names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        sending = _with_headers(send)
        if refusal is not None:
            await refusal(scope, receive, sending)
            return
        await self._app(scope, receive, sending)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value.decode("latin-1"))
        names = headers.get(b"host", [])
        if len(names) != 1 or names[0].lower() not in self._names:
            return PlainTextResponse("This board is called by another name.\n", 421)
        if scope["method"] not in ("GET", "HEAD"):
            origins = headers.get(b"origin", [])
            if len(origins) != 1 or origins[0].lower() not in self._origins:
                return PlainTextResponse("This request is not from the board's own page.\n", 403)
            length = headers.get(b"content-length", [""])[0]
            if not length.isdecimal() or b"transfer-encoding" in headers:
                return PlainTextResponse("Say how long the request is.\n", 411)
            if int(length) > MAX_BODY_BYTES:
                return PlainTextResponse(f"At most {MAX_BODY_BYTES:,} bytes are read.\n", 413)
        return None


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name for name, _ in message["headers"]}
            more = [(name, value) for name, value in HEADERS.items() if name not in given]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return sending
