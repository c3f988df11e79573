"""Connections on which nothing is asked are closed: a few idle ones must not shut out the owner."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# In so long a browser has sent the whole of a small request.
PATIENCE_SECONDS = 10.0


class PatientProtocol(H11Protocol):
    """uvicorn's, which waits for ever for a first request, and for the rest of one."""

    _timer: asyncio.TimerHandle | None = None
    _before: object = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look at the connection now and then."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(PATIENCE_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no longer."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Close it, unless a request is being answered, or one was begun since the last look."""
        request: Any = self.cycle
        if self.conn.their_state not in (h11.DONE, h11.MUST_CLOSE) and request is self._before:
            self.transport.abort()
            return
        self._before = request
        self._timer = self.loop.call_later(PATIENCE_SECONDS, self._look)
