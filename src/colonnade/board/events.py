"""Server-sent events: what the board shows, pushed when it changes, to a bounded number of browsers.

Each browser is sent the newest state, never a backlog; one that does not read is let go.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from starlette.types import Receive, Scope, Send

LOOK_SECONDS = 1.0
MAX_LISTENERS = 16
# After so long without news a line says that the board is there; who does not take one in that time is let go.
SILENT_SECONDS, SLOW_SECONDS = 15.0, 10.0
View = Callable[[], bytes]


class News:
    """The newest state, looked at while somebody listens."""

    def __init__(self, view: View, every: float = LOOK_SECONDS) -> None:
        self._view = view
        self._every = every
        self._number, self._latest = 0, b""
        self._changed = asyncio.Condition()
        self._looking: asyncio.Task[None] | None = None
        self.n_listeners = 0

    @property
    def is_full(self) -> bool:
        """Whether nobody else may listen."""
        return self.n_listeners >= MAX_LISTENERS

    async def look_now(self) -> None:
        """Look whether something changed, and tell who listens."""
        latest = await asyncio.to_thread(self._view)
        async with self._changed:
            if latest != self._latest:
                self._number, self._latest = self._number + 1, latest
                self._changed.notify_all()

    async def after(self, number: int, seconds: float) -> tuple[int, bytes]:
        """Wait for a state that is newer than this one; in that time there may be none."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: self._number > number)
        return self._number, self._latest

    def join(self) -> None:
        """Begin to listen."""
        self.n_listeners += 1
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())

    def leave(self) -> None:
        """Listen no longer."""
        self.n_listeners -= 1

    async def _look(self) -> None:
        while self.n_listeners:
            await self.look_now()
            await asyncio.sleep(self._every)


class EventStream:
    """The answer to one browser that listens, as long as it may."""

    def __init__(self, news: News, is_allowed: Callable[[], bool]) -> None:
        self._news = news
        self._is_allowed = is_allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what is new until the browser is gone."""
        del scope
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        self._news.join()
        gone = asyncio.create_task(_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            number = 0
            while not gone.done():
                before = number
                number, latest = await self._newest(number, gone)
                if not self._is_allowed():
                    break
                line = b"data: " + latest + b"\n\n" if number > before else b": here\n\n"
                async with asyncio.timeout(SLOW_SECONDS):
                    await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:  # it does not read: the connection is dropped
            return
        finally:
            gone.cancel()
            self._news.leave()

    async def _newest(self, number: int, gone: "asyncio.Task[None]") -> tuple[int, bytes]:
        news = asyncio.create_task(self._news.after(number, SILENT_SECONDS))
        await asyncio.wait({news, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not news.done():
            news.cancel()
            return number, b""
        return news.result()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
